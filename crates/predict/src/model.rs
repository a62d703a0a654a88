use crate::Traffic;
use ::model::{PerStage, Stage};
use std::fmt;
use units::Percentile;

/// A workload on a server, as a model sees it.
#[derive(Debug)]
pub struct Member<'a, S> {
    /// What the model keeps of its traffic.
    pub sketch: &'a S,
    /// By stage; 0 is served first. Members with the same priority are served first come first served.
    pub priority: PerStage<u32>,
    /// Members of the same group may burst together; different groups are independent.
    pub group: usize,
    /// Of the latency that is asked for.
    pub percentile: Percentile,
}

/// A way to predict latencies.
pub trait Model: Sync {
    /// What the model keeps of a workload.
    type Sketch: Send + Sync;

    /// The name under which users choose it.
    fn name(&self) -> &'static str;

    /// Everything that depends on one workload alone.
    fn sketch(&self, traffic: &Traffic) -> Self::Sketch;

    /// The latency of each member, in their order.
    fn predict(&self, members: &[Member<'_, Self::Sketch>]) -> Vec<Result<Prediction, Undefined>>;

    /// Whether every member's bound is at most its limit (seconds, one per member; none is kept by what is
    /// undefined or not a number). A model that can tell without predicting everything says so here; its
    /// answer is that of [`Self::predict`], up to what predictions are rounded by.
    fn all_within(&self, members: &[Member<'_, Self::Sketch>], limits: &[f64]) -> bool {
        assert_eq!(members.len(), limits.len(), "one limit per member");
        let within = |(p, &limit): (&Result<Prediction, Undefined>, _)| p.is_ok_and(|p| p.bound <= limit);
        self.predict(members).iter().zip(limits).all(within)
    }
}

/// A latency at a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// What may be relied upon under the model's assumptions, seconds: an upper bound or the upper end of
    /// the confidence interval.
    pub bound: f64,
    /// For estimates: the lower end of the confidence interval and the estimate itself, seconds.
    pub estimate: Option<Estimate>,
}

impl Prediction {
    /// The same with `base` seconds added: a part of the latency that the model does not know.
    #[must_use]
    pub fn later_by(self, base: f64) -> Self {
        let later = |e: Estimate| Estimate { low: e.low + base, latency: e.latency + base };
        Self { bound: self.bound + base, estimate: self.estimate.map(later) }
    }
}

/// An estimate and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Lower end of the confidence interval, seconds.
    pub low: f64,
    /// The estimate, seconds.
    pub latency: f64,
}

/// Why a model gives no latency; never to be read as a small one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Undefined {
    /// Members of the same or higher priority ask more of a stage than it can do in the long run.
    Overload {
        /// The stage.
        stage: Stage,
        /// Work per second of capacity.
        utilisation: f64,
    },
    /// The model's conditions cannot be met at any parameter.
    NoBound,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
