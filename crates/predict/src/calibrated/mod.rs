//! Replayed traffic with a margin for what the next window of traffic may bring.
//!
//! [`crate::Replayed`] says what the traces would do at other shifts; it does not know that traffic changes. Here windows of each
//! trace are held out and predicted from the rest, in the company of others, and the ratio of what was seen to what
//! was predicted is a score. The quantile of the scores by split conformal prediction is a *margin* that multiplies
//! the bound of `Replayed`: with the probability that is asked for, the percentile that a workload sees in the next window, at
//! one random alignment, is within the product.
//!
//! Whoever is let in with margins is other company than that from which they were learnt: [`Calibrated::margins_cover`] says
//! whether they are enough there. A latency grows without limit as load comes near what a stage does, so that no factor on it
//! stands for more load. So trials may predict from the rest with more work than it has, by a *load factor*, and fill
//! servers by that: [`Calibrated::learn`] is told the factor, [`Calibrated::needs_no_margin`] says whether the windows
//! stayed within those predictions, and forecasts are replays of the traces with as much more work.
//!
//! The assumption is that scores are exchangeable: the next window is to the trace as each of its windows is to the
//! rest, and companies are drawn as servers are filled. Where the traces are too short for a margin by windows of one trace
//! (19 for 95 %), they are pooled, and traces are taken for exchangeable: then the probability is over workloads and windows
//! together, and one workload may fare worse than the others. Where there are too few traces, too, the bound of
//! [`crate::Probabilistic`] counts (no smaller than that of `Replayed`), and [`Calibrated::margin_of`] says what is missing.
//!
//! Not covered: changes of a kind that no window shows, and windows that are worse the further ahead they are.

mod margins;
mod remembered;
mod scores;
mod windows;

pub use margins::{CalibrationScope, KeptShares, LatencyMargin, MarginAnswer, MarginBasis, TooFewWindows};
pub use remembered::RememberedCalibration;
pub use scores::{CalibrationTrace, CompanyMember, TrialCompany};

use crate::{Probabilistic, ProbabilisticSketch, Replayed};
use confidence::{TooFew, needed_for_conformal};
use margins::{Margins, ScoredWindows};
use model::{CircularTrace, Job, LatencyModel, Prediction, ServerMember, UndefinedLatency};
use scores::WindowTrials;
use sim::ReplayTrace;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;
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
    strict: Probabilistic,
    goal: CalibrationGoal,
    /// How many times the work of the traces forecasts replay.
    load: f64,
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
    /// With as much work as forecasts count; absent where that is the work of the trace.
    loaded: Option<<Replayed as LatencyModel>::Sketch>,
    /// Made when a workload without a margin is predicted.
    strict: OnceLock<ProbabilisticSketch>,
    /// The number of the trace among those of the trials.
    trace: Option<usize>,
}

type CalibratedMembers<'a, 'b> = &'a [ServerMember<'b, CalibratedSketch>];

impl Calibrated {
    /// Learns margins from trials in these companies, whose rests have `load` times their work. Those who are asked about
    /// later should be among the members: others have the margin of the pool. `go_on` is called before each trial; once it
    /// says no, trials are left out, and what is learnt is of no use.
    ///
    /// # Panics
    /// Unless the coverage is strictly between 0 and 1, and the load is at least 1.
    pub fn learn(
        goal: CalibrationGoal,
        load: f64,
        traces: &[CalibrationTrace<'_>],
        companies: &[TrialCompany],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Self {
        assert!(load >= 1.0, "forecasts count no less than the traces: {load}");
        let mut percentiles: Vec<Percentile> = Vec::new();
        for member in companies.iter().flat_map(|company| &company.members) {
            if !percentiles.contains(&member.percentile) {
                percentiles.push(member.percentile);
            }
        }
        percentiles.sort_by(|a, b| a.percent().total_cmp(&b.percent()));
        let trials = WindowTrials { traces, companies, percentiles: &percentiles, cut: goal.cut(), load };
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
            strict: Probabilistic::default(),
            goal,
            load,
            percentiles,
            traces,
            margins,
        }
    }

    /// How many times the work of the traces forecasts replay.
    pub fn load(&self) -> f64 {
        self.load
    }

    /// Whether windows stayed within what was predicted as often as they have to, at every percentile, or there are too few
    /// to say.
    pub fn needs_no_margin(&self) -> bool {
        self.margins.unknown.iter().all(|margin| margin.map_or(true, |margin| margin.factor <= 1.0))
    }

    /// Whether every margin that is known is a number: windows were predicted.
    pub fn has_finite_margins(&self) -> bool {
        let all = self.margins.by_trace.iter().chain([&self.margins.unknown]);
        all.flatten().flatten().all(|margin| margin.factor.is_finite())
    }

    /// Whether its margins are no smaller than those of `other`, which was learnt from other companies of the same traces, at
    /// every percentile that these were asked for.
    pub fn margins_cover(&self, other: &Self) -> bool {
        let traces = (0..self.traces.len()).map(Some).chain([None]);
        traces.flat_map(|trace| other.percentiles.iter().map(move |percentile| (trace, *percentile))).all(
            |(trace, percentile)| match (self.margin(trace, percentile), other.margin(trace, percentile)) {
                (Ok(own), Ok(needed)) => needed.factor <= own.factor,
                // Whoever has no margin is bounded otherwise.
                (Err(_), _) => true,
                (Ok(_), Err(_)) => false,
            },
        )
    }

    /// What its margins promise.
    pub fn goal(&self) -> CalibrationGoal {
        self.goal
    }

    /// How often the margins held in the windows that they come from.
    pub fn kept(&self) -> KeptShares {
        self.margins.kept
    }

    /// The same margins for predictions by other replays than those of the default.
    #[must_use]
    pub fn with_replays(&self, replayed: Replayed) -> Self {
        Self { replayed, ..self.clone() }
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

    /// The same margins for servers on which members of a priority take turns: whoever has no margin is bounded by
    /// [`Probabilistic::in_any_order`].
    #[must_use]
    pub fn in_any_order(self) -> Self {
        Self { strict: self.strict.in_any_order(), ..self }
    }

    /// Whether the margin of everybody is known.
    pub fn is_complete(&self) -> bool {
        let all = self.margins.by_trace.iter().chain([&self.margins.unknown]);
        !self.percentiles.is_empty() && all.flatten().all(Result::is_ok)
    }

    /// Each member's margin, the members as `Replayed` sees them.
    fn margins_of<'b>(
        &self,
        members: CalibratedMembers<'_, 'b>,
    ) -> (Vec<MarginAnswer>, Vec<ServerMember<'b, Option<ReplayTrace>>>) {
        let margins = members.iter().map(|member| self.margin(member.sketch.trace, member.percentile));
        (margins.collect(), members.iter().map(|member| seen_by(member, member.sketch.forecast())).collect())
    }

    /// What the strict model says of everybody, when somebody has no margin; no bound for anybody beside a trace that is too long.
    fn strict_bounds(
        &self,
        members: CalibratedMembers<'_, '_>,
        margins: &[MarginAnswer],
        begun: &[f64],
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        if margins.iter().all(Result::is_ok) {
            return None;
        }
        let sketches: Option<Vec<_>> =
            members.iter().map(|member| self.strict_sketch(member.sketch)).collect();
        let Some(sketches) = sketches else {
            return Some(vec![Err(UndefinedLatency::NoBound); members.len()]);
        };
        let strict = members.iter().zip(sketches).map(|(member, sketch)| seen_by(member, sketch));
        Some(self.strict.predict_behind(&strict.collect::<Vec<_>>(), begun))
    }

    /// The members as `Replayed` sees them, with what their margins leave of the limits.
    fn replayed_budgets<'b>(
        &self,
        members: CalibratedMembers<'_, 'b>,
        limits: &[f64],
        begun: &[f64],
    ) -> (Vec<ServerMember<'b, Option<ReplayTrace>>>, Vec<f64>) {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        assert_eq!(members.len(), begun.len(), "one time per member");
        let (margins, replayed) = self.margins_of(members);
        let mut budgets = Vec::with_capacity(limits.len());
        for ((margin, limit), begun) in margins.iter().zip(limits).zip(begun) {
            budgets.push((limit - begun) / margin.map_or(1.0, |margin| margin.factor));
        }
        (replayed, budgets)
    }

    /// Whether everybody who has no margin is within the limit by the strict model.
    fn is_strictly_within(&self, members: CalibratedMembers<'_, '_>, limits: &[f64], begun: &[f64]) -> bool {
        let (margins, _) = self.margins_of(members);
        let Some(bounds) = self.strict_bounds(members, &margins, begun) else { return true };
        let mut strictly = margins.iter().zip(limits).zip(bounds).filter(|((margin, _), _)| margin.is_err());
        strictly.all(|((_, limit), bound)| bound.is_ok_and(|prediction| prediction.bound <= *limit))
    }

    /// The bounds of the traces with as much work as forecasts count, and estimates of the traces as they are.
    fn forecasts(
        &self,
        members: CalibratedMembers<'_, '_>,
        forecast: &[ServerMember<'_, Option<ReplayTrace>>],
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        let bounds = self.replayed.predict_unless(interrupted, forecast)?;
        if self.load <= 1.0 {
            return Some(bounds);
        }
        let traced: Vec<_> = members.iter().map(|member| seen_by(member, &member.sketch.replayed)).collect();
        let both = bounds.into_iter().zip(self.replayed.predict_unless(interrupted, &traced)?);
        Some(both.map(|(bound, traced)| Ok(Prediction { bound: bound?.bound, ..traced? })).collect())
    }

    /// The prediction of everybody behind `begun` seconds of work each; `None` when it is interrupted.
    fn predicted(
        &self,
        members: CalibratedMembers<'_, '_>,
        begun: &[f64],
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        assert_eq!(members.len(), begun.len(), "one time per member");
        let (margins, replayed) = self.margins_of(members);
        let strict = self.strict_bounds(members, &margins, begun);
        let mut predictions = Vec::new();
        for (number, predicted) in self.forecasts(members, &replayed, interrupted)?.into_iter().enumerate() {
            let (margin, begun) = (margins[number].map_or(1.0, |margin| margin.factor), begun[number]);
            let widened = predicted.and_then(|prediction| Ok(widened(prediction, margin)?.later_by(begun)));
            predictions.push(match (margins[number], &strict) {
                (Ok(_), _) => widened,
                (Err(_), Some(strict)) => widened.and_then(|prediction| {
                    Ok(Prediction { bound: strict[number]?.bound.max(prediction.bound), ..prediction })
                }),
                (Err(_), None) => Err(UndefinedLatency::NoBound),
            });
        }
        Some(predictions)
    }

    fn strict_sketch<'s>(&self, sketch: &'s CalibratedSketch) -> Option<&'s ProbabilisticSketch> {
        let trace = sketch.replayed.as_ref()?.trace();
        Some(sketch.strict.get_or_init(|| self.strict.sketch(trace)))
    }
}

impl CalibratedSketch {
    /// The trace that forecasts replay.
    fn forecast(&self) -> &<Replayed as LatencyModel>::Sketch {
        self.loaded.as_ref().unwrap_or(&self.replayed)
    }
}

/// The same member with another sketch.
fn seen_by<'b, S>(member: &ServerMember<'_, CalibratedSketch>, sketch: &'b S) -> ServerMember<'b, S> {
    ServerMember { sketch, priority: member.priority, group: member.group, percentile: member.percentile }
}

impl LatencyModel for Calibrated {
    type Sketch = CalibratedSketch;

    fn name(&self) -> &'static str {
        "calibrated"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> CalibratedSketch {
        let sketch = CalibratedSketch {
            replayed: self.replayed.sketch(traffic),
            loaded: (self.load > 1.0).then(|| self.replayed.sketch(&traffic.with_work(self.load))),
            strict: OnceLock::new(),
            trace: self.number_of(traffic),
        };
        if !self.is_complete() {
            self.strict_sketch(&sketch);
        }
        sketch
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
        self.replayed.all_within(&replayed, &budgets) && self.is_strictly_within(members, limits, begun)
    }
}

/// A prediction whose bound is multiplied; none by an infinite factor. The estimate is still that of the traces as they are.
fn widened(prediction: Prediction, factor: f64) -> Result<Prediction, UndefinedLatency> {
    if factor == f64::INFINITY {
        return Err(UndefinedLatency::NoBound);
    }
    Ok(Prediction { bound: prediction.bound * factor, ..prediction })
}
