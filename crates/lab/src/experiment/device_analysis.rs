//! Bounds, priorities and limits for one device (PriorityMeister, thesis §3.2), with what a real device adds.
//!
//! Limits are the fewest token buckets that never delay a workload and admit at most 5 % more than its trace within any
//! duration; bounds count these 5 %. To the queueing behind higher priorities are added
//! - the requests that are at the device already: at most as many as the proxy lets be outstanding, each as long as the
//!   longest of any workload ([`blocking`]);
//! - the latency of the workload's own request, which one channel serves, not all of them together.
//!
//! The way through kernel, proxy and load generator is not counted: tenths of a millisecond.

use super::definition::{PROTECTING_POLICY, SERVER};
use calculus::{ArrivalCurve, PriorityQueue};
use model::{
    PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, Slo, Stage, StageLimit,
};
use units::{ByteRate, Nanos};

/// How much more than the traces limits admit, as a share.
const TOLERANCE: f64 = 0.05;

/// Workloads that share a device, as the analysis sees them.
#[derive(Debug, Clone)]
pub(super) struct DeviceAnalysis {
    names: Vec<String>,
    /// Arrival curves in seconds of device time.
    curves: Vec<ArrivalCurve>,
    /// What every request takes beyond queueing behind higher priorities, seconds: blocking and its own service.
    base: f64,
}

/// How long a request waits at most for the requests that are at the device, seconds.
pub(super) fn blocking(outstanding: u32, longest_work: Nanos) -> f64 {
    f64::from(outstanding) * longest_work.as_secs()
}

impl DeviceAnalysis {
    /// An analysis of workloads with these arrival curves, in seconds of device time; `base` is in seconds.
    pub(super) fn new(names: Vec<String>, curves: Vec<ArrivalCurve>, base: f64) -> Self {
        Self { names, curves, base }
    }

    /// The queueing delay of a workload below these others, seconds.
    fn delay(&self, workload: usize, above: &[usize]) -> f64 {
        let mut queue = PriorityQueue::new();
        for &other in above {
            queue.add(&self.curves[other].scaled(1.0 + TOLERANCE), 0.0);
        }
        queue.delay(&self.curves[workload].scaled(1.0 + TOLERANCE), 0.0)
    }

    /// The latency that a workload never exceeds when these others have higher priorities, seconds.
    pub(super) fn bound(&self, workload: usize, above: &[usize]) -> f64 {
        self.base + self.delay(workload, above)
    }

    /// The protecting policy for these SLOs, and whether the analysis says that all are kept.
    pub(super) fn protecting_policy(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - self.base).collect();
        let mut delays = |workload: usize, above: &PerStage<Vec<usize>>| {
            let mut delays = PerStage::from_fn(|_| 0.0);
            delays[Stage::Storage] = self.delay(workload, &above[Stage::Storage]);
            delays
        };
        let plan = plan::prioritise(&budgets, &mut delays);
        let mut workloads = Vec::new();
        for (index, &slo) in slos.iter().enumerate() {
            let limits = plan::enforceable_limiters(&self.curves[index], TOLERANCE);
            let priority = plan.priorities[index][Stage::Storage];
            let bound = plan.latencies[index] + self.base;
            workloads.push(policy_workload(&self.names[index], slo, priority, Some(bound), limits));
        }
        (policy(PROTECTING_POLICY, workloads), plan.missed.is_none())
    }

    /// The policy of strict priority by SLO, without limits.
    pub(super) fn by_slo(&self, slos: &[Slo]) -> Policy {
        let mut workloads = Vec::new();
        for (name, slo) in self.names.iter().zip(slos) {
            let tighter = slos.iter().filter(|other| other.latency.0 < slo.latency.0).count();
            let priority = u32::try_from(tighter).expect("few workloads");
            workloads.push(policy_workload(name, *slo, priority, None, Vec::new()));
        }
        policy("by-slo", workloads)
    }
}

fn policy(name: &str, workloads: Vec<PolicyWorkload>) -> Policy {
    let server = PolicyServer {
        name: SERVER.into(),
        class: SERVER.into(),
        // The links of the lab are not shaped here, and nothing depends on their rate.
        network_bytes_per_s: ByteRate::from_bytes_per_sec(125e6).expect("a rate").bytes_per_sec(),
        storage_profile: "emulated-ssd".into(),
        enforcement: None,
    };
    Policy::new(name, vec![server], workloads)
        .unwrap_or_else(|error| panic!("limits that cannot be enforced: {error}"))
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
