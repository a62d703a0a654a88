//! Permits that the calling thread holds: waiting for them, and their release when the thread ends.

use crate::cancellation::EntryCancellation;
use crate::entry_cell::EntryCell;
use crate::entry_refusal::EntryRefusal;
use crate::kernel::{own_cpu_time, own_number};
use crate::shared_gate::SharedGate;
use discipline::RequestKey;
use discipline::pool::PooledRequest;
use machine::clock;
use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// An admitted request of the calling thread.
#[derive(Debug, Clone)]
pub(crate) struct HeldPermit {
    gate: Arc<SharedGate>,
    cell: Arc<EntryCell>,
    request: PooledRequest,
    /// CPU time of the thread at its admission, nanoseconds; 0 if it is not measured.
    cpu_before: u64,
}

/// A request of a thread, and the number of permits that the thread has of it.
#[derive(Debug)]
struct OwnRequest {
    held: HeldPermit,
    permits: usize,
}

/// The requests of a thread. Dropped when it ends.
#[derive(Debug, Default)]
struct ThreadPermits {
    own: Vec<OwnRequest>,
    /// A cell for the next request, if no other thread refers to it any more.
    spare: Option<Arc<EntryCell>>,
}

thread_local! {
    static OWN: RefCell<ThreadPermits> = RefCell::default();
}

impl Drop for ThreadPermits {
    fn drop(&mut self) {
        // Locks of gates are only taken by an ordinary thread.
        let promotions: Vec<_> = self.own.iter().map(|own| own.held.fix()).collect();
        for (own, is_done) in self.own.iter().zip(promotions) {
            own.held.gate.handover.add_own_promotion(is_done);
            own.held.leave();
        }
    }
}

impl ThreadPermits {
    fn cell(&mut self) -> Option<Arc<EntryCell>> {
        self.spare.take().filter(|cell| Arc::strong_count(cell) == 1 && !cell.is_outdated())
    }

    /// Adds a permit of the request at this gate, if there is one.
    fn again(&mut self, gate: &Arc<SharedGate>) -> Option<HeldPermit> {
        let own = self.own.iter_mut().find(|own| Arc::ptr_eq(&own.held.gate, gate))?;
        own.permits += 1;
        Some(own.held.clone())
    }

    /// Removes a permit. Returns true if it was the last.
    fn give_back(&mut self, held: &HeldPermit) -> bool {
        let Some(place) = self.own.iter().position(|own| Arc::ptr_eq(&own.held.cell, &held.cell)) else {
            return true;
        };
        self.own[place].permits -= 1;
        let is_last = self.own[place].permits == 0;
        if is_last {
            self.own.swap_remove(place);
        }
        is_last
    }
}

/// Runs something that takes locks or starts a thread, while the calling thread is ordinary at all gates
/// where it has a request. Otherwise others would wait for a lock of a demoted thread, and new threads
/// would inherit its level. A thread that was demoted stays ordinary until its next demotion.
pub(crate) fn while_ordinary<T>(run: impl FnOnce() -> T) -> T {
    while_others_are_ordinary(None, run)
}

/// As [`while_ordinary`], except for one cell, whose level the caller handles.
fn while_others_are_ordinary<T>(except: Option<&Arc<EntryCell>>, run: impl FnOnce() -> T) -> T {
    let changeable = OWN.try_with(|own| {
        let own = own.borrow();
        let cells = own.own.iter().map(|own| &own.held);
        let others = cells.filter(|held| !except.is_some_and(|except| Arc::ptr_eq(&held.cell, except)));
        others.filter(|held| !held.cell.is_fixed()).cloned().collect::<Vec<_>>()
    });
    // A thread without the list is about to end, and has left all gates.
    let changeable = changeable.unwrap_or_default();
    HeldPermit::while_fixed(&changeable, run)
}

impl HeldPermit {
    /// Waits until the request of the calling thread is admitted. If the thread already has one at this
    /// gate, it is used.
    pub(crate) fn enter(
        gate: &Arc<SharedGate>,
        key: RequestKey,
        deadline: Option<Instant>,
        cancellation: Option<&EntryCancellation>,
    ) -> Result<Self, EntryRefusal> {
        if cancellation.is_some_and(EntryCancellation::is_cancelled) {
            return Err(EntryRefusal::Cancelled);
        }
        if let Ok(Some(held)) = OWN.try_with(|own| own.borrow_mut().again(gate)) {
            return Ok(held);
        }
        let spare = OWN.try_with(|own| own.borrow_mut().cell()).ok().flatten();
        let cell = spare.unwrap_or_else(|| Arc::new(EntryCell::new(own_number())));
        cell.begin();
        let entry = while_ordinary(|| gate.handover.enter(clock::now(), key, &cell));
        let mut held = Self { gate: Arc::clone(gate), cell, request: entry.request, cpu_before: 0 };
        held.attend(entry.needs_time);
        if !held.cell.is_admitted() {
            held.wait(deadline, cancellation)?;
        }
        if gate.measured.measures_next() {
            held.cpu_before = own_cpu_time();
        }
        // In a destructor that runs after that of the list, only dropping the permit ends the request.
        let _ = OWN.try_with(|own| own.borrow_mut().own.push(OwnRequest { held: held.clone(), permits: 1 }));
        Ok(held)
    }

    /// Restores the thread's level and fixes it; `None` if it was not demoted, otherwise true if it was
    /// promoted.
    fn fix(&self) -> Option<bool> {
        self.cell.fix(self.gate.handover.kernel())
    }

    /// Runs something while no other thread can change the level of the calling thread for these
    /// requests.
    fn while_fixed<T>(changeable: &[Self], run: impl FnOnce() -> T) -> T {
        if changeable.is_empty() {
            return run();
        }
        // Fix all of them before the first lock is taken.
        let promotions: Vec<_> = changeable.iter().map(Self::fix).collect();
        for (held, is_done) in changeable.iter().zip(promotions) {
            held.gate.handover.add_own_promotion(is_done);
        }
        let result = run();
        changeable.iter().for_each(|held| held.cell.release());
        result
    }

    /// Lets the gate's time advance. The request may have been demoted since it was admitted.
    fn attend(&self, needs_time: bool) {
        if needs_time {
            let attend = || self.gate.attend(true);
            Self::while_fixed(std::slice::from_ref(self), || {
                while_others_are_ordinary(Some(&self.cell), attend);
            });
        } else {
            self.gate.attend(false);
        }
    }

    fn wait(
        &self,
        deadline: Option<Instant>,
        cancellation: Option<&EntryCancellation>,
    ) -> Result<(), EntryRefusal> {
        let Some(cancellation) = cancellation else { return self.wait_until(deadline, || false) };
        cancellation.begin_waiting();
        let waited = self.wait_until(deadline, || cancellation.is_cancelled());
        cancellation.end_waiting();
        waited
    }

    fn wait_until(
        &self,
        deadline: Option<Instant>,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<(), EntryRefusal> {
        while !self.cell.is_admitted() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let refusal = match left {
                _ if is_cancelled() => Some(EntryRefusal::Cancelled),
                Some(Duration::ZERO) => Some(EntryRefusal::TimedOut),
                _ => None,
            };
            let give_up = || self.gate.handover.give_up(clock::now(), self.request, &self.cell);
            if let Some(refusal) = refusal
                && while_others_are_ordinary(Some(&self.cell), give_up)
            {
                return Err(refusal);
            }
            self.sleep(left);
        }
        Ok(())
    }

    /// Sleeps until the thread is woken, or for at most this time.
    fn sleep(&self, left: Option<Duration>) {
        let longest = self.gate.longest_sleep();
        match left.into_iter().chain(longest).min() {
            _ if self.cell.is_admitted() => {}
            None => thread::park(),
            Some(left) => thread::park_timeout(left),
        }
        if longest.is_some() {
            while_ordinary(|| self.gate.wake());
        }
    }

    pub(crate) fn block(&self) {
        let block = || self.gate.handover.block(clock::now(), self.request, &self.cell);
        while_others_are_ordinary(Some(&self.cell), block);
    }

    pub(crate) fn unblock(&self) {
        let unblock = || self.gate.handover.unblock(clock::now(), self.request, &self.cell);
        let needs_time = while_others_are_ordinary(Some(&self.cell), unblock);
        self.attend(needs_time);
        if !self.cell.is_admitted() {
            let waited = self.wait_until(None, || false);
            waited.expect("nothing ends the wait");
        }
    }

    /// Returns one permit, and leaves the gate with the last. A thread that is about to end has already
    /// left.
    pub(crate) fn end(self) {
        let is_last = OWN.try_with(|own| own.borrow_mut().give_back(&self));
        if is_last.unwrap_or(true) {
            while_ordinary(|| self.leave());
            let _ = OWN.try_with(|own| own.borrow_mut().spare = Some(self.cell));
        }
    }

    fn leave(&self) {
        if self.gate.handover.leave(clock::now(), self.request, &self.cell) && self.cpu_before > 0 {
            self.gate.add_service_time(own_cpu_time().saturating_sub(self.cpu_before));
        }
    }
}
