//! A request as work for each stage of one class of server.

use crate::PerStage;
use units::Nanos;

/// A request as a server sees it: its arrival and its work for each stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Arrival, counted from the trace's origin.
    pub arrival: Nanos,
    /// The time that each stage needs for it alone, rounded up; zero at a stage that it does not pass.
    pub work: PerStage<Nanos>,
}
