//! The input of burst curves.

use units::{Nanos, Work};

/// The arrival of one request at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageArrival {
    /// When the request arrives, since the trace's origin.
    pub at: Nanos,
    /// Work of the request at the stage.
    pub work: Work,
}
