//! A way to end the waiting of threads before a gate from another thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Thread, ThreadId};

/// Ends the waiting of all threads that wait with it, now and later. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct EntryCancellation {
    shared: Arc<CancellationState>,
}

#[derive(Debug, Default)]
struct CancellationState {
    is_cancelled: AtomicBool,
    waiting: Mutex<Vec<Thread>>,
}

impl EntryCancellation {
    /// Creates a cancellation that has not been cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the waiting of all threads that wait with it, permanently.
    pub fn cancel(&self) {
        self.shared.is_cancelled.store(true, Ordering::SeqCst);
        let waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().for_each(Thread::unpark);
    }

    /// Returns true if [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled.load(Ordering::SeqCst)
    }

    /// Registers the calling thread to be woken on cancellation. It must check for a cancellation
    /// afterwards.
    pub(crate) fn begin_waiting(&self) {
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(std::thread::current());
    }

    pub(crate) fn end_waiting(&self) {
        let own: ThreadId = std::thread::current().id();
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = waiting.iter().position(|thread| thread.id() == own) {
            waiting.swap_remove(place);
        }
    }
}
