//! Traffic that tries to break the bounds of plans: small random clusters are planned, and workloads that keep the limits of
//! the policy, with requests up to its largest, are searched for ones that come close to its bounds.

use crate::played::{
    Approach, BoundAttack, EnforcedMember, ONCE, PlayedTraffic, Requests, SHAPE, attacked_policy,
    change_request, enforcement, greedy_requests, jobs_within, shaped_copy,
};
use calculus::ArrivalCurve;
use model::{CircularTrace, Job, PerStage, Policy, Slo, Stage};
use plan::{
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
    requests: Vec<Requests>,
    /// The size of best-effort requests as a fraction of the largest that bounds count, and how many there are at a time.
    best_effort: (f64, u32),
}

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
        let requests = vec![greedy_requests(); server.members.len()];
        let clients = server.queue.outstanding + 1;
        Some(Self { problem, server, requests, best_effort: (1.0, clients) })
    }

    fn enforced(&self) -> EnforcedClass {
        self.problem.classes[0].enforced.expect("bounds count it")
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

    fn buckets(&self, member: usize) -> PerStage<Vec<(f64, f64)>> {
        self.server.limits[member].map(|limit| vec![(limit.rate, limit.burst)])
    }

    fn trace(&self, member: usize) -> CircularTrace<Job> {
        let largest = PerStage::from_fn(|stage| self.largest(member) * SHAPE[stage as usize]);
        let jobs = jobs_within(&self.buckets(member), largest, &self.requests[member]);
        CircularTrace::new(jobs, Nanos(ONCE)).expect("jobs in order")
    }

    /// The policy of the server, and the bound of each of its workloads, in the order of the members.
    fn policy(&self) -> (Policy, Vec<f64>) {
        let guarantees = self.server.guarantees(&self.problem);
        let (mut members, mut bounds) = (Vec::new(), Vec::new());
        for (index, &member) in self.server.members.iter().enumerate() {
            let own = guarantees.iter().find(|own| own.workload == member).expect("a guarantee for each");
            let level = u32::try_from(own.priority).expect("few levels");
            let (limits, largest) = (self.buckets(index), self.largest(index));
            members.push(EnforcedMember { level, limits, largest });
            bounds.push(own.total);
        }
        let enforcement = enforcement(self.enforced(), self.server.queue);
        (attacked_policy(enforcement, &members), bounds)
    }
}

impl BoundAttack for PlannedAttack {
    fn play(&self) -> Approach {
        let (policy, bounds) = self.policy();
        let (fraction, clients) = self.best_effort;
        let played = PlayedTraffic {
            policy,
            traces: (0..self.requests.len()).map(|member| self.trace(member)).collect(),
            channels: self.server.queue.channels,
            clients,
            copy: shaped_copy(self.enforced().best_effort_request * fraction),
        };
        played.closest(&bounds)
    }
}

/// The attack on a plan that came closest, within this many steps from each of several plans.
pub(crate) fn search_plans(channels: u32, plans: u64, steps: usize) -> (Approach, PlannedAttack) {
    let start = |random: &mut StdRng| PlannedAttack::greedy(channels, random);
    let change = |attack: &PlannedAttack, random: &mut StdRng| Some(attack.changed(random));
    PlannedAttack::search(Climb { starts: plans, steps }, start, change)
}
