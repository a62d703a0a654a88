//! Policies with their traffic, played by the simulator, and the ratio of latencies to bounds.

use crate::brute::{Asked, most_within_limits, request_latencies, within_limits};
use crate::interrupting::interrupting_latencies;
use arrivals::{DistributionFamily, TimeDistribution};
use calculus::{DeviceQueue, EnforcedClass};
use discipline::enforce::DeviceAccess;
use model::{
    CircularTrace, Job, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit,
    ServerEnforcement, StageLimit,
};
use rand::RngExt as _;
use rand::rngs::StdRng;
use scenario::SimulationCase;
use scenario::server::{ServerRules, SimulatedWorkload, StorageServer, WorkloadRequests};
use serde_json::Value;
use sim::engine::{SimulationEngine, SimulationPlan};
use std::sync::Arc;
use testkit::Climb;
use units::{ByteRate, Nanos, Percentile, Seconds};
use workload::device::{BaseLatency, StorageProfile};

/// A byte takes a nanosecond on the links.
pub(crate) const BANDWIDTH: f64 = 1e9;
/// Number of requests of each workload.
pub(crate) const REQUESTS: usize = 40;
/// The period of a trace that is played once, nanoseconds.
pub(crate) const ONCE: u64 = 1 << 50;
/// Maximum error of a latency by rounding to whole nanoseconds, seconds.
const ROUNDING: f64 = 1e-6;

/// The request that came closest to its bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approach {
    /// Its latency ÷ its bound.
    pub(crate) ratio: f64,
    pub(crate) latency: f64,
    pub(crate) bound: f64,
}

/// A limit with what its enforcer allows beyond it, seconds of capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowingLimit {
    pub(crate) rate: f64,
    pub(crate) burst: f64,
    pub(crate) allowance: f64,
}

/// Budget that a policy grants its workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spending {
    /// The limits; the enforcers' allowance is separate.
    Limits,
    /// All that its enforcers let pass, as documents of version 1 have it.
    Allowances,
}

/// A workload as a policy enforces it.
#[derive(Debug, Clone)]
pub(crate) struct EnforcedMember {
    pub(crate) level: u32,
    /// Its buckets at each stage.
    pub(crate) limits: PerStage<Vec<AllowingLimit>>,
    /// The device time of its largest request, seconds.
    pub(crate) largest: f64,
}

/// Returns the terms of use of a server of this class with this queue at its device.
pub(crate) fn enforcement(class: EnforcedClass, queue: DeviceQueue) -> ServerEnforcement {
    ServerEnforcement {
        channels: queue.channels,
        outstanding: queue.outstanding,
        beside: queue.beside(),
        reserve: queue.reserve,
        best_effort_request_s: class.best_effort_request,
        packet_bytes: class.packet * BANDWIDTH,
        link_burst_s: Some(class.link_burst),
        proxy_s: class.proxy,
    }
}

/// The policy of a server with these workloads, which are called w0, w1, …. A server without enforcement interrupts what it
/// has begun.
pub(crate) fn attacked_policy(
    enforcement: Option<ServerEnforcement>,
    members: &[EnforcedMember],
    spending: Spending,
) -> Policy {
    let mut workloads = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let mut limits = Vec::new();
        for (stage, buckets) in member.limits.iter() {
            let of_stage = |&AllowingLimit { rate, burst, allowance }: &AllowingLimit| match spending {
                Spending::Limits => StageLimit::new(stage, RateLimit { rate, burst }, BANDWIDTH)
                    .with_allowance(allowance, BANDWIDTH),
                Spending::Allowances => {
                    StageLimit::new(stage, RateLimit { rate, burst: burst + allowance }, BANDWIDTH)
                }
            };
            limits.extend(buckets.iter().map(of_stage));
        }
        let priority = PerStage::from_fn(|_| member.level);
        let placement = PolicyPlacement { server: "s".into(), priority, bound_s: None, limits };
        let slo = "99% < 1000s".parse().expect("an SLO");
        let workload = PolicyWorkload::admitted(format!("w{index}"), slo, placement);
        workloads.push(workload.with_largest_request(Some(member.largest)));
    }
    let server = PolicyServer {
        name: "s".into(),
        class: "s".into(),
        network_bytes_per_s: BANDWIDTH,
        storage_profile: String::new(),
        storage_profile_hash: None,
        enforcement,
    };
    Policy::new("attack", vec![server], workloads).expect("a sound policy")
}

/// The work of a request at the stages per second of device time, where it is not the same at all of them.
pub(crate) const SHAPE: [f64; 3] = [0.1, 1.0, 0.5];

/// The work of a best-effort request that needs so much device time, seconds.
pub(crate) fn shaped_copy(device_time: f64) -> PerStage<Nanos> {
    PerStage::from_fn(|stage| nanoseconds((device_time * 1e9 * SHAPE[stage as usize]).max(1.0)))
}

/// The densest answer of a device that is attacked, seconds of the link per second of device time.
pub(crate) const DENSEST: f64 = 1.2;

/// A request of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentRequest {
    /// The time before it, nanoseconds.
    pub(crate) gap: u64,
    /// Its device time as a fraction of the largest.
    pub(crate) size: f64,
    /// Answer as a fraction of the densest; the rest was sent to the server.
    pub(crate) density: f64,
}

/// Traffic of a workload.
pub(crate) type Requests = Vec<SentRequest>;

/// As many requests at once as limits let pass, and on: alike, or small dense ones around a large one.
pub(crate) fn greedy_requests(random: &mut StdRng) -> Requests {
    let density = random.random_range(0.0..=1.0);
    let mut requests = vec![SentRequest { gap: 0, size: 1.0, density }; REQUESTS];
    if random.random_bool(0.7) {
        overtake(&mut requests, random);
    }
    requests[0].gap = 30_000_000;
    requests
}

/// Makes all small with much answer but one, which is large and is overtaken.
fn overtake(requests: &mut Requests, random: &mut StdRng) {
    let small = SentRequest { gap: 0, size: random.random_range(0.02..0.5), density: 1.0 };
    let start = requests[0].gap;
    requests.fill(small);
    let density = [0.0, 1.0, random.random_range(0.0..1.0)][random.random_range(0..3_usize)];
    requests[random.random_range(0..REQUESTS)] = SentRequest { gap: 0, size: 1.0, density };
    requests[0].gap = start;
}

/// Changes the size of a request, its answer, or the time before it.
pub(crate) fn change_request(requests: &mut Requests, random: &mut StdRng) {
    let pick = random.random_range(0..REQUESTS);
    match random.random_range(0..8) {
        0 | 1 => requests[pick].size = random.random_range(0.02..=1.0),
        2 => {
            requests[pick].density =
                [0.0, 1.0, random.random_range(0.0..1.0)][random.random_range(0..3_usize)];
        }
        3 | 4 => {
            requests[pick].gap = if random.random_bool(0.5) { 0 } else { random.random_range(0..60_000_000) }
        }
        6 => overtake(requests, random),
        5 => requests[0].gap = random.random_range(0..60_000_000),
        // A run of requests becomes like its first.
        _ => {
            let end = random.random_range(pick..REQUESTS);
            let like = SentRequest { gap: 0, ..requests[pick] };
            requests[pick + 1..].iter_mut().take(end - pick).for_each(|request| *request = like);
        }
    }
}

/// Requests at the earliest instants that a reader of the policy takes for within all limits of a workload.
pub(crate) fn jobs_within(policy: &Value, name: &str, requests: &[SentRequest]) -> Vec<Job> {
    let mut workloads = policy["workloads"].as_array().expect("workloads").iter();
    let own = workloads.find(|workload| workload["name"] == name).expect("the workload");
    let largest = own["largest_request"].as_f64().expect("a largest request");
    let [most_in, most_device, most_out] = most_within_limits(policy, name).map(|most| most as f64);
    let mut now = 0;
    let mut asked = Vec::new();
    for SentRequest { gap, size, density } in requests {
        now += gap;
        // A request that a bucket never holds would not be within the limits: it is as large as it may be.
        let device = (largest * size * 1e9).min(most_device);
        let request = (device * SHAPE[0] * (1.0 - density)).min(most_in);
        let answer = (device * DENSEST * density).min(most_out);
        asked.push((now, [request, device, answer].map(|work| nanoseconds(work.floor().max(1.0)).0)));
    }
    let job = |(at, work): Asked| Job {
        arrival: Nanos(at),
        work: PerStage::from_fn(|stage| Nanos(work[stage as usize])),
    };
    within_limits(policy, name, &asked).into_iter().map(job).collect()
}

/// A policy with requests of its workloads w0, w1, … beside best-effort clients.
#[derive(Debug, Clone)]
pub(crate) struct PlayedTraffic {
    pub(crate) policy: Policy,
    /// Traffic of each workload, once.
    pub(crate) traces: Vec<CircularTrace<Job>>,
    pub(crate) channels: u32,
    /// The base latency of the device.
    pub(crate) base: Nanos,
    /// Number of best-effort clients that send one request after the other, and the work of each.
    pub(crate) clients: u32,
    pub(crate) copy: PerStage<Nanos>,
    /// Requests that arrive earlier are not observed.
    pub(crate) from: Nanos,
}

impl PlayedTraffic {
    fn case(self) -> SimulationCase {
        let profile =
            r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 1e8, "writeBandwidth": 5e7}]}"#;
        let network = ByteRate::from_bytes_per_sec(BANDWIDTH).expect("a bandwidth");
        let base = Seconds(self.base.as_secs());
        let percentile = Percentile::new(99.9).expect("a percentile");
        let base = BaseLatency { percentile, read: base, write: base, sizes: Vec::new() };
        let profile = StorageProfile::from_json(profile).expect("a profile").with_base_latency(base);
        let server = StorageServer::new(profile, network, self.channels).expect("a server");
        let last = self.traces.iter().filter_map(|trace| trace.items().last().map(|job| job.arrival.0));
        let mut plan = SimulationPlan::of_requests(1, 0);
        plan.window.span = Some((self.from, Nanos(last.max().unwrap_or(0) + 1)));
        let mut workloads = Vec::new();
        for (index, trace) in self.traces.into_iter().enumerate() {
            let requests = WorkloadRequests::Recorded {
                trace: Arc::new(trace),
                accesses: Arc::new([]),
                begin: Some(Nanos::ZERO),
            };
            workloads.push(simulated(format!("w{index}"), false, requests));
        }
        let zero = DistributionFamily::Constant(Seconds(1e-9));
        let requests = WorkloadRequests::Clients {
            clients: self.clients,
            think: TimeDistribution::new(zero).expect("a time"),
            work: self.copy,
            access: DeviceAccess::read(4096),
        };
        workloads.push(simulated("copy".into(), true, requests));
        let rules = ServerRules::Policy(Box::new(self.policy));
        SimulationCase::storage("attack".into(), server, workloads, &rules, plan).expect("a case")
    }

    /// The time of the largest packet on a link, seconds.
    pub(crate) fn packet(&self) -> f64 {
        let used = self.policy.enforcement_of("s").expect("the server's use");
        used.packet_bytes / BANDWIDTH
    }

    /// The same traffic with the requests of each workload a little later, so that none comes at the instant of another event.
    pub(crate) fn apart(mut self) -> Self {
        let mut later = 0;
        for trace in &mut self.traces {
            later += 1_237;
            let jobs = trace.items().iter().map(|job| Job { arrival: Nanos(job.arrival.0 + later), ..*job });
            *trace = CircularTrace::new(jobs.collect(), Nanos(ONCE)).expect("jobs in order");
        }
        self
    }

    /// The latencies of the requests of each workload, in order of arrival, by the simulator of the project and by the one that
    /// is written apart, seconds.
    pub(crate) fn latencies_by_both(self) -> [Vec<Vec<f64>>; 2] {
        let apart = self.latencies_by_brute_force();
        let mut simulated = vec![Vec::new(); self.traces.len()];
        for (class, latency) in self.latencies() {
            if let Some(simulated) = simulated.get_mut(class) {
                simulated.push(latency);
            }
        }
        [simulated, apart]
    }

    /// The requests of each workload, by its name.
    fn loads(&self) -> Vec<(String, Vec<Asked>)> {
        let mut loads = Vec::new();
        for (index, trace) in self.traces.iter().enumerate() {
            let asked =
                trace.items().iter().map(|job| (job.arrival.0, job.work.map(|work| work.0).into_array()));
            loads.push((format!("w{index}"), asked.collect()));
        }
        loads
    }

    /// The workload and the latency of each request on a server that interrupts what it has begun, seconds.
    pub(crate) fn interrupting_latencies(&self) -> Vec<(usize, f64)> {
        let policy = serde_json::to_value(&self.policy).expect("a policy is JSON");
        let loads = self.loads();
        let mut latencies = Vec::new();
        for (workload, of_workload) in interrupting_latencies(&policy, &loads).into_iter().enumerate() {
            for (latency, (arrival, _)) in of_workload.into_iter().zip(&loads[workload].1) {
                if *arrival >= self.from.0 {
                    latencies.push((workload, Nanos(latency).as_secs()));
                }
            }
        }
        latencies
    }

    fn latencies_by_brute_force(&self) -> Vec<Vec<f64>> {
        let loads = self.loads();
        let policy = serde_json::to_value(&self.policy).expect("a policy is JSON");
        let copy = self.copy.map(|work| work.0).into_array();
        let seconds =
            |latencies: Vec<u64>| latencies.into_iter().map(|latency| Nanos(latency).as_secs()).collect();
        request_latencies(&policy, &loads, (self.clients, copy), self.base.0)
            .into_iter()
            .map(seconds)
            .collect()
    }

    /// Plays it; the request of a workload that comes closest to the bound of its workload, seconds.
    pub(crate) fn closest(self, bounds: &[f64]) -> Approach {
        Approach::closest(self.latencies(), bounds)
    }

    /// The class and the latency of each request, in seconds.
    pub(crate) fn latencies(self) -> Vec<(usize, f64)> {
        let case = self.case();
        let engine = SimulationEngine::new(&case.network, case.entries(1), 1).expect("an engine");
        let (_, logged) = engine.run_logged(case.plan.window).expect("a run");
        // The base latency of the device is added to each request.
        let base = case.server.as_ref().map_or(0.0, |server| server.base_latency().as_secs());
        let mut latencies = Vec::new();
        for request in logged {
            let done = request.done.map_or(f64::INFINITY, Nanos::as_secs);
            latencies.push((request.class as usize, done - request.arrival.as_secs() - base));
        }
        latencies
    }
}

fn simulated(name: String, best_effort: bool, requests: WorkloadRequests) -> SimulatedWorkload {
    SimulatedWorkload { name, slo: None, best_effort, weight: 1, requests }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a test are small")]
pub(crate) fn nanoseconds(value: f64) -> Nanos {
    Nanos(value as u64)
}

/// Traffic that tries to break the bounds of a server.
pub(crate) trait BoundAttack: Sized {
    /// Plays it; the judged request that comes closest to its bound.
    fn play(&self) -> Approach;

    /// The attack that came closest, of those that `climb` finds from what `start` makes by what `change` changes.
    fn search(
        climb: Climb,
        start: impl Fn(&mut StdRng) -> Option<Self>,
        change: impl Fn(&Self, &mut StdRng) -> Option<Self>,
    ) -> (Approach, Self) {
        let play = |attack: &Self| {
            let approach = attack.play();
            (approach.ratio, approach)
        };
        climb.closest(start, change, play).expect("some start makes an attack")
    }
}

impl Approach {
    /// The closest of these requests, each with the index of its workload and its latency, to the bounds of the workloads,
    /// seconds.
    pub(crate) fn closest(latencies: impl IntoIterator<Item = (usize, f64)>, bounds: &[f64]) -> Self {
        let mut closest = Self { ratio: 0.0, latency: 0.0, bound: f64::INFINITY };
        for (workload, latency) in latencies {
            let Some(&bound) = bounds.get(workload) else { continue };
            if latency / bound > closest.ratio {
                closest = Self { ratio: latency / bound, latency, bound };
            }
        }
        closest
    }

    /// Returns true if the bound was broken by more than rounding explains.
    pub(crate) fn is_broken(&self) -> bool {
        self.latency > self.bound + ROUNDING
    }
}
