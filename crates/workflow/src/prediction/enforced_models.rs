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

/// The calibrated model about such servers. Where somebody has no margin and is bounded by probabilities, all that may be
/// begun counts as it does there.
pub(crate) fn with_margins(model: Calibrated, enforced: Option<EnforcedPath>) -> EnforcedModel<Calibrated> {
    match enforced {
        Some(_) if !model.is_complete() => {
            EnforcedModel::new(model.in_any_order(), BegunWork::EveryClass, enforced)
        }
        _ => replaying(model, enforced),
    }
}

/// The published model, about servers that interrupt what they have begun.
pub(crate) fn published_snc() -> EnforcedModel<PublishedSnc> {
    EnforcedModel::new(PublishedSnc::default(), BegunWork::EveryClass, None)
}
