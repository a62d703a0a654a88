//! Models of latency by name.

use crate::prediction::calibration::calibrated;
use crate::prediction::enforced_models::{probabilistic, published_snc, replaying, with_margins, worst_case};
use crate::prediction::problem::PredictionProblem;
use crate::prediction::procedure_name::{PROCEDURES, ProcedureName, ProcedureRow};
use model::LatencyModel;
use operation::ProgressObserver;
use predict::{EnforcedModel, Replayed};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use units::Percentile;

/// Assumption about the traffic. [`ModelName::row`] describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelName {
    WorstCase,
    Probabilistic,
    PublishedSnc,
    Replayed,
    Calibrated,
}

impl Serialize for ModelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for ModelName {
    fn schema_name() -> Cow<'static, str> {
        "ModelName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let models = PROCEDURES.iter().filter(|row| matches!(row.procedure, ProcedureName::ByModel(_)));
        let names =
            models.map(|row| json_schema!({ "const": row.name, "description": row.words, "type": "string" }));
        json_schema!({ "description": "Assumption about the traffic.", "oneOf": names.collect::<Vec<_>>() })
    }
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

    /// Name in options and files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the model's row among the procedures.
    pub fn row(self) -> &'static ProcedureRow {
        ProcedureName::ByModel(self).row()
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
