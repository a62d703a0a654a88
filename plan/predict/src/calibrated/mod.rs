//! Replayed traffic with a margin for what the next window of traffic may bring.
//!
//! [`crate::Replayed`] says what the traces would do at other shifts; it does not know that traffic changes. Here windows of each
//! trace are held out and predicted from the rest, in the company of others, and the ratio of what was seen to what
//! was predicted is a score. The quantile of the scores by split conformal prediction is a *margin* that multiplies
//! the bound of `Replayed`: with the probability that is asked for, the percentile that a workload sees in the next window, at
//! one random alignment, is within the product.
//!
//! That is a promise about a number. A plan that chooses servers by SLOs asks less: that the next window is within the SLO, however
//! far it is from what was predicted. [`slo_coverage`] says how often held-out windows kept the SLOs of servers that were
//! filled from the rest in some way, for [`crate::LoadedReplays`].
//!
//! The assumption is that scores are exchangeable: the next window is to the trace as each of its windows is to the
//! rest, in the company that is asked about. A trace with enough windows (19 for 95 %) has a margin of its own.
//! Otherwise the windows of all traces are pooled, each of them one block, because the windows of one trace are exchangeable
//! and traces are independent: then the probability is over workloads and windows together, and one workload may exceed its
//! bound more often than the others.
//!
//! The worst case by the burst curves ([`crate::WorstCase`]) is the largest bound that a margin leads to. Bounds grow with the
//! margin from the replayed one to this *guarantee*, which is the bound of workloads without a margin; [`Calibrated::margin_of`]
//! says how many windows a margin needs. The guarantee assumes that the next window stays within the curves of the trace, and a
//! window may exceed them. So a trial compares the held-out window with the guarantee from the rest, too: a window above it
//! has an infinite score, because no margin covers it, and [`KeptShares`] says how often that was the case.
//!
//! Not covered: changes of a kind that no window shows, and windows that are worse the further ahead they are.

mod margins;
mod scores;
mod slos;
mod windows;

pub use margins::{CalibrationScope, KeptShares, LatencyMargin, MarginAnswer, MarginBasis, TooFewWindows};
pub use scores::{CalibrationTrace, CompanyMember, TrialCompany};
pub use slos::{SloCalibration, SloCoverage, SloTrial, slo_coverage};

use crate::cap::{seen_by, worst_cases};
use crate::{Replayed, WorstCase, WorstCaseSketch};
use confidence::{TooFew, needed_for_conformal};
use margins::{Margins, ScoredWindows};
use model::{CircularTrace, Job, LatencyModel, Prediction, ServerMember, UndefinedLatency};
use scores::WindowTrials;
use sim::ReplayTrace;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use units::{Nanos, Percentile};
use windows::WindowCut;

/// What the calibrated model promises, and with which probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationGoal {
    /// The probability that a promise is kept in the next window, strictly between 0 and 1.
    pub coverage: f64,
    /// The length of the next window; half of each trace when it is not said.
    pub window: Option<Nanos>,
    /// Whether workloads, servers or plans are counted.
    pub scope: CalibrationScope,
}

impl Default for CalibrationGoal {
    /// 95 % of the workloads, in windows as the traces allow.
    fn default() -> Self {
        Self { coverage: 0.95, window: None, scope: CalibrationScope::Workload }
    }
}

impl CalibrationGoal {
    /// How many windows of a trace are held out in turn; 0 when it is too short to have two.
    pub fn windows(&self, trace: &CircularTrace<Job>) -> usize {
        self.cut().count(trace)
    }

    /// The length of the windows of a trace.
    pub fn window_length(&self, trace: &CircularTrace<Job>) -> Nanos {
        self.cut().length(trace)
    }

    /// What is left of a trace without the window of this number, counted from 0 and round again: what the trial is predicted
    /// from. All of a trace without windows; `None` where nothing arrives.
    pub fn rest(&self, trace: &CircularTrace<Job>, window: usize) -> Option<CircularTrace<Job>> {
        self.cut().rest(trace, window)
    }

    fn cut(&self) -> WindowCut {
        WindowCut { length: self.window, most: 2 * needed_for_conformal(self.coverage) }
    }
}

/// The replaying model with margins for the next window.
#[derive(Debug, Clone)]
pub struct Calibrated {
    replayed: Replayed,
    /// The worst case that bounds are capped by; absent where [`crate::EnforcedModel`] caps them.
    guarantee: Option<WorstCase>,
    goal: CalibrationGoal,
    percentiles: Vec<Percentile>,
    /// The traces of the trials, as fingerprints.
    traces: Vec<TraceFingerprint>,
    margins: Margins,
}

/// By what a trace is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TraceFingerprint {
    period: Nanos,
    hash: u64,
}

impl TraceFingerprint {
    fn of(trace: &CircularTrace<Job>) -> Self {
        let mut hasher = DefaultHasher::new();
        for job in trace.items() {
            (job.arrival, job.work.into_array()).hash(&mut hasher);
        }
        Self { period: trace.period(), hash: hasher.finish() }
    }
}

/// What the model keeps of a workload.
#[derive(Debug)]
pub struct CalibratedSketch {
    replayed: <Replayed as LatencyModel>::Sketch,
    /// Absent where the caller caps bounds.
    guarantee: Option<WorstCaseSketch>,
    /// The number of the trace among those of the trials.
    trace: Option<usize>,
}

type CalibratedMembers<'a, 'b> = &'a [ServerMember<'b, CalibratedSketch>];

impl Calibrated {
    /// Learns margins from trials in these companies. Those who are asked about later should be among the members: others
    /// have the margin of the pool. `go_on` is called before each trial; once it says no, trials are left out, and what is
    /// learnt is of no use.
    ///
    /// # Panics
    /// Unless the coverage is strictly between 0 and 1.
    pub fn learn(
        goal: CalibrationGoal,
        traces: &[CalibrationTrace<'_>],
        companies: &[TrialCompany],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Self {
        let mut percentiles: Vec<Percentile> = Vec::new();
        for member in companies.iter().flat_map(|company| &company.members) {
            if !percentiles.contains(&member.percentile) {
                percentiles.push(member.percentile);
            }
        }
        percentiles.sort_by(|a, b| a.percent().total_cmp(&b.percent()));
        let trials = WindowTrials { traces, companies, percentiles: &percentiles, cut: goal.cut() };
        let found = trials.run(go_on);
        let windows: Vec<usize> = traces.iter().map(|trace| goal.windows(trace.traffic)).collect();
        let scored = ScoredWindows {
            trials: &found,
            windows: &windows,
            percentiles: percentiles.len(),
            coverage: goal.coverage,
        };
        let margins = scored.margins(goal.scope);
        let traces = traces.iter().map(|trace| TraceFingerprint::of(trace.traffic)).collect();
        Self {
            replayed: Replayed::default(),
            guarantee: Some(WorstCase::default()),
            goal,
            percentiles,
            traces,
            margins,
        }
    }

    /// What its margins promise.
    pub fn goal(&self) -> CalibrationGoal {
        self.goal
    }

    /// How often the margins held in the windows that they come from.
    pub fn kept(&self) -> KeptShares {
        self.margins.kept
    }

    /// The margin of a workload at a percentile, or why it has none: as for one that was not calibrated.
    pub fn margin_of(&self, traffic: &CircularTrace<Job>, percentile: Percentile) -> MarginAnswer {
        self.margin(self.number_of(traffic), percentile)
    }

    /// The number of a trace among those of the trials.
    fn number_of(&self, traffic: &CircularTrace<Job>) -> Option<usize> {
        let fingerprint = TraceFingerprint::of(traffic);
        self.traces.iter().position(|known| *known == fingerprint)
    }

    /// The margin of the trace of this number.
    fn margin(&self, trace: Option<usize>, percentile: Percentile) -> MarginAnswer {
        let margins = match trace {
            Some(trace) => &self.margins.by_trace[trace],
            None => &self.margins.unknown,
        };
        let none = TooFew { given: 0, needed: needed_for_conformal(self.goal.coverage) };
        let position = self.percentiles.iter().position(|known| *known == percentile);
        position.map_or(Err(TooFewWindows { windows: none, pool: none }), |position| margins[position])
    }

    /// The same margins without the cap by the worst case of servers that interrupt what they have begun: for
    /// [`crate::EnforcedModel`], which takes the lesser of a prediction and the worst case of its servers. Members without a
    /// margin then have no bound here.
    #[must_use]
    pub fn capped_elsewhere(self) -> Self {
        Self { guarantee: None, ..self }
    }

    /// Each member's margin, the members as `Replayed` sees them.
    fn margins_of<'b>(
        &self,
        members: CalibratedMembers<'_, 'b>,
    ) -> (Vec<MarginAnswer>, Vec<ServerMember<'b, Option<ReplayTrace>>>) {
        let margins = members.iter().map(|member| self.margin(member.sketch.trace, member.percentile));
        (margins.collect(), members.iter().map(|member| seen_by(member, &member.sketch.replayed)).collect())
    }

    /// The worst case of each member behind `begun` seconds of work, seconds; infinite where there is none, or where the caller
    /// caps bounds.
    fn guarantees(&self, members: CalibratedMembers<'_, '_>, begun: &[f64]) -> Vec<f64> {
        worst_cases(self.guarantee, members, |sketch| sketch.guarantee.as_ref(), begun)
    }

    /// The members as `Replayed` sees them, with what their margins leave of the limits: nothing where there is no margin, and
    /// everything where the guarantee keeps the limit.
    fn replayed_budgets<'b>(
        &self,
        members: CalibratedMembers<'_, 'b>,
        limits: &[f64],
        begun: &[f64],
    ) -> (Vec<ServerMember<'b, Option<ReplayTrace>>>, Vec<f64>) {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        assert_eq!(members.len(), begun.len(), "one time per member");
        let (margins, replayed) = self.margins_of(members);
        let guarantees = self.guarantees(members, begun);
        let mut budgets = Vec::with_capacity(limits.len());
        for (number, margin) in margins.iter().enumerate() {
            let limit = limits[number];
            let factor = margin.map_or(f64::INFINITY, |margin| margin.factor);
            budgets.push(if guarantees[number] <= limit || limit == f64::INFINITY {
                f64::INFINITY
            } else if factor.is_finite() {
                (limit - begun[number]) / factor
            } else {
                -1.0
            });
        }
        (replayed, budgets)
    }

    /// True if the guarantee keeps all limits, so that replays decide nothing.
    fn is_guaranteed(&self, budgets: &[f64]) -> bool {
        self.guarantee.is_some() && budgets.iter().all(|budget| *budget == f64::INFINITY)
    }

    /// The prediction of each member behind `begun` seconds of work; `None` when it is interrupted.
    fn predicted(
        &self,
        members: CalibratedMembers<'_, '_>,
        begun: &[f64],
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        assert_eq!(members.len(), begun.len(), "one time per member");
        let (margins, replayed) = self.margins_of(members);
        let guarantees = self.guarantees(members, begun);
        let mut predictions = Vec::new();
        for (number, predicted) in
            self.replayed.predict_unless(interrupted, &replayed)?.into_iter().enumerate()
        {
            let factor = margins[number].map_or(f64::INFINITY, |margin| margin.factor);
            let widened = predicted
                .and_then(|prediction| Ok(widened(prediction, factor)?.later_by(begun[number])))
                .map(|prediction| Prediction {
                    bound: prediction.bound.min(guarantees[number]),
                    ..prediction
                });
            predictions.push(match widened {
                Err(_) if guarantees[number].is_finite() => {
                    Ok(Prediction { bound: guarantees[number], estimate: None })
                }
                widened => widened,
            });
        }
        Some(predictions)
    }
}

impl LatencyModel for Calibrated {
    type Sketch = CalibratedSketch;

    fn name(&self) -> &'static str {
        "calibrated"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> CalibratedSketch {
        CalibratedSketch {
            replayed: self.replayed.sketch(traffic),
            guarantee: self.guarantee.map(|guarantee| guarantee.sketch(traffic)),
            trace: self.number_of(traffic),
        }
    }

    fn all_within(&self, members: CalibratedMembers<'_, '_>, limits: &[f64]) -> bool {
        self.all_within_behind(members, limits, &vec![0.0; members.len()])
    }

    fn predict(&self, members: CalibratedMembers<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.predict_behind(members, &vec![0.0; members.len()])
    }

    fn predict_unless(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
        members: CalibratedMembers<'_, '_>,
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        self.predicted(members, &vec![0.0; members.len()], interrupted)
    }

    fn predict_behind(
        &self,
        members: CalibratedMembers<'_, '_>,
        begun: &[f64],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.predicted(members, begun, &|| false).expect("nobody interrupts")
    }

    fn all_within_behind(&self, members: CalibratedMembers<'_, '_>, limits: &[f64], begun: &[f64]) -> bool {
        let (replayed, budgets) = self.replayed_budgets(members, limits, begun);
        self.is_guaranteed(&budgets) || self.replayed.all_within(&replayed, &budgets)
    }
}

/// A prediction whose bound is multiplied; none by an infinite factor. The estimate is still that of the traces as they are.
fn widened(prediction: Prediction, factor: f64) -> Result<Prediction, UndefinedLatency> {
    if factor == f64::INFINITY {
        return Err(UndefinedLatency::NoBound);
    }
    Ok(Prediction { bound: prediction.bound * factor, ..prediction })
}
