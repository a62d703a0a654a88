//! Bounds, priorities and limits for one device (PriorityMeister, thesis §3.2), extended by effects of a
//! real device.
//!
//! Limits are the fewest token buckets that never delay a workload and admit at most 5 % more than its
//! trace within any duration; bounds count these 5 %. Bounds also count the requests that the device has
//! already begun, and the service of a request by one channel, as [`calculus::DeviceQueue`] derives it
//! and as plans count it, too.
//!
//! They do not count the path through kernel, proxy and load generator: tenths of a millisecond.

use super::definition::{PROTECTING_POLICY, SERVER};
use calculus::{ArrivalCurve, DeviceQueue, PriorityQueue};
use model::{
    PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, ServerEnforcement, Slo,
    Stage, StageLimit,
};
use units::ByteRate;

/// Share by which limits may admit more than the traces.
const TOLERANCE: f64 = 0.05;

/// A workload that shares a device, as the analysis sees it.
#[derive(Debug, Clone)]
pub(super) struct AnalysedTenant {
    /// The name in policies.
    pub(super) name: String,
    /// The arrival curve in seconds of device time.
    pub(super) curve: ArrivalCurve,
    /// The device time of its largest request, seconds.
    pub(super) largest: f64,
}

/// Workloads that share a device, and the parameters of its use.
#[derive(Debug, Clone)]
pub(super) struct DeviceAnalysis {
    tenants: Vec<AnalysedTenant>,
    queue: DeviceQueue,
    /// The device time of the largest best-effort request, seconds.
    best_effort: f64,
}

impl DeviceAnalysis {
    /// Analyses these workloads beside best-effort requests of at most `best_effort` seconds of device
    /// time.
    pub(super) fn new(tenants: Vec<AnalysedTenant>, queue: DeviceQueue, best_effort: f64) -> Self {
        Self { tenants, queue, best_effort }
    }

    /// The queueing delay of a workload below these others, seconds.
    fn delay(&self, workload: usize, above: &[usize]) -> f64 {
        let mut queue = PriorityQueue::new();
        for &other in above {
            queue.add(&self.tenants[other].curve.scaled(1.0 + TOLERANCE), 0.0);
        }
        let largest = self.tenants.iter().map(|tenant| tenant.largest).fold(0.0, f64::max);
        let begun = self.queue.blocking(self.best_effort, largest);
        queue.delay(&self.tenants[workload].curve.scaled(1.0 + TOLERANCE), begun)
    }

    /// Returns the additional service time of a workload's largest request on one channel compared with the
    /// whole device, seconds.
    fn own_service(&self, workload: usize) -> f64 {
        self.queue.own_service(self.tenants[workload].largest)
    }

    /// The latency that a workload never exceeds when these others have higher priorities, seconds.
    pub(super) fn bound(&self, workload: usize, above: &[usize]) -> f64 {
        self.own_service(workload) + self.delay(workload, above)
    }

    /// Returns the protecting policy for these SLOs, and true if all are kept according to the analysis.
    pub(super) fn protecting_policy(&self, slos: &[Slo]) -> (Policy, bool) {
        let mut budgets = Vec::new();
        for (workload, slo) in slos.iter().enumerate() {
            budgets.push(slo.latency.0 - self.own_service(workload));
        }
        let mut delays = |workload: usize, above: &PerStage<Vec<usize>>| {
            let mut delays = PerStage::from_fn(|_| 0.0);
            delays[Stage::Storage] = self.delay(workload, &above[Stage::Storage]);
            delays
        };
        let plan = placement::prioritise(&budgets, &mut delays);
        let mut workloads = Vec::new();
        for (index, &slo) in slos.iter().enumerate() {
            let limits = placement::enforceable_limiters(&self.tenants[index].curve, TOLERANCE);
            let priority = plan.priorities[index][Stage::Storage];
            let bound = plan.latencies[index] + self.own_service(index);
            workloads.push(policy_workload(&self.tenants[index].name, slo, priority, Some(bound), limits));
        }
        (self.policy(PROTECTING_POLICY, workloads), plan.missed.is_none())
    }

    /// The policy of strict priority by SLO, without limits.
    pub(super) fn by_slo(&self, slos: &[Slo]) -> Policy {
        let mut workloads = Vec::new();
        for (tenant, slo) in self.tenants.iter().zip(slos) {
            let tighter = slos.iter().filter(|other| other.latency.0 < slo.latency.0).count();
            let priority = u32::try_from(tighter).expect("few workloads");
            workloads.push(policy_workload(&tenant.name, *slo, priority, None, Vec::new()));
        }
        self.policy("by-slo", workloads)
    }

    fn policy(&self, name: &str, workloads: Vec<PolicyWorkload>) -> Policy {
        let server = PolicyServer {
            name: SERVER.into(),
            class: SERVER.into(),
            // The links of the lab are not shaped here, and nothing depends on their rate.
            network_bytes_per_s: ByteRate::from_bytes_per_sec(125e6).expect("a rate").bytes_per_sec(),
            storage_profile: "emulated-ssd".into(),
            storage_profile_hash: None,
            enforcement: Some(ServerEnforcement {
                channels: self.queue.channels,
                outstanding: self.queue.outstanding,
                beside: self.queue.outstanding / 2,
                reserve: self.queue.reserve,
                best_effort_request_s: self.best_effort,
                packet_bytes: 0.0,
                link_burst_s: None,
                proxy_s: 0.0,
            }),
        };
        Policy::new(name, vec![server], workloads)
            .unwrap_or_else(|error| panic!("limits that cannot be enforced: {error}"))
    }
}

fn policy_workload(
    name: &str,
    slo: Slo,
    priority: u32,
    bound_s: Option<f64>,
    limits: Vec<RateLimit>,
) -> PolicyWorkload {
    // Limits of storage do not depend on the bandwidth of links.
    let limits = limits.into_iter().map(|limit| StageLimit::new(Stage::Storage, limit, 0.0)).collect();
    let priority = PerStage::from_fn(|_| priority);
    PolicyWorkload::admitted(name, slo, PolicyPlacement { server: SERVER.into(), priority, bound_s, limits })
}
