//! Result of a placement: servers with limits, and refused workloads.

use crate::limits::FitRefusal;
use crate::server::PlannedServer;

/// A workload that found no server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacementRefusal {
    /// The index of the workload in the problem.
    pub workload: usize,
    /// Why it does not fit on an empty server; `None` when it would, but no server is left.
    pub alone: Option<FitRefusal>,
}

/// Assignment of all workloads of a problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Servers in use, in the order in which they were opened.
    pub servers: Vec<PlannedServer>,
    /// Workloads without a guarantee, in the order in which they were tried.
    pub refused: Vec<PlacementRefusal>,
}
