//! The gate of a tier, configured by its mode.

use super::protocol::TierSettings;
use crate::mode::{SENTINEL_EVERY, ScheduleMode};
use discipline::serve::PoolOrder;
use gat::{RequestSlo, RequestTag, TagOrder};
use machine::clock;
use schedule::{
    ConcurrencyLimit, Gate, GatePreemption, GateSettings, Permit, PreemptionReport, RequestKey,
    SentinelReport,
};
use std::num::NonZeroU32;
use std::time::Duration;
use units::Nanos;

/// Admits requests by the mode of its tier.
#[derive(Debug)]
pub(super) struct AdmissionGate {
    gate: Gate,
    order: TagOrder,
    reports_waits: bool,
    /// Reason why preemption or the sentinel is unavailable, if the mode requires it.
    lacks: Option<String>,
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
            sentinel: (mode == ScheduleMode::OldestSentinel).then_some(SENTINEL_EVERY),
            ..GateSettings::default()
        });
        let why_no_sentinel = match gate.admission_report().sentinel {
            SentinelReport::Unavailable { reason } => Some(reason),
            _ => None,
        };
        let without_preemption = match gate.admission_report().preemption {
            PreemptionReport::AdmissionOnly { reason } if mode.preempts() => Some(reason),
            _ => None,
        };
        // A request without a deadline goes last.
        let by_deadline = TagOrder::Deadline { default_slo: RequestSlo::MAX };
        let order = if mode.is_by_deadline() { by_deadline } else { TagOrder::Start };
        let lacks = without_preemption.or(why_no_sentinel);
        Self { gate, order, reports_waits: mode.reports_waits(), lacks }
    }

    pub(super) fn lacks(&self) -> Option<String> {
        self.lacks.clone()
    }

    /// Returns the key that orders the request with this tag here.
    pub(super) fn key(&self, tag: RequestTag) -> RequestKey {
        RequestKey(tag.key(self.order))
    }

    /// Waits until the request with this key may run.
    pub(super) fn enter(&self, key: RequestKey) -> Permit {
        self.gate.enter(key)
    }

    /// Makes the request of the calling thread sleep for `time`. Returns the time at which it could
    /// continue.
    pub(super) fn wait(&self, permit: &Permit, time: Nanos) -> u64 {
        let sleep = || {
            std::thread::sleep(Duration::from_nanos(time.0));
            clock::now()
        };
        if self.reports_waits { permit.while_blocked(sleep) } else { sleep() }
    }

    /// Returns the limit in force; `None` is no limit.
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
