//! Models of latency by name.

use crate::prediction::calibration::calibrated;
use crate::prediction::enforced_models::{
    probabilistic, published_snc, replaying, snc_by_stage, with_margins, worst_case,
};
use crate::prediction::problem::PredictionProblem;
use model::LatencyModel;
use operation::ProgressObserver;
use predict::{EnforcedModel, Replayed};
use units::Percentile;

/// Assumption about the traffic. The table of procedures describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelName {
    WorstCase,
    Probabilistic,
    PublishedSnc,
    SncByStage,
    Replayed,
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

    /// Applies the visitor to the model of this name, for the servers and workloads of this problem, at
    /// `percentile` or each at that of its SLO. The published procedures are always about preemptive servers.
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
            Self::SncByStage => visitor.visit(&snc_by_stage()),
            Self::Replayed => visitor.visit(&replaying(Replayed::default(), enforced)),
            Self::Calibrated => {
                let model = calibrated(problem, percentile, observer);
                visitor.visit(&with_margins((*model).clone(), enforced))
            }
        }
    }
}
