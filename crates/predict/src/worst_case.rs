//! The worst case: the latency that no relative shift of the workloads exceeds (deterministic network
//! calculus). It holds for every request, so the percentile that is asked for does not matter, nor does who
//! may burst together: everybody may.
//!
//! **Curves.** Traffic repeats for ever, so the most work within d is `⌊d/T⌋·W + α(d mod T)` with α over two
//! rounds: bursts across the seam count, and the concave hull ends in a line whose slope is the utilisation.
//! All (r, b) pairs of the curve hold at once, as under as many limiters (thesis §3.2.1).
//!
//! **One stage.** Delay of a level: [`calculus::PriorityQueue`].
//!
//! **A run of stages with the same order of priorities.** Follow a job of level p back in time from its end at
//! the last stage to the beginning of the busy period there (levels ≤ p); the job that began it has just left
//! the stage before; follow that one, and so on to an arrival at the first stage. One stage after another has
//! thus been busy without a gap, each until a *turning point* t_k where the next takes over, with jobs that
//! arrived since then. A job is served in two of these windows only if at t_k it is leaving stage k or
//! partly served there; of these there is at most one per level, being first come first served. All others
//! count once, with at most their largest work w_k. A job in windows k₁ < … < k_n counts with
//! `Σ w ≤ max w + Σ_{i<n} min(w_{k_i}, max_{l>i} w_{k_l})`. Hence the latency is at most the delay of a *single*
//! queue where a job's work is its largest over the stages, and each level brings, once per turning point, its
//! largest `min(w_k, max_{l>k} w_l)` on top. (With `min(w_k, w_{k+1})` instead this would be wrong: works
//! 3, 1, 2 alone on a server take 6, not 5.)
//!
//! **Any stages.** A run may follow another: what took between J⁻ and J⁺ seconds to arrive has the curve
//! `α(d + J⁺ − J⁻)` there. Work is another thing at every stage, so the curve is that of the later
//! stages' work. The model tries every division of the path into runs and takes the least.
//!
//! **Assumptions.** Preemptive strict priority, first come first served within a priority at every stage; a job
//! goes to the next stage when it is done. Jobs that take no time at a stage may wait there for their turn or
//! pass at once. Where some jobs of a level could overtake others in that way, runs of several stages give it no
//! bound, and single stages do.
//!
//! [`Passage::Reshaped`] assumes instead that limiters hold each workload to its own curves again before every
//! stage: then delays of stages add up without growth (thesis Eq. 5.5).

use calculus::{ArrivalCurve, PriorityQueue, Vertex, round_up};
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use units::{Nanos, Work};
use workload::burst::{BurstCurve, BurstError, StageArrival};

/// What happens to traffic between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Passage {
    /// A job goes on as soon as a stage is done with it; bursts grow along the path.
    #[default]
    Direct,
    /// Limiters before every stage hold each workload to the curves that it had at its source.
    Reshaped,
}

/// The worst-case model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorstCase {
    /// How traffic goes from stage to stage.
    pub passage: Passage,
}

/// Stages in a run, first and last by position.
type Run = (usize, usize);
const RUNS: [Run; 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2)];

/// What the worst-case model keeps of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCaseSketch {
    runs: [RunSketch; RUNS.len()],
    /// Work per second, rounded up; infinite when it cannot be counted.
    utilisation: PerStage<f64>,
    /// The shortest time from arrival to stage 0, 1, 2, seconds.
    least_before: [f64; 3],
    /// Whether some jobs, all jobs have no work at a stage.
    idle: PerStage<(bool, bool)>,
}

/// A workload as one run of stages sees it.
#[derive(Debug, Clone, PartialEq)]
struct RunSketch {
    /// Of the largest work over the stages of the run, as seconds.
    curve: ArrivalCurve,
    /// What a level adds on top at the turning points of the run, by the first stage of each.
    overhang: [f64; 2],
}

impl WorstCaseSketch {
    /// The most work that may arrive at a stage within a duration, in seconds of its capacity.
    pub fn curve(&self, stage: Stage) -> &ArrivalCurve {
        &self.runs[stage as usize].curve
    }

    /// The curve of the largest work over all stages, in seconds: traffic as a path sees it whose stages are
    /// all as fast as its slowest one for each job.
    pub fn path_curve(&self) -> &ArrivalCurve {
        &self.runs[RUNS.len() - 1].curve
    }

    /// Bytes that it occupies beside its own fields.
    pub fn heap_bytes(&self) -> usize {
        self.runs.iter().map(|run| size_of_val(run.curve.vertices())).sum()
    }

    /// The sketch with other curves: `change` gets each curve and must nowhere return less, as limiters that
    /// never delay the workload do.
    pub fn map_curves(&self, mut change: impl FnMut(&ArrivalCurve) -> ArrivalCurve) -> Self {
        let mut changed = self.clone();
        changed.runs.iter_mut().for_each(|run| run.curve = change(&run.curve));
        changed
    }
}

/// One part of a bound: a run of stages taken together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leg {
    /// First and last stage of the run.
    pub stages: (Stage, Stage),
    /// By how much the times may differ that the member's jobs take to the run, seconds: what bursts grow by.
    pub jitter: f64,
    /// Seconds; infinite when there is no bound.
    pub delay: f64,
}

impl WorstCase {
    /// How each member's bound comes about: legs in path order, whose delays add up to it.
    pub fn legs(&self, members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Vec<Leg>> {
        self.bounds(members).into_iter().map(|(_, legs)| legs).collect()
    }

    fn bounds(&self, members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Bound> {
        match self.passage {
            Passage::Direct => direct(members),
            Passage::Reshaped => reshaped(members),
        }
    }
}

/// Seconds, and where they come from.
type Bound = (f64, Vec<Leg>);

impl LatencyModel for WorstCase {
    type Sketch = WorstCaseSketch;

    fn name(&self) -> &'static str {
        "worst-case"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> WorstCaseSketch {
        let seconds = |work: Nanos| round_up(work.as_secs());
        let before = |job: &Job, stage: usize| {
            Stage::ALL[..stage].iter().fold(0u64, |sum, &s| sum.saturating_add(job.work[s].0))
        };
        let least = |stage| traffic.items().iter().map(|job| before(job, stage)).min().unwrap_or(0);
        WorstCaseSketch {
            runs: RUNS.map(|run| run_sketch(traffic, run)),
            utilisation: PerStage::from_fn(|stage| utilisation(traffic, stage)),
            idle: PerStage::from_fn(|stage| {
                let idle = |job: &Job| job.work[stage] == Nanos::ZERO;
                (traffic.items().iter().any(idle), traffic.items().iter().all(idle))
            }),
            least_before: [0, 1, 2].map(|stage| seconds(Nanos(least(stage))) * (1.0 - 32.0 * f64::EPSILON)),
        }
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, WorstCaseSketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        let bounds = self.bounds(members).into_iter().map(|(bound, _)| bound);
        let overloads = overloads(members);
        let answer = |(bound, overload): (f64, Option<UndefinedLatency>)| match overload {
            Some(overload) => Err(overload),
            None if bound.is_finite() => Ok(Prediction { bound, estimate: None }),
            None => Err(UndefinedLatency::NoBound),
        };
        bounds.zip(overloads).map(answer).collect()
    }
}

/// Work per second of a stage; infinite when the sum is beyond counting.
fn utilisation(traffic: &CircularTrace<Job>, stage: Stage) -> f64 {
    let sum = traffic.items().iter().try_fold(0u64, |sum, job| sum.checked_add(job.work[stage].0));
    sum.map_or(f64::INFINITY, |sum| round_up(sum as f64 / traffic.period().0 as f64))
}

fn run_sketch(traffic: &CircularTrace<Job>, (first, last): Run) -> RunSketch {
    let works = |job: &Job, from: usize| -> u64 {
        Stage::ALL[from..=last].iter().map(|&stage| job.work[stage].0).max().unwrap_or(0)
    };
    let overhang = |k: usize| {
        let shared = |job: &Job| job.work[Stage::ALL[k]].0.min(works(job, k + 1));
        traffic.items().iter().map(shared).max().unwrap_or(0)
    };
    let seconds = |ns: u64| round_up(Nanos(ns).as_secs());
    RunSketch {
        // Beyond counting: the utilisation is infinite, so nobody gets a bound from this curve.
        curve: circular(traffic, |job| works(job, first)).unwrap_or_else(|_| ArrivalCurve::zero()),
        overhang: [0, 1].map(|k| if (first..last).contains(&k) { seconds(overhang(k)) } else { 0.0 }),
    }
}

/// The arrival curve of a circular trace, in seconds of `work` (nanoseconds by job).
fn circular(traffic: &CircularTrace<Job>, work: impl Fn(&Job) -> u64) -> Result<ArrivalCurve, BurstError> {
    let arrival = |job: &Job| StageArrival { at: job.arrival, work: Work(work(job)) };
    let once = BurstCurve::from_arrivals(&traffic.items().iter().map(arrival).collect::<Vec<_>>())?;
    let twice = once.merge(&once.shifted(traffic.period())?)?;
    let vertex = |v: &workload::burst::EnvelopeVertex| Vertex {
        duration: v.duration.as_secs(),
        work: round_up(Nanos(v.work.0).as_secs()),
    };
    let vertices = twice.envelope().vertices().iter().map(vertex).collect();
    let rate = round_up(once.total().0 as f64 / traffic.period().0 as f64);
    let curve = ArrivalCurve::new(vertices, 0.0).expect("an envelope is concave and starts at duration 0");
    Ok(curve.with_sustained_rate(rate))
}

/// Members by level at a stage, highest first.
fn levels(members: &[ServerMember<'_, WorstCaseSketch>], stage: Stage) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&m| members[m].priority[stage]);
    let same = |a: &usize, b: &usize| members[*a].priority[stage] == members[*b].priority[stage];
    order.chunk_by(same).map(<[usize]>::to_vec).collect()
}

/// The first stage where a member's level and those above ask for more than there is.
fn overloads(members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Option<UndefinedLatency>> {
    let mut answer = vec![None; members.len()];
    for stage in Stage::ALL {
        let mut utilisation = 0.0;
        for level in levels(members, stage) {
            utilisation += level.iter().map(|&m| members[m].sketch.utilisation[stage]).sum::<f64>();
            if utilisation > 1.0 {
                level.iter().for_each(|&m| {
                    answer[m].get_or_insert(UndefinedLatency::Overload { stage, utilisation });
                });
            }
        }
    }
    answer
}

/// The delay of every member in a run of stages, when each member's jobs took up to `jitter` longer than their
/// shortest time to arrive.
fn run_delays(members: &[ServerMember<'_, WorstCaseSketch>], run: Run, jitter: &[f64]) -> Vec<f64> {
    let index = RUNS.iter().position(|r| *r == run).expect("all runs are listed");
    let mut queue = PriorityQueue::new();
    let mut delays = vec![f64::INFINITY; members.len()];
    let mut overhang = 0.0;
    for level in levels(members, Stage::ALL[run.0]) {
        if level.iter().any(|&m| !jitter[m].is_finite()) {
            break;
        }
        let of = |m: &usize| &members[*m].sketch.runs[index];
        let curves = level.iter().map(|m| of(m).curve.delayed(jitter[*m]));
        let curve = ArrivalCurve::sum(&curves.collect::<Vec<_>>());
        let largest = |k: usize| level.iter().map(|m| of(m).overhang[k]).fold(0.0, f64::max);
        overhang = round_up(overhang + largest(0) + largest(1));
        let delay =
            if overtakes(members, &level, run) { f64::INFINITY } else { queue.delay(&curve, overhang) };
        level.iter().for_each(|&m| delays[m] = delay);
        queue.add(&curve, 0.0);
    }
    delays
}

/// Whether jobs of the level may overtake each other before the last stage of a run, some having no work.
fn overtakes(members: &[ServerMember<'_, WorstCaseSketch>], level: &[usize], (first, last): Run) -> bool {
    Stage::ALL[first..last].iter().any(|&stage| {
        let idle = |m: &usize| members[*m].sketch.idle[stage];
        level.iter().any(|m| idle(m).0) && !level.iter().all(|m| idle(m).1)
    })
}

/// Whether members stand in the same order at all stages of a run.
fn same_order(members: &[ServerMember<'_, WorstCaseSketch>], (first, last): Run) -> bool {
    let of_first = levels(members, Stage::ALL[first]);
    Stage::ALL[first + 1..=last].iter().all(|&stage| levels(members, stage) == of_first)
}

/// The least bound over all divisions of the path into runs.
fn direct(members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Bound> {
    let mut best: Vec<Vec<Bound>> = vec![vec![(0.0, Vec::new()); members.len()]];
    for last in 0..Stage::ALL.len() {
        let mut until: Vec<Bound> = vec![(f64::INFINITY, Vec::new()); members.len()];
        for (first, before) in best.iter().enumerate() {
            if !same_order(members, (first, last)) {
                continue;
            }
            let late = |(before, member): (&Bound, &ServerMember<'_, WorstCaseSketch>)| {
                (before.0 - member.sketch.least_before[first]).max(0.0)
            };
            let jitter: Vec<f64> = before.iter().zip(members).map(late).collect();
            let delays = run_delays(members, (first, last), &jitter);
            for (member, until) in until.iter_mut().enumerate() {
                let leg = leg((first, last), jitter[member], delays[member]);
                improve(until, &before[member], leg);
            }
        }
        best.push(until);
    }
    best.swap_remove(Stage::ALL.len())
}

fn leg((first, last): Run, jitter: f64, delay: f64) -> Leg {
    Leg { stages: (Stage::ALL[first], Stage::ALL[last]), jitter, delay }
}

/// Takes the bound before and this leg if that is less, or the first there is.
fn improve(bound: &mut Bound, before: &Bound, leg: Leg) {
    let total = round_up(before.0 + leg.delay);
    if total < bound.0 || bound.1.is_empty() {
        *bound = (total, [&before.1[..], &[leg]].concat());
    }
}

/// Eq. 5.5 with full curves: delays of stages add up.
fn reshaped(members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Bound> {
    let none = vec![0.0; members.len()];
    let stages = [0, 1, 2].map(|stage| run_delays(members, (stage, stage), &none));
    let bound = |m: usize| {
        let legs: Vec<Leg> =
            (0..stages.len()).map(|stage| leg((stage, stage), 0.0, stages[stage][m])).collect();
        (round_up(legs.iter().map(|leg| leg.delay).sum()), legs)
    };
    (0..members.len()).map(bound).collect()
}
