//! Traffic that tries to break the bounds of `admit` and `plan --model worst-case`: workloads of random traces share an
//! enforced server under the limits that the model writes, and each sends what a reader of the policy takes for within them.

use crate::played::{
    AllowingLimit, Approach, BoundAttack, DENSEST, EnforcedMember, ONCE, PlayedTraffic, Requests, SHAPE,
    Spending, attacked_policy, change_request, enforcement, greedy_requests, jobs_within, nanoseconds,
    shaped_copy,
};
use calculus::{DeviceQueue, EnforcedClass};
use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember, Stage};
use predict::{BegunWork, EnforcedModel, EnforcedPath, WorstCase, bunching_allowance};
use rand::RngExt as _;
use rand::rngs::StdRng;
use testkit::Climb;
use units::{Nanos, Percentile};

/// A workload with a trace.
#[derive(Debug, Clone)]
struct TracedMember {
    level: u32,
    /// What the model has seen of it.
    trace: CircularTrace<Job>,
    requests: Requests,
}

/// A server, its workloads, and what they and best effort send.
#[derive(Debug, Clone)]
pub(crate) struct PredictedAttack {
    path: EnforcedPath,
    members: Vec<TracedMember>,
    /// The size of best-effort requests as a fraction of the largest that bounds count, and how many there are at a time.
    best_effort: (f64, u32),
    spending: Spending,
}

/// Bursts of requests, with quiet times between them.
fn bursty_trace(random: &mut StdRng) -> CircularTrace<Job> {
    let largest: f64 = random.random_range(0.0005..0.008);
    let densest: f64 = random.random_range(0.0..=1.0);
    let (mut now, mut jobs) = (0_u64, Vec::new());
    for _ in 0..random.random_range(1..5) {
        now += random.random_range(0..150_000_000);
        for _ in 0..random.random_range(1..8) {
            let work = largest * random.random_range(0.1..=1.0);
            let density = densest * random.random_range(0.0..=1.0);
            let shape = [SHAPE[0] * (1.0 - density), 1.0, DENSEST * density];
            let work = PerStage::from_fn(|stage| nanoseconds((work * shape[stage as usize] * 1e9).max(1.0)));
            jobs.push(Job { arrival: Nanos(now), work });
            now += random.random_range(0..8_000_000);
        }
    }
    CircularTrace::from_first_arrival(jobs, Nanos(now + 200_000_000)).expect("jobs in order")
}

/// The device time of the largest request of a trace, seconds.
fn largest(trace: &CircularTrace<Job>) -> f64 {
    let longest = trace.items().iter().map(|job| job.work[Stage::Storage]).max();
    longest.expect("a trace has requests").as_secs()
}

/// What the model says of the server: the bound of each member, and the policy's view of it.
struct Predicted {
    bounds: Vec<f64>,
    members: Vec<EnforcedMember>,
}

impl PredictedAttack {
    /// A server whose bounds exist, full of greedy traffic.
    fn greedy(channels: u32, spending: Spending, random: &mut StdRng) -> Option<Self> {
        let class = EnforcedClass {
            channels,
            best_effort_request: random.random_range(0.0005..0.005),
            packet: random.random_range(0.000_01..0.0005),
            proxy: 0.0,
            densest_answer: DENSEST,
            levels_max: 7,
        };
        let queue: DeviceQueue = class.queues()[random.random_range(0..3_usize)];
        let path = EnforcedPath { class, queue, base_latency: 0.0, has_storage: true };
        let member = |_| TracedMember {
            level: random.random_range(0..4),
            trace: bursty_trace(random),
            requests: greedy_requests(random),
        };
        let mut members: Vec<TracedMember> = (0..6).map(member).collect();
        members.truncate(random.random_range(1..=6));
        let attack = Self { path, members, best_effort: (1.0, queue.outstanding + 1), spending };
        attack.predict().bounds.iter().all(|bound| bound.is_finite()).then_some(attack)
    }

    /// What the model says, and the limits that the policy has by it.
    fn predict(&self) -> Predicted {
        let model = EnforcedModel::new(WorstCase::default(), BegunWork::WorstCase, Some(self.path));
        let sketches: Vec<_> = self.members.iter().map(|member| model.sketch(&member.trace)).collect();
        let percentile = Percentile::new(99.9).expect("a percentile");
        let mut company = Vec::new();
        for (group, (member, sketch)) in self.members.iter().zip(&sketches).enumerate() {
            let priority = PerStage::from_fn(|_| member.level);
            company.push(ServerMember { sketch, priority, group, percentile });
        }
        let predictions = model.predict(&company);
        let worst = model.worst_case(&company).expect("an enforced server");
        let (mut bounds, mut members) = (Vec::new(), Vec::new());
        for (index, (member, sketch)) in self.members.iter().zip(&sketches).enumerate() {
            let bound = predictions[index].as_ref().map_or(f64::INFINITY, |prediction| prediction.bound);
            // The SLO is the bound: the tightest with which the workload is admitted.
            let bunched = |stage| worst[index].bunched[stage].min(bound);
            bounds.push(bound);
            members.push(EnforcedMember {
                level: member.level,
                limits: PerStage::from_fn(|stage| {
                    let limits = sketch.limits(stage).iter();
                    let allowing = limits.map(|&(rate, burst)| {
                        let allowance = bunching_allowance(rate, bunched(stage));
                        AllowingLimit { rate, burst, allowance }
                    });
                    allowing.collect()
                }),
                largest: largest(&member.trace),
            });
        }
        Predicted { bounds, members }
    }

    /// The same attack with one thing changed that leaves the bounds as they are.
    fn changed(&self, random: &mut StdRng) -> Self {
        let mut other = self.clone();
        let pick = random.random_range(0..other.members.len());
        match random.random_range(0..6) {
            0..5 => change_request(&mut other.members[pick].requests, random),
            _ => {
                let outstanding = self.path.queue.outstanding;
                other.best_effort = (random.random_range(0.2..=1.0), outstanding + random.random_range(0..3));
            }
        }
        other
    }
}

impl PredictedAttack {
    /// The traffic, and the bound of each workload.
    pub(crate) fn traffic(&self) -> (PlayedTraffic, Vec<f64>) {
        let Predicted { bounds, members } = self.predict();
        let EnforcedPath { class, queue, .. } = self.path;
        let policy = attacked_policy(enforcement(class, queue), &members, self.spending);
        let document = serde_json::to_value(&policy).expect("a policy is JSON");
        let mut traces = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let jobs = jobs_within(&document, &format!("w{index}"), &member.requests);
            traces.push(CircularTrace::new(jobs, Nanos(ONCE)).expect("jobs in order"));
        }
        let (fraction, clients) = self.best_effort;
        let copy = shaped_copy(class.best_effort_request * fraction);
        (PlayedTraffic { policy, traces, channels: queue.channels, clients, copy }, bounds)
    }
}

impl BoundAttack for PredictedAttack {
    fn play(&self) -> Approach {
        let (traffic, bounds) = self.traffic();
        traffic.closest(&bounds)
    }
}

/// The attack on a prediction that came closest, within this many steps from each of several servers.
pub(crate) fn search_predictions(
    channels: u32,
    spending: Spending,
    servers: u64,
    steps: usize,
) -> (Approach, PredictedAttack) {
    let start = |random: &mut StdRng| PredictedAttack::greedy(channels, spending, random);
    let change = |attack: &PredictedAttack, random: &mut StdRng| Some(attack.changed(random));
    PredictedAttack::search(Climb { starts: servers, steps }, start, change)
}
