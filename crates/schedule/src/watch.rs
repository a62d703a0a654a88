//! The thread that lets time pass for a gate: what becomes overdue, or was demoted for too long.
//!
//! It starts when somebody waits for the first time. While requests come it looks at the clock every eighth of the patience,
//! and at the very instant when one is due; then nobody has to wake it. When none come it sleeps until somebody waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// The thread of a gate, if it was started.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    thread: Mutex<Option<Thread>>,
    is_running: AtomicBool,
    sleeps: AtomicBool,
}

impl Watch {
    /// Whether there is a thread that lets time pass.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// Makes sure that time passes, because somebody waits: starts the thread with this body, or wakes it up.
    pub(crate) fn attend(&self, body: impl FnOnce() + Send + 'static) {
        if !self.is_running() {
            self.start(body);
        } else if self.sleeps.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn start(&self, body: impl FnOnce() + Send + 'static) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none()
            && let Ok(started) = thread::Builder::new().name("gate-clock".to_owned()).spawn(body)
        {
            *thread = Some(started.thread().clone());
            self.is_running.store(true, Ordering::Release);
        }
    }

    /// Wakes the thread, so that it sees that the gate has gone.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }

    /// Notes whether the thread sleeps until it is woken. It looks for requests between this and its sleep.
    pub(crate) fn set_sleeping(&self, sleeps: bool) {
        self.sleeps.store(sleeps, Ordering::SeqCst);
    }
}

/// How often the clock is looked at: so many times in the patience.
const LOOKS: u32 = 8;

/// The time between two looks at the clock.
pub(crate) fn look_every(patience: Duration) -> Duration {
    (patience / LOOKS).max(Duration::from_micros(100))
}
