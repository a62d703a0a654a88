//! Slow and obvious: bounds from limits alone, bursts by looking at every interval.

use super::cluster::{NETWORK_BYTES_PER_S, Request, STORAGE_BYTES_PER_S};
use serde_json::Value;

pub(crate) const STAGES: [&str; 3] = ["network-in", "storage", "network-out"];

/// One admitted workload of a JSON plan.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) name: String,
    pub(crate) server: String,
    pub(crate) priority: u64,
    pub(crate) slo_s: f64,
    pub(crate) bound_s: f64,
    /// (rate, burst) by stage.
    pub(crate) limits: [(f64, f64); 3],
}

/// The admitted workloads of a plan; panics where a field is missing or of another type.
pub(crate) fn admitted(plan: &Value) -> Vec<Admitted> {
    let workloads = plan["workloads"].as_array().expect("workloads is a list");
    workloads.iter().filter(|w| w["admitted"].as_bool().expect("admitted is a bool")).map(of).collect()
}

fn of(w: &Value) -> Admitted {
    let limits = w["limits"].as_array().expect("limits is a list");
    assert_eq!(limits.len(), STAGES.len());
    let limit = |stage: &str| {
        let limit = limits.iter().find(|l| l["stage"] == stage).unwrap_or_else(|| panic!("no {stage}"));
        (limit["rate"].as_f64().expect("rate"), limit["burst"].as_f64().expect("burst"))
    };
    Admitted {
        name: w["name"].as_str().expect("name").into(),
        server: w["server"].as_str().expect("server").into(),
        priority: w["priority"].as_u64().expect("priority"),
        slo_s: w["slo_s"].as_f64().expect("slo_s"),
        bound_s: w["bound_s"].as_f64().expect("bound_s"),
        limits: STAGES.map(limit),
    }
}

/// Eq. 5.5 for one workload, from everybody's limits.
pub(crate) fn bound(all: &[Admitted], who: &Admitted) -> f64 {
    let company = || all.iter().filter(|w| w.server == who.server);
    let stage = |s: usize| {
        let bursts: f64 = company().filter(|w| w.priority <= who.priority).map(|w| w.limits[s].1).sum();
        let above: f64 = company().filter(|w| w.priority < who.priority).map(|w| w.limits[s].0).sum();
        bursts / (1.0 - above)
    };
    (0..STAGES.len()).map(stage).sum()
}

/// Every promise of a plan, recomputed: bounds from limits, bounds within SLOs, priorities by SLO, rates
/// within capacity. For plans whose limiters delay nothing, on devices without base latency.
pub(crate) fn check_promises(plan: &Value) {
    let all = admitted(plan);
    for who in &all {
        let exact = bound(&all, who);
        assert!((who.bound_s - exact).abs() <= 1e-9 * exact, "{who:?}: {exact}");
        assert!(who.bound_s >= exact * (1.0 - 1e-15), "{who:?}: rounded inward, {exact}");
        assert!(who.bound_s <= 0.999 * who.slo_s * (1.0 + 1e-9), "{who:?}");
        for other in all.iter().filter(|w| w.server == who.server) {
            assert_eq!(who.priority < other.priority, who.slo_s < other.slo_s, "{who:?} {other:?}");
        }
        for (stage, name) in STAGES.iter().enumerate() {
            let rates = all.iter().filter(|w| w.server == who.server).map(|w| w.limits[stage].0);
            let sum: f64 = rates.sum();
            assert!(sum <= 0.999 * (1.0 + 1e-9), "{} {name}: {sum}", who.server);
        }
    }
}

/// What a request costs each stage of a test cluster, seconds of capacity.
pub(crate) fn work(request: &Request) -> [f64; 3] {
    let size = request.size as f64;
    let (data, other) = (200.0 + 1.1 * size, 200.0 + 0.025 * size);
    let (input, output) = if request.read { (other, data) } else { (data, other) };
    [input / NETWORK_BYTES_PER_S, size / STORAGE_BYTES_PER_S, output / NETWORK_BYTES_PER_S]
}

/// The largest burst above `rate` over every interval of the trace.
pub(crate) fn burst(trace: &[Request], stage: usize, rate: f64) -> f64 {
    let mut largest = 0.0_f64;
    for (first, start) in trace.iter().enumerate() {
        let mut sum = 0.0;
        for request in &trace[first..] {
            sum += work(request)[stage];
            let elapsed = (request.arrival_ns - start.arrival_ns) as f64 / 1e9;
            largest = largest.max(sum - rate * elapsed);
        }
    }
    largest
}
