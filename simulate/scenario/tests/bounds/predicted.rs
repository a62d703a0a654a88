//! Traffic that tries to break the bounds of `admit` and `plan --model worst-case`. Workloads of random
//! traces share an enforced server under the model's limits, and each sends the maximum that a reader of
//! the policy takes for within them.

use crate::planned::request_scale;
use crate::played::{
    AllowingLimit, Approach, BoundAttack, DENSEST, EnforcedMember, ONCE, PlayedTraffic, REQUESTS, Requests,
    SHAPE, SentRequest, Spending, attacked_policy, change_request, enforcement, greedy_requests, jobs_within,
    nanoseconds, shaped_copy,
};
use calculus::{DeviceQueue, EnforcedClass};
use model::{CircularTrace, Job, LatencyModel as _, PerStage, Policy, ServerMember, Stage};
use predict::{BegunWork, EnforcedModel, EnforcedPath, WorstCase, bunching_allowance};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use testkit::Climb;
use units::{Nanos, Percentile};

/// A workload with a trace.
#[derive(Debug, Clone)]
struct TracedMember {
    level: u32,
    /// Trace that the model saw.
    trace: CircularTrace<Job>,
    requests: Requests,
}

/// A server, its workloads, and what they and best effort send.
#[derive(Debug, Clone)]
pub(crate) struct PredictedAttack {
    path: EnforcedPath,
    members: Vec<TracedMember>,
    /// Size of best-effort requests as a fraction of the largest that bounds account for, and the number
    /// of them at a time.
    best_effort: (f64, u32),
    spending: Spending,
}

/// Bursts of requests, with quiet times between them.
pub(crate) fn bursty_trace(scale: f64, random: &mut StdRng) -> CircularTrace<Job> {
    let largest: f64 = random.random_range(0.0005..0.008) * scale;
    let densest: f64 = random.random_range(0.0..=1.0);
    let mut now = 0_u64;
    let mut jobs = Vec::new();
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

/// Returns one burst of this many equal requests, with this density of answers, in each period, seconds.
fn single_burst(count: u32, work: f64, density: f64, period: f64) -> CircularTrace<Job> {
    let shape = [SHAPE[0] * (1.0 - density), 1.0, DENSEST * density];
    let work = PerStage::from_fn(|stage| nanoseconds((work * shape[stage as usize] * 1e9).max(1.0)));
    let job = |number: u32| Job { arrival: Nanos(u64::from(number) * 1_000), work };
    let period = nanoseconds(period * 1e9);
    CircularTrace::from_first_arrival((0..count).map(job).collect(), period).expect("jobs in order")
}

/// The device time of the largest request of a trace, seconds.
fn largest(trace: &CircularTrace<Job>) -> f64 {
    let longest = trace.items().iter().map(|job| job.work[Stage::Storage]).max();
    longest.expect("a trace has requests").as_secs()
}

impl TracedMember {
    /// Creates a workload of bursts that sends its maximum at once.
    fn bursty((scale, levels): (f64, u32), random: &mut StdRng) -> Self {
        let level = random.random_range(0..levels);
        let trace = bursty_trace(scale, random);
        Self { level, trace, requests: greedy_requests(random) }
    }

    /// A workload that keeps the device from all others for long, and asks little of links.
    fn blocking(scale: f64, random: &mut StdRng) -> Self {
        let count = random.random_range(5..40);
        let work = random.random_range(0.001..0.008) * scale;
        let period = random.random_range(0.5..2.0);
        let mut requests = vec![SentRequest { gap: 0, size: 1.0, density: 0.0 }; REQUESTS];
        requests[0].gap = 30_000_000;
        Self { level: 0, trace: single_burst(count, work, 0.0, period), requests }
    }

    /// Creates a workload that will be overtaken: its trace has one burst, and allows denser answers.
    /// [`PredictedAttack::overtake`] chooses its traffic.
    fn overtaken((scale, levels): (f64, u32), random: &mut StdRng) -> Self {
        let count = random.random_range(2..8);
        let work = random.random_range(0.0005..0.004) * scale;
        let density = random.random_range(0.3..0.9);
        let trace = single_burst(count, work, density, random.random_range(0.5..2.0));
        let size = random.random_range(0.03..0.2);
        let mut requests = vec![SentRequest { gap: 0, size, density: 1.0 }; REQUESTS];
        requests[0].gap = 30_000_000;
        Self { level: random.random_range(0..levels), trace, requests }
    }
}

/// Result of the model for the server: the bound of each member, and the policy's view of it.
pub(crate) struct Predicted {
    bounds: Vec<f64>,
    pub(crate) members: Vec<EnforcedMember>,
}

/// Predicts an enforced server with these levels and traces, and computes the limits of its policy. The SLO of each member is the
/// latency that it is promised, or else its bound: the tightest with which it is admitted.
pub(crate) fn enforced_members(
    path: EnforcedPath,
    traces: &[(u32, &CircularTrace<Job>)],
    promised: Option<&[f64]>,
) -> Predicted {
    let model = EnforcedModel::new(WorstCase::default(), BegunWork::WorstCase, Some(path));
    let sketches: Vec<_> = traces.iter().map(|(_, trace)| model.sketch(trace)).collect();
    let percentile = Percentile::new(99.9).expect("a percentile");
    let mut company = Vec::new();
    for (group, ((level, _), sketch)) in traces.iter().zip(&sketches).enumerate() {
        let priority = PerStage::from_fn(|_| *level);
        company.push(ServerMember { sketch, priority, group, percentile });
    }
    let predictions = model.predict(&company);
    let worst = model.worst_case(&company).expect("an enforced server");
    let mut bounds = Vec::new();
    let mut members = Vec::new();
    for (index, ((level, trace), sketch)) in traces.iter().zip(&sketches).enumerate() {
        let bound = predictions[index].as_ref().map_or(f64::INFINITY, |prediction| prediction.bound);
        let slo = promised.map_or(bound, |promised| promised[index]);
        let bunched = |stage| worst[index].bunched[stage].min(slo);
        bounds.push(bound);
        members.push(EnforcedMember {
            level: *level,
            limits: PerStage::from_fn(|stage| {
                let limits = sketch.limits(stage).iter();
                let allowing = limits.map(|&(rate, burst)| {
                    let allowance = bunching_allowance(rate, bunched(stage));
                    AllowingLimit { rate, burst, allowance }
                });
                allowing.collect()
            }),
            largest: largest(trace),
        });
    }
    Predicted { bounds, members }
}

impl PredictedAttack {
    /// Creates a server whose bounds exist, full of greedy traffic.
    fn greedy(channels: u32, spending: Spending, random: &mut StdRng) -> Option<Self> {
        let scale = request_scale(channels);
        let class = EnforcedClass {
            channels,
            best_effort_request: random.random_range(0.0005..0.005) * scale,
            packet: random.random_range(0.000_01..0.0005),
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: DENSEST,
            levels_max: 7,
        };
        let queue: DeviceQueue = class.queues()[random.random_range(0..3_usize)];
        let base_latency = if random.random_bool(0.5) { random.random_range(0.0..0.02) } else { 0.0 };
        let path = EnforcedPath { class, queue, base_latency, has_storage: true };
        let count = random.random_range(1..=8);
        let levels = [1, 2, 4][random.random_range(0..3_usize)];
        let is_blocked = random.random_bool(0.5);
        let mut members = Vec::new();
        for number in 0..count {
            members.push(match number {
                0 if is_blocked => TracedMember::blocking(scale, random),
                1 if is_blocked => TracedMember::overtaken((scale, levels), random),
                _ => TracedMember::bursty((scale, levels), random),
            });
        }
        let mut attack = Self { path, members, best_effort: (1.0, queue.outstanding + 1), spending };
        if !attack.predict().bounds.iter().all(|bound| bound.is_finite()) {
            return None;
        }
        if is_blocked && count > 1 {
            attack.overtake(1);
        }
        Some(attack)
    }

    /// Creates a workload that one of higher priority keeps from the device, and that then overtakes
    /// itself.
    pub(crate) fn blocked(channels: u32, spending: Spending) -> Self {
        let class = EnforcedClass {
            channels,
            best_effort_request: 0.0005,
            packet: 0.000_01,
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: DENSEST,
            levels_max: 7,
        };
        let queue = class.shortest_queue();
        let path = EnforcedPath { class, queue, base_latency: 0.0, has_storage: true };
        let mut random = StdRng::seed_from_u64(0);
        let blocking = TracedMember {
            trace: single_burst(38, 0.006, 0.0, 1.0),
            ..TracedMember::blocking(1.0, &mut random)
        };
        let overtaken = TracedMember {
            level: 1,
            trace: single_burst(4, 0.002, 0.6, 1.5),
            ..TracedMember::overtaken((1.0, 4), &mut random)
        };
        let members = vec![blocking, overtaken];
        let mut attack = Self { path, members, best_effort: (1.0, queue.outstanding + 1), spending };
        attack.overtake(1);
        attack
    }

    /// Makes a member send as many requests of full size as its limits pass at once, and then small ones,
    /// all with the densest answers. While others keep the device from it, its buckets at network-out are
    /// full and lose tokens. Then the small ones overtake the last large one, whose answer finds no
    /// tokens left.
    fn overtake(&mut self, member: usize) {
        let document = serde_json::to_value(self.policy().0).expect("a policy is JSON");
        let large = SentRequest { gap: 0, size: 1.0, density: 1.0 };
        let jobs = jobs_within(&document, &format!("w{member}"), &[large; REQUESTS]);
        let at_once = jobs.iter().take_while(|job| job.arrival == jobs[0].arrival).count();
        for request in self.members[member].requests.iter_mut().take(at_once) {
            *request = SentRequest { gap: request.gap, ..large };
        }
    }

    /// Returns the policy with the model's limits, and the bound of each member.
    fn policy(&self) -> (Policy, Vec<f64>) {
        let Predicted { bounds, members } = self.predict();
        let EnforcedPath { class, queue, .. } = self.path;
        (attacked_policy(Some(enforcement(class, queue)), &members, self.spending), bounds)
    }

    /// Runs the model. Returns the bounds and the limits for the policy.
    fn predict(&self) -> Predicted {
        let traces: Vec<_> = self.members.iter().map(|member| (member.level, &member.trace)).collect();
        enforced_members(self.path, &traces, None)
    }

    /// Returns the attack with one change that leaves the bounds as they are.
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
        let (policy, bounds) = self.policy();
        let EnforcedPath { class, queue, .. } = self.path;
        let document = serde_json::to_value(&policy).expect("a policy is JSON");
        let mut traces = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let jobs = jobs_within(&document, &format!("w{index}"), &member.requests);
            traces.push(CircularTrace::new(jobs, Nanos(ONCE)).expect("jobs in order"));
        }
        let (fraction, clients) = self.best_effort;
        let copy = shaped_copy(class.best_effort_request * fraction);
        let base = nanoseconds((self.path.base_latency * 1e9).ceil());
        let channels = queue.channels;
        let traffic = PlayedTraffic { policy, traces, channels, base, clients, copy, from: Nanos::ZERO };
        (traffic, bounds)
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
