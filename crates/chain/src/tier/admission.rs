//! The gate of a tier, as its mode wants it.

use super::protocol::TierSettings;
use crate::mode::ScheduleMode;
use discipline::serve::PoolOrder;
use gat::{RequestSlo, RequestTag, TagOrder};
use schedule::{AdmissionReport, ConcurrencyLimit, Gate, GatePreemption, GateSettings, Permit, RequestKey};
use std::num::NonZeroU32;

/// Lets requests in as the mode of its tier says.
#[derive(Debug)]
pub(super) struct AdmissionGate {
    gate: Gate,
    order: TagOrder,
    /// Why nobody is preempted, where somebody should be.
    without_preemption: Option<String>,
}

impl AdmissionGate {
    pub(super) fn new(settings: &TierSettings) -> Self {
        let mode = settings.mode;
        let workers = u32::try_from(settings.cpus.len()).ok().and_then(NonZeroU32::new);
        let gate = Gate::new(GateSettings {
            limit: limit(settings),
            order: match mode {
                ScheduleMode::FirstCome | ScheduleMode::Limited => PoolOrder::Arrival,
                _ => PoolOrder::Age,
            },
            preemption: if mode.preempts() { GatePreemption::WhereProven } else { GatePreemption::Never },
            workers: workers.unwrap_or(NonZeroU32::MIN),
            ..GateSettings::default()
        });
        let without_preemption = match gate.admission_report() {
            AdmissionReport::AdmissionOnly { reason } if mode.preempts() => Some(reason),
            _ => None,
        };
        // A request without a deadline goes last.
        let by_deadline = TagOrder::Deadline { default_slo: RequestSlo::MAX };
        let order = if mode.is_by_deadline() { by_deadline } else { TagOrder::Start };
        Self { gate, order, without_preemption }
    }

    pub(super) fn without_preemption(&self) -> Option<String> {
        self.without_preemption.clone()
    }

    /// What orders the request with this tag here.
    pub(super) fn key(&self, tag: RequestTag) -> RequestKey {
        RequestKey(tag.key(self.order))
    }

    /// Waits until the request with this key may run.
    pub(super) fn enter(&self, key: RequestKey) -> Permit {
        self.gate.enter(key)
    }

    /// The limit in force; none is no limit.
    pub(super) fn limit(&self) -> Option<u32> {
        self.gate.statistics().limit.map(NonZeroU32::get)
    }
}

fn limit(settings: &TierSettings) -> ConcurrencyLimit {
    match settings.limit.and_then(NonZeroU32::new) {
        _ if settings.mode == ScheduleMode::OldestAuto => ConcurrencyLimit::Auto,
        Some(limit) => ConcurrencyLimit::Fixed(limit),
        None => ConcurrencyLimit::Unlimited,
    }
}
