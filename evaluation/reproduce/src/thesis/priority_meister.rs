//! PriorityMeister (§3.2): priorities with which its analysis finds all SLOs kept, and for each workload and stage several
//! token buckets that never delay it.
//!
//! Limits are the fewest that admit at most 5 % more than the traces within any duration; bounds count these 5 %.
//! They add up over the stages, as where limiters hold a workload to its curve before each (`Reshaping::EveryStage`).
//! A request in service is not interrupted, which the thesis leaves out: at every stage the longest request of any workload
//! comes before the bursts (Le Boudec and Thiran, *Network Calculus*, Prop. 1.3.4), as in [`calculus::DeviceQueue`].

use calculus::{ArrivalCurve, PriorityQueue};
use model::{
    LatencyModel as _, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, Slo, Stage,
    StageLimit,
};
use predict::{Reshaping, WorstCase};
use scenario::SimulationCase;
use scenario::server::WorkloadRequests;

/// Share by which limits may admit more than the traces.
const TOLERANCE: f64 = 0.05;

/// A server as the analysis sees it.
pub(crate) struct PriorityMeisterAnalysis {
    names: Vec<String>,
    /// Arrival curves in seconds of each stage's time.
    curves: Vec<PerStage<ArrivalCurve>>,
    /// Longest wait for a request in service, seconds.
    blocking: PerStage<f64>,
    /// Time of every request besides the stages, seconds.
    base: f64,
    /// The bandwidth of the network in bytes per second.
    network_bytes_per_s: f64,
}

impl PriorityMeisterAnalysis {
    /// An analysis of the workloads of a case with recorded requests, in their order.
    ///
    /// # Panics
    /// When the case has no storage server.
    pub(crate) fn new(case: &SimulationCase) -> Self {
        let server = case.server.as_ref().expect("a storage server");
        let mut analysis = Self {
            names: Vec::new(),
            curves: Vec::new(),
            blocking: PerStage::from_fn(|_| 0.0),
            base: server.base_latency().as_secs(),
            network_bytes_per_s: server.network().bytes_per_sec(),
        };
        for workload in &case.workloads {
            match &workload.requests {
                WorkloadRequests::Recorded { trace, .. } => {
                    for job in trace.items() {
                        analysis.count_blocking(&job.work);
                    }
                    let sketch = WorstCase { reshaping: Reshaping::EveryStage }.sketch(trace);
                    analysis.names.push(workload.name.clone());
                    analysis.curves.push(PerStage::from_fn(|stage| sketch.curve(stage).clone()));
                }
                WorkloadRequests::Clients { work, .. } => analysis.count_blocking(work),
            }
        }
        analysis
    }

    /// Takes a request into account that others may have to wait for.
    fn count_blocking(&mut self, work: &PerStage<units::Nanos>) {
        for stage in Stage::ALL {
            self.blocking[stage] = self.blocking[stage].max(work[stage].as_secs());
        }
    }

    /// The delay of a workload below these others at a stage, seconds.
    fn delay(&self, workload: usize, stage: Stage, above: &[usize]) -> f64 {
        let mut queue = PriorityQueue::new();
        for &other in above {
            queue.add(&self.curves[other][stage].scaled(1.0 + TOLERANCE), 0.0);
        }
        queue.delay(&self.curves[workload][stage].scaled(1.0 + TOLERANCE), self.blocking[stage])
    }

    /// The latency that a workload never exceeds when these others have higher priorities at all stages, seconds.
    pub(crate) fn bound(&self, workload: usize, above: &[usize]) -> f64 {
        self.base + Stage::ALL.iter().map(|&stage| self.delay(workload, stage, above)).sum::<f64>()
    }

    /// Returns the policy with priorities and limits for these SLOs, and true if all are kept according
    /// to the analysis.
    pub(crate) fn policy(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - self.base).collect();
        let mut delays = |workload: usize, above: &PerStage<Vec<usize>>| {
            PerStage::from_fn(|stage| self.delay(workload, stage, &above[stage]))
        };
        let plan = placement::prioritise(&budgets, &mut delays);
        let mut workloads = Vec::new();
        for (index, &slo) in slos.iter().enumerate() {
            let bound = plan.latencies[index] + self.base;
            workloads.push(self.policy_workload(index, slo, plan.priorities[index], bound));
        }
        let server = PolicyServer {
            name: "server".into(),
            class: "server".into(),
            network_bytes_per_s: self.network_bytes_per_s,
            storage_profile: "disk".into(),
            storage_profile_hash: None,
            enforcement: None,
        };
        let policy = Policy::new("priority-meister", vec![server], workloads)
            .unwrap_or_else(|error| panic!("limits that cannot be enforced: {error}"));
        (policy, plan.missed.is_none())
    }

    fn policy_workload(&self, index: usize, slo: Slo, priority: PerStage<u32>, bound: f64) -> PolicyWorkload {
        let mut limits = Vec::new();
        for stage in Stage::ALL {
            for limit in placement::enforceable_limiters(&self.curves[index][stage], TOLERANCE) {
                limits.push(StageLimit::new(stage, limit, self.network_bytes_per_s));
            }
        }
        let placement = PolicyPlacement { server: "server".into(), priority, bound_s: Some(bound), limits };
        PolicyWorkload::admitted(self.names[index].as_str(), slo, placement)
    }
}
