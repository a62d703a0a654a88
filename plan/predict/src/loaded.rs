//! Replays of more work than the traces have: how servers are filled when the next window may bring more.
//!
//! [`LoadedReplays`] lies between [`Replayed`] and [`WorstCase`]: a latency is within a limit if the replays of the traces with
//! `load` times their work are, or if the worst case is. With a growing load, fewer servers pass, down to those that the
//! worst case admits. Traces without held-out windows have not been tested, so that only the worst case counts for them.
//! [`crate::slo_coverage`] says which load suffices.

use crate::cap::{seen_by, worst_cases};
use crate::{CalibrationGoal, RememberedReplays, Replayed, WorstCase, WorstCaseSketch};
use model::{CircularTrace, Job, LatencyModel, Prediction, ServerMember, UndefinedLatency};
use sim::ReplayTrace;

/// The replaying model of traces with `load` times their work, capped by the worst case of the traces as they are.
#[derive(Debug, Clone)]
pub struct LoadedReplays {
    replayed: Replayed,
    /// Absent where [`crate::EnforcedModel`] caps bounds.
    guarantee: Option<WorstCase>,
    goal: CalibrationGoal,
    load: f64,
}

/// Sketch of a workload.
#[derive(Debug)]
pub struct LoadedSketch {
    traced: Option<ReplayTrace>,
    /// With `load` times the work; absent where that is the work of the trace.
    loaded: Option<Option<ReplayTrace>>,
    guarantee: Option<WorstCaseSketch>,
    /// True if windows of the trace were held out.
    is_tested: bool,
}

type LoadedMembers<'a, 'b> = &'a [ServerMember<'b, LoadedSketch>];
type ReplayMembers<'a> = Vec<ServerMember<'a, Option<ReplayTrace>>>;

impl LoadedSketch {
    /// The trace that bounds replay.
    fn forecast(&self) -> &Option<ReplayTrace> {
        self.loaded.as_ref().unwrap_or(&self.traced)
    }
}

impl LoadedReplays {
    /// Creates the model for the windows of `goal`.
    ///
    /// # Panics
    /// Unless the load is at least 1.
    pub fn new(goal: CalibrationGoal, load: f64) -> Self {
        assert!(load >= 1.0, "servers are filled by no less than the traces: {load}");
        Self { replayed: Replayed::default(), guarantee: Some(WorstCase::default()), goal, load }
    }

    /// Returns the same model with other replays than those of the default.
    #[must_use]
    pub fn with_replays(self, replayed: Replayed) -> Self {
        Self { replayed, ..self }
    }

    /// Returns the same model without the cap by the worst case of servers that interrupt: for [`crate::EnforcedModel`],
    /// which takes the lesser of a prediction and the worst case of its servers.
    #[must_use]
    pub fn capped_elsewhere(self) -> Self {
        Self { guarantee: None, ..self }
    }

    /// Returns a model that answers as this one, and remembers of one question what the next one needs, as
    /// [`Replayed::remembering`].
    pub fn remembering(self) -> RememberedLoadedReplays {
        RememberedLoadedReplays { replays: self.replayed.remembering(), model: self }
    }

    /// The worst case of each member behind `begun` seconds of work, seconds; infinite where there is none, or where the caller
    /// caps bounds.
    fn guarantees(&self, members: LoadedMembers<'_, '_>, begun: &[f64]) -> Vec<f64> {
        worst_cases(self.guarantee, members, |sketch| sketch.guarantee.as_ref(), begun)
    }

    /// The members as `Replayed` sees them, and what is left of the limits for its replays: everything where the guarantee
    /// keeps the limit, and nothing where a trace was not tested.
    fn budgets<'b>(
        &self,
        members: LoadedMembers<'_, 'b>,
        limits: &[f64],
        begun: &[f64],
    ) -> (ReplayMembers<'b>, Vec<f64>) {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        assert_eq!(members.len(), begun.len(), "one time per member");
        let guarantees = self.guarantees(members, begun);
        let mut budgets = Vec::with_capacity(limits.len());
        for (number, member) in members.iter().enumerate() {
            let limit = limits[number];
            budgets.push(if guarantees[number] <= limit || limit == f64::INFINITY {
                f64::INFINITY
            } else if member.sketch.is_tested {
                limit - begun[number]
            } else {
                -1.0
            });
        }
        (members.iter().map(|member| seen_by(member, member.sketch.forecast())).collect(), budgets)
    }

    /// True if the guarantee keeps all limits, so that replays decide nothing: with more work they may find the server
    /// overloaded.
    fn is_guaranteed(&self, budgets: &[f64]) -> bool {
        self.guarantee.is_some() && budgets.iter().all(|budget| *budget == f64::INFINITY)
    }

    /// The prediction of each member behind `begun` seconds of work; `None` when it is interrupted. Estimates are those of the
    /// traces as they are.
    fn predicted(
        &self,
        members: LoadedMembers<'_, '_>,
        begun: &[f64],
        interrupted: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        assert_eq!(members.len(), begun.len(), "one time per member");
        let guarantees = self.guarantees(members, begun);
        let loaded: Vec<_> = members.iter().map(|member| seen_by(member, member.sketch.forecast())).collect();
        let bounds = self.replayed.predict_unless(interrupted, &loaded)?;
        let estimates = if self.load > 1.0 {
            let traced: Vec<_> =
                members.iter().map(|member| seen_by(member, &member.sketch.traced)).collect();
            self.replayed.predict_unless(interrupted, &traced)?
        } else {
            bounds.clone()
        };
        let mut predictions = Vec::new();
        for (number, (bound, traced)) in bounds.into_iter().zip(estimates).enumerate() {
            let guarantee = guarantees[number];
            let bound = if members[number].sketch.is_tested { bound } else { Err(UndefinedLatency::NoBound) };
            let later = |prediction: Prediction| prediction.later_by(begun[number]);
            predictions.push(match (bound.map(later), traced.map(later)) {
                (Ok(loaded), Ok(traced)) => Ok(Prediction { bound: loaded.bound.min(guarantee), ..traced }),
                _ if guarantee.is_finite() => Ok(Prediction { bound: guarantee, estimate: None }),
                (Err(why), _) | (_, Err(why)) => Err(why),
            });
        }
        Some(predictions)
    }
}

impl LatencyModel for LoadedReplays {
    type Sketch = LoadedSketch;

    fn name(&self) -> &'static str {
        "calibrated"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> LoadedSketch {
        LoadedSketch {
            traced: self.replayed.sketch(traffic),
            loaded: (self.load > 1.0).then(|| self.replayed.sketch(&traffic.with_work(self.load))),
            guarantee: self.guarantee.map(|guarantee| guarantee.sketch(traffic)),
            is_tested: self.goal.windows(traffic) > 0,
        }
    }

    fn all_within(&self, members: LoadedMembers<'_, '_>, limits: &[f64]) -> bool {
        self.all_within_behind(members, limits, &vec![0.0; members.len()])
    }

    fn all_within_behind(&self, members: LoadedMembers<'_, '_>, limits: &[f64], begun: &[f64]) -> bool {
        let (replayed, budgets) = self.budgets(members, limits, begun);
        self.is_guaranteed(&budgets) || self.replayed.all_within(&replayed, &budgets)
    }

    fn predict(&self, members: LoadedMembers<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.predict_behind(members, &vec![0.0; members.len()])
    }

    fn predict_unless(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
        members: LoadedMembers<'_, '_>,
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        self.predicted(members, &vec![0.0; members.len()], interrupted)
    }

    fn predict_behind(
        &self,
        members: LoadedMembers<'_, '_>,
        begun: &[f64],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.predicted(members, begun, &|| false).expect("nobody interrupts")
    }
}

/// A [`LoadedReplays`] model that remembers the servers it was asked about last. Guarantees are computed for each question.
#[derive(Debug)]
pub struct RememberedLoadedReplays {
    model: LoadedReplays,
    replays: RememberedReplays,
}

impl LatencyModel for RememberedLoadedReplays {
    type Sketch = LoadedSketch;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> LoadedSketch {
        self.model.sketch(traffic)
    }

    fn predict(&self, members: LoadedMembers<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.model.predict(members)
    }

    fn predict_behind(
        &self,
        members: LoadedMembers<'_, '_>,
        begun: &[f64],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.model.predict_behind(members, begun)
    }

    fn all_within(&self, members: LoadedMembers<'_, '_>, limits: &[f64]) -> bool {
        self.all_within_behind(members, limits, &vec![0.0; members.len()])
    }

    fn all_within_behind(&self, members: LoadedMembers<'_, '_>, limits: &[f64], begun: &[f64]) -> bool {
        let (replayed, budgets) = self.model.budgets(members, limits, begun);
        self.model.is_guaranteed(&budgets) || self.replays.all_within(&replayed, &budgets)
    }

    fn likely_within(&self, members: LoadedMembers<'_, '_>, limits: &[f64]) -> Option<bool> {
        let begun = vec![0.0; members.len()];
        let (replayed, budgets) = self.model.budgets(members, limits, &begun);
        if self.model.is_guaranteed(&budgets) {
            return Some(true);
        }
        self.replays.likely_within(&replayed, &budgets)
    }

    fn forget(&self) {
        self.replays.forget();
    }
}
