//! The calibrated model for a search that asks about many servers that differ by few members.
//!
//! What is remembered is that of its replays; margins and guarantees are computed for each question.

use super::{Calibrated, CalibratedMembers, CalibratedSketch};
use crate::RememberedReplays;
use model::{CircularTrace, Job, LatencyModel, Prediction, UndefinedLatency};

/// A [`Calibrated`] model that remembers the servers it was asked about last.
#[derive(Debug)]
pub struct RememberedCalibration {
    model: Calibrated,
    replays: RememberedReplays,
}

impl Calibrated {
    /// A model that answers as this one, and remembers of one question what the next one needs, as
    /// [`crate::Replayed::remembering`].
    pub fn remembering(self) -> RememberedCalibration {
        RememberedCalibration { replays: self.replayed.remembering(), model: self }
    }
}

impl LatencyModel for RememberedCalibration {
    type Sketch = CalibratedSketch;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> CalibratedSketch {
        self.model.sketch(traffic)
    }

    fn predict(&self, members: CalibratedMembers<'_, '_>) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.model.predict(members)
    }

    fn predict_behind(
        &self,
        members: CalibratedMembers<'_, '_>,
        begun: &[f64],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.model.predict_behind(members, begun)
    }

    fn all_within(&self, members: CalibratedMembers<'_, '_>, limits: &[f64]) -> bool {
        self.all_within_behind(members, limits, &vec![0.0; members.len()])
    }

    fn all_within_behind(&self, members: CalibratedMembers<'_, '_>, limits: &[f64], begun: &[f64]) -> bool {
        let (replayed, budgets) = self.model.replayed_budgets(members, limits, begun);
        self.model.is_guaranteed(&budgets) || self.replays.all_within(&replayed, &budgets)
    }

    fn likely_within(&self, members: CalibratedMembers<'_, '_>, limits: &[f64]) -> Option<bool> {
        let begun = vec![0.0; members.len()];
        let (replayed, budgets) = self.model.replayed_budgets(members, limits, &begun);
        if self.model.is_guaranteed(&budgets) {
            return Some(true);
        }
        self.replays.likely_within(&replayed, &budgets)
    }

    fn forget(&self) {
        self.replays.forget();
    }
}
