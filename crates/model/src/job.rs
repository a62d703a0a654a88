use crate::PerStage;
use units::Nanos;

/// A request as a server sees it: when it arrives and how long each stage works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Since the trace's origin.
    pub arrival: Nanos,
    /// Time that each stage needs for it alone, rounded up; zero where it does not pass.
    pub work: PerStage<Nanos>,
}
