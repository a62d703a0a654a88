//! The edge: rights, loading and attaching the programs, draining their events, and what they cost.

mod attached;
mod rights;

pub use attached::{AttachedProbes, ProbeCost, ProbeSettings};
pub use rights::missing_rights;
