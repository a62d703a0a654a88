//! Policies with their traffic, played by the simulator, and how close a request comes to its bound.

use arrivals::{DistributionFamily, TimeDistribution};
use calculus::{DeviceQueue, EnforcedClass};
use discipline::enforce::DeviceAccess;
use model::{
    CircularTrace, Job, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit,
    ServerEnforcement, StageLimit,
};
use rand::RngExt as _;
use rand::rngs::StdRng;
use sim::engine::{SimulationEngine, SimulationPlan};
use std::sync::Arc;
use tailwright_scenario::SimulationCase;
use tailwright_scenario::server::{ServerRules, SimulatedWorkload, StorageServer, WorkloadRequests};
use testkit::Climb;
use units::{ByteRate, Nanos, Seconds};
use workload::device::StorageProfile;

/// A byte takes a nanosecond on the links.
pub(crate) const BANDWIDTH: f64 = 1e9;
/// How many requests each workload sends.
pub(crate) const REQUESTS: usize = 24;
/// The period of a trace that is played once, nanoseconds.
pub(crate) const ONCE: u64 = 1 << 50;
/// What rounding to whole nanoseconds may add to a latency, seconds.
const ROUNDING: f64 = 1e-6;

/// The request that came closest to its bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approach {
    /// Its latency ÷ its bound.
    pub(crate) ratio: f64,
    pub(crate) latency: f64,
    pub(crate) bound: f64,
}

/// A workload as a policy enforces it.
#[derive(Debug, Clone)]
pub(crate) struct EnforcedMember {
    pub(crate) level: u32,
    /// Its buckets `(rate, burst)` at each stage.
    pub(crate) limits: PerStage<Vec<(f64, f64)>>,
    /// The device time of its largest request, seconds.
    pub(crate) largest: f64,
}

/// How a server of this class is used with this queue at its device.
pub(crate) fn enforcement(class: EnforcedClass, queue: DeviceQueue) -> ServerEnforcement {
    ServerEnforcement {
        channels: queue.channels,
        outstanding: queue.outstanding,
        beside: queue.beside(),
        reserve: queue.reserve,
        best_effort_request_s: class.best_effort_request,
        packet_bytes: class.packet * BANDWIDTH,
        proxy_s: class.proxy,
    }
}

/// The policy of a server with these workloads, which are called w0, w1, ….
pub(crate) fn attacked_policy(enforcement: ServerEnforcement, members: &[EnforcedMember]) -> Policy {
    let mut workloads = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let mut limits = Vec::new();
        for (stage, buckets) in member.limits.iter() {
            let of_stage = |&(rate, burst)| StageLimit::new(stage, RateLimit { rate, burst }, BANDWIDTH);
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
        enforcement: Some(enforcement),
    };
    Policy::new("attack", vec![server], workloads).expect("a sound policy")
}

/// The work of a request at the stages per second of device time, where it is not the same at all of them.
pub(crate) const SHAPE: [f64; 3] = [0.3, 1.0, 0.5];

/// The work of a best-effort request that needs so much device time, seconds.
pub(crate) fn shaped_copy(device_time: f64) -> PerStage<Nanos> {
    PerStage::from_fn(|stage| nanoseconds((device_time * 1e9 * SHAPE[stage as usize]).max(1.0)))
}

/// What a workload sends: the time before each request, nanoseconds, and its size as a fraction of the largest.
pub(crate) type Requests = Vec<(u64, f64)>;

/// As many requests at once as limits let pass, and on.
pub(crate) fn greedy_requests() -> Requests {
    std::iter::once((30_000_000, 1.0)).chain([(0, 1.0); REQUESTS - 1]).collect()
}

/// Changes the size of a request, or the time before it.
pub(crate) fn change_request(requests: &mut Requests, random: &mut StdRng) {
    let pick = random.random_range(0..REQUESTS);
    match random.random_range(0..5) {
        0 | 1 => requests[pick].1 = random.random_range(0.05..=1.0),
        2 | 3 => {
            requests[pick].0 = if random.random_bool(0.5) { 0 } else { random.random_range(0..60_000_000) }
        }
        _ => requests[0].0 = random.random_range(0..60_000_000),
    }
}

/// Requests at the earliest instants that these buckets allow at every stage; the largest needs `largest` of the stages.
pub(crate) fn jobs_within(
    buckets: &PerStage<Vec<(f64, f64)>>,
    largest: PerStage<f64>,
    requests: &[(u64, f64)],
) -> Vec<Job> {
    let mut tokens = PerStage::from_fn(|stage| buckets[stage].iter().map(|(_, burst)| *burst).collect());
    let (mut now, mut jobs) = (0.0_f64, Vec::new());
    for (gap, size) in requests {
        let work = largest.map(|work| work * size);
        let mut waits = *gap as f64 / 1e9;
        for (stage, buckets) in buckets.iter() {
            let left: &Vec<f64> = &tokens[stage];
            for ((rate, _), left) in buckets.iter().zip(left) {
                waits = waits.max((work[stage] - left) / rate + 2e-9);
            }
        }
        tokens = PerStage::from_fn(|stage| {
            let after =
                |(&(rate, burst), left): (&(f64, f64), &f64)| (left + rate * waits).min(burst) - work[stage];
            buckets[stage].iter().zip(&tokens[stage]).map(after).collect()
        });
        now += waits;
        let time = |stage| nanoseconds((work[stage] * 1e9).floor().max(1.0));
        jobs.push(Job { arrival: nanoseconds((now * 1e9).ceil()), work: PerStage::from_fn(time) });
    }
    jobs
}

/// A policy with requests of its workloads w0, w1, … beside best-effort clients.
pub(crate) struct PlayedTraffic {
    pub(crate) policy: Policy,
    /// What each workload sends, once.
    pub(crate) traces: Vec<CircularTrace<Job>>,
    pub(crate) channels: u32,
    /// How many best-effort clients send one request after the other, and the work of each.
    pub(crate) clients: u32,
    pub(crate) copy: PerStage<Nanos>,
}

impl PlayedTraffic {
    fn case(self) -> SimulationCase {
        let profile =
            r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 1e8, "writeBandwidth": 5e7}]}"#;
        let network = ByteRate::from_bytes_per_sec(BANDWIDTH).expect("a bandwidth");
        let profile = StorageProfile::from_json(profile).expect("a profile");
        let server = StorageServer::new(profile, network, self.channels).expect("a server");
        let last = self.traces.iter().filter_map(|trace| trace.items().last().map(|job| job.arrival.0));
        let mut plan = SimulationPlan::of_requests(1, 0);
        plan.window.span = Some((Nanos::ZERO, Nanos(last.max().unwrap_or(0) + 1)));
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

    /// Plays it; the request of a workload that comes closest to the bound of its workload, seconds.
    pub(crate) fn closest(self, bounds: &[f64]) -> Approach {
        let case = self.case();
        let engine = SimulationEngine::new(&case.network, case.entries(1), 1).expect("an engine");
        let (_, logged) = engine.run_logged(case.plan.window).expect("a run");
        let mut closest = Approach { ratio: 0.0, latency: 0.0, bound: f64::INFINITY };
        // The base latency of the device is added to each request.
        let base = case.server.as_ref().map_or(0.0, |server| server.base_latency().as_secs());
        for request in logged {
            let Some(&bound) = bounds.get(request.class as usize) else { continue };
            let done = request.done.map_or(f64::INFINITY, Nanos::as_secs);
            let latency = done - request.arrival.as_secs() - base;
            if latency / bound > closest.ratio {
                closest = Approach { ratio: latency / bound, latency, bound };
            }
        }
        closest
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
    /// Whether the bound was broken, by more than rounding explains.
    pub(crate) fn is_broken(&self) -> bool {
        self.latency > self.bound + ROUNDING
    }
}
