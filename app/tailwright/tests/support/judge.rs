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
    /// Device time of the largest request, seconds.
    pub(crate) largest_s: f64,
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
        // Bounds count what enforcers hold: the burst, and the allowance of several channels.
        let bucket = limit["burst"].as_f64().expect("burst") + limit["allowance"].as_f64().unwrap_or(0.0);
        (limit["rate"].as_f64().expect("rate"), bucket)
    };
    Admitted {
        name: w["name"].as_str().expect("name").into(),
        server: w["server"].as_str().expect("server").into(),
        priority: w["priority"].as_u64().expect("priority"),
        slo_s: w["slo_s"].as_f64().expect("slo_s"),
        bound_s: w["bound_s"].as_f64().expect("bound_s"),
        limits: STAGES.map(limit),
        largest_s: w["largest_request"].as_f64().unwrap_or(0.0),
    }
}

/// Returns how a server of a plan is used if its bounds count that, with the times of a packet and of the burst on its
/// links.
fn enforcement<'a>(plan: &'a Value, server: &str) -> Option<(&'a Value, (f64, f64))> {
    let servers = plan["servers"].as_array().expect("servers is a list");
    let server = servers.iter().find(|s| s["name"] == server).expect("a server of the plan");
    let used = server.get("enforcement")?;
    let packet = field(used, "packet_bytes") / field(server, "network_bytes_per_s");
    Some((used, (packet, field(used, "link_burst_s"))))
}

/// Returns a field of how a server is used.
fn field(enforcement: &Value, name: &str) -> f64 {
    enforcement[name].as_f64().unwrap_or_else(|| panic!("{name}: {enforcement}"))
}

/// The bound of one workload from everybody's limits and what the stages do not interrupt.
pub(crate) fn bound(plan: &Value, all: &[Admitted], who: &Admitted) -> f64 {
    let company: Vec<&Admitted> = all.iter().filter(|w| w.server == who.server).collect();
    let Some((used, packet)) = enforcement(plan, &who.server) else {
        return (0..STAGES.len()).map(|stage| behind(&company, who, stage, 0.0)).sum();
    };
    let channels = field(used, "channels");
    let places = field(used, "outstanding") - field(used, "reserve");
    let largest = company.iter().map(|w| w.largest_s).fold(0.0, f64::max);
    let begun = places * largest.max(field(used, "best_effort_request_s")) + field(used, "reserve") * largest;
    [0, 2].map(|link| on_link(&company, who, link, packet).0).iter().sum::<f64>()
        + behind(&company, who, 1, begun)
        + (channels - 1.0) * who.largest_s
        + field(used, "proxy_s")
}

/// Eq. 5.1 with what is begun.
fn behind(company: &[&Admitted], who: &Admitted, stage: usize, begun: f64) -> f64 {
    let at_or_above = company.iter().filter(|w| w.priority <= who.priority);
    let above = company.iter().filter(|w| w.priority < who.priority);
    let bursts: f64 = at_or_above.map(|w| w.limits[stage].1).sum();
    (begun + bursts) / (1.0 - above.map(|w| w.limits[stage].0).sum::<f64>())
}

/// The delay on a link whose equal priorities take turns, and how long a workload may be held up there.
fn on_link(company: &[&Admitted], who: &Admitted, link: usize, (packet, at_once): (f64, f64)) -> (f64, f64) {
    let begun = (company.len() as f64 + 3.0) * packet + at_once;
    let sum = |keep: &dyn Fn(u64) -> bool| {
        let kept = company.iter().filter(|w| keep(w.priority)).map(|w| w.limits[link]);
        kept.fold((0.0, 0.0), |(rate, burst), limit| (rate + limit.0, burst + limit.1))
    };
    let above = sum(&|p| p < who.priority);
    let until = sum(&|p| p <= who.priority);
    let peers = company.iter().filter(|w| w.priority == who.priority).count() as f64;
    let (rate, burst) = who.limits[link];
    let left = 1.0 - (until.0 - rate);
    let before = begun + above.1 + (peers - 1.0) * packet;
    let any_order = ((begun + until.1) / left, (begun + until.1 - burst) / left);
    let in_turns = ((before + peers * burst) / (1.0 - above.0), before / (1.0 - above.0));
    let turns = (peers * rate <= 1.0 - above.0).then_some(in_turns);
    let bounds = [Some(any_order), turns].into_iter().flatten().map(|(delay, held_up)| {
        // Tokens that are lost while it is held up are missed as long again.
        (burst < rate * held_up, delay.max(2.0 * held_up), held_up)
    });
    // A bound that holds counts before a lesser one whose bucket loses tokens.
    let (_, delay, held_up) = bounds.min_by(|a, b| a.partial_cmp(b).expect("numbers")).expect("a bound");
    (delay, held_up)
}

/// Every promise of a plan, recomputed: bounds from limits, bounds within SLOs, priorities by SLO, rates
/// within capacity, buckets that last. For plans whose limiters delay nothing, on devices without base latency.
pub(crate) fn check_promises(plan: &Value) {
    let all = admitted(plan);
    for who in &all {
        let exact = bound(plan, &all, who);
        assert!((who.bound_s - exact).abs() <= 1e-9 * exact, "{who:?}: {exact}");
        assert!(who.bound_s >= exact * (1.0 - 1e-14), "{who:?}: rounded inward, {exact}");
        assert!(who.bound_s <= 0.999 * who.slo_s * (1.0 + 1e-9), "{who:?}");
        let company: Vec<&Admitted> = all.iter().filter(|w| w.server == who.server).collect();
        for other in &company {
            assert!(who.slo_s > other.slo_s || who.priority <= other.priority, "{who:?} {other:?}");
            assert!(who.slo_s != other.slo_s || who.priority == other.priority, "{who:?} {other:?}");
        }
        if let Some((_, packet)) = enforcement(plan, &who.server) {
            for link in [0, 2] {
                let (_, held_up) = on_link(&company, who, link, packet);
                let (rate, burst) = who.limits[link];
                assert!(burst >= rate * held_up * (1.0 - 1e-9), "{who:?}: tokens are lost in {held_up} s");
            }
        }
        for (stage, name) in STAGES.iter().enumerate() {
            let sum: f64 = company.iter().map(|w| w.limits[stage].0).sum();
            assert!(sum <= 0.999 * (1.0 + 1e-9), "{} {name}: {sum}", who.server);
        }
    }
}

/// What a request costs each stage of a test cluster, seconds of capacity.
pub(crate) fn work(request: &Request) -> [f64; 3] {
    let size = request.size as f64;
    let data = 200.0 + 1.1 * size;
    let other = 200.0 + 0.025 * size;
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
