//! Observations of a run against what was promised.

mod judge;
mod observations;

pub use judge::{JudgedRun, JudgementSettings, judge};
pub use observations::read_observations;
