//! What all handles of an asynchronous gate share: a lock around the state machine, the limit by measurement, and the thread
//! that lets time pass, which works under any runtime.
//!
//! The thread sleeps until the first instant at which time alone changes something, or until there is one. Instants of later
//! requests are later as a rule, so that it is woken about once in the time that requests may wait, and not for each.

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

/// Where the instants of a gate come from, in nanoseconds, and whether a thread of the gate lets time pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateClock {
    pub(crate) now: fn() -> u64,
    pub(crate) passes_by_itself: bool,
}

#[derive(Debug)]
struct LockedAdmission {
    admission: TaskAdmission,
    /// When the thread that lets time pass looks next; `None` while it sleeps until there is a reason.
    looks_at: Option<u64>,
}

/// Whom a transition lets go on, and whether time alone changes something earlier than before.
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

    /// Adds a request, which waits for at most so long; where it has to wait, the waker is woken once it need not any more.
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

    /// How far a request is; where it has to wait, the waker is woken once it need not any more.
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

    /// Wakes a listener no more.
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

    /// Notes the CPU time of a request, in nanoseconds, and changes the limit if that follows.
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

    /// Lets time pass until now, and says at which instant time alone changes something next.
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

    /// A transition with what follows from it.
    fn change<T>(
        self: &Arc<Self>,
        transition: impl FnOnce(&mut TaskAdmission, u64, &mut TaskWakeList) -> T,
    ) -> T {
        let (follows, result) = self.transition(transition);
        self.carry_out(follows);
        result
    }

    /// A transition, and what [`carry_out`](Self::carry_out) has to do once no lock is held.
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

    /// Makes sure that somebody lets time pass.
    fn attend(self: &Arc<Self>) {
        if self.clock.passes_by_itself {
            let gate = Arc::downgrade(self);
            while_ordinary(|| self.watch.attend(move || let_time_pass(&gate)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, LockedAdmission> {
        // A panic while it was held is a bug here, and must not stop the service as well.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SharedAsyncGate {
    fn drop(&mut self) {
        self.watch.unpark();
    }
}

/// The body of the thread that lets time pass.
fn let_time_pass(gate: &Weak<SharedAsyncGate>) {
    loop {
        let Some(present) = gate.upgrade() else { return };
        // Before the look, so that whoever has a reason afterwards wakes the thread.
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
