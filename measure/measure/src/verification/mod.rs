//! Observations of a run against what was promised.

mod judge;
mod observations;

pub use judge::{JudgedRun, JudgementSettings, check_workloads, judge};
pub use observations::read_observations;
