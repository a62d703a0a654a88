//! Permits that the calling thread holds: how it waits for them, and that they end with it.

use crate::cancellation::EntryCancellation;
use crate::entry_cell::EntryCell;
use crate::entry_refusal::EntryRefusal;
use crate::kernel::{own_cpu_time, own_number};
use crate::settings::RequestKey;
use crate::shared_gate::SharedGate;
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
    /// The CPU time of the thread when it was admitted, nanoseconds; 0 where it is not measured.
    cpu_before: u64,
}

/// The permits of a thread. Dropped when it ends.
#[derive(Debug, Default)]
struct ThreadPermits {
    held: Vec<HeldPermit>,
    /// A cell for the next request, if nobody else has it any more.
    spare: Option<Arc<EntryCell>>,
}

thread_local! {
    static OWN: RefCell<ThreadPermits> = RefCell::default();
}

impl Drop for ThreadPermits {
    fn drop(&mut self) {
        self.held.iter().for_each(HeldPermit::leave);
    }
}

impl ThreadPermits {
    fn cell(&mut self) -> Arc<EntryCell> {
        match self.spare.take() {
            Some(cell) if Arc::strong_count(&cell) == 1 => cell,
            _ => Arc::new(EntryCell::new(own_number())),
        }
    }
}

impl HeldPermit {
    /// Waits until the request of the calling thread is admitted; `None` when it holds a permit of this gate.
    pub(crate) fn enter(
        gate: &Arc<SharedGate>,
        key: RequestKey,
        deadline: Option<Instant>,
        cancellation: Option<&EntryCancellation>,
    ) -> Result<Option<Self>, EntryRefusal> {
        let has_one =
            |own: &RefCell<ThreadPermits>| own.borrow().held.iter().any(|held| Arc::ptr_eq(&held.gate, gate));
        if OWN.with(has_one) {
            return Ok(None);
        }
        let cell = OWN.with(|own| own.borrow_mut().cell());
        cell.begin();
        let entry = gate.handover.enter(clock::now(), key.0, &cell);
        let mut held = Self { gate: Arc::clone(gate), cell, request: entry.request, cpu_before: 0 };
        gate.attend(entry.needs_time);
        if !held.cell.is_admitted() {
            held.wait(deadline, cancellation)?;
        }
        if gate.measures_next() {
            held.cpu_before = own_cpu_time();
        }
        OWN.with(|own| own.borrow_mut().held.push(held.clone()));
        Ok(Some(held))
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
            if let Some(refusal) = refusal
                && self.gate.handover.give_up(clock::now(), self.request, &self.cell)
            {
                return Err(refusal);
            }
            self.sleep(left);
        }
        Ok(())
    }

    /// Sleeps until somebody wakes the thread, or for so long.
    fn sleep(&self, left: Option<Duration>) {
        let longest = self.gate.longest_sleep();
        match left.into_iter().chain(longest).min() {
            _ if self.cell.is_admitted() => {}
            None => thread::park(),
            Some(left) => thread::park_timeout(left),
        }
        if longest.is_some() {
            self.gate.wake();
        }
    }

    pub(crate) fn block(&self) {
        self.gate.handover.block(clock::now(), self.request, &self.cell);
    }

    pub(crate) fn unblock(&self) {
        let needs_time = self.gate.handover.unblock(clock::now(), self.request, &self.cell);
        self.gate.attend(needs_time);
        if !self.cell.is_admitted() {
            let waited = self.wait_until(None, || false);
            waited.expect("nothing ends the wait");
        }
    }

    /// Leaves the gate. When the thread is about to end, it has left it already.
    pub(crate) fn end(self) {
        self.leave();
        let Self { cell, request, gate, .. } = self;
        // The thread's own list has gone if the permit lies in something that a thread drops after it.
        let _ = OWN.try_with(|own| {
            let mut own = own.borrow_mut();
            own.held.retain(|held| held.request != request || !Arc::ptr_eq(&held.gate, &gate));
            own.spare = Some(cell);
        });
    }

    fn leave(&self) {
        if self.gate.handover.leave(clock::now(), self.request, &self.cell) && self.cpu_before > 0 {
            self.gate.add_service_time(own_cpu_time().saturating_sub(self.cpu_before));
        }
    }
}
