//! The question that admission, packing and the side-by-side comparison ask, and the shape of its answer: what
//! latency does each workload on a server see? `plan` asks it and `predict` answers it, and neither knows the other.

use crate::{CircularTrace, Job, PerStage, Stage};
use std::fmt;
use units::Percentile;

/// A workload on a server, as a model of latency sees it.
#[derive(Debug)]
pub struct ServerMember<'a, S> {
    /// Model's sketch of the workload's traffic.
    pub sketch: &'a S,
    /// Strict priority at each stage; 0 is served first. Members with the same priority are served first come,
    /// first served.
    pub priority: PerStage<u32>,
    /// Members of the same group may burst together; different groups are independent.
    pub group: usize,
    /// Percentile of the latency to predict.
    pub percentile: Percentile,
}

/// A method to predict the latencies of workloads that share a server.
///
/// All models answer the same question about the same server: a path of stages, each of which serves in
/// preemptive strict priority, first come, first served within a priority. They differ in their
/// assumptions about the traffic, and so in their promises. [`Self::predict_behind`] accounts for work
/// that real stages do not interrupt.
pub trait LatencyModel: Sync {
    /// Sketch of one workload's traffic.
    type Sketch: Send + Sync;

    /// Returns the name under which users choose the model.
    fn name(&self) -> &'static str;

    /// Computes everything that depends on one workload alone.
    fn sketch(&self, traffic: &CircularTrace<Job>) -> Self::Sketch;

    /// Predicts the latency of each member, in the members' order.
    fn predict(
        &self,
        members: &[ServerMember<'_, Self::Sketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>>;

    /// As [`Self::predict`], but returns `None` if interrupted. A model calls `interrupted` as often as
    /// it can, from several threads.
    fn predict_unless(
        &self,
        interrupted: &(dyn Fn() -> bool + Sync),
        members: &[ServerMember<'_, Self::Sketch>],
    ) -> Option<Vec<Result<Prediction, UndefinedLatency>>> {
        (!interrupted()).then(|| self.predict(members))
    }

    /// Returns true if every member's bound is at most its limit: seconds, one per member. An undefined
    /// latency exceeds every limit, and a NaN limit is always exceeded. A model that can decide without
    /// predicting every latency overrides this; its answer must be that of [`Self::predict`], up to rounding
    /// of predictions.
    ///
    /// # Panics
    /// When there is not one limit per member.
    fn all_within(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> bool {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        let predictions = self.predict(members);
        predictions.iter().zip(limits).all(|(prediction, &limit)| prediction.is_ok_and(|p| p.bound <= limit))
    }

    /// As [`Self::predict`], where a request of member i may find `begun[i]` seconds of work that it must
    /// wait for regardless of its priority. The default adds this to the latency, without the
    /// higher-priority work that arrives meanwhile. A model that counts it overrides this.
    ///
    /// # Panics
    /// When there is not one `begun` per member.
    fn predict_behind(
        &self,
        members: &[ServerMember<'_, Self::Sketch>],
        begun: &[f64],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        assert_eq!(members.len(), begun.len(), "one time per member");
        let predictions = self.predict(members).into_iter().zip(begun);
        predictions
            .map(|(prediction, &begun)| prediction.map(|prediction| prediction.later_by(begun)))
            .collect()
    }

    /// As [`Self::all_within`], for the latencies of [`Self::predict_behind`]. Any defined latency is
    /// within an infinite limit.
    ///
    /// # Panics
    /// When there is not one limit and one `begun` per member.
    fn all_within_behind(
        &self,
        members: &[ServerMember<'_, Self::Sketch>],
        limits: &[f64],
        begun: &[f64],
    ) -> bool {
        assert_eq!(limits.len(), begun.len(), "one time per limit");
        let left: Vec<f64> = limits.iter().zip(begun).map(|(limit, begun)| limit - begun).collect();
        self.all_within(members, &left)
    }

    /// Answers [`Self::all_within`] as far as a quick check can: `Some` is that answer, `None` means
    /// probably yes. For searches that ask often and verify what they accept.
    ///
    /// # Panics
    /// When there is not one limit per member.
    fn likely_within(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> Option<bool> {
        Some(self.all_within(members, limits))
    }

    /// Forgets remembered answers to earlier questions, which may influence [`Self::likely_within`].
    fn forget(&self) {}

    /// Returns the members whose bounds exceed their limits, by index, with these bounds, seconds. A member
    /// without a bound has an infinite one.
    ///
    /// # Panics
    /// When there is not one limit per member.
    fn bounds_above(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> Vec<(usize, f64)> {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        predicted_above(&self.predict(members), limits)
    }
}

/// Returns the predictions above their limits: index and bound, seconds. An undefined latency has an
/// infinite bound.
pub fn predicted_above(
    predictions: &[Result<Prediction, UndefinedLatency>],
    limits: &[f64],
) -> Vec<(usize, f64)> {
    let mut above = Vec::new();
    for (member, (prediction, &limit)) in predictions.iter().zip(limits).enumerate() {
        let bound = prediction.map_or(f64::INFINITY, |prediction| prediction.bound);
        if bound > limit {
            above.push((member, bound));
        }
    }
    above
}

/// A predicted latency at a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Guarantee under the model's assumptions, seconds: an upper bound, or the upper end of a confidence
    /// interval.
    pub bound: f64,
    /// Estimate beside the bound, for models that have one.
    pub estimate: Option<LatencyEstimate>,
}

impl Prediction {
    /// Returns the prediction with `base` seconds added: a part of the latency outside the model.
    #[must_use]
    pub fn later_by(self, base: f64) -> Self {
        let estimate = self
            .estimate
            .map(|estimate| LatencyEstimate { low: estimate.low + base, latency: estimate.latency + base });
        Self { bound: self.bound + base, estimate }
    }

    /// Returns the prediction capped at `most` seconds, for requests that never take longer.
    #[must_use]
    pub fn at_most(self, most: f64) -> Self {
        let estimate = self.estimate.map(|estimate| LatencyEstimate {
            low: estimate.low.min(most),
            latency: estimate.latency.min(most),
        });
        Self { bound: self.bound.min(most), estimate }
    }
}

/// An estimated latency with the lower end of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyEstimate {
    /// The lower end of the confidence interval, seconds.
    pub low: f64,
    /// The estimate itself, seconds.
    pub latency: f64,
}

/// Reason why a model gives no latency. It must never be read as a small one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UndefinedLatency {
    /// Members of the same or higher priority need more of a stage than its long-run capacity.
    Overload {
        /// The stage that is overloaded.
        stage: Stage,
        /// Work that arrives per second of the stage's capacity.
        utilisation: f64,
    },
    /// The model's conditions cannot be met at any parameter.
    NoBound,
}

impl fmt::Display for UndefinedLatency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overload { stage, utilisation } if utilisation.is_infinite() => {
                write!(
                    f,
                    "{stage} is overloaded by the same and higher priorities: all their work comes at once"
                )
            }
            Self::Overload { stage, utilisation } => {
                write!(
                    f,
                    "{stage} is overloaded by the same and higher priorities: {:.1}% of its capacity",
                    utilisation * 100.0
                )
            }
            Self::NoBound => f.write_str("the model has no finite bound here"),
        }
    }
}
