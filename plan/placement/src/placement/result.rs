//! Result of a placement: servers with limits, and refused workloads.

use crate::limits::FitRefusal;
use crate::problem::PlanningProblem;
use crate::rules::{ExcludedServers, RuledServer, RuledServers};
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
    /// Number of each server within its class, where it has been given one or its workloads ask for one.
    pub numbers: Vec<Option<usize>>,
}

impl RuledServers for Placement {
    fn count(&self) -> usize {
        self.servers.len()
    }

    fn at(&self, position: usize) -> RuledServer<'_> {
        let PlannedServer { class, members, .. } = &self.servers[position];
        RuledServer { class: *class, members, number: self.numbers.get(position).copied().flatten() }
    }
}

/// Servers that all have numbers.
struct NumberedServers<'a> {
    servers: &'a [PlannedServer],
    numbers: &'a [usize],
}

impl RuledServers for NumberedServers<'_> {
    fn count(&self) -> usize {
        self.servers.len()
    }

    fn at(&self, position: usize) -> RuledServer<'_> {
        let PlannedServer { class, members, .. } = &self.servers[position];
        RuledServer { class: *class, members, number: Some(self.numbers[position]) }
    }
}

impl Placement {
    /// Counts the servers of a problem by the rule that keeps a workload from each. Servers in use have these numbers.
    pub fn excluded(&self, problem: &PlanningProblem, numbers: &[usize], workload: usize) -> ExcludedServers {
        problem.rules.excluded(&NumberedServers { servers: &self.servers, numbers }, workload)
    }
}
