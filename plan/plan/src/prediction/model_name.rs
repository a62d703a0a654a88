//! Models of latency by the names in options and files.

use crate::prediction::calibration::calibrated;
use crate::prediction::enforced_models::{probabilistic, published_snc, replaying, with_margins, worst_case};
use crate::prediction::problem::PredictionProblem;
use crate::prediction::procedure_name::ProcedureName;
use model::LatencyModel;
use operation::ProgressObserver;
use predict::{EnforcedModel, Replayed};
use schemars::JsonSchema;
use serde::Serialize;
use units::Percentile;

/// Assumption about the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// Every workload stays within its burst curves, which may meet in any way.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces, at any shift; a bound.
    Probabilistic,
    /// The published procedure of SNC-Meister, to compare with; not safe on bursty traces.
    PublishedSnc,
    /// Independent workloads (or groups) that repeat their traces at random shifts; an estimate with confidence.
    Replayed,
    /// As `Replayed`, with margins for the next window of traffic; a prediction with stated coverage.
    Calibrated,
}

/// An operation on a model of any type.
pub(crate) trait ModelVisitor {
    type Output;
    /// Applies the operation to the named model.
    fn visit<M: LatencyModel>(self, model: &EnforcedModel<M>) -> Self::Output;
}

impl ModelName {
    /// The three models that are shown side by side.
    pub const SIDE_BY_SIDE: [Self; 3] = [Self::WorstCase, Self::Probabilistic, Self::Replayed];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        self.as_procedure().name()
    }

    /// Returns the assumption of the model, completing "NAME: …".
    pub fn assumption(self) -> &'static str {
        self.as_procedure().assumption()
    }

    /// Returns the admission rule that admits a workload if this model predicts that all SLOs are kept.
    pub fn as_procedure(self) -> ProcedureName {
        match self {
            Self::WorstCase => ProcedureName::WorstCase,
            Self::Probabilistic => ProcedureName::Probabilistic,
            Self::PublishedSnc => ProcedureName::PublishedSnc,
            Self::Replayed => ProcedureName::Replayed,
            Self::Calibrated => ProcedureName::Calibrated,
        }
    }

    /// Returns true if the model replays traces, so that a search with few alignments needs a second
    /// judgement.
    pub(crate) fn is_replaying(self) -> bool {
        matches!(self, Self::Replayed | Self::Calibrated)
    }

    /// Applies the visitor to the model of this name, for the servers and workloads of this problem, at
    /// `percentile` or each at that of its SLO. The published procedure is always about preemptive servers.
    pub(crate) fn visit<V: ModelVisitor>(
        self,
        problem: &PredictionProblem,
        percentile: Option<Percentile>,
        observer: &dyn ProgressObserver,
        visitor: V,
    ) -> V::Output {
        let enforced = problem.enforced;
        match self {
            Self::WorstCase => visitor.visit(&worst_case(enforced)),
            Self::Probabilistic => visitor.visit(&probabilistic(enforced)),
            Self::PublishedSnc => visitor.visit(&published_snc()),
            Self::Replayed => visitor.visit(&replaying(Replayed::default(), enforced)),
            Self::Calibrated => {
                let model = calibrated(problem, percentile, observer);
                visitor.visit(&with_margins((*model).clone(), enforced))
            }
        }
    }
}
