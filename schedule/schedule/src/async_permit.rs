//! The permit of a request whose work is done by tasks, and the handle by which any of them says that the request waits.

use crate::kernel::own_cpu_time;
use crate::shared_async_gate::SharedAsyncGate;
use crate::task_admission::{EntryProgress, ListenerNumber, TaskEntry};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The right of tasks to work on a request, until it is dropped, by a panic or a cancellation as well. It may pass from task to
/// task and from thread to thread.
#[derive(Debug)]
#[must_use = "the request leaves the gate when the permit is dropped"]
pub struct AsyncPermit {
    handle: PermitHandle,
    /// The CPU time of the request so far, in nanoseconds; `None` where it is not measured.
    cpu_time: Option<u64>,
}

impl AsyncPermit {
    pub(crate) fn new(gate: Arc<SharedAsyncGate>, entry: TaskEntry) -> Self {
        let cpu_time = gate.measured.measures_next().then_some(0);
        Self { handle: PermitHandle { gate, entry }, cpu_time }
    }

    /// A handle for those who work on the request; the permit stays.
    pub fn handle(&self) -> PermitHandle {
        self.handle.clone()
    }

    /// Awaits what needs no CPU of this service, as [`PermitHandle::while_waiting`] does.
    pub async fn while_waiting<F: Future>(&self, wait: F) -> F::Output {
        self.handle.while_waiting(wait).await
    }

    /// Runs a part of the request's work, such as one poll of its future, whose CPU time on this thread counts as the
    /// request's. What is not run like this does not count for [`ConcurrencyLimit::Auto`](crate::ConcurrencyLimit::Auto),
    /// which sets no limit without it.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let Some(so_far) = self.cpu_time else { return work() };
        let before = own_cpu_time();
        let result = work();
        self.cpu_time = Some(so_far.saturating_add(own_cpu_time().saturating_sub(before)));
        result
    }
}

impl Drop for AsyncPermit {
    fn drop(&mut self) {
        if let Some(time) = self.cpu_time.filter(|time| *time > 0) {
            self.handle.gate.add_service_time(time);
        }
        self.handle.gate.leave(self.handle.entry);
    }
}

/// Says when the request of a permit waits. Clones are for the same request; after it left the gate they do nothing.
#[derive(Debug, Clone)]
pub struct PermitHandle {
    gate: Arc<SharedAsyncGate>,
    entry: TaskEntry,
}

impl PermitHandle {
    /// Awaits what needs no CPU of this service, such as the answer of another one. Others are admitted meanwhile; then the
    /// request goes on as soon as it is among the oldest, with the key with which it entered.
    ///
    /// Where it is dropped before its end, or `wait` panics, the request is in the line of those that wait for their turn, and what
    /// goes on of it does so beside the c until its turn comes; [`resume`](Self::resume) waits for that. Of several at once for the same
    /// request the first that ends makes it count again, so that calls side by side belong into one:
    /// `while_waiting(async { join!(a, b) })`.
    pub async fn while_waiting<F: Future>(&self, wait: F) -> F::Output {
        let waiting = BlockedRequest::begin(self);
        let answer = wait.await;
        drop(waiting);
        self.resume().await;
        answer
    }

    /// Waits until the request is among the oldest again, if a [`while_waiting`](Self::while_waiting) was dropped before
    /// its end.
    pub async fn resume(&self) {
        self.gate.unblock(self.entry);
        RequestTurn { handle: self, listener: None }.await;
    }
}

/// A request that does not count; it wants to go on when this is dropped.
struct BlockedRequest<'a>(&'a PermitHandle);

impl<'a> BlockedRequest<'a> {
    fn begin(handle: &'a PermitHandle) -> Self {
        handle.gate.block(handle.entry);
        Self(handle)
    }
}

impl Drop for BlockedRequest<'_> {
    fn drop(&mut self) {
        self.0.gate.unblock(self.0.entry);
    }
}

/// Ends when the request may go on or has left.
struct RequestTurn<'a> {
    handle: &'a PermitHandle,
    listener: Option<ListenerNumber>,
}

impl Future for RequestTurn<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let PermitHandle { gate, entry } = self.handle;
        match gate.progress(*entry, &mut self.listener, context.waker()) {
            EntryProgress::Waiting => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for RequestTurn<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener {
            self.handle.gate.unlisten(self.handle.entry, listener);
        }
    }
}
