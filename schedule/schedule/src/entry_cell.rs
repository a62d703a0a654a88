//! State that threads share about one request at a gate: its admission, and the level of its thread.
//!
//! A thread that leaves or blocks takes the gate's lock. If it were demoted at that moment, the lock's holder
//! would run only when every other thread is idle. So it first fixes its level, without the lock; a thread
//! that demotes or promotes another holds the lock and changes only a level that is not fixed.

use crate::sync::{AtomicBool, AtomicU8, Mutex, Ordering, Thread, current, yield_now};
use machine::scheduling::ThreadScheduling;

/// Ordinary level, can be changed.
const ORDINARY: u8 = 0;
/// A thread is changing the level.
const CHANGING: u8 = 1;
/// Demoted, can be promoted.
const DEMOTED: u8 = 2;
/// The level cannot be changed: the request is not in service, or about to leave it.
const FIXED: u8 = 3;

/// Interface to the kernel that demotes and promotes threads.
pub(crate) trait LevelChange {
    /// Demotes a thread. Returns false if the kernel refused.
    fn demote(&self, cell: &EntryCell) -> bool;
    /// Undoes `demote`. Returns false if the kernel refused.
    fn promote(&self, cell: &EntryCell) -> bool;
}

/// A request at a gate and its thread.
#[derive(Debug)]
pub(crate) struct EntryCell {
    thread: Thread,
    /// Thread ID (TID) in the kernel.
    pub(crate) number: u32,
    /// Process that the TID belongs to. After a fork the child has copies of its parent's cells.
    process: u32,
    is_outdated: AtomicBool,
    is_admitted: AtomicBool,
    is_over: AtomicBool,
    level: AtomicU8,
    /// Scheduling of the thread before its demotion. Used only by the thread that has set `CHANGING` or
    /// `FIXED`.
    pub(crate) before: Mutex<Option<ThreadScheduling>>,
}

impl EntryCell {
    /// Creates a cell of the calling thread, whose TID is `number`.
    pub(crate) fn new(number: u32) -> Self {
        Self {
            thread: current(),
            number,
            process: std::process::id(),
            is_outdated: AtomicBool::new(false),
            is_admitted: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            level: AtomicU8::new(FIXED),
            before: Mutex::new(None),
        }
    }

    /// Prepares the cell for a request, or for its return from a block. No other thread uses the cell at that
    /// time.
    pub(crate) fn begin(&self) {
        self.is_admitted.store(false, Ordering::Relaxed);
        self.is_over.store(false, Ordering::Relaxed);
        self.level.store(ORDINARY, Ordering::Release);
    }

    /// Returns true if the cell was created in this process, not in its parent before a fork. Calls
    /// getpid(2).
    pub(crate) fn is_of_this_process(&self) -> bool {
        let is_of_it = self.process == std::process::id();
        if !is_of_it {
            self.is_outdated.store(true, Ordering::Relaxed);
        }
        is_of_it
    }

    /// Returns true if the cell is known to be from before a fork, so that it cannot be used again.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    /// Creates a cell as the child of a fork inherits it.
    #[cfg(test)]
    pub(crate) fn of_the_parent(number: u32) -> Self {
        Self { process: std::os::unix::process::parent_id(), ..Self::new(number) }
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Acquire)
    }

    /// Admits the request. The thread is woken by [`wake`](Self::wake), after the lock is released.
    pub(crate) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Release);
    }

    pub(crate) fn wake(&self) {
        self.thread.unpark();
    }

    /// Notes that the request leaves; returns false if it had left before.
    pub(crate) fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::AcqRel)
    }

    /// Demotes the thread if its level can change. Returns `None` if it cannot, otherwise the kernel's
    /// result.
    pub(crate) fn demote(&self, kernel: &impl LevelChange) -> Option<bool> {
        self.exchange(ORDINARY, CHANGING).then(|| {
            let is_done = kernel.demote(self);
            self.level.store(if is_done { DEMOTED } else { ORDINARY }, Ordering::Release);
            is_done
        })
    }

    /// Promotes the thread if it is demoted and its level can change. Returns `None` if not, otherwise the
    /// kernel's result.
    pub(crate) fn promote(&self, kernel: &impl LevelChange) -> Option<bool> {
        self.exchange(DEMOTED, CHANGING).then(|| {
            let is_done = kernel.promote(self);
            self.level.store(ORDINARY, Ordering::Release);
            is_done
        })
    }

    /// Restores the calling thread's level and prevents changes by other threads. Returns `None` if it was
    /// not demoted, otherwise the kernel's result.
    pub(crate) fn fix(&self, kernel: &impl LevelChange) -> Option<bool> {
        loop {
            if self.exchange(ORDINARY, FIXED) {
                return None;
            }
            if self.exchange(DEMOTED, FIXED) {
                return Some(kernel.promote(self));
            }
            if self.is_fixed() {
                return None;
            }
            // Another thread is in a system call that changes the level; it does not take the lock, so this
            // is short.
            yield_now();
        }
    }

    /// Returns true if other threads cannot change the level. Only the cell's own thread sets and clears this
    /// state.
    pub(crate) fn is_fixed(&self) -> bool {
        self.level.load(Ordering::Acquire) == FIXED
    }

    /// Allows other threads to change the level again. It stays ordinary until the next demotion.
    pub(crate) fn release(&self) {
        self.exchange(FIXED, ORDINARY);
    }

    fn exchange(&self, from: u8, to: u8) -> bool {
        self.level.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
