//! A trace with its place on a server.

use super::trace::ReplayTrace;
use model::PerStage;

/// The trace of a workload with its priorities on a server.
#[derive(Debug, Clone, Copy)]
pub struct ReplayStream<'a> {
    /// The jobs that the stream sends.
    pub trace: &'a ReplayTrace,
    /// The priority at each stage; 0 is served first, equal priorities first come first served.
    pub priority: PerStage<u32>,
    /// Streams of one group keep the alignment in which they were recorded.
    pub group: usize,
}
