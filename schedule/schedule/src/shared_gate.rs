//! State shared by all handles of a gate: the handover, the measured limit, and the timer thread.

use crate::handover::Handover;
use crate::kernel::{KernelLevels, own_cpu_time, promotion_proof};
use crate::measured_limit::{MeasuredLimit, first_limit};
use crate::report::{AdmissionReport, GateStatistics, PreemptionReport};
use crate::sentinel::{SeenAsleep, Sentinel, pause};
use crate::settings::{ConcurrencyLimit, GatePreemption, GateSettings, nanoseconds};
use crate::watch::{Watch, look_every};
use discipline::pool::{Displacement, PoolRules};
use machine::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// A gate without its handles.
#[derive(Debug)]
pub(crate) struct SharedGate {
    pub(crate) handover: Handover<KernelLevels>,
    pub(crate) settings: GateSettings,
    /// Reason why no thread is demoted; `None` if threads may be.
    only_admits: Option<String>,
    watch: Watch,
    sentinel: Sentinel,
    pub(crate) measured: MeasuredLimit,
    has_stopped_demoting: AtomicBool,
}

impl SharedGate {
    pub(crate) fn new(settings: GateSettings) -> Self {
        let only_admits = match settings.preemption {
            GatePreemption::Never => Some("it was asked for".to_owned()),
            GatePreemption::WhereProven => promotion_proof().err(),
        };
        let displacement = if only_admits.is_some() { Displacement::Never } else { Displacement::OfYoungest };
        let rules = PoolRules {
            limit: first_limit(settings.limit),
            order: settings.order,
            displacement,
            patience: settings.patience.map(|patience| nanoseconds(patience).max(1)),
        };
        let handover = Handover::new(rules, KernelLevels::default());
        Self {
            handover,
            settings,
            only_admits,
            watch: Watch::named("gate-clock"),
            sentinel: Sentinel::new(settings.sentinel),
            measured: MeasuredLimit::new(settings.limit, settings.workers),
            has_stopped_demoting: AtomicBool::new(false),
        }
    }

    pub(crate) fn report(&self) -> AdmissionReport {
        AdmissionReport { preemption: self.preemption(), sentinel: self.sentinel.report() }
    }

    fn preemption(&self) -> PreemptionReport {
        if let Some(reason) = &self.only_admits {
            return PreemptionReport::AdmissionOnly { reason: reason.clone() };
        }
        if self.handover.kernel().has_failed() {
            let reason = "a thread could not be promoted, or the right to do so was given up; give up rights before \
                          the gate is made";
            return PreemptionReport::AdmissionOnly { reason: reason.to_owned() };
        }
        PreemptionReport::Preemptive
    }

    pub(crate) fn statistics(&self) -> GateStatistics {
        let (now, totals, rules) = self.handover.counts();
        GateStatistics {
            limit: rules.limit,
            waiting: now.waiting,
            serving: now.serving,
            demoted: now.demoted,
            blocked: now.blocked,
            overdue: now.overdue,
            asleep: now.asleep,
            entered: totals.entered,
            left: totals.left,
            given_up: totals.given_up,
            demotions: totals.demotions,
            promotions: totals.promotions,
            refused_changes: totals.refused_changes,
            looks: totals.looks,
            service_variation: self.measured.c2(),
        }
    }

    pub(crate) fn set_limit(self: &Arc<Self>, limit: ConcurrencyLimit) {
        self.measured.change(limit, |limit| self.handover.set_limit(clock::now(), limit));
        self.attend(true);
    }

    /// Adds the CPU time of a leaving request, nanoseconds, to the measurements, and updates the limit.
    pub(crate) fn add_service_time(self: &Arc<Self>, time_ns: u64) {
        let changed = self.measured.add(time_ns, |limit| self.handover.set_limit(clock::now(), limit));
        if changed.is_some() {
            self.attend(true);
        }
    }

    /// Stops demotions after a failed promotion, and starts or wakes the background threads if the gate needs time.
    pub(crate) fn attend(self: &Arc<Self>, needs_time: bool) {
        if self.handover.kernel().has_failed() && !self.has_stopped_demoting.swap(true, Ordering::Relaxed) {
            self.handover.forbid_displacement(clock::now());
        }
        if let Some(patience) = self.settings.patience.filter(|_| needs_time) {
            let gate = Arc::downgrade(self);
            self.watch.attend(move || let_time_pass(&gate, patience));
        }
        if let Some(every) = self.sentinel.every().filter(|_| needs_time) {
            let gate = Arc::downgrade(self);
            self.sentinel.watch.attend(move || look_again_and_again(&gate, every));
        }
    }

    /// Returns the maximum sleep of a waiting thread: unlimited, unless the timer thread is not running.
    pub(crate) fn longest_sleep(&self) -> Option<Duration> {
        let patience = self.settings.patience.filter(|_| !self.watch.is_running())?;
        Some(look_every(patience))
    }

    /// Advances the gate's time, and returns the time until the next call.
    pub(crate) fn wake(&self) -> Option<Duration> {
        let now = clock::now();
        let due = self.handover.wake(now)?;
        Some(Duration::from_nanos(due.saturating_sub(now)))
    }
}

impl Drop for SharedGate {
    fn drop(&mut self) {
        self.watch.unpark();
        self.sentinel.watch.unpark();
    }
}

/// Body of the timer thread.
fn let_time_pass(gate: &Weak<SharedGate>, patience: Duration) {
    let mut entered_before = None;
    loop {
        let Some(due) = gate.upgrade().map(|gate| gate.wake()) else { return };
        let Some(entered) = gate.upgrade().map(|gate| gate.statistics().entered) else { return };
        if due.is_some() || entered_before.replace(entered) != Some(entered) {
            thread::park_timeout(due.unwrap_or(look_every(patience)));
        } else if sleep_until_somebody_waits(gate).is_none() {
            return;
        }
    }
}

/// Sleeps until the gate is attended to or dropped. Returns `None` if it was dropped before.
fn sleep_until_somebody_waits(gate: &Weak<SharedGate>) -> Option<()> {
    gate.upgrade()?.watch.set_sleeping(true);
    let due = gate.upgrade()?.wake();
    if due.is_none() && gate.strong_count() > 0 {
        thread::park();
    }
    gate.upgrade()?.watch.set_sleeping(false);
    Some(())
}

/// Body of the sentinel thread, until its gate is dropped.
fn look_again_and_again(gate: &Weak<SharedGate>, every: Duration) {
    let mut sleepers = SeenAsleep::default();
    loop {
        let before = own_cpu_time();
        let Some(goes_on) = gate.upgrade().map(|gate| sleepers.look(&gate.handover, gate.settings.workers))
        else {
            return;
        };
        // Also after an empty sample: otherwise many short waits would cause a sample each.
        let took = own_cpu_time().saturating_sub(before);
        thread::park_timeout(pause(every, Duration::from_nanos(took)));
        if !goes_on && sleep_until_somebody_is_watched(gate).is_none() {
            return;
        }
    }
}

/// Sleeps until the gate is attended to or dropped. Returns `None` if it was dropped before.
fn sleep_until_somebody_is_watched(gate: &Weak<SharedGate>) -> Option<()> {
    gate.upgrade()?.sentinel.watch.set_sleeping(true);
    let has_nobody = gate.upgrade()?.handover.watched().is_empty();
    if has_nobody && gate.strong_count() > 0 {
        thread::park();
    }
    gate.upgrade()?.sentinel.watch.set_sleeping(false);
    Some(())
}
