//! Jobs in transit between the stages of a path, in the order in which they reach the next stage.

use model::Job;

/// A job on its way through the stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobInTransit<'a> {
    /// When it reaches the next stage, nanoseconds.
    pub(super) at: u64,
    /// When it arrived at the first stage, nanoseconds.
    pub(super) entered: u64,
    pub(super) job: &'a Job,
    /// Index of its stream.
    pub(super) stream: u32,
}

/// An endless sequence of jobs in order of [`JobInTransit::at`].
pub(super) trait TransitSource<'a> {
    fn next(&mut self) -> JobInTransit<'a>;
}
