//! Models of latency by the names that users give them.

use super::procedure_name::ProcedureName;
use model::LatencyModel;
use predict::{BegunWork, EnforcedModel, EnforcedPath, Probabilistic, PublishedSnc, Replayed, WorstCase};
use serde::Serialize;

/// What is assumed of the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// Nothing but that every workload stays within its burst curves, however they meet.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces, at any shift; a bound.
    Probabilistic,
    /// The published procedure of SNC-Meister, to compare with; not safe on bursty traces.
    PublishedSnc,
    /// Independent workloads (or groups) that repeat their traces at random shifts; an estimate with confidence.
    Replayed,
}

/// Something that can be done with a model of any type.
pub(crate) trait ModelVisitor {
    /// What comes of a visit.
    type Output;
    /// Visits the model of the name.
    fn visit<M: LatencyModel>(self, model: &EnforcedModel<M>) -> Self::Output;
}

impl ModelName {
    /// The three models that are shown side by side.
    pub const SIDE_BY_SIDE: [Self; 3] = [Self::WorstCase, Self::Probabilistic, Self::Replayed];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        self.as_procedure().name()
    }

    /// What a promise of this model rests on, completing "NAME: …".
    pub fn assumption(self) -> &'static str {
        self.as_procedure().assumption()
    }

    /// The rule that admits whoever this model predicts to keep all SLOs.
    pub fn as_procedure(self) -> ProcedureName {
        match self {
            Self::WorstCase => ProcedureName::WorstCase,
            Self::Probabilistic => ProcedureName::Probabilistic,
            Self::PublishedSnc => ProcedureName::PublishedSnc,
            Self::Replayed => ProcedureName::Replayed,
        }
    }

    /// Hands the model of this name, about servers that are enforced like this, to the visitor. The published procedure is
    /// always about servers that interrupt what they have begun.
    pub(crate) fn visit<V: ModelVisitor>(self, enforced: Option<EnforcedPath>, visitor: V) -> V::Output {
        match self {
            Self::WorstCase => visitor.visit(&worst_case(enforced)),
            Self::Probabilistic => visitor.visit(&probabilistic(enforced)),
            Self::PublishedSnc => visitor.visit(&published_snc()),
            Self::Replayed => visitor.visit(&replayed(Replayed::default(), enforced)),
        }
    }
}

/// The worst case about such servers.
pub(crate) fn worst_case(enforced: Option<EnforcedPath>) -> EnforcedModel<WorstCase> {
    EnforcedModel::new(WorstCase::default(), BegunWork::WorstCase, enforced)
}

/// The probabilistic model about such servers.
pub(crate) fn probabilistic(enforced: Option<EnforcedPath>) -> EnforcedModel<Probabilistic> {
    let model = Probabilistic::default();
    let model = if enforced.is_some() { model.in_any_order() } else { model };
    EnforcedModel::new(model, BegunWork::EveryClass, enforced)
}

/// A replaying model about such servers.
pub(crate) fn replayed(model: Replayed, enforced: Option<EnforcedPath>) -> EnforcedModel<Replayed> {
    EnforcedModel::new(model, BegunWork::OnePacket, enforced)
}

/// The published model, about servers that interrupt what they have begun.
pub(crate) fn published_snc() -> EnforcedModel<PublishedSnc> {
    EnforcedModel::new(PublishedSnc::default(), BegunWork::EveryClass, None)
}
