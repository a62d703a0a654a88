//! The network enforcer: the policy's priorities and rate limits at network-in and network-out, kept by the kernel's
//! traffic control on every host that sends.
//!
//! [`Deployment`](crate::deployment::Deployment) says where servers and clients are. [`desired_network`] turns a policy
//! into what each device should do. [`apply()`] changes a host until it does so, [`remove()`] restores what was there
//! before, and [`HostChange`] does either to several hosts together; [`probe_kernel`] tells what a kernel can do. Everything that decides is pure; programs of the system run
//! through [`CommandRunner`](crate::command::CommandRunner).
//!
//! The path: `desired` (data) ← `translate` (from policy and deployment, with `route` and `levels`) → `configuration`
//! (the same in the words of tc and nft, by `htb` and `filters`) → `difference` (from what is `observed`) → `change` → `apply`.
//!
//! Source: thesis §2.2.2, with HTB's own priorities in the place of PRIO queues (kernels have one more often than
//! both) and nftables in the place of DSMARK (which the kernel no longer has).
//!
//! Not covered: connections that are open when a device is taken over build large packets until they look up their
//! route again, and burst by up to 64 kB more; a sender that sets `SO_PRIORITY` to a class itself (it needs
//! privileges); what a device queues in hardware.

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

pub use apply::{apply, is_local, is_remembered_as, remove, rename_remembered};
pub use change::{ApplyOptions, ApplyReport, HostChange};
pub use desired::{DesiredDevice, DesiredHost, DesiredNetwork, FrameBucket, TrafficClass};
pub use packet_match::PacketMatch;
pub use probe::{KernelFeature, probe_kernel};
pub use state::StateStore;
pub use translate::desired_network;
