//! The gate before the work of a service whose requests are tasks, for any runtime.
//!
//! Tasks share threads, so that no thread is demoted: this gate only admits. A separate thread advances
//! its time; it starts when a request waits for a limited time or keeps others waiting.

use crate::async_permit::AsyncPermit;
use crate::entry_refusal::EntryRefusal;
use crate::report::GateStatistics;
use crate::settings::{AsyncGateSettings, ConcurrencyLimit};
use crate::shared_async_gate::{GateClock, SharedAsyncGate};
use crate::task_admission::{EntryProgress, ListenerNumber, TaskEntry};
use discipline::RequestKey;
use machine::clock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Admits the c oldest requests of tasks. Clones share the gate.
#[derive(Debug, Clone)]
pub struct AsyncGate {
    shared: Arc<SharedAsyncGate>,
}

impl AsyncGate {
    /// Creates a gate without requests.
    pub fn new(settings: AsyncGateSettings) -> Self {
        Self::with_clock(settings, GateClock { now: clock::now, passes_by_itself: true })
    }

    pub(crate) fn with_clock(settings: AsyncGateSettings, clock: GateClock) -> Self {
        Self { shared: Arc::new(SharedAsyncGate::new(settings, clock)) }
    }

    /// Waits until the request is admitted. It enters at the future's first poll, and leaves if the
    /// future is dropped before its end.
    ///
    /// # Errors
    /// [`EntryRefusal::Overloaded`] if the number of waiting requests is limited; the request is then no
    /// longer at the gate.
    pub fn enter(&self, key: RequestKey) -> EntryFuture {
        EntryFuture::new(&self.shared, key, None)
    }

    /// As [`enter`](Self::enter), with a time limit from the first poll.
    ///
    /// # Errors
    /// Also [`EntryRefusal::TimedOut`].
    pub fn enter_within(&self, key: RequestKey, limit: Duration) -> EntryFuture {
        EntryFuture::new(&self.shared, key, Some(limit))
    }

    /// Changes the limit of running requests. Excess ones finish.
    pub fn set_limit(&self, limit: ConcurrencyLimit) {
        self.shared.set_limit(limit);
    }

    /// Returns totals since the gate was created, and the present numbers of requests by state.
    pub fn statistics(&self) -> GateStatistics {
        self.shared.statistics()
    }

    /// Advances the time, in place of the gate's own thread.
    #[cfg(test)]
    pub(crate) fn wake(&self) -> Option<u64> {
        self.shared.wake()
    }
}

/// A request that waits for admission.
///
/// The request belongs to the future from the first poll on, whether its turn has come or not. Dropping
/// the future releases everything, also between the hand-over of a permit and the poll that would take
/// it.
#[derive(Debug)]
#[must_use = "nothing happens before it is polled"]
pub struct EntryFuture {
    gate: Arc<SharedAsyncGate>,
    key: RequestKey,
    limit: Option<Duration>,
    stage: EntryStage,
}

#[derive(Debug)]
enum EntryStage {
    Outside,
    Entered(TaskEntry, Option<ListenerNumber>),
    Over,
}

impl EntryFuture {
    fn new(gate: &Arc<SharedAsyncGate>, key: RequestKey, limit: Option<Duration>) -> Self {
        Self { gate: Arc::clone(gate), key, limit, stage: EntryStage::Outside }
    }
}

impl Future for EntryFuture {
    type Output = Result<AsyncPermit, EntryRefusal>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { gate, key, limit, stage } = self.get_mut();
        let (entry, progress) = match stage {
            EntryStage::Outside => {
                let (entry, progress, listener) = gate.enter(*key, *limit, context.waker());
                *stage = EntryStage::Entered(entry, listener);
                (entry, progress)
            }
            EntryStage::Entered(entry, listener) => {
                (*entry, gate.progress(*entry, listener, context.waker()))
            }
            EntryStage::Over => panic!("it has ended, so that nobody polls it"),
        };
        let ended = match progress {
            EntryProgress::Waiting => return Poll::Pending,
            EntryProgress::Admitted => Ok(AsyncPermit::new(Arc::clone(gate), entry)),
            EntryProgress::Refused(refusal) => Err(refusal),
        };
        *stage = EntryStage::Over;
        Poll::Ready(ended)
    }
}

impl Drop for EntryFuture {
    fn drop(&mut self) {
        if let EntryStage::Entered(entry, _) = self.stage {
            self.gate.leave(entry);
        }
    }
}
