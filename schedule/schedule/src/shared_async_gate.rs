//! State shared by all handles of an asynchronous gate: a lock around the state machine, the measured limit, and
//! the timer thread, which works under any runtime.
//!
//! The thread sleeps until the first timeout. Later requests usually have later timeouts, so it is woken about
//! once per timeout period, not for each request.

use crate::held::while_ordinary;
use crate::measured_limit::{MeasuredLimit, first_limit};
use crate::report::GateStatistics;
use crate::settings::{AsyncGateSettings, ConcurrencyLimit, nanoseconds};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use crate::task_admission::{EntryProgress, ListenerNumber, TaskAdmission, TaskEntry};
use crate::wake_list::TaskWakeList;
use crate::watch::Watch;
use discipline::RequestKey;
use discipline::pool::{Displacement, PoolRules};
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// An asynchronous gate without its handles.
#[derive(Debug)]
pub(crate) struct SharedAsyncGate {
    state: Mutex<LockedAdmission>,
    pub(crate) measured: MeasuredLimit,
    pub(crate) clock: GateClock,
    watch: Watch,
}

/// Clock of a gate, nanoseconds, and the choice of a timer thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateClock {
    pub(crate) now: fn() -> u64,
    pub(crate) passes_by_itself: bool,
}

#[derive(Debug)]
struct LockedAdmission {
    admission: TaskAdmission,
    /// Next instant at which the timer thread runs; `None` while it sleeps without a timeout.
    looks_at: Option<u64>,
}

/// Effects of a transition: wakers, and an earlier timeout than before.
#[derive(Debug)]
struct TransitionEffects {
    woken: TaskWakeList,
    is_early: bool,
}

impl SharedAsyncGate {
    pub(crate) fn new(settings: AsyncGateSettings, clock: GateClock) -> Self {
        let rules = PoolRules {
            limit: first_limit(settings.limit),
            order: settings.order,
            displacement: Displacement::Never,
            patience: settings.patience.map(|patience| nanoseconds(patience).max(1)),
        };
        let admission = TaskAdmission::new(rules, settings.waiting_max.unwrap_or(usize::MAX));
        Self {
            state: Mutex::new(LockedAdmission { admission, looks_at: None }),
            measured: MeasuredLimit::new(settings.limit, settings.workers),
            clock,
            watch: Watch::named("gate-clock"),
        }
    }

    /// Adds a request with a maximum wait. If it has to wait, the waker is woken when that ends.
    pub(crate) fn enter(
        self: &Arc<Self>,
        key: RequestKey,
        limit: Option<Duration>,
        waker: &Waker,
    ) -> (TaskEntry, EntryProgress, Option<ListenerNumber>) {
        self.change(|admission, now, woken| {
            let expires = limit.map(|limit| now.saturating_add(nanoseconds(limit)));
            let entry = admission.enter(now, key, expires, woken);
            let progress = admission.progress(entry);
            let waits = progress == EntryProgress::Waiting;
            (entry, progress, waits.then(|| admission.listen(entry, None, waker, woken)))
        })
    }

    /// Returns the progress of a request. If it has to wait, the waker is woken when that ends.
    pub(crate) fn progress(
        &self,
        entry: TaskEntry,
        listener: &mut Option<ListenerNumber>,
        waker: &Waker,
    ) -> EntryProgress {
        let mut woken = TaskWakeList::default();
        let mut state = self.lock();
        let progress = state.admission.progress(entry);
        if progress == EntryProgress::Waiting {
            *listener = Some(state.admission.listen(entry, *listener, waker, &mut woken));
        }
        drop(state);
        woken.wake();
        progress
    }

    /// Removes a listener.
    pub(crate) fn unlisten(&self, entry: TaskEntry, listener: ListenerNumber) {
        let mut woken = TaskWakeList::default();
        let mut state = self.lock();
        state.admission.unlisten(entry, listener, &mut woken);
        drop(state);
        woken.wake();
    }

    pub(crate) fn leave(self: &Arc<Self>, entry: TaskEntry) -> bool {
        self.change(|admission, now, woken| admission.leave(now, entry, woken))
    }

    pub(crate) fn block(self: &Arc<Self>, entry: TaskEntry) {
        self.change(|admission, now, woken| admission.block(now, entry, woken));
    }

    pub(crate) fn unblock(self: &Arc<Self>, entry: TaskEntry) {
        self.change(|admission, now, woken| admission.unblock(now, entry, woken));
    }

    pub(crate) fn set_limit(self: &Arc<Self>, limit: ConcurrencyLimit) {
        let (follows, ()) = self.measured.change(limit, |limit| self.apply_limit(limit));
        self.carry_out(follows);
    }

    /// Adds the CPU time of a request, nanoseconds, to the measurements, and updates the limit.
    pub(crate) fn add_service_time(self: &Arc<Self>, time_ns: u64) {
        let applied = self.measured.add(time_ns, |limit| self.apply_limit(limit));
        if let Some((follows, ())) = applied {
            self.carry_out(follows);
        }
    }

    fn apply_limit(&self, limit: Option<NonZeroU32>) -> (TransitionEffects, ()) {
        self.transition(|admission, now, woken| admission.set_limit(now, limit, woken))
    }

    pub(crate) fn statistics(&self) -> GateStatistics {
        let (now, totals, rules) = self.lock().admission.counts();
        GateStatistics {
            limit: rules.limit,
            waiting: now.waiting,
            serving: now.serving,
            blocked: now.blocked,
            overdue: now.overdue,
            entered: totals.entered,
            left: totals.left,
            given_up: totals.given_up,
            service_variation: self.measured.c2(),
            ..GateStatistics::default()
        }
    }

    /// Advances the time to now, and returns the instant of the next timeout.
    pub(crate) fn wake(&self) -> Option<u64> {
        let mut woken = TaskWakeList::default();
        let mut state = self.lock();
        state.admission.wake((self.clock.now)(), &mut woken);
        state.looks_at = state.admission.wake_at();
        let next = state.looks_at;
        drop(state);
        woken.wake();
        next
    }

    /// Makes a transition and carries out its effects.
    fn change<T>(
        self: &Arc<Self>,
        transition: impl FnOnce(&mut TaskAdmission, u64, &mut TaskWakeList) -> T,
    ) -> T {
        let (follows, result) = self.transition(transition);
        self.carry_out(follows);
        result
    }

    /// Makes a transition, and returns the effects for [`carry_out`](Self::carry_out), which needs the lock released.
    fn transition<T>(
        &self,
        transition: impl FnOnce(&mut TaskAdmission, u64, &mut TaskWakeList) -> T,
    ) -> (TransitionEffects, T) {
        let mut woken = TaskWakeList::default();
        let mut state = self.lock();
        let result = transition(&mut state.admission, (self.clock.now)(), &mut woken);
        let due = state.admission.wake_at();
        let is_early = due.is_some_and(|due| state.looks_at.is_none_or(|looks_at| due < looks_at));
        if is_early {
            state.looks_at = due;
        }
        (TransitionEffects { woken, is_early }, result)
    }

    fn carry_out(self: &Arc<Self>, follows: TransitionEffects) {
        if follows.is_early {
            self.attend();
        }
        follows.woken.wake();
    }

    /// Starts or wakes the timer thread.
    fn attend(self: &Arc<Self>) {
        if self.clock.passes_by_itself {
            let gate = Arc::downgrade(self);
            while_ordinary(|| self.watch.attend(move || let_time_pass(&gate)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, LockedAdmission> {
        // A panic under the lock is a bug here, and must not stop the service as well.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedAsyncGate {
    fn drop(&mut self) {
        self.watch.unpark();
    }
}

/// Body of the timer thread.
fn let_time_pass(gate: &Weak<SharedAsyncGate>) {
    loop {
        let Some(present) = gate.upgrade() else { return };
        // Set before the check, so that a later transition wakes the thread.
        present.watch.set_sleeping(true);
        let left = present.wake().map(|due| due.saturating_sub((present.clock.now)()));
        drop(present);
        match left {
            _ if gate.strong_count() == 0 => return,
            None => thread::park(),
            Some(left) => thread::park_timeout(Duration::from_nanos(left)),
        }
    }
}
