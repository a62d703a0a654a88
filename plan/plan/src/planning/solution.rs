//! A plan for a cluster: the problem in numbers, who is where, and what it took.

use crate::planning::kept::KeptChanges;
use crate::planning::recipe::PlanningRecipe;
use model::PerStage;
use placement::{Guarantee, LowerBound, Placement, PlannedServer, PlanningProblem, SuggestedChange};
use std::time::Duration;

/// A plan for a cluster, and what it took.
#[derive(Debug)]
pub struct PlannedCluster {
    pub recipe: PlanningRecipe,
    /// The problem in numbers.
    pub instance: PlanningProblem,
    /// Servers in use with their workloads and limits, and who was refused.
    pub placement: Placement,
    /// Names of the servers in use, in the order of the placement.
    pub names: Vec<String>,
    /// Changes that would admit each refused workload; computed for the first few only.
    pub advice: Vec<Vec<SuggestedChange>>,
    /// Lower bound on the number of servers.
    pub lower_bound: LowerBound,
    /// Differences from the kept policy; `None` without one.
    pub changed: Option<KeptChanges>,
    /// CPU time of placement, limits and lower bound.
    pub cpu: Duration,
}

/// A workload's place in a plan.
#[derive(Debug, Clone)]
pub struct WorkloadPlace {
    /// Index into the placement's servers.
    pub server: usize,
    pub guarantee: Guarantee,
}

impl PlannedCluster {
    /// Returns the place and guarantee of each workload of the instance; `None` for refused ones.
    pub fn places(&self) -> Vec<Option<WorkloadPlace>> {
        let mut places = vec![None; self.instance.workloads.len()];
        for (number, server) in self.placement.servers.iter().enumerate() {
            for guarantee in server.guarantees(&self.instance) {
                let workload = guarantee.workload;
                places[workload] = Some(WorkloadPlace { server: number, guarantee });
            }
        }
        places
    }

    /// Returns the number of workloads with a guarantee.
    pub fn admitted(&self) -> usize {
        self.instance.workloads.len() - self.placement.refused.len()
    }

    /// The admitted workload whose bound is closest to its SLO.
    pub fn tightest(&self) -> Option<usize> {
        let guarantees = self.placement.servers.iter().flat_map(|server| server.guarantees(&self.instance));
        let used = |g: &Guarantee| g.total / self.instance.workloads[g.workload].slo.latency.0;
        guarantees.max_by(|a, b| used(a).total_cmp(&used(b))).map(|guarantee| guarantee.workload)
    }

    /// Mean load of a server by stage, fraction of capacity.
    pub fn mean_load(&self, server: &PlannedServer) -> PerStage<f64> {
        PerStage::from_fn(|stage| {
            let members = server.members.iter().map(|&workload| &self.instance.workloads[workload]);
            members.map(|workload| workload.on_class[server.class].mean_rate[stage]).sum()
        })
    }
}
