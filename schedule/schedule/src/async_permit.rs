//! The permit of a request whose work is done by tasks, and the handle by which any of them reports that
//! the request waits.

use crate::kernel::own_cpu_time;
use crate::shared_async_gate::SharedAsyncGate;
use crate::task_admission::{EntryProgress, ListenerNumber, TaskEntry};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The right of tasks to work on a request, until it is dropped, also by a panic or a cancellation. It
/// may pass from task to task and from thread to thread.
#[derive(Debug)]
#[must_use = "the request leaves the gate when the permit is dropped"]
pub struct AsyncPermit {
    handle: PermitHandle,
    /// CPU time of the request so far, nanoseconds; `None` if it is not measured.
    cpu_time: Option<u64>,
}

impl AsyncPermit {
    pub(crate) fn new(gate: Arc<SharedAsyncGate>, entry: TaskEntry) -> Self {
        let cpu_time = gate.measured.measures_next().then_some(0);
        Self { handle: PermitHandle { gate, entry }, cpu_time }
    }

    /// Returns a handle for the workers on the request; the permit stays.
    pub fn handle(&self) -> PermitHandle {
        self.handle.clone()
    }

    /// Awaits something that needs no CPU of this service, as [`PermitHandle::while_waiting`] does.
    pub async fn while_waiting<F: Future>(&self, wait: F) -> F::Output {
        self.handle.while_waiting(wait).await
    }

    /// Runs a part of the request's work, such as one poll of its future, and counts its CPU time on this
    /// thread as the request's. [`ConcurrencyLimit::Auto`](crate::ConcurrencyLimit::Auto) considers only
    /// work that is run like this, and sets no limit without it.
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

/// Reports that the request of a permit waits. Clones are for the same request; after it left the gate
/// they do nothing.
#[derive(Debug, Clone)]
pub struct PermitHandle {
    gate: Arc<SharedAsyncGate>,
    entry: TaskEntry,
}

impl PermitHandle {
    /// Awaits something that needs no CPU of this service, such as the answer of another one. Others are
    /// admitted meanwhile; then the request continues once it is among the oldest, with the key with
    /// which it entered.
    ///
    /// If the future is dropped before its end, or `wait` panics, the request waits for its turn again.
    /// Its work continues in addition to the c until that turn; [`resume`](Self::resume) waits for it. Of
    /// several concurrent calls for the same request, the first that ends makes it count again. So join
    /// concurrent waits into one: `while_waiting(async { join!(a, b) })`.
    pub async fn while_waiting<F: Future>(&self, wait: F) -> F::Output {
        let waiting = BlockedRequest::begin(self);
        let answer = wait.await;
        drop(waiting);
        self.resume().await;
        answer
    }

    /// Waits until the request is among the oldest again, if a [`while_waiting`](Self::while_waiting) was
    /// dropped before its end.
    pub async fn resume(&self) {
        self.gate.unblock(self.entry);
        RequestTurn { handle: self, listener: None }.await;
    }
}

/// A request that does not count at the moment; dropping this makes it wait for its turn.
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

/// Completes when the request may continue or has left.
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
