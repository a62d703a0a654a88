//! PriorityMeister (§3.2): priorities that its analysis finds to keep all SLOs, and several token buckets for each
//! workload and stage that never delay it.
//!
//! Limits are the fewest that admit at most 5 % more than the traces within any duration; bounds count these 5 %.
//! They add up over the stages, as where limiters hold a workload to its curve before each (`Passage::Reshaped`).
//! A request in service is not interrupted, which the thesis leaves out: every stage counts the longest request
//! of anybody on top.

use calculus::{ArrivalCurve, PriorityQueue};
use model::{
    LatencyModel as _, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, Slo, Stage,
    StageLimit,
};
use predict::{Passage, WorstCase};
use scenario::SimulationCase;
use scenario::server::WorkloadRequests;

/// What limits admit beyond the traces.
const TOLERANCE: f64 = 0.05;

/// A server as the analysis sees it.
pub(crate) struct Analysis {
    names: Vec<String>,
    curves: Vec<PerStage<ArrivalCurve>>,
    /// Seconds that a request may wait for one that has begun.
    blocking: PerStage<f64>,
    base: f64,
    network: f64,
}

impl Analysis {
    /// Of the workloads with recorded requests, in their order.
    pub(crate) fn of(case: &SimulationCase) -> Self {
        let server = case.server.as_ref().expect("a storage server");
        let mut found = Self {
            names: Vec::new(),
            curves: Vec::new(),
            blocking: PerStage::from_fn(|_| 0.0),
            base: server.base_latency().as_secs(),
            network: server.network().bytes_per_sec(),
        };
        for workload in &case.workloads {
            match &workload.requests {
                WorkloadRequests::Recorded { trace, .. } => {
                    trace.items().iter().for_each(|job| found.blocks(&job.work));
                    let sketch = WorstCase { passage: Passage::Reshaped }.sketch(trace);
                    found.names.push(workload.name.clone());
                    found.curves.push(PerStage::from_fn(|stage| sketch.curve(stage).clone()));
                }
                WorkloadRequests::Clients { work, .. } => found.blocks(work),
            }
        }
        found
    }

    fn blocks(&mut self, work: &PerStage<units::Nanos>) {
        for stage in Stage::ALL {
            self.blocking[stage] = self.blocking[stage].max(work[stage].as_secs());
        }
    }

    fn delay(&self, workload: usize, stage: Stage, above: &[usize]) -> f64 {
        let mut queue = PriorityQueue::new();
        above.iter().for_each(|&other| queue.add(&self.curves[other][stage].scaled(1.0 + TOLERANCE), 0.0));
        queue.delay(&self.curves[workload][stage].scaled(1.0 + TOLERANCE), 0.0) + self.blocking[stage]
    }

    /// Latency that a workload never exceeds with these above it at all stages, seconds.
    pub(crate) fn bound(&self, workload: usize, above: &[usize]) -> f64 {
        self.base + Stage::ALL.iter().map(|&stage| self.delay(workload, stage, above)).sum::<f64>()
    }

    /// Priorities and limits for these SLOs, and whether the analysis says that all are kept.
    pub(crate) fn policy(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - self.base).collect();
        let mut oracle = |workload: usize, above: &PerStage<Vec<usize>>| {
            PerStage::from_fn(|stage| self.delay(workload, stage, &above[stage]))
        };
        let found = plan::prioritise(&budgets, &mut oracle);
        let workloads = (0..slos.len())
            .map(|at| self.workload(at, slos[at], found.priorities[at], found.latencies[at] + self.base));
        let server = PolicyServer {
            name: "server".into(),
            class: "server".into(),
            network_bytes_per_s: self.network,
            storage_profile: "disk".into(),
        };
        let policy = Policy::new("priority-meister", vec![server], workloads.collect());
        (policy, found.missed.is_none())
    }

    fn workload(&self, at: usize, slo: Slo, priority: PerStage<u32>, bound: f64) -> PolicyWorkload {
        let limits = Stage::ALL.into_iter().flat_map(|stage| {
            let limits = plan::limiters(&self.curves[at][stage], TOLERANCE);
            limits.into_iter().map(move |limit| StageLimit::new(stage, limit, self.network))
        });
        let placement = PolicyPlacement {
            server: "server".into(),
            priority,
            bound_s: Some(bound),
            limits: limits.collect(),
        };
        PolicyWorkload::admitted(self.names[at].as_str(), slo, placement)
    }
}
