//! Replayed traffic: the traces themselves, at random relative shifts.
//!
//! Assumes that the future looks like the traces, each group independently at a uniformly random moment of
//! its own. Every alignment of the traces is replayed exactly, in the steady state, and gives each member's
//! percentile over the requests of one longest period. Of how that percentile varies from alignment to alignment,
//! order statistics say, without any assumption about its distribution:
//!
//! - the *bound* is an upper tolerance limit: with the given confidence, at least the given share of all alignments
//!   has its percentile at or below it (for each member by itself);
//! - the *estimate* is the median over alignments, with the lower end of its confidence interval.
//!
//! The steady state is certain while the utilisations of all stages sum to less than 1; above, a replay begins with
//! empty queues a whole longest period before the requests that count.
//!
//! Not covered: what the traces do not contain. [`Replayed::correlated`] says what a day would do on which the
//! members are not independent.

use confidence::{TooFew, median_ranks, tolerance_rank};
use model::{
    CircularTrace, Job, LatencyEstimate, LatencyModel, PerStage, Prediction, ServerMember, Stage,
    UndefinedLatency,
};
use sim::{Alignment, LatencyTarget, ReplayStream, ReplaySystem, ReplayTrace, UnsteadyError};
use std::sync::{Mutex, MutexGuard};
use units::{Nanos, Percentile};

/// The replaying model: traces at random shifts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replayed {
    /// How many alignments are replayed.
    alignments: usize,
    seed: u64,
    /// The rank, from 1, of the bound among the alignments' percentiles.
    bound_rank: usize,
    /// The rank, from 1, of the lower end of the estimate's confidence interval.
    low_rank: usize,
}

impl Default for Replayed {
    /// 59 alignments: the largest of their percentiles covers 95 % of all alignments with 95 % confidence.
    fn default() -> Self {
        Self::new(59, 0.95, 0.95, 1).expect("59 alignments are enough")
    }
}

/// Whether latencies stay within budgets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BudgetCheck {
    /// Every member's bound is within its budget.
    Fits,
    /// A member's bound exceeds its budget.
    Exceeds {
        /// The index of the first member for which this was certain; others' bounds may exceed theirs, too.
        member: usize,
        /// How many alignments it took to know, those with the longest queues first.
        alignments: usize,
    },
    /// A member has no bound.
    Undefined {
        /// The index of the first such member.
        member: usize,
        /// The reason why it has none.
        why: UndefinedLatency,
    },
}

/// A member's latency when members are not independent, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrelatedLatency {
    /// The latency when all traces begin at the same moment, as they were recorded.
    pub recorded: f64,
    /// The latency when the worst bursts of all members end at the same moment, as on a correlated day.
    pub bursts_together: f64,
}

type Members<'a, 'b> = &'a [ServerMember<'b, Option<ReplayTrace>>];

impl Replayed {
    /// A model that replays `alignments` alignments for bounds that hold for the share `coverage` of all alignments with
    /// confidence `confidence`.
    ///
    /// # Errors
    /// When there are too few alignments for that; the error says how many would do.
    ///
    /// # Panics
    /// Unless coverage and confidence are strictly between 0 and 1.
    pub fn new(alignments: usize, coverage: f64, confidence: f64, seed: u64) -> Result<Self, TooFew> {
        let bound_rank = tolerance_rank(alignments, coverage, confidence)?;
        let (low_rank, _) = median_ranks(alignments, confidence)?;
        Ok(Self { alignments, seed, bound_rank, low_rank })
    }

    /// Whether each member's bound is within its budget, in seconds: the answer that
    /// [`predict`](LatencyModel::predict) would give, as early as it is certain.
    ///
    /// # Panics
    /// When there is not one budget per member.
    pub fn check_budgets(&self, members: Members<'_, '_>, budgets: &[f64]) -> BudgetCheck {
        let (system, targets) = match targeted_system(members, budgets) {
            Ok(Some(targeted)) => targeted,
            Ok(None) => return BudgetCheck::Fits,
            Err(undefined) => return undefined,
        };
        let mut alignments: Vec<_> = self.random_alignments().collect();
        sim::sort_worst_first(&system, &mut alignments);
        match sim::first_target_miss(&system, &alignments, &targets, self.spare()) {
            None => BudgetCheck::Fits,
            Some(miss) => BudgetCheck::Exceeds { member: miss.stream, alignments: miss.alignments },
        }
    }

    /// The latencies of two alignments that are not random, or why a member has none.
    pub fn correlated(&self, members: Members<'_, '_>) -> Vec<Result<CorrelatedLatency, UndefinedLatency>> {
        let alignments = [Alignment::Recorded, Alignment::BurstsTogether];
        let latencies = percentiles_by_member(members, &alignments, &|| false, |values| CorrelatedLatency {
            recorded: values[0].as_secs(),
            bursts_together: values[1].as_secs(),
        });
        latencies.expect("nobody interrupts")
    }

    /// The percentile of each member in each of the random alignments, in their order: what the bound and the
    /// estimate are order statistics of.
    pub fn samples(&self, members: Members<'_, '_>) -> Vec<Result<Vec<Nanos>, UndefinedLatency>> {
        let alignments: Vec<Alignment> = self.random_alignments().collect();
        let samples = percentiles_by_member(members, &alignments, &|| false, <[Nanos]>::to_vec);
        samples.expect("nobody interrupts")
    }

    /// A model that answers as this one, and remembers of one question what the next one needs: for whoever asks
    /// [`all_within`](LatencyModel::all_within) about many servers that differ by few members.
    pub fn remembering(self) -> RememberedReplays {
        RememberedReplays { model: self, searches: Mutex::default() }
    }

    /// How many alignments may exceed the bound.
    fn spare(&self) -> usize {
        self.alignments - self.bound_rank
    }

    fn random_alignments(&self) -> impl Iterator<Item = Alignment> {
        Alignment::random(self.seed, self.alignments)
    }
}

impl LatencyModel for Replayed {
    /// The trace with what the simulator derives of it; `None` for a period or work beyond 36 years.
    type Sketch = Option<ReplayTrace>;

    fn name(&self) -> &'static str {
        "replayed"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> Option<ReplayTrace> {
        ReplayTrace::new(traffic.clone()).ok()
    }

    fn all_within(&self, members: Members<'_, '_>, limits: &[f64]) -> bool {
        self.check_budgets(members, limits) == BudgetCheck::Fits
    }

    fn bounds_above(&self, members: Members<'_, '_>, limits: &[f64]) -> Vec<(usize, f64)> {
        let (system, targets) = match targeted_system(members, limits) {
            Ok(Some(targeted)) => targeted,
            Ok(None) => return Vec::new(),
            Err(_) => return model::predicted_above(&self.predict(members), limits),
        };
        let alignments: Vec<Alignment> = self.random_alignments().collect();
        let runs = sim::percentiles_above(&system, &alignments, &targets);
        let mut above = Vec::new();
        for member in 0..members.len() {
            let mut values: Vec<Option<Nanos>> = runs.iter().map(|run| run[member]).collect();
            // Those within the limit have no value and come first.
            values.sort_unstable();
            above.extend(values[self.bound_rank - 1].map(|bound| (member, bound.as_secs())));
        }
        above
    }

    fn predict(&self, members: Members<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.predict_unless(&|| false, members).expect("nobody interrupts")
    }

    fn predict_unless(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
        members: Members<'_, '_>,
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        let alignments: Vec<Alignment> = self.random_alignments().collect();
        percentiles_by_member(members, &alignments, interrupted, |values| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            let ranked = |rank: usize| sorted[rank - 1].as_secs();
            let estimate =
                LatencyEstimate { low: ranked(self.low_rank), latency: ranked(sorted.len().div_ceil(2)) };
            Prediction { bound: ranked(self.bound_rank), estimate: Some(estimate) }
        })
    }
}

/// A [`Replayed`] model that remembers the servers it was asked about last: as many as it was asked about at once.
#[derive(Debug)]
pub struct RememberedReplays {
    model: Replayed,
    /// The searches that nobody uses at the moment.
    searches: Mutex<Vec<sim::TargetSearch>>,
}

impl RememberedReplays {
    /// The search's answer to a question; the answer itself as the error where nothing has to be replayed for it.
    fn ask<T>(
        &self,
        members: Members<'_, '_>,
        limits: &[f64],
        question: impl FnOnce(&mut sim::TargetSearch, &ReplaySystem<'_>, &[LatencyTarget]) -> T,
    ) -> Result<T, bool> {
        match targeted_system(members, limits) {
            Ok(Some((system, targets))) => {
                let known = self.searches().pop();
                let mut search = known.unwrap_or_else(|| {
                    sim::TargetSearch::new(self.model.random_alignments(), self.model.spare())
                });
                let answer = question(&mut search, &system, &targets);
                self.searches().push(search);
                Ok(answer)
            }
            Ok(None) => Err(true),
            Err(_) => Err(false),
        }
    }

    fn searches(&self) -> MutexGuard<'_, Vec<sim::TargetSearch>> {
        self.searches.lock().expect("no thread panics while it holds the lock")
    }
}

impl LatencyModel for RememberedReplays {
    type Sketch = <Replayed as LatencyModel>::Sketch;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> Self::Sketch {
        self.model.sketch(traffic)
    }

    fn all_within(&self, members: Members<'_, '_>, limits: &[f64]) -> bool {
        self.ask(members, limits, sim::TargetSearch::keeps_targets).unwrap_or_else(|certain| certain)
    }

    fn likely_within(&self, members: Members<'_, '_>, limits: &[f64]) -> Option<bool> {
        self.ask(members, limits, sim::TargetSearch::likely_keeps_targets).unwrap_or_else(Some)
    }

    fn forget(&self) {
        self.searches().clear();
    }

    fn bounds_above(&self, members: Members<'_, '_>, limits: &[f64]) -> Vec<(usize, f64)> {
        self.model.bounds_above(members, limits)
    }

    fn predict(&self, members: Members<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.model.predict(members)
    }
}

/// The system of these members and the target of each stream; `None` without members.
type TargetedSystem<'a> = Option<(ReplaySystem<'a>, Vec<LatencyTarget>)>;

/// What has to be replayed to know whether everybody keeps the budget; the first member that has no latency otherwise.
fn targeted_system<'a>(members: Members<'_, 'a>, budgets: &[f64]) -> Result<TargetedSystem<'a>, BudgetCheck> {
    assert_eq!(members.len(), budgets.len(), "one budget per member");
    let (undefined, system) = steady_system(members);
    for (member, undefined) in undefined.into_iter().enumerate() {
        if let Some(why) = undefined {
            return Err(BudgetCheck::Undefined { member, why });
        }
    }
    let target = |(member, budget): (&ServerMember<'_, _>, &f64)| LatencyTarget {
        percentile: member.percentile,
        budget: nanos_within(*budget),
    };
    let targets = members.iter().zip(budgets).map(target).collect();
    Ok(system.map(|(system, _)| (system, targets)))
}

/// What `summary` makes of a member's percentiles in the order of the alignments, for each member that has a latency; `None`
/// when it is interrupted.
fn percentiles_by_member<T>(
    members: Members<'_, '_>,
    alignments: &[Alignment],
    interrupted: &(dyn Fn() -> bool + Sync),
    summary: impl Fn(&[Nanos]) -> T,
) -> Option<Vec<Result<T, UndefinedLatency>>> {
    let (undefined, system) = steady_system(members);
    let Some((system, percentiles)) = system else {
        let undefined = undefined.into_iter();
        return Some(undefined.map(|why| Err(why.expect("no member has a latency"))).collect());
    };
    let runs = sim::preemptive_percentiles(&system, alignments, &percentiles, interrupted)?;
    let mut summaries = Vec::with_capacity(members.len());
    let mut stream = 0;
    for undefined in undefined {
        if let Some(why) = undefined {
            summaries.push(Err(why));
            continue;
        }
        let values = runs.iter().map(|run| run[stream].expect("a window is a whole period"));
        summaries.push(Ok(summary(&values.collect::<Vec<_>>())));
        stream += 1;
    }
    Some(summaries)
}

/// The system of those members that have a latency, and the percentiles that they ask for.
type SteadySystem<'a> = (ReplaySystem<'a>, Vec<Percentile>);

/// Why members have no latency, and the system of the others; `None` when there are no others.
fn steady_system<'a>(members: Members<'_, 'a>) -> (Vec<Option<UndefinedLatency>>, Option<SteadySystem<'a>>) {
    let mut undefined = undefined_latencies(members);
    let mut streams = Vec::new();
    let mut percentiles = Vec::new();
    for (member, undefined) in members.iter().zip(&undefined) {
        if let (None, Some(trace)) = (undefined, member.sketch.as_ref()) {
            streams.push(ReplayStream { trace, priority: member.priority, group: member.group });
            percentiles.push(member.percentile);
        }
    }
    match ReplaySystem::new(streams) {
        Ok(system) => (undefined, Some((system, percentiles))),
        Err(UnsteadyError::Empty) => (undefined, None),
        // Summed in another order, a utilisation just below 1 may round up to it.
        Err(UnsteadyError::Overload { stage, utilisation }) => {
            let overload = UndefinedLatency::Overload { stage, utilisation };
            undefined.iter_mut().for_each(|why| *why = why.or(Some(overload)));
            (undefined, None)
        }
    }
}

/// Why members have no latency: overload by the same and higher priorities, or a member without a steady state whose work
/// may come before their own. `None` for members that have one.
fn undefined_latencies(members: Members<'_, '_>) -> Vec<Option<UndefinedLatency>> {
    let mut loads = Vec::with_capacity(members.len());
    for member in members {
        loads.push(match member.sketch {
            Some(trace) => trace.utilisation(),
            None => PerStage::from_fn(|_| f64::NAN),
        });
    }
    let mut undefined: Vec<Option<UndefinedLatency>> =
        (0..members.len()).map(|i| overload(members, &loads, i)).collect();
    // A member that may wait for an unsteady one is unsteady, and so on.
    while let Some(next) = (0..members.len()).find(|&i| {
        undefined[i].is_none()
            && (0..members.len()).any(|j| undefined[j].is_some() && may_precede(members, &loads, j, i))
    }) {
        undefined[next] = Some(UndefinedLatency::NoBound);
    }
    undefined
}

/// Whether work of the member `a` may come before work of the member `b` at some stage.
fn may_precede(members: Members<'_, '_>, loads: &[PerStage<f64>], a: usize, b: usize) -> bool {
    let has_work = |member: usize, stage: Stage| loads[member][stage] > 0.0 || loads[member][stage].is_nan();
    Stage::ALL.into_iter().any(|stage| {
        has_work(a, stage) && has_work(b, stage) && members[a].priority[stage] <= members[b].priority[stage]
    })
}

/// The first stage that a member and those of the same or higher priority overload; no bound for a member without a
/// trace that can be replayed.
fn overload(members: Members<'_, '_>, loads: &[PerStage<f64>], i: usize) -> Option<UndefinedLatency> {
    if members[i].sketch.is_none() {
        return Some(UndefinedLatency::NoBound);
    }
    for stage in Stage::ALL.into_iter().filter(|stage| loads[i][*stage] > 0.0) {
        let first = (0..members.len()).filter(|&j| members[j].priority[stage] <= members[i].priority[stage]);
        let known = first.map(|j| if members[j].sketch.is_some() { loads[j][stage] } else { 0.0 });
        let utilisation: f64 = known.sum();
        if utilisation >= 1.0 {
            return Some(UndefinedLatency::Overload { stage, utilisation });
        }
    }
    None
}

/// The longest latency in whole nanoseconds within a budget of seconds; NaN and negative budgets allow none.
fn nanos_within(budget: f64) -> Nanos {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    Nanos((budget * 1e9).floor() as u64)
}
