//! The gate before a service's work, and the permit of a thread that went through it.

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

/// Admits the c oldest requests. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    shared: Arc<SharedGate>,
}

impl Gate {
    /// A gate without requests. Where preemption is asked for, the first one of a process tries on a scratch thread
    /// whether threads can be promoted again.
    pub fn new(settings: GateSettings) -> Self {
        Self { shared: Arc::new(while_ordinary(|| SharedGate::new(settings))) }
    }

    /// Which mode is in force, and why.
    pub fn admission_report(&self) -> AdmissionReport {
        self.shared.report()
    }

    /// Blocks the calling thread until its request is admitted.
    ///
    /// A thread that holds a permit of this gate already is not asked to wait: it gets another one of the same request, which
    /// leaves the gate with the last of them. A cancelled one is refused nevertheless.
    pub fn enter(&self, key: RequestKey) -> Permit {
        let entered = self.enter_unless(key, None, None);
        entered.expect("neither a time limit nor a cancellation ends it")
    }

    /// Blocks the calling thread until its request is admitted, for at most so long.
    ///
    /// # Errors
    /// [`EntryRefusal::TimedOut`]; the request is then not at the gate any more.
    pub fn enter_within(&self, key: RequestKey, limit: Duration) -> Result<Permit, EntryRefusal> {
        self.enter_unless(key, Some(limit), None)
    }

    /// Blocks the calling thread until its request is admitted, for at most so long where a limit is given, or until it is
    /// cancelled where it can be.
    ///
    /// # Errors
    /// [`EntryRefusal`]; the request is then not at the gate any more.
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

    /// Changes how many requests run at once. A demoted thread that calls this is ordinary until it is demoted anew. Where older ones displace younger ones those too many are demoted, otherwise they
    /// finish.
    pub fn set_limit(&self, limit: ConcurrencyLimit) {
        while_ordinary(|| self.shared.set_limit(limit));
    }

    /// Counts since the gate was made, and how many requests are where now. A demoted thread that calls this is ordinary
    /// until it is demoted anew.
    pub fn statistics(&self) -> GateStatistics {
        while_ordinary(|| self.shared.statistics())
    }
}

/// The right of the calling thread to work on a request, until it is dropped, by a panic as well. A thread that ends
/// gives back what it still holds; a permit that is dropped, or blocks, after that does nothing.
#[derive(Debug)]
#[must_use = "the request leaves the gate when the permit is dropped"]
pub struct Permit {
    /// None once it was dropped.
    held: Option<HeldPermit>,
    /// Threads are demoted by their permits, so these stay where they are.
    stays: PhantomData<Rc<()>>,
}

impl Permit {
    /// Runs what waits for something other than a CPU, such as a call of another service. Others are admitted
    /// meanwhile. Then the request goes on as soon as it is among the oldest, with the key with which it entered.
    ///
    /// When it panics, the request stays blocked until the permit is dropped.
    pub fn while_blocked<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.block_begin();
        let waited_for = wait();
        self.block_end();
        waited_for
    }

    /// Notes that the request waits for something other than a CPU; nothing if it does already.
    pub fn block_begin(&self) {
        if let Some(held) = &self.held {
            held.block();
        }
    }

    /// Blocks the calling thread until its request is among the oldest again; nothing if it was not blocked.
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
