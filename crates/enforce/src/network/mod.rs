//! The network enforcer: the policy's priorities and rate limits at network-in and network-out, by the kernel's
//! traffic control, on every host that sends.
//!
//! [`Deployment`](crate::deployment::Deployment) says where servers and clients are; [`wanted()`] turns a policy into what each device should do;
//! [`apply()`] makes a host so and [`remove()`] gives it back; [`probe()`] tells what a kernel can do.
//! Deciding is pure; what is run goes through [`Run`](crate::command::Run).
//!
//! Source: thesis §2.2.2, with HTB's own priorities in the place of PRIO queues (kernels have one more often than
//! both) and nftables in the place of DSMARK (which the kernel no longer has).
//!
//! Not covered: connections that are open when a device is taken over build large packets until they look up their
//! route again, and burst by up to 64 kB more; a sender that sets `SO_PRIORITY` to a class itself (it needs
//! privileges); what a device queues in hardware.

mod apply;
mod change;
mod classify;
mod flow;
mod found;
mod probe;
mod state;
mod target;
mod tree;
mod wanted;

pub use apply::{Options, Report, apply, is_here, remove};
pub use flow::Flow;
pub use probe::{Ability, probe};
pub use state::{Lock, Store};
pub use wanted::{Bucket, Lane, Wanted, WantedDevice, WantedHost, wanted};
