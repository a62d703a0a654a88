//! A thread that works for a gate while somebody waits there: the one that lets time pass (what becomes overdue, or was
//! demoted for too long), and the sentinel.
//!
//! It starts when somebody waits for the first time. While requests come, the one that lets time pass looks at the clock every
//! eighth of the patience, and at the very instant when one is due; then nobody has to wake it. When none come it sleeps
//! until somebody waits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// A thread of a gate, if it was started.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The name of the thread.
    name: &'static str,
    thread: Mutex<Option<Thread>>,
    /// The process in which it runs; 0 before it was started. The child of a fork does not have it.
    process: AtomicU32,
    sleeps: AtomicBool,
    has_failed: AtomicBool,
}

impl Watch {
    /// None yet, of this name.
    pub(crate) const fn named(name: &'static str) -> Self {
        let process = AtomicU32::new(0);
        let sleeps = AtomicBool::new(false);
        Self { name, thread: Mutex::new(None), process, sleeps, has_failed: AtomicBool::new(false) }
    }

    /// Whether there is such a thread.
    pub(crate) fn is_running(&self) -> bool {
        self.process.load(Ordering::Acquire) == std::process::id()
    }

    /// Whether the last attempt to start it failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Makes sure that it works, because somebody waits: starts the thread with this body, or wakes it up.
    pub(crate) fn attend(&self, body: impl FnOnce() + Send + 'static) {
        if !self.is_running() {
            self.start(body);
        }
        // Also where it has just started, by this call or by another one: it may have looked before the reason was there.
        if self.sleeps.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn start(&self, body: impl FnOnce() + Send + 'static) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_running() {
            return;
        }
        // Before the thread is there, which notes by itself that it sleeps; a fork copies what the parent's has noted.
        self.sleeps.store(false, Ordering::SeqCst);
        let started = thread::Builder::new().name(self.name.to_owned()).spawn(body);
        self.has_failed.store(started.is_err(), Ordering::Relaxed);
        if let Ok(started) = started {
            *thread = Some(started.thread().clone());
            self.process.store(std::process::id(), Ordering::Release);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    #[test]
    fn the_child_of_a_fork_starts_its_own_thread() {
        let (watch, (started, starts)) = (Watch::named("test"), mpsc::channel());
        let of_the_parent = thread::current();
        *watch.thread.lock().unwrap() = Some(of_the_parent.clone());
        watch.process.store(std::os::unix::process::parent_id(), Ordering::Release);
        watch.sleeps.store(true, Ordering::SeqCst);
        assert!(!watch.is_running());
        watch.attend(move || started.send(thread::current().id()).unwrap());
        assert_ne!(starts.recv().expect("a thread was started"), of_the_parent.id());
        assert!(watch.is_running());
    }

    /// The second reason comes while the thread starts.
    #[test]
    fn a_thread_that_has_just_started_is_woken() {
        for round in 0..2000 {
            let (watch, (told, tells)) = (Arc::new(Watch::named("test")), mpsc::channel());
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
