//! The gate before a service's work, and the permit of an admitted thread.

use crate::cancellation::EntryCancellation;
use crate::entry_refusal::EntryRefusal;
use crate::held::{HeldPermit, while_ordinary};
use crate::report::{AdmissionReport, GateStatistics};
use crate::settings::{ConcurrencyLimit, GateSettings};
use crate::shared_gate::SharedGate;
use discipline::RequestKey;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Admits the c oldest requests. Clones share the gate.
#[derive(Debug, Clone)]
pub struct Gate {
    shared: Arc<SharedGate>,
}

impl Gate {
    /// Creates a gate without requests. If preemption is requested, the first gate of a process tests on
    /// a scratch thread that threads can be promoted again.
    pub fn new(settings: GateSettings) -> Self {
        Self { shared: Arc::new(while_ordinary(|| SharedGate::new(settings))) }
    }

    /// Returns the modes in force, with reasons.
    pub fn admission_report(&self) -> AdmissionReport {
        self.shared.report()
    }

    /// Blocks the calling thread until its request is admitted.
    ///
    /// A thread that already holds a permit of this gate does not wait: it gets another permit of the
    /// same request, which leaves the gate with the last of them. A cancellation still refuses it.
    pub fn enter(&self, key: RequestKey) -> Permit {
        let entered = self.enter_unless(key, None, None);
        entered.expect("neither a time limit nor a cancellation ends it")
    }

    /// Blocks the calling thread until its request is admitted, with a time limit.
    ///
    /// # Errors
    /// [`EntryRefusal::TimedOut`]; the request is then no longer at the gate.
    pub fn enter_within(&self, key: RequestKey, limit: Duration) -> Result<Permit, EntryRefusal> {
        self.enter_unless(key, Some(limit), None)
    }

    /// Blocks the calling thread until its request is admitted, the optional time limit ends, or the
    /// optional cancellation is cancelled.
    ///
    /// # Errors
    /// [`EntryRefusal`]; the request is then no longer at the gate.
    pub fn enter_unless(
        &self,
        key: RequestKey,
        limit: Option<Duration>,
        cancellation: Option<&EntryCancellation>,
    ) -> Result<Permit, EntryRefusal> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let held = HeldPermit::enter(&self.shared, key, deadline, cancellation)?;
        Ok(Permit { held: Some(held), stays: PhantomData })
    }

    /// Changes the limit of running requests. Excess threads are demoted if older requests displace
    /// younger ones; otherwise they finish. A demoted thread that calls this is ordinary until its next
    /// demotion.
    pub fn set_limit(&self, limit: ConcurrencyLimit) {
        while_ordinary(|| self.shared.set_limit(limit));
    }

    /// Returns totals since the gate was created, and the present numbers of requests by state. A demoted
    /// thread that calls this is ordinary until its next demotion.
    pub fn statistics(&self) -> GateStatistics {
        while_ordinary(|| self.shared.statistics())
    }
}

/// The right of the calling thread to work on a request, until it is dropped, also by a panic. A thread
/// that ends releases its permits; a permit that is dropped, or blocks, after that does nothing.
#[derive(Debug)]
#[must_use = "the request leaves the gate when the permit is dropped"]
pub struct Permit {
    /// `None` once dropped.
    held: Option<HeldPermit>,
    /// Threads are demoted by their permits, so a permit stays in its thread.
    stays: PhantomData<Rc<()>>,
}

impl Permit {
    /// Runs something that waits for other than a CPU, such as a call of another service. Others are
    /// admitted meanwhile. Then the request continues once it is among the oldest, with the key with
    /// which it entered.
    ///
    /// If it panics, the request stays blocked until the permit is dropped.
    pub fn while_blocked<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.block_begin();
        let waited_for = wait();
        self.block_end();
        waited_for
    }

    /// Notes that the request waits for something other than a CPU; does nothing if it is already
    /// blocked.
    pub fn block_begin(&self) {
        if let Some(held) = &self.held {
            held.block();
        }
    }

    /// Blocks the calling thread until its request is among the oldest again; does nothing if it was not
    /// blocked.
    pub fn block_end(&self) {
        if let Some(held) = &self.held {
            held.unblock();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.end();
        }
    }
}
