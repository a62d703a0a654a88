//! The edge: rights, loading and attaching the programs, draining their events, and what they cost.

mod attached;
mod loading;
mod rights;

pub use attached::{AttachedProbes, ProbeCost, ProbeSettings};
pub(crate) use loading::{attach_if_there, lacks, skipped_runs, take};
pub use loading::{refused, types_of_kernel};
pub use rights::{may_measure_cost, missing_rights};
