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
use sim::{Alignment, LatencyTarget, PreemptionMode, ReplayStream, ReplaySystem, ReplayTrace, UnsteadyError};
use units::{Nanos, Percentile};

/// Replay at random shifts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replayed {
    alignments: usize,
    seed: u64,
    /// Order statistics of the alignments' percentiles, from 1.
    bound_rank: usize,
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
pub enum Verdict {
    /// Every member's bound is within its budget.
    Fits,
    /// This member's bound exceeds its budget.
    Exceeds {
        /// The first for which it was certain; others' may, too.
        member: usize,
        /// How many alignments it took to know, those with the longest queues first.
        alignments: usize,
    },
    /// This member has no bound.
    Undefined {
        /// The first such.
        member: usize,
        /// Why.
        why: UndefinedLatency,
    },
}

/// A member's latency when members are not independent, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlated {
    /// All traces begin at the same moment.
    pub recorded: f64,
    /// The worst burst of every member ends at the same moment: a correlated day.
    pub bursts_together: f64,
}

type Members<'a, 'b> = &'a [ServerMember<'b, Option<ReplayTrace>>];

impl Replayed {
    /// Replays `alignments` alignments for bounds that hold for the share `coverage` of all alignments with
    /// confidence `confidence`; says how many would do if they are too few.
    ///
    /// # Panics
    /// Unless coverage and confidence are strictly between 0 and 1.
    pub fn new(alignments: usize, coverage: f64, confidence: f64, seed: u64) -> Result<Self, TooFew> {
        let bound_rank = tolerance_rank(alignments, coverage, confidence)?;
        let (low_rank, _) = median_ranks(alignments, confidence)?;
        Ok(Self { alignments, seed, bound_rank, low_rank })
    }

    /// Whether each member's bound is within its budget, in seconds: the answer that
    /// [`predict`](Model::predict) would give, as early as it is certain.
    ///
    /// # Panics
    /// When there is not one budget per member.
    pub fn fits(&self, members: Members<'_, '_>, budgets: &[f64]) -> Verdict {
        assert_eq!(members.len(), budgets.len(), "one budget per member");
        let (fates, system) = resolve(members);
        if let Some((member, why)) = fates.iter().enumerate().find_map(|(i, fate)| Some((i, (*fate)?))) {
            return Verdict::Undefined { member, why };
        }
        let Some((system, _)) = system else { return Verdict::Fits };
        let target = |(member, budget): (&ServerMember<'_, _>, &f64)| LatencyTarget {
            percentile: member.percentile,
            budget: whole(*budget),
        };
        let targets: Vec<LatencyTarget> = members.iter().zip(budgets).map(target).collect();
        let spare = self.alignments - self.bound_rank;
        let mut alignments: Vec<_> = self.family().collect();
        sim::sort_worst_first(&system, &mut alignments);
        match sim::first_target_miss(&system, PreemptionMode::Preemptive, &alignments, &targets, spare) {
            None => Verdict::Fits,
            Some(excess) => Verdict::Exceeds { member: excess.stream, alignments: excess.alignments },
        }
    }

    /// The latencies of two alignments that are not random.
    pub fn correlated(&self, members: Members<'_, '_>) -> Vec<Result<Correlated, UndefinedLatency>> {
        let alignments = [Alignment::Recorded, Alignment::BurstsTogether];
        self.over(members, &alignments, |values| Correlated {
            recorded: values[0].as_secs(),
            bursts_together: values[1].as_secs(),
        })
    }

    /// The percentile of each member in each of the random alignments, in their order: what the bound and the
    /// estimate are order statistics of.
    pub fn samples(&self, members: Members<'_, '_>) -> Vec<Result<Vec<Nanos>, UndefinedLatency>> {
        self.over(members, &self.family().collect::<Vec<_>>(), <[Nanos]>::to_vec)
    }

    fn family(&self) -> impl Iterator<Item = Alignment> {
        Alignment::random(self.seed, self.alignments)
    }

    /// What `summary` makes of a member's percentiles in the order of the alignments.
    fn over<T>(
        &self,
        members: Members<'_, '_>,
        alignments: &[Alignment],
        summary: impl Fn(&[Nanos]) -> T,
    ) -> Vec<Result<T, UndefinedLatency>> {
        let (fates, system) = resolve(members);
        let Some((system, percentiles)) = system else {
            return fates.into_iter().map(|fate| Err(fate.expect("no member is well"))).collect();
        };
        let runs = sim::alignment_percentiles(&system, PreemptionMode::Preemptive, alignments, &percentiles);
        let mut stream = 0..;
        let answer = |fate: Option<UndefinedLatency>| match fate {
            Some(why) => Err(why),
            None => {
                let stream = stream.next().expect("endless");
                let value =
                    |run: &(Vec<Option<Nanos>>, _)| run.0[stream].expect("a window is a whole period");
                Ok(summary(&runs.iter().map(value).collect::<Vec<_>>()))
            }
        };
        fates.into_iter().map(answer).collect()
    }
}

impl LatencyModel for Replayed {
    /// `None` for a period or work beyond 36 years.
    type Sketch = Option<ReplayTrace>;

    fn name(&self) -> &'static str {
        "replayed"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> Option<ReplayTrace> {
        ReplayTrace::new(traffic.clone()).ok()
    }

    fn all_within(&self, members: Members<'_, '_>, limits: &[f64]) -> bool {
        self.fits(members, limits) == Verdict::Fits
    }

    fn predict(&self, members: Members<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.over(members, &self.family().collect::<Vec<_>>(), |values| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable();
            let rank = |rank: usize| sorted[rank - 1].as_secs();
            let estimate =
                LatencyEstimate { low: rank(self.low_rank), latency: rank(sorted.len().div_ceil(2)) };
            Prediction { bound: rank(self.bound_rank), estimate: Some(estimate) }
        })
    }
}

/// The system of those members that have a latency, and their percentiles.
type Steady<'a> = (ReplaySystem<'a>, Vec<Percentile>);

/// Why members have no latency, and the system of the others; `None` when there are no others.
fn resolve<'a>(members: Members<'_, 'a>) -> (Vec<Option<UndefinedLatency>>, Option<Steady<'a>>) {
    let mut fates = fates(members);
    let well = || members.iter().zip(&fates).filter(|(_, fate)| fate.is_none()).map(|(member, _)| member);
    let stream = |m: &ServerMember<'a, Option<ReplayTrace>>| {
        Some(ReplayStream { trace: m.sketch.as_ref()?, priority: m.priority, group: m.group })
    };
    match ReplaySystem::new(well().filter_map(stream).collect()) {
        Ok(system) => {
            let percentiles = well().map(|m| m.percentile).collect();
            (fates, Some((system, percentiles)))
        }
        Err(UnsteadyError::Empty) => (fates, None),
        // Summed in another order, a utilisation just below 1 may round up to it.
        Err(UnsteadyError::Overload { stage, utilisation }) => {
            let overload = UndefinedLatency::Overload { stage, utilisation };
            fates.iter_mut().for_each(|fate| *fate = fate.or(Some(overload)));
            (fates, None)
        }
    }
}

/// Why a member has no latency, if it has none: overload by the same and higher priorities, or a member without
/// a steady state whose work may come before its own.
fn fates(members: Members<'_, '_>) -> Vec<Option<UndefinedLatency>> {
    let load = |m: &ServerMember<'_, Option<ReplayTrace>>| match m.sketch {
        Some(trace) => trace.utilisation(),
        None => PerStage::from_fn(|_| f64::NAN),
    };
    let loads: Vec<_> = members.iter().map(load).collect();
    let mut fates: Vec<Option<UndefinedLatency>> =
        (0..members.len()).map(|i| overload(members, &loads, i)).collect();
    // Whoever may wait for an unsteady member is unsteady, and so on.
    while let Some(next) = (0..members.len()).find(|i| {
        fates[*i].is_none()
            && (0..members.len()).any(|j| fates[j].is_some() && before(members, &loads, j, *i))
    }) {
        fates[next] = Some(UndefinedLatency::NoBound);
    }
    fates
}

/// Whether work of `a` may come before work of `b` somewhere.
fn before(members: Members<'_, '_>, loads: &[PerStage<f64>], a: usize, b: usize) -> bool {
    let there = |i: usize, stage: Stage| loads[i][stage] > 0.0 || loads[i][stage].is_nan();
    Stage::ALL.into_iter().any(|stage| {
        there(a, stage) && there(b, stage) && members[a].priority[stage] <= members[b].priority[stage]
    })
}

fn overload(members: Members<'_, '_>, loads: &[PerStage<f64>], i: usize) -> Option<UndefinedLatency> {
    if members[i].sketch.is_none() {
        return Some(UndefinedLatency::NoBound);
    }
    Stage::ALL.into_iter().filter(|stage| loads[i][*stage] > 0.0).find_map(|stage| {
        let first = |j: &usize| members[*j].priority[stage] <= members[i].priority[stage];
        let known = |j: usize| if members[j].sketch.is_some() { loads[j][stage] } else { 0.0 };
        let utilisation: f64 = (0..members.len()).filter(first).map(known).sum();
        (utilisation >= 1.0).then_some(UndefinedLatency::Overload { stage, utilisation })
    })
}

/// The longest latency in whole nanoseconds within a budget; NaN and negative budgets allow none.
fn whole(budget: f64) -> Nanos {
    // `as` saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Nanos((budget * 1e9).floor() as u64)
}
