//! The worst case: the latency that no relative shift of the workloads exceeds (deterministic network
//! calculus). It holds for every request, so the percentile that is asked for does not matter, nor do the
//! groups: all workloads may burst together.
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
//! [`Reshaping::EveryStage`] assumes instead that limiters hold each workload to its own curves again before every
//! stage: then delays of stages add up without growth (thesis Eq. 5.5).

use calculus::{ArrivalCurve, CurveVertex, PriorityQueue, round_up};
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use units::{Nanos, Work};
use workload::burst::{BurstCurve, BurstError, StageArrival};

/// Whether limiters hold traffic to its curves again between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reshaping {
    /// A job goes on as soon as a stage is done with it, so that bursts grow along the path.
    #[default]
    None,
    /// Limiters before every stage hold each workload to the curves that it had at its source.
    EveryStage,
}

/// The worst-case model: deterministic network calculus with full curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorstCase {
    /// Whether there are limiters before every stage.
    pub reshaping: Reshaping,
}

/// The first and last stage of a run of stages that are taken together, as positions on the path.
type StageRun = (usize, usize);
/// All runs of the three stages.
const RUNS: [StageRun; 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2)];

/// What the worst-case model keeps of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstCaseSketch {
    /// The workload as each run of stages sees it, in the order of [`RUNS`].
    runs: [RunSketch; RUNS.len()],
    /// The work per second of each stage, rounded up; infinite when it cannot be counted.
    utilisation: PerStage<f64>,
    /// The shortest time from arrival to stage 0, 1, 2, seconds.
    least_before: [f64; 3],
    /// Whether some jobs, and whether all jobs, have no work at a stage.
    without_work: PerStage<(bool, bool)>,
}

/// A workload as one run of stages sees it.
#[derive(Debug, Clone, PartialEq)]
struct RunSketch {
    /// The arrival curve of each job's largest work over the stages of the run, in seconds.
    curve: ArrivalCurve,
    /// The work that a level adds on top at the turning points of the run, by the first stage of each, seconds.
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

    /// The memory that the sketch occupies beside its own fields, bytes.
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

/// What one run of stages, taken together, contributes to a worst-case bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorstCaseTerm {
    /// The first and last stage of the run.
    pub stages: (Stage, Stage),
    /// The difference between the longest and the shortest time that the member's jobs take to the run, by which bursts
    /// grow, seconds.
    pub jitter: f64,
    /// The delay in the run, seconds; infinite when there is no bound.
    pub delay: f64,
}

impl WorstCase {
    /// The terms of each member's bound in path order; their delays add up to it.
    pub fn terms(&self, members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Vec<WorstCaseTerm>> {
        self.bounds(members).into_iter().map(|(_, terms)| terms).collect()
    }

    fn bounds(&self, members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<DerivedBound> {
        match self.reshaping {
            Reshaping::None => direct_bounds(members),
            Reshaping::EveryStage => reshaped_bounds(members),
        }
    }
}

/// A bound in seconds, and the terms that add up to it.
type DerivedBound = (f64, Vec<WorstCaseTerm>);

impl LatencyModel for WorstCase {
    type Sketch = WorstCaseSketch;

    fn name(&self) -> &'static str {
        "worst-case"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> WorstCaseSketch {
        let jobs = traffic.items();
        WorstCaseSketch {
            runs: RUNS.map(|run| run_sketch(traffic, run)),
            utilisation: PerStage::from_fn(|stage| utilisation(traffic, stage)),
            without_work: PerStage::from_fn(|stage| {
                let has_none = |job: &Job| job.work[stage] == Nanos::ZERO;
                (jobs.iter().any(has_none), jobs.iter().all(has_none))
            }),
            least_before: [0, 1, 2].map(|stage| {
                let least = jobs.iter().map(|job| work_before(job, stage)).min().unwrap_or(0);
                // Rounded down: what is subtracted from a bound must not be too large.
                seconds_up(least) * (1.0 - 32.0 * f64::EPSILON)
            }),
        }
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, WorstCaseSketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        let mut predictions = Vec::with_capacity(members.len());
        for ((bound, _), overload) in self.bounds(members).into_iter().zip(overloads(members)) {
            predictions.push(match overload {
                Some(overload) => Err(overload),
                None if bound.is_finite() => Ok(Prediction { bound, estimate: None }),
                None => Err(UndefinedLatency::NoBound),
            });
        }
        predictions
    }
}

/// Nanoseconds as seconds, rounded up.
fn seconds_up(ns: u64) -> f64 {
    round_up(Nanos(ns).as_secs())
}

/// The work of a job at all stages before this position, nanoseconds.
fn work_before(job: &Job, stage: usize) -> u64 {
    Stage::ALL[..stage].iter().fold(0u64, |sum, &s| sum.saturating_add(job.work[s].0))
}

/// The largest work of a job over the stages from one position to another, nanoseconds.
fn largest_work(job: &Job, first: usize, last: usize) -> u64 {
    Stage::ALL[first..=last].iter().map(|&stage| job.work[stage].0).max().unwrap_or(0)
}

/// The work per second of a stage; infinite when the sum is beyond counting.
fn utilisation(traffic: &CircularTrace<Job>, stage: Stage) -> f64 {
    let sum = traffic.items().iter().try_fold(0u64, |sum, job| sum.checked_add(job.work[stage].0));
    sum.map_or(f64::INFINITY, |sum| round_up(sum as f64 / traffic.period().0 as f64))
}

/// A workload as one run of stages sees it.
fn run_sketch(traffic: &CircularTrace<Job>, (first, last): StageRun) -> RunSketch {
    // Where the work is beyond counting, the utilisation is infinite, so no member gets a bound from this curve.
    let curve = circular_curve(traffic, |job| largest_work(job, first, last))
        .unwrap_or_else(|_| ArrivalCurve::zero());
    let overhang = [0, 1].map(|k| {
        if !(first..last).contains(&k) {
            return 0.0;
        }
        let shared =
            traffic.items().iter().map(|job| job.work[Stage::ALL[k]].0.min(largest_work(job, k + 1, last)));
        seconds_up(shared.max().unwrap_or(0))
    });
    RunSketch { curve, overhang }
}

/// The arrival curve of a circular trace, in seconds of `work` (nanoseconds by job).
fn circular_curve(
    traffic: &CircularTrace<Job>,
    work: impl Fn(&Job) -> u64,
) -> Result<ArrivalCurve, BurstError> {
    let arrivals = traffic.items().iter().map(|job| StageArrival { at: job.arrival, work: Work(work(job)) });
    let once = BurstCurve::from_arrivals(&arrivals.collect::<Vec<_>>())?;
    let twice = once.merge(&once.shifted(traffic.period())?)?;
    let vertices = twice
        .envelope()
        .vertices()
        .iter()
        .map(|v| CurveVertex { duration: v.duration.as_secs(), work: seconds_up(v.work.0) });
    let curve = ArrivalCurve::new(vertices.collect(), 0.0);
    let curve = curve.expect("an envelope is concave and starts at duration 0");
    Ok(curve.with_sustained_rate(round_up(once.total().0 as f64 / traffic.period().0 as f64)))
}

/// The members by priority level at a stage, the highest level first.
fn levels(members: &[ServerMember<'_, WorstCaseSketch>], stage: Stage) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&m| members[m].priority[stage]);
    let levels = order.chunk_by(|&a, &b| members[a].priority[stage] == members[b].priority[stage]);
    levels.map(<[usize]>::to_vec).collect()
}

/// The first stage where each member's level and those above ask for more than there is.
fn overloads(members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<Option<UndefinedLatency>> {
    let mut overloads = vec![None; members.len()];
    for stage in Stage::ALL {
        let mut utilisation = 0.0;
        for level in levels(members, stage) {
            utilisation += level.iter().map(|&m| members[m].sketch.utilisation[stage]).sum::<f64>();
            if utilisation > 1.0 {
                for &m in &level {
                    overloads[m].get_or_insert(UndefinedLatency::Overload { stage, utilisation });
                }
            }
        }
    }
    overloads
}

/// The delay of every member in a run of stages, when each member's jobs took up to `jitter` longer than their
/// shortest time to arrive.
fn run_delays(members: &[ServerMember<'_, WorstCaseSketch>], run: StageRun, jitter: &[f64]) -> Vec<f64> {
    let index = RUNS.iter().position(|r| *r == run).expect("all runs are listed");
    let mut queue = PriorityQueue::new();
    let mut delays = vec![f64::INFINITY; members.len()];
    let mut overhang = 0.0;
    for level in levels(members, Stage::ALL[run.0]) {
        if level.iter().any(|&m| !jitter[m].is_finite()) {
            break;
        }
        let mut curves = Vec::with_capacity(level.len());
        let mut largest = [0.0f64; 2];
        for &m in &level {
            let sketch = &members[m].sketch.runs[index];
            curves.push(sketch.curve.delayed(jitter[m]));
            largest = std::array::from_fn(|k| largest[k].max(sketch.overhang[k]));
        }
        let curve = ArrivalCurve::sum(&curves);
        overhang = round_up(overhang + largest[0] + largest[1]);
        let delay =
            if may_overtake(members, &level, run) { f64::INFINITY } else { queue.delay(&curve, overhang) };
        level.iter().for_each(|&m| delays[m] = delay);
        queue.add(&curve, 0.0);
    }
    delays
}

/// Whether jobs of the level may overtake each other before the last stage of a run, because some have no work there.
fn may_overtake(
    members: &[ServerMember<'_, WorstCaseSketch>],
    level: &[usize],
    (first, last): StageRun,
) -> bool {
    Stage::ALL[first..last].iter().any(|&stage| {
        let mut without_work = level.iter().map(|&m| members[m].sketch.without_work[stage]);
        without_work.clone().any(|(some, _)| some) && !without_work.all(|(_, all)| all)
    })
}

/// Whether the priority levels are the same at all stages of a run.
fn has_same_levels(members: &[ServerMember<'_, WorstCaseSketch>], (first, last): StageRun) -> bool {
    let levels_at_first = levels(members, Stage::ALL[first]);
    Stage::ALL[first + 1..=last].iter().all(|&stage| levels(members, stage) == levels_at_first)
}

/// The least bound over all divisions of the path into runs.
fn direct_bounds(members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<DerivedBound> {
    // The best bounds up to each stage, the beginning of the path first.
    let mut best: Vec<Vec<DerivedBound>> = vec![vec![(0.0, Vec::new()); members.len()]];
    for last in 0..Stage::ALL.len() {
        let mut until: Vec<DerivedBound> = vec![(f64::INFINITY, Vec::new()); members.len()];
        for (first, before) in best.iter().enumerate() {
            if !has_same_levels(members, (first, last)) {
                continue;
            }
            let both = before.iter().zip(members);
            let jitter: Vec<f64> =
                both.map(|(bound, m)| (bound.0 - m.sketch.least_before[first]).max(0.0)).collect();
            let delays = run_delays(members, (first, last), &jitter);
            for (member, until) in until.iter_mut().enumerate() {
                let term = term((first, last), jitter[member], delays[member]);
                improve(until, &before[member], term);
            }
        }
        best.push(until);
    }
    best.swap_remove(Stage::ALL.len())
}

fn term((first, last): StageRun, jitter: f64, delay: f64) -> WorstCaseTerm {
    WorstCaseTerm { stages: (Stage::ALL[first], Stage::ALL[last]), jitter, delay }
}

/// Replaces the bound by the one before with this term on top, if that is less or there is none yet.
fn improve(bound: &mut DerivedBound, before: &DerivedBound, term: WorstCaseTerm) {
    let total = round_up(before.0 + term.delay);
    if total < bound.0 || bound.1.is_empty() {
        *bound = (total, [&before.1[..], &[term]].concat());
    }
}

/// The bounds of Eq. 5.5 with full curves: delays of stages add up.
fn reshaped_bounds(members: &[ServerMember<'_, WorstCaseSketch>]) -> Vec<DerivedBound> {
    let no_jitter = vec![0.0; members.len()];
    let delays = [0, 1, 2].map(|stage| run_delays(members, (stage, stage), &no_jitter));
    let bounds = (0..members.len()).map(|member| {
        let terms = [0, 1, 2].map(|stage| term((stage, stage), 0.0, delays[stage][member]));
        (round_up(terms.iter().map(|term| term.delay).sum()), terms.to_vec())
    });
    bounds.collect()
}
