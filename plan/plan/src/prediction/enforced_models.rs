//! The models about servers as their enforcers use them.

use model::LatencyModel;
use predict::{BegunWork, Calibrated, EnforcedModel, EnforcedPath, Probabilistic, PublishedSnc, WorstCase};

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

/// A model that replays, about such servers.
pub(crate) fn replaying<M: LatencyModel>(model: M, enforced: Option<EnforcedPath>) -> EnforcedModel<M> {
    EnforcedModel::new(model, BegunWork::OnePacket, enforced)
}

/// The calibrated model about such servers, whose bounds are never above the worst case.
pub(crate) fn with_margins(model: Calibrated, enforced: Option<EnforcedPath>) -> EnforcedModel<Calibrated> {
    let model = if enforced.is_some() { model.capped_elsewhere() } else { model };
    replaying(model, enforced)
}

/// The published model, about servers that interrupt what they have begun.
pub(crate) fn published_snc() -> EnforcedModel<PublishedSnc> {
    EnforcedModel::new(PublishedSnc::default(), BegunWork::EveryClass, None)
}
