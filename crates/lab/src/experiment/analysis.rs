//! Bounds, priorities and limits for one device (PriorityMeister, thesis §3.2), with what a real device adds.
//!
//! Limits are the fewest token buckets that never delay a workload and admit at most 5 % more than its trace within any
//! duration; bounds count these 5 %. On top of queueing behind higher priorities come
//! - requests that were sent to the device before: at most as many as the proxy lets be there, each the longest of
//!   anybody ([`blocking`]);
//! - the latency of the workload's own request, which one channel serves, not all of them together.
//!
//! The way through kernel, proxy and generator is not counted: tenths of a millisecond.

use calculus::{ArrivalCurve, PriorityQueue};
use model::{
    PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, Slo, Stage, StageLimit,
};
use units::{ByteRate, Nanos};

/// What limits admit beyond the traces.
const TOLERANCE: f64 = 0.05;
/// In policies.
pub(super) const SERVER: &str = "store";

/// A device as the analysis sees it.
#[derive(Debug, Clone)]
pub struct Analysis {
    names: Vec<String>,
    curves: Vec<ArrivalCurve>,
    base: f64,
}

/// How long a request waits at most for those that are at the device: so many, each of the longest work.
pub fn blocking(outstanding: u32, longest_work: Nanos) -> f64 {
    f64::from(outstanding) * longest_work.as_secs()
}

impl Analysis {
    /// Of workloads with their arrival curves in seconds of device time. `base` is what every request takes beyond
    /// queueing, seconds: blocking and its own service.
    pub fn new(names: Vec<String>, curves: Vec<ArrivalCurve>, base: f64) -> Self {
        Self { names, curves, base }
    }

    fn delay(&self, workload: usize, above: &[usize]) -> f64 {
        let mut queue = PriorityQueue::new();
        above.iter().for_each(|&other| queue.add(&self.curves[other].scaled(1.0 + TOLERANCE), 0.0));
        queue.delay(&self.curves[workload].scaled(1.0 + TOLERANCE), 0.0)
    }

    /// Latency that a workload never exceeds with these above it, seconds.
    pub fn bound(&self, workload: usize, above: &[usize]) -> f64 {
        self.base + self.delay(workload, above)
    }

    /// Priorities and limits for these SLOs, and whether all are admitted.
    pub fn policy(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - self.base).collect();
        let mut oracle = |workload: usize, above: &PerStage<Vec<usize>>| {
            PerStage::from_fn(|stage| match stage {
                Stage::Storage => self.delay(workload, &above[stage]),
                Stage::NetworkIn | Stage::NetworkOut => 0.0,
            })
        };
        let found = plan::prioritise(&budgets, &mut oracle);
        let workloads = (0..slos.len()).map(|at| {
            let limits = plan::limiters(&self.curves[at], TOLERANCE);
            let priority = found.priorities[at][Stage::Storage];
            workload(&self.names[at], slos[at], priority, Some(found.latencies[at] + self.base), limits)
        });
        (policy(PROTECTED, workloads.collect()), found.missed.is_none())
    }

    /// Strict priority by SLO, without limits.
    pub fn by_slo(&self, slos: &[Slo]) -> Policy {
        let rank = |slo: &Slo| slos.iter().filter(|other| other.latency.0 < slo.latency.0).count();
        let level = |slo| u32::try_from(rank(slo)).expect("few workloads");
        let workloads = self.names.iter().zip(slos);
        let workloads = workloads.map(|(name, slo)| workload(name, *slo, level(slo), None, Vec::new()));
        policy("by-slo", workloads.collect())
    }
}

pub(super) const PROTECTED: &str = "tailwright";

fn policy(name: &str, workloads: Vec<PolicyWorkload>) -> Policy {
    let server = PolicyServer {
        name: SERVER.into(),
        class: SERVER.into(),
        // The links of the lab are not shaped; nothing here counts them.
        network_bytes_per_s: ByteRate::from_bytes_per_sec(125e6).expect("a rate").bytes_per_sec(),
        storage_profile: "emulated-ssd".into(),
    };
    Policy::new(name, vec![server], workloads)
}

fn workload(
    name: &str,
    slo: Slo,
    priority: u32,
    bound_s: Option<f64>,
    limits: Vec<RateLimit>,
) -> PolicyWorkload {
    // Of the storage alone: the bandwidth of the links plays no part.
    let limits = limits.into_iter().map(|limit| StageLimit::new(Stage::Storage, limit, 0.0)).collect();
    let priority = PerStage::from_fn(|_| priority);
    PolicyWorkload::admitted(name, slo, PolicyPlacement { server: SERVER.into(), priority, bound_s, limits })
}
