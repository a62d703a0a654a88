//! Traces that meet at some alignment, on servers whose bounds are those of a model of traces: `probabilistic`, which promises a
//! share of a workload's requests over all alignments, and `worst-case` of servers that interrupt what they have begun.

use crate::planned::request_scale;
use crate::played::{
    Approach, BoundAttack, DENSEST, EnforcedMember, ONCE, PlayedTraffic, SHAPE, Spending, attacked_policy,
    enforcement, nanoseconds, shaped_copy,
};
use crate::predicted::{bursty_trace, enforced_members};
use calculus::{DeviceQueue, EnforcedClass};
use model::{CircularTrace, Job, LatencyModel, PerStage, Policy, ServerMember, UndefinedLatency};
use predict::{BegunWork, EnforcedModel, EnforcedPath, Probabilistic, WorstCase};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use testkit::Climb;
use units::{Nanos, Percentile};

/// The promise of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// No request of any alignment takes longer.
    AllRequests,
    /// A share of the requests over all alignments of independent groups takes no longer.
    ShareOfRequests,
}

/// A workload that repeats its trace.
#[derive(Debug, Clone)]
struct AlignedMember {
    level: u32,
    group: usize,
    /// Time by which its trace begins before that of its group, nanoseconds.
    offset: u64,
    trace: CircularTrace<Job>,
}

/// A server and the traces of its workloads.
#[derive(Debug, Clone)]
pub(crate) struct AlignedAttack {
    promise: Promise,
    /// `None` for a server that interrupts what it has begun.
    path: Option<EnforcedPath>,
    members: Vec<AlignedMember>,
    percentile: Percentile,
    /// The size of best-effort requests as a fraction of the largest that bounds count, and how many there are at a time.
    best_effort: (f64, u32),
}

/// The attacks on traces that a search may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceSpace {
    pub(crate) promise: Promise,
    pub(crate) channels: u32,
    /// True for servers that interrupt what they have begun.
    pub(crate) interrupts: bool,
}

/// The share of requests that exceed their bound, over independent alignments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateShare {
    /// The percentile of the latencies, and the bound, seconds.
    pub(crate) approach: Approach,
    /// The mean share less 3.3 standard errors, over what is allowed.
    pub(crate) least_over_allowed: f64,
}

/// Alignments that a step of a search draws.
const DRAWS: u64 = 40;
/// Groups begin anywhere in this time, which is long beside all periods, nanoseconds.
const ANYWHERE: u64 = 1_000_000_000_000;

impl AlignedAttack {
    /// Bursty workloads on a server where all have bounds.
    fn bursty(space: TraceSpace, random: &mut StdRng) -> Option<Self> {
        let TraceSpace { promise, channels, interrupts } = space;
        let scale = request_scale(channels);
        let class = EnforcedClass {
            channels,
            best_effort_request: random.random_range(0.0002..0.003) * scale,
            packet: random.random_range(0.000_01..0.0001),
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: DENSEST,
            levels_max: 7,
        };
        let queue: DeviceQueue = class.queues()[random.random_range(0..3_usize)];
        let base_latency = if random.random_bool(0.5) { random.random_range(0.0..0.02) } else { 0.0 };
        let path = EnforcedPath { class, queue, base_latency, has_storage: true };
        let count = random.random_range(1..=6_usize);
        let levels = [1, 2, 6][random.random_range(0..3_usize)];
        let are_grouped = promise == Promise::ShareOfRequests && random.random_bool(0.3);
        let mut members = Vec::new();
        for number in 0..count {
            let trace = bursty_trace(scale, random);
            members.push(AlignedMember {
                level: random.random_range(0..levels),
                group: if are_grouped { number / 2 } else { number },
                offset: random.random_range(0..trace.period().0),
                trace,
            });
        }
        let percent = [50.0, 80.0, 90.0, 95.0][random.random_range(0..4_usize)];
        let percentile = Percentile::new(percent).expect("a percentile");
        let path = (!interrupts).then_some(path);
        let attack = Self { promise, path, members, percentile, best_effort: (1.0, queue.outstanding + 1) };
        attack.bounds().map(|_| attack)
    }

    /// The same attack with one thing changed.
    fn changed(&self, random: &mut StdRng) -> Option<Self> {
        let mut other = self.clone();
        let pick = random.random_range(0..other.members.len());
        let member = &mut other.members[pick];
        match random.random_range(0..9) {
            0 => member.level = random.random_range(0..6),
            1 => member.offset = random.random_range(0..member.trace.period().0),
            2 => {
                let percent = [50.0, 80.0, 90.0, 95.0][random.random_range(0..4_usize)];
                other.percentile = Percentile::new(percent).expect("a percentile");
            }
            3 => {
                let outstanding = self.path.map_or(1, |path| path.queue.outstanding);
                other.best_effort = (random.random_range(0.2..=1.0), outstanding + random.random_range(0..3));
            }
            4 => member.trace = bursty_trace(request_scale(self.channels()), random),
            _ => member.trace = changed_trace(&member.trace, random)?,
        }
        other.bounds().map(|_| other)
    }

    fn channels(&self) -> u32 {
        self.path.map_or(1, |path| path.queue.channels)
    }

    /// The bound of each member, seconds; `None` where one has none.
    fn bounds(&self) -> Option<Vec<f64>> {
        match self.promise {
            Promise::AllRequests => {
                self.bounds_by(&EnforcedModel::new(WorstCase::default(), BegunWork::WorstCase, self.path))
            }
            Promise::ShareOfRequests => {
                let model = Probabilistic::default();
                let model = if self.path.is_some() { model.in_any_order() } else { model };
                self.bounds_by(&EnforcedModel::new(model, BegunWork::EveryClass, self.path))
            }
        }
    }

    fn bounds_by<M: LatencyModel>(&self, model: &EnforcedModel<M>) -> Option<Vec<f64>> {
        let sketches: Vec<_> = self.members.iter().map(|member| model.sketch(&member.trace)).collect();
        let mut company = Vec::new();
        for (member, sketch) in self.members.iter().zip(&sketches) {
            let priority = PerStage::from_fn(|_| member.level);
            company.push(ServerMember { sketch, priority, group: member.group, percentile: self.percentile });
        }
        let bounds = model.predict(&company).into_iter().map(|prediction| Ok(prediction?.bound));
        bounds.collect::<Result<Vec<f64>, UndefinedLatency>>().ok()
    }

    /// The policy that the plan would be: each workload is promised its bound.
    fn policy(&self, bounds: &[f64]) -> Policy {
        let Some(path) = self.path else {
            let free = |member: &AlignedMember| EnforcedMember {
                level: member.level,
                limits: PerStage::default(),
                largest: 1.0,
            };
            let members: Vec<EnforcedMember> = self.members.iter().map(free).collect();
            return attacked_policy(None, &members, Spending::Limits);
        };
        let traces: Vec<_> = self.members.iter().map(|member| (member.level, &member.trace)).collect();
        let members = enforced_members(path, &traces, Some(bounds)).members;
        attacked_policy(Some(enforcement(path.class, path.queue)), &members, Spending::Limits)
    }

    /// The traffic of one alignment, by when each group begins, nanoseconds.
    fn traffic(&self, policy: &Policy, begin: impl Fn(usize) -> u64) -> PlayedTraffic {
        let longest = self.members.iter().map(|member| member.trace.period().0).max().expect("a member");
        let mut traces = Vec::new();
        for member in &self.members {
            let period = member.trace.period().0;
            let phase = (begin(member.group) + member.offset) % period;
            let mut jobs = Vec::new();
            for round in 0..=2 * longest / period + 1 {
                for job in member.trace.items() {
                    let at = job.arrival.0 + round * period;
                    if (phase..phase + 2 * longest).contains(&at) {
                        jobs.push(Job { arrival: Nanos(at - phase), ..*job });
                    }
                }
            }
            traces.push(CircularTrace::new(jobs, Nanos(ONCE)).expect("jobs in order"));
        }
        let (fraction, clients) = self.best_effort;
        let largest = self.path.map_or(0.0, |path| path.class.best_effort_request);
        let base = self.path.map_or(0.0, |path| path.base_latency);
        PlayedTraffic {
            policy: policy.clone(),
            traces,
            channels: self.channels(),
            base: nanoseconds((base * 1e9).ceil()),
            clients,
            copy: shaped_copy(largest * fraction),
            // By then nothing is left of that the server began idle.
            from: Nanos(longest),
        }
    }

    /// The latencies of the requests that one alignment shows, with their workloads, seconds.
    fn latencies(&self, traffic: PlayedTraffic) -> Vec<(usize, f64)> {
        if self.path.is_none() { traffic.interrupting_latencies() } else { traffic.latencies() }
    }

    /// Measures the percentiles over this many alignments, and the share of requests that are later than promised.
    pub(crate) fn late_share(&self, draws: u64, seed: u64) -> LateShare {
        let bounds = self.bounds().expect("an attack has bounds");
        let policy = self.policy(&bounds);
        let mut random = StdRng::seed_from_u64(seed);
        let mut all = vec![Vec::new(); bounds.len()];
        let mut late = vec![Vec::new(); bounds.len()];
        for _ in 0..draws {
            let begins: Vec<u64> = bounds.iter().map(|_| random.random_range(0..ANYWHERE)).collect();
            let mut of_draw = vec![(0.0, 0.0); bounds.len()];
            for (workload, latency) in self.latencies(self.traffic(&policy, |group| begins[group])) {
                let Some(own) = all.get_mut(workload) else { continue };
                own.push(latency);
                of_draw[workload].0 += 1.0;
                of_draw[workload].1 += f64::from(u8::from(latency > bounds[workload] + 1e-6));
            }
            late.iter_mut().zip(of_draw).for_each(|(late, of_draw)| late.push(of_draw));
        }
        let fraction = self.percentile.fraction();
        let mut percentiles = Vec::new();
        let mut least_over_allowed = 0.0_f64;
        for (workload, (latencies, late)) in all.iter_mut().zip(&late).enumerate() {
            latencies.sort_by(f64::total_cmp);
            if !latencies.is_empty() {
                percentiles
                    .push((workload, latencies[sim::nearest_rank(self.percentile, latencies.len()) - 1]));
            }
            least_over_allowed = least_over_allowed.max(least_share(late) / (1.0 - fraction));
        }
        LateShare { approach: Approach::closest(percentiles, &bounds), least_over_allowed }
    }
}

/// The share of requests that are late, less 3.3 standard errors of a ratio; each draw has requests and late ones.
fn least_share(draws: &[(f64, f64)]) -> f64 {
    let count = draws.len() as f64;
    let requests = draws.iter().map(|draw| draw.0).sum::<f64>() / count;
    let share = draws.iter().map(|draw| draw.1).sum::<f64>() / count / requests;
    let squares = draws.iter().map(|draw| (draw.1 - share * draw.0).powi(2)).sum::<f64>();
    share - 3.3 * (squares / count / (count - 1.0)).sqrt() / requests
}

/// A trace with a request that is larger, later, or sent once more.
fn changed_trace(trace: &CircularTrace<Job>, random: &mut StdRng) -> Option<CircularTrace<Job>> {
    let mut jobs = trace.items().to_vec();
    let pick = random.random_range(0..jobs.len());
    match random.random_range(0..4) {
        0 => {
            let factor = random.random_range(0.3..1.5);
            jobs[pick].work = jobs[pick].work.map(|work| nanoseconds((work.0 as f64 * factor).max(1.0)));
        }
        1 => {
            let before = if pick == 0 { 0 } else { jobs[pick - 1].arrival.0 };
            let after = jobs.get(pick + 1).map_or(trace.period().0 - 1, |job| job.arrival.0);
            jobs[pick].arrival = Nanos(random.random_range(before..=after));
        }
        2 if jobs.len() < 40 => jobs.insert(pick, jobs[pick]),
        2 => return None,
        _ => {
            let density = random.random_range(0.0..=1.0);
            let device = jobs[pick].work.into_array()[1].0 as f64;
            let shape = [SHAPE[0] * (1.0 - density), 1.0, DENSEST * density];
            jobs[pick].work =
                PerStage::from_fn(|stage| nanoseconds((device * shape[stage as usize]).max(1.0)));
        }
    }
    CircularTrace::new(jobs, trace.period()).ok()
}

impl BoundAttack for AlignedAttack {
    fn play(&self) -> Approach {
        if self.promise == Promise::ShareOfRequests {
            return self.late_share(DRAWS, 1).approach;
        }
        let bounds = self.bounds().expect("an attack has bounds");
        let traffic = self.traffic(&self.policy(&bounds), |_| 0);
        Approach::closest(self.latencies(traffic), &bounds)
    }
}

/// The attack on traces that came closest, within this many steps from each of several servers.
pub(crate) fn search_traces(space: TraceSpace, servers: u64, steps: usize) -> (Approach, AlignedAttack) {
    let start = |random: &mut StdRng| AlignedAttack::bursty(space, random);
    let change = |attack: &AlignedAttack, random: &mut StdRng| attack.changed(random);
    AlignedAttack::search(Climb { starts: servers, steps }, start, change)
}
