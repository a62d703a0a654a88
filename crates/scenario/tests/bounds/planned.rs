//! Traffic that tries to break the bounds of plans: small random clusters are planned, and workloads that keep the limits of
//! the policy, with requests up to its largest, are searched for ones that come close to its bounds.

use crate::adversary::{Approach, BANDWIDTH, ONCE, PlayedTraffic, REQUESTS, nanoseconds};
use calculus::ArrivalCurve;
use model::{
    CircularTrace, Job, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, ServerEnforcement,
    Slo, Stage, StageLimit,
};
use plan::{
    EnforcedClass, LimitMethod, PlannedServer, PlanningClass, PlanningProblem, PlanningWorkload,
    WorkloadOnClass,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::{Nanos, Percentile, Seconds};

/// What a workload sends: the time before each request, nanoseconds, and its size as a fraction of the largest.
type Requests = Vec<(u64, f64)>;

/// A server of a plan, and traffic within its limits.
#[derive(Debug, Clone)]
pub(crate) struct PlannedAttack {
    problem: PlanningProblem,
    server: PlannedServer,
    requests: Vec<Requests>,
    /// The size of best-effort requests as a fraction of the largest that bounds count, and how many there are at a time.
    best_effort: (f64, u32),
}

/// The work of a request at the stages per second of device time.
const SHAPE: [f64; 3] = [0.3, 1.0, 0.5];

fn workload(number: usize, random: &mut StdRng) -> PlanningWorkload {
    let largest = random.random_range(0.0005..0.01);
    let (burst, rate) = (largest * random.random_range(1.5..6.0), random.random_range(0.005..0.15));
    let curve = |stage: Stage| {
        let shape = SHAPE[stage as usize];
        ArrivalCurve::from_limits(&[(rate * shape, burst * shape), (3.0 * rate * shape, 0.7 * burst * shape)])
    };
    let slo = [0.1, 0.2, 0.3, 0.5, 0.8][random.random_range(0..5_usize)];
    PlanningWorkload {
        name: format!("w{number}"),
        slo: Slo::new(Percentile::new(99.9).expect("a percentile"), Seconds(slo)).expect("an SLO"),
        on_class: vec![WorkloadOnClass {
            curves: PerStage::from_fn(curve),
            mean_rate: PerStage::from_fn(|stage| rate * SHAPE[stage as usize]),
            largest_request: largest,
        }],
    }
}

impl PlannedAttack {
    /// Greedy traffic on the fullest server of a plan for a random cluster.
    fn greedy(channels: u32, random: &mut StdRng) -> Option<Self> {
        let class = PlanningClass {
            name: "s".into(),
            count: 4,
            base_latency: 0.0,
            enforced: Some(EnforcedClass {
                channels,
                best_effort_request: random.random_range(0.0005..0.005),
                packet: random.random_range(0.000_01..0.0005),
                proxy: 0.0,
                levels_max: 7,
            }),
        };
        let count = random.random_range(1..8_usize);
        let workloads = (0..count).map(|number| workload(number, random)).collect();
        let problem = PlanningProblem::new(vec![class], workloads, 0.999, 0.999).expect("names are unique");
        let order: Vec<usize> = (0..count).collect();
        let placement = plan::place_first_fit(&problem, LimitMethod::Exact, &order, false);
        let server = placement.servers.into_iter().max_by_key(|server| server.members.len())?;
        let greedy: Requests = std::iter::once((30_000_000, 1.0)).chain([(0, 1.0); REQUESTS - 1]).collect();
        let requests = vec![greedy; server.members.len()];
        let clients = server.queue.outstanding + 1;
        Some(Self { problem, server, requests, best_effort: (1.0, clients) })
    }

    fn enforced(&self) -> EnforcedClass {
        self.problem.classes[0].enforced.expect("bounds count it")
    }

    /// The same attack with one thing changed.
    fn changed(&self, random: &mut StdRng) -> Self {
        let mut other = self.clone();
        let pick = random.random_range(0..other.requests.len());
        let request = &mut other.requests[pick][random.random_range(0..REQUESTS)];
        match random.random_range(0..6) {
            0 | 1 => request.1 = random.random_range(0.05..=1.0),
            2 | 3 => request.0 = if random.random_bool(0.5) { 0 } else { random.random_range(0..60_000_000) },
            4 => {
                let shift = random.random_range(0..60_000_000);
                other.requests[pick][0].0 = shift;
            }
            _ => {
                other.best_effort = (
                    random.random_range(0.2..=1.0),
                    self.server.queue.outstanding + random.random_range(0..3),
                );
            }
        }
        other
    }

    /// The requests of a member at the earliest instants that its limits allow at every stage.
    fn jobs(&self, member: usize) -> Vec<Job> {
        let limits = &self.server.limits[member];
        let largest = self.problem.workloads[self.server.members[member]].on_class[0].largest_request;
        let mut tokens = limits.map(|limit| limit.burst);
        let (mut now, mut jobs) = (0.0_f64, Vec::new());
        for (gap, size) in &self.requests[member] {
            let work = PerStage::from_fn(|stage| largest * size * SHAPE[stage as usize]);
            let mut waits = *gap as f64 / 1e9;
            for (stage, limit) in limits.iter() {
                waits = waits.max((work[stage] - tokens[stage]) / limit.rate + 2e-9);
            }
            tokens = PerStage::from_fn(|stage| {
                let limit = limits[stage];
                (tokens[stage] + limit.rate * waits).min(limit.burst) - work[stage]
            });
            now += waits;
            let time = |stage| nanoseconds((work[stage] * 1e9).floor().max(1.0));
            jobs.push(Job { arrival: nanoseconds((now * 1e9).ceil()), work: PerStage::from_fn(time) });
        }
        jobs
    }

    /// The policy of the server, and the bound of each of its workloads, in the order of the members.
    fn policy(&self) -> (Policy, Vec<f64>) {
        let guarantees = self.server.guarantees(&self.problem);
        let (mut workloads, mut bounds) = (Vec::new(), Vec::new());
        for (index, &member) in self.server.members.iter().enumerate() {
            let own = guarantees.iter().find(|own| own.workload == member).expect("a guarantee for each");
            let limits = self.server.limits[index].iter();
            let level = u32::try_from(own.priority).expect("few levels");
            let placement = PolicyPlacement {
                server: "s".into(),
                priority: PerStage::from_fn(|_| level),
                bound_s: None,
                limits: limits.map(|(stage, limit)| StageLimit::new(stage, *limit, BANDWIDTH)).collect(),
            };
            let slo = "99% < 1000s".parse().expect("an SLO");
            let largest = self.problem.workloads[member].on_class[0].largest_request;
            workloads.push(
                PolicyWorkload::admitted(format!("w{index}"), slo, placement)
                    .with_largest_request(Some(largest)),
            );
            bounds.push(own.total);
        }
        let (class, queue) = (self.enforced(), self.server.queue);
        let server = PolicyServer {
            name: "s".into(),
            class: "s".into(),
            network_bytes_per_s: BANDWIDTH,
            storage_profile: String::new(),
            enforcement: Some(ServerEnforcement {
                channels: queue.channels,
                outstanding: queue.outstanding,
                beside: queue.beside(),
                reserve: queue.reserve,
                best_effort_request_s: class.best_effort_request,
                packet_bytes: class.packet * BANDWIDTH,
                proxy_s: 0.0,
            }),
        };
        (Policy::new("attack", vec![server], workloads).expect("a sound policy"), bounds)
    }

    /// Plays the attack; the request that comes closest to the bound of the plan.
    fn play(&self) -> Approach {
        let (policy, bounds) = self.policy();
        let trace = |member| CircularTrace::new(self.jobs(member), Nanos(ONCE)).expect("jobs in order");
        let (fraction, clients) = self.best_effort;
        let size = self.enforced().best_effort_request * fraction * 1e9;
        let played = PlayedTraffic {
            policy,
            traces: (0..self.requests.len()).map(trace).collect(),
            channels: self.server.queue.channels,
            clients,
            copy: PerStage::from_fn(|stage| nanoseconds((size * SHAPE[stage as usize]).max(1.0))),
        };
        played.closest(&bounds)
    }
}

/// The attack on a plan that came closest, within this many steps from each of several plans.
pub(crate) fn search_plans(channels: u32, plans: u64, steps: usize) -> (Approach, PlannedAttack) {
    let mut best: Option<(Approach, PlannedAttack)> = None;
    for seed in 0..plans {
        let mut random = StdRng::seed_from_u64(seed);
        let Some(mut attack) = PlannedAttack::greedy(channels, &mut random) else { continue };
        let mut reached = attack.play();
        for _ in 0..steps {
            let other = attack.changed(&mut random);
            let found = other.play();
            if found.ratio >= reached.ratio {
                (reached, attack) = (found, other);
            }
        }
        if best.as_ref().is_none_or(|(approach, _)| reached.ratio > approach.ratio) {
            best = Some((reached, attack));
        }
    }
    best.expect("some cluster has a plan")
}
