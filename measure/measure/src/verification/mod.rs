//! Observations of a run against what was promised.

mod document;
mod judge;
mod observations;

pub use document::FindingsDocument;
pub use judge::{JudgedRun, JudgementSettings, check_workloads, judge};
pub use observations::read_observations;
