//! The network enforcer: the policy's priorities and rate limits at network-in and network-out, enforced
//! by the kernel's traffic control on every sending host.
//!
//! [`Deployment`](crate::deployment::Deployment) locates servers and clients. [`desired_network`] derives
//! the desired state of each device from a policy. [`apply()`] brings a host to that state, [`remove()`]
//! restores its original state, and `HostChange` does either to several hosts together.
//! [`probe_kernel`] tests the features of a kernel. Decisions are pure; programs of the system run
//! through [`CommandRunner`](crate::command::CommandRunner).
//!
//! Data flow: `desired` (data) ← `translate` (from policy and deployment, with `route` and `levels`) →
//! `configuration` (the same for tc and nft, by `htb` and `filters`) → `difference` (from the `observed`
//! state) → `change` → `apply`.
//!
//! Source: thesis §2.2.2, with two replacements. HTB's own priorities replace PRIO queues, because more
//! kernels have one than both; nftables replaces DSMARK, which the kernel no longer has.
//!
//! Not covered: a sender that sets `SO_PRIORITY` to a class itself (which requires privileges), and
//! hardware queues of a device. Connections that are open when a device is taken over build large packets
//! until they look up their route again, and burst by up to 64 kB more.

mod apply;
mod change;
mod configuration;
mod desired;
mod difference;
mod filters;
mod htb;
mod levels;
mod namespace;
mod observed;
mod packet_match;
mod probe;
mod route;
mod state;
mod steps;
mod translate;

pub(crate) use apply::is_local;
pub(crate) use apply::is_remembered_as;
pub(crate) use apply::rename_remembered;
pub use apply::{apply, remove};
pub(crate) use change::HostChange;
pub use change::{ApplyOptions, ApplyReport};
pub use desired::{DesiredDevice, DesiredHost, DesiredNetwork, FrameBucket, TrafficClass};
pub use packet_match::PacketMatch;
pub use probe::{KernelFeature, probe_kernel};
pub use state::StateStore;
pub use translate::desired_network;
