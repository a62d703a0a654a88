//! A background thread of a gate while requests wait: the timer, which handles overdue requests and those
//! demoted for too long, or the sentinel.
//!
//! It starts when a request waits for the first time. While requests arrive, the timer reads the clock every
//! eighth of the patience, and exactly when a request is due, so that no request has to wake it. Otherwise it
//! sleeps until a request waits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// A background thread of a gate; it may not be started yet.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Name of the thread.
    name: &'static str,
    thread: Mutex<Option<Thread>>,
    /// Process in which the thread runs; 0 before it is started. The child of a fork does not have it.
    process: AtomicU32,
    sleeps: AtomicBool,
    has_failed: AtomicBool,
}

impl Watch {
    /// Creates a watch without a thread.
    pub(crate) const fn named(name: &'static str) -> Self {
        let process = AtomicU32::new(0);
        let sleeps = AtomicBool::new(false);
        Self { name, thread: Mutex::new(None), process, sleeps, has_failed: AtomicBool::new(false) }
    }

    /// Returns true if the thread runs in this process.
    pub(crate) fn is_running(&self) -> bool {
        self.process.load(Ordering::Acquire) == std::process::id()
    }

    /// Returns true if the last attempt to start it failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Starts the thread with this body, or wakes it, because a request waits.
    pub(crate) fn attend(&self, body: impl FnOnce() + Send + 'static) {
        if !self.is_running() {
            self.start(body);
        }
        // Also after a start, by this call or another: the thread may have checked before the request waited.
        if self.sleeps.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn start(&self, body: impl FnOnce() + Send + 'static) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_running() {
            return;
        }
        // Before the start, since the thread sets this itself; a forked child has inherited the parent's
        // value.
        self.sleeps.store(false, Ordering::SeqCst);
        let started = thread::Builder::new().name(self.name.to_owned()).spawn(body);
        self.has_failed.store(started.is_err(), Ordering::Relaxed);
        if let Ok(started) = started {
            *thread = Some(started.thread().clone());
            self.process.store(std::process::id(), Ordering::Release);
        }
    }

    /// Wakes the thread, so that it sees the end of the gate.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }

    /// Notes if the thread is about to sleep until it is woken. It checks for requests between this call and
    /// its sleep.
    pub(crate) fn set_sleeping(&self, sleeps: bool) {
        self.sleeps.store(sleeps, Ordering::SeqCst);
    }
}

/// Number of checks of the clock in the patience.
const LOOKS: u32 = 8;

/// Returns the interval between checks of the clock.
pub(crate) fn look_every(patience: Duration) -> Duration {
    (patience / LOOKS).max(Duration::from_micros(100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    #[test]
    fn the_child_of_a_fork_starts_its_own_thread() {
        let watch = Watch::named("test");
        let (started, starts) = mpsc::channel();
        let of_the_parent = thread::current();
        *watch.thread.lock().unwrap() = Some(of_the_parent.clone());
        watch.process.store(std::os::unix::process::parent_id(), Ordering::Release);
        watch.sleeps.store(true, Ordering::SeqCst);
        assert!(!watch.is_running());
        watch.attend(move || started.send(thread::current().id()).unwrap());
        assert_ne!(starts.recv().expect("a thread was started"), of_the_parent.id());
        assert!(watch.is_running());
    }

    /// The second request waits while the thread starts.
    #[test]
    fn a_thread_that_has_just_started_is_woken() {
        for round in 0..2000 {
            let watch = Arc::new(Watch::named("test"));
            let (told, tells) = mpsc::channel();
            let own = Arc::clone(&watch);
            watch.attend(move || {
                own.set_sleeping(true);
                told.send(()).unwrap();
                while own.sleeps.load(Ordering::SeqCst) {
                    thread::park();
                }
                told.send(()).unwrap();
            });
            tells.recv().expect("it sleeps");
            watch.attend(|| unreachable!("it runs"));
            assert!(tells.recv_timeout(Duration::from_secs(60)).is_ok(), "it sleeps on in round {round}");
        }
    }
}
