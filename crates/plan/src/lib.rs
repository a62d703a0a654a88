//! Deciding: which workload goes where, with which priority and which rate limits, and what latency each
//! is then guaranteed.
//!
//! Reading order: [`Instance`] is the question, [`Method`] chooses limits for the workloads of one server
//! (thesis §5.2.2 and the baselines of §5.3.1), placement decides who shares a server (§5.2.3),
//! [`lower_bound`] says how few servers any placement could need, [`advise`] what would admit a refused
//! workload. [`admission`] decides on workloads that come and go, by any model of `predict` (§4).
//! Everything is pure: no clock, no files; randomness is seeded.

pub mod admission;
mod advice;
mod chain;
mod instance;
mod limiters;
mod limits;
mod lower_bound;
mod normalise;
pub mod packing;
mod placement;
mod prioritise;
mod server;
#[cfg(test)]
mod testing;

pub use advice::{Change, advise};
pub use instance::{Class, Instance, InstanceError, OnClass, Workload};
pub use limiters::limiters;
pub use limits::{Blocked, Method};
pub use lower_bound::{LowerBound, lower_bound};
pub use normalise::Normalisation;
pub use placement::{Effort, Fleet, Order, Placement, Progress, Refusal, place, place_first_fit};
pub use prioritise::{LatencyOracle, Prioritisation, Rule, prioritise, prioritise_by};
pub use server::{Guarantee, Level, Limits, Server, level_bounds, levels};
