//! Models of servers with enforcers.

use model::LatencyModel;
use predict::{
    BegunWork, Calibrated, EnforcedModel, EnforcedPath, LoadedReplays, Probabilistic, PublishedSnc,
    SncByStage, WorstCase,
};

/// The worst case on such servers.
pub(crate) fn worst_case(enforced: Option<EnforcedPath>) -> EnforcedModel<WorstCase> {
    EnforcedModel::new(WorstCase::default(), BegunWork::WorstCase, enforced)
}

/// The probabilistic model of such servers.
pub(crate) fn probabilistic(enforced: Option<EnforcedPath>) -> EnforcedModel<Probabilistic> {
    let model = Probabilistic::default();
    let model = if enforced.is_some() { model.in_any_order() } else { model };
    EnforcedModel::new(model, BegunWork::EveryClass, enforced)
}

/// A replaying model of such servers.
pub(crate) fn replaying<M: LatencyModel>(model: M, enforced: Option<EnforcedPath>) -> EnforcedModel<M> {
    EnforcedModel::new(model, BegunWork::OnePacket, enforced)
}

/// The calibrated model of such servers, whose bounds never exceed the worst case.
pub(crate) fn with_margins(model: Calibrated, enforced: Option<EnforcedPath>) -> EnforcedModel<Calibrated> {
    let model = if enforced.is_some() { model.capped_elsewhere() } else { model };
    replaying(model, enforced)
}

/// The model that fills such servers with more work than the traces have, or by the worst case.
pub(crate) fn filled_by(
    model: LoadedReplays,
    enforced: Option<EnforcedPath>,
) -> EnforcedModel<LoadedReplays> {
    let model = if enforced.is_some() { model.capped_elsewhere() } else { model };
    replaying(model, enforced)
}

/// SNC-Meister, of preemptive servers.
pub(crate) fn published_snc() -> EnforcedModel<PublishedSnc> {
    EnforcedModel::new(PublishedSnc::default(), BegunWork::EveryClass, None)
}

/// SNC-Meister's variant with a bound per stage, of preemptive servers.
pub(crate) fn snc_by_stage() -> EnforcedModel<SncByStage> {
    EnforcedModel::new(SncByStage::default(), BegunWork::EveryClass, None)
}
