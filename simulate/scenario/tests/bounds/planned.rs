//! Traffic that tries to break the bounds of plans: small random clusters are planned, and workloads that keep the limits of
//! the policy, with requests up to its largest, are searched for ones that come close to its bounds.

use crate::played::{
    AllowingLimit, Approach, BoundAttack, DENSEST, EnforcedMember, ONCE, PlayedTraffic, REQUESTS, Requests,
    SHAPE, SentRequest, Spending, attacked_policy, change_request, enforcement, greedy_requests, jobs_within,
    nanoseconds, shaped_copy,
};
use calculus::ArrivalCurve;
use model::{CircularTrace, PerStage, Policy, Slo, Stage};
use placement::{
    EnforcedClass, LimitMethod, PlannedServer, PlanningClass, PlanningProblem, PlanningWorkload,
    WorkloadOnClass,
};
use rand::RngExt as _;
use rand::rngs::StdRng;
use testkit::Climb;
use units::{Nanos, Percentile, Seconds};

/// A server of a plan, and traffic within its limits.
#[derive(Debug, Clone)]
pub(crate) struct PlannedAttack {
    problem: PlanningProblem,
    server: PlannedServer,
    /// The buckets that each member keeps where limits have no bursts and therefore delay it; otherwise it keeps its limits.
    kept: Option<Vec<PerStage<Vec<AllowingLimit>>>>,
    requests: Vec<Requests>,
    /// Size of best-effort requests as a fraction of the largest that bounds account for, and the number
    /// of them at a time.
    best_effort: (f64, u32),
    spending: Spending,
}

/// The plans that a search may attack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanSpace {
    pub(crate) channels: u32,
    /// The method that chooses limits; `None` for any.
    pub(crate) method: Option<LimitMethod>,
    /// True for servers that interrupt what they have begun (`--preemptive`).
    pub(crate) interrupts: bool,
    pub(crate) spending: Spending,
}

impl PlanSpace {
    /// Any method on servers with so many channels, and limits alone.
    pub(crate) fn of_channels(channels: u32) -> Self {
        Self { channels, method: None, interrupts: false, spending: Spending::Limits }
    }
}

/// The factor on requests that lets some of them be on a device with so many channels within an SLO.
pub(crate) fn request_scale(channels: u32) -> f64 {
    (16.0 / f64::from(channels)).min(1.0)
}

/// Time for which a workload keeps the device from one that is overtaken, seconds.
const BLOCKED: f64 = 0.3;

/// The methods that choose limits; each promises a bound.
pub(crate) const METHODS: [LimitMethod; 6] = [
    LimitMethod::Exact,
    LimitMethod::Relaxed,
    LimitMethod::Knee,
    LimitMethod::Average(2.0),
    LimitMethod::EffectiveBest,
    LimitMethod::EffectiveEven,
];

fn workload(
    number: usize,
    scale: f64,
    overtaking: &dyn Fn(f64, f64) -> f64,
    random: &mut StdRng,
) -> (PlanningWorkload, PerStage<Vec<AllowingLimit>>) {
    let largest = random.random_range(0.0005..0.01) * scale;
    let burst = largest * random.random_range(1.5..6.0);
    let rate = random.random_range(0.005..0.15);
    let shapes = [random.random_range(0.05..0.4), 1.0, random.random_range(0.02..0.8)];
    let buckets = PerStage::from_fn(|stage: Stage| {
        let shape = shapes[stage as usize];
        [(rate * shape, burst * shape), (3.0 * rate * shape, 0.7 * burst * shape)]
    });
    let slo = [0.1, 0.2, 0.3, 0.5, 0.8][random.random_range(0..5_usize)];
    let on_class = WorkloadOnClass {
        curves: buckets.map(|buckets| ArrivalCurve::from_limits(buckets)),
        mean_rate: PerStage::from_fn(|stage| rate * shapes[stage as usize]),
        largest_request: largest,
        base_latency: 0.0,
        overtaking: 0.0,
    };
    let kept = buckets
        .map(|buckets| buckets.map(|(rate, burst)| AllowingLimit { rate, burst, allowance: 0.0 }).to_vec());
    let planned = PlanningWorkload {
        name: format!("w{number}"),
        slo: Slo::new(Percentile::new(99.9).expect("a percentile"), Seconds(slo)).expect("an SLO"),
        on_class: vec![on_class.with_overtaking(overtaking(largest, shapes[2]))],
    };
    (planned, kept)
}

/// Returns a workload whose limits at the device and at network-out are exhausted by the same requests if
/// these have the densest possible answers.
fn overtaken_workload(class: &EnforcedClass, largest: f64, rate: f64) -> PlanningWorkload {
    let overtaking = class.overtaking(largest, DENSEST);
    let answers = 1.25 * DENSEST * largest;
    let at_device = (answers + overtaking) / DENSEST;
    let curves = PerStage::from_fn(|stage| match stage {
        Stage::NetworkIn => ArrivalCurve::from_limits(&[(0.01, 0.001)]),
        Stage::Storage => ArrivalCurve::from_limits(&[(2.0 * rate, 1.02 * at_device)]),
        Stage::NetworkOut => ArrivalCurve::from_limits(&[(rate, answers)]),
    });
    let mean_rate = PerStage::from_fn(|_| rate);
    let largest_request = largest;
    let on_class = WorkloadOnClass { curves, mean_rate, largest_request, base_latency: 0.0, overtaking: 0.0 };
    PlanningWorkload {
        name: "overtaken".into(),
        slo: "99.9% < 2s".parse().expect("an SLO"),
        on_class: vec![on_class.with_overtaking(overtaking)],
    }
}

/// A workload of a tighter SLO that keeps the device busy for long, and asks little of links.
fn blocking_workload(class: &EnforcedClass, largest: f64) -> PlanningWorkload {
    let work = PerStage::from_fn(|stage| match stage {
        Stage::NetworkIn => 1.02 * SHAPE[0] * BLOCKED,
        Stage::Storage => BLOCKED,
        Stage::NetworkOut => 0.001,
    });
    let on_class = WorkloadOnClass {
        curves: work.map(|burst| ArrivalCurve::from_limits(&[(0.001, *burst)])),
        mean_rate: PerStage::from_fn(|_| 0.001),
        largest_request: largest,
        base_latency: 0.0,
        overtaking: 0.0,
    };
    PlanningWorkload {
        name: "blocking".into(),
        slo: "99.9% < 1s".parse().expect("an SLO"),
        on_class: vec![on_class.with_overtaking(class.overtaking(largest, DENSEST))],
    }
}

/// A burst of small requests with a large one at its end, which small ones that come on at the rate of the limits overtake.
fn overtaken_requests(channels: u32) -> Requests {
    let dense = |size| SentRequest { gap: 0, size, density: 1.0 };
    let mut requests = vec![dense(((f64::from(channels) - 0.8) / 16.0).min(1.0)); 16];
    requests.push(dense(1.0));
    requests.resize(REQUESTS, dense(0.08));
    requests[0].gap = 10_000_000;
    requests
}

impl PlannedAttack {
    /// Creates a workload whose large requests are overtaken by small ones, after another one has kept
    /// the device from it.
    pub(crate) fn overtaken(channels: u32, spending: Spending) -> Self {
        Self::overtaken_on(channels, spending, (0.004, 0.02, 0.004)).expect("it fits")
    }

    /// The same with a largest request, a rate of answers, and a largest best-effort request.
    fn overtaken_on(
        channels: u32,
        spending: Spending,
        (largest, rate, best_effort_request): (f64, f64, f64),
    ) -> Option<Self> {
        let class = EnforcedClass {
            channels,
            best_effort_request,
            packet: 0.000_01,
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: DENSEST,
            levels_max: 7,
        };
        let workloads = vec![blocking_workload(&class, largest), overtaken_workload(&class, largest, rate)];
        let enforced = Some(class);
        let class = PlanningClass { name: "s".into(), count: 1, enforced };
        let problem = PlanningProblem::new(vec![class], workloads, 0.999, 0.999).expect("names are unique");
        let placement = placement::place_first_fit(&problem, LimitMethod::Knee, &[0, 1], false);
        let server = placement.servers.into_iter().next()?;
        let clients = server.queue.outstanding + 1;
        let mut requests = Vec::new();
        for &member in &server.members {
            let blocking = vec![SentRequest { gap: 0, size: 1.0, density: 0.0 }; 2 * REQUESTS];
            requests.push(if member == 0 { blocking } else { overtaken_requests(channels) });
        }
        Some(Self { problem, server, kept: None, requests, best_effort: (1.0, clients), spending })
    }

    /// Greedy traffic on the fullest server of a plan for a random cluster.
    fn greedy(space: PlanSpace, random: &mut StdRng) -> Option<Self> {
        let PlanSpace { channels, method, interrupts, spending } = space;
        let scale = request_scale(channels);
        let may_be_overtaken = channels > 1 && matches!(method, None | Some(LimitMethod::Knee));
        if may_be_overtaken && random.random_bool(0.3) {
            let largest = random.random_range(0.001..0.008) * scale;
            let rate = random.random_range(0.005..0.1);
            let best_effort = random.random_range(0.0005..0.005) * scale;
            return Self::overtaken_on(channels, spending, (largest, rate, best_effort));
        }
        let class = EnforcedClass {
            channels,
            best_effort_request: random.random_range(0.0005..0.005) * scale,
            packet: random.random_range(0.000_01..0.0005),
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: DENSEST,
            levels_max: [1, 2, 3, 7][random.random_range(0..4_usize)],
        };
        let enforced = (!interrupts).then_some(class);
        let overtaking =
            |largest, densest| enforced.map_or(0.0, |enforced| enforced.overtaking(largest, densest));
        let base_latency = if random.random_bool(0.5) { random.random_range(0.0..0.02) } else { 0.0 };
        let class = PlanningClass { name: "s".into(), count: 4, enforced };
        let count = random.random_range(1..8_usize);
        let (mut workloads, kept): (Vec<_>, Vec<_>) =
            (0..count).map(|number| workload(number, scale, &overtaking, random)).unzip();
        workloads.iter_mut().for_each(|workload| workload.on_class[0].base_latency = base_latency);
        let problem = PlanningProblem::new(vec![class], workloads, 0.999, 0.999).expect("names are unique");
        let order: Vec<usize> = (0..count).collect();
        let method = method.unwrap_or_else(|| METHODS[random.random_range(0..METHODS.len())]);
        let placement = placement::place_first_fit(&problem, method, &order, false);
        let server = placement.servers.into_iter().max_by_key(|server| server.members.len())?;
        let requests = server.members.iter().map(|_| greedy_requests(random)).collect();
        let clients = server.queue.outstanding + 1;
        let has_bursts = !matches!(method, LimitMethod::EffectiveBest | LimitMethod::EffectiveEven);
        let kept =
            if has_bursts { None } else { Some(server.members.iter().map(|&w| kept[w].clone()).collect()) };
        Some(Self { problem, server, kept, requests, best_effort: (1.0, clients), spending })
    }

    /// The non-preemptible work of the server; `None` if it interrupts what it has begun.
    fn enforced(&self) -> Option<EnforcedClass> {
        self.problem.classes[0].enforced
    }

    /// The same attack with one thing changed.
    fn changed(&self, random: &mut StdRng) -> Self {
        let mut other = self.clone();
        if random.random_range(0..6) < 5 {
            let pick = random.random_range(0..other.requests.len());
            change_request(&mut other.requests[pick], random);
        } else {
            let clients = self.server.queue.outstanding + random.random_range(0..3);
            other.best_effort = (random.random_range(0.2..=1.0), clients);
        }
        other
    }

    fn largest(&self, member: usize) -> f64 {
        self.problem.workloads[self.server.members[member]].on_class[0].largest_request
    }

    fn buckets(&self, member: usize) -> PerStage<Vec<AllowingLimit>> {
        let workload = self.server.members[member];
        PerStage::from_fn(|stage| {
            let allowance = self.server.allowance(&self.problem, workload, stage);
            let bucket = self.server.limits[member][stage];
            let burst = (bucket.burst - allowance).max(0.0);
            vec![AllowingLimit { rate: bucket.rate, burst, allowance }]
        })
    }

    /// A policy whose limits are the buckets that members keep, if these are not their limits.
    fn kept_policy(&self) -> Option<Policy> {
        let mut members = Vec::new();
        for (index, limits) in self.kept.as_ref()?.iter().enumerate() {
            members.push(EnforcedMember { level: 0, limits: limits.clone(), largest: self.largest(index) });
        }
        Some(attacked_policy(None, &members, Spending::Limits))
    }

    /// The policy of the server, and the bound of each of its workloads without base latency, in the order of the members.
    fn policy(&self) -> (Policy, Vec<f64>) {
        let guarantees = self.server.guarantees(&self.problem);
        let mut members = Vec::new();
        let mut bounds = Vec::new();
        for (index, &member) in self.server.members.iter().enumerate() {
            let own = guarantees.iter().find(|own| own.workload == member).expect("a guarantee for each");
            let level = u32::try_from(own.priority).expect("few levels");
            let limits = self.buckets(index);
            let largest = self.largest(index);
            members.push(EnforcedMember { level, limits, largest });
            bounds.push(own.total - own.base);
        }
        let enforcement = self.enforced().map(|class| enforcement(class, self.server.queue));
        (attacked_policy(enforcement, &members, self.spending), bounds)
    }
}

impl PlannedAttack {
    /// The traffic, and the bound of each workload.
    pub(crate) fn traffic(&self) -> (PlayedTraffic, Vec<f64>) {
        let (policy, bounds) = self.policy();
        let kept = self.kept_policy().unwrap_or_else(|| policy.clone());
        let document = serde_json::to_value(&kept).expect("a policy is JSON");
        let (fraction, clients) = self.best_effort;
        let mut traces = Vec::new();
        for (member, requests) in self.requests.iter().enumerate() {
            let jobs = jobs_within(&document, &format!("w{member}"), requests);
            traces.push(CircularTrace::new(jobs, Nanos(ONCE)).expect("jobs in order"));
        }
        let best_effort = self.enforced().map_or(0.0, |class| class.best_effort_request * fraction);
        let traffic = PlayedTraffic {
            policy,
            traces,
            channels: self.server.queue.channels,
            base: nanoseconds((self.problem.workloads[0].on_class[0].base_latency * 1e9).ceil()),
            clients,
            copy: shaped_copy(best_effort),
            from: Nanos::ZERO,
        };
        (traffic, bounds)
    }
}

impl BoundAttack for PlannedAttack {
    fn play(&self) -> Approach {
        let (traffic, bounds) = self.traffic();
        if self.enforced().is_none() {
            return Approach::closest(traffic.interrupting_latencies(), &bounds);
        }
        traffic.closest(&bounds)
    }
}

/// The attack on a plan that came closest, within this many steps from each of several plans.
pub(crate) fn search_plans(space: PlanSpace, plans: u64, steps: usize) -> (Approach, PlannedAttack) {
    let start = |random: &mut StdRng| PlannedAttack::greedy(space, random);
    let change = |attack: &PlannedAttack, random: &mut StdRng| Some(attack.changed(random));
    PlannedAttack::search(Climb { starts: plans, steps }, start, change)
}
