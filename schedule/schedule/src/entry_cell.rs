//! What threads share about one request at a gate: whether it was admitted, and the level of its thread.
//!
//! A thread that wants to leave, or to block, must not be demoted while it takes the lock that everybody needs: the lock
//! would then be held by a thread that runs when nobody else does. So it first makes itself unchangeable, without the
//! lock. Whoever demotes or promotes it, under the lock, does so only while it can change.

use crate::sync::{AtomicBool, AtomicU8, Mutex, Ordering, Thread, current, yield_now};
use machine::scheduling::ThreadScheduling;

/// The level of a thread can change, and it is the ordinary one.
const ORDINARY: u8 = 0;
/// Somebody is changing the level.
const CHANGING: u8 = 1;
/// The thread is demoted, and can be promoted.
const DEMOTED: u8 = 2;
/// Nobody changes the level: the thread is not in service, or about to leave it.
const FIXED: u8 = 3;

/// How the kernel is told to demote and promote threads.
pub(crate) trait LevelChange {
    /// Demotes a thread, and says whether that was done.
    fn demote(&self, cell: &EntryCell) -> bool;
    /// Undoes what `demote` did to a thread, and says whether that was done.
    fn promote(&self, cell: &EntryCell) -> bool;
}

/// One request at a gate and its thread.
#[derive(Debug)]
pub(crate) struct EntryCell {
    thread: Thread,
    /// The kernel's number of the thread.
    pub(crate) number: u32,
    /// The process in which the number is that of the thread. After a fork the child has copies of cells of its parent.
    process: u32,
    is_outdated: AtomicBool,
    is_admitted: AtomicBool,
    is_over: AtomicBool,
    level: AtomicU8,
    /// How the thread was scheduled before it was demoted. Only who changes the level uses it.
    pub(crate) before: Mutex<Option<ThreadScheduling>>,
}

impl EntryCell {
    /// A cell of the calling thread, whose number the caller knows.
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

    /// Prepares the cell for a request, or for its return from a block. Nobody else looks at the cell then.
    pub(crate) fn begin(&self) {
        self.is_admitted.store(false, Ordering::Relaxed);
        self.is_over.store(false, Ordering::Relaxed);
        self.level.store(ORDINARY, Ordering::Release);
    }

    /// Whether the cell was made in this process, and not before a fork in its parent. A system call.
    pub(crate) fn is_of_this_process(&self) -> bool {
        let is_of_it = self.process == std::process::id();
        if !is_of_it {
            self.is_outdated.store(true, Ordering::Relaxed);
        }
        is_of_it
    }

    /// Whether the cell was seen to be from before a fork, so that it cannot be used again.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    /// A cell as the child of a fork has it from its parent.
    #[cfg(test)]
    pub(crate) fn of_the_parent(number: u32) -> Self {
        Self { process: std::os::unix::process::parent_id(), ..Self::new(number) }
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Acquire)
    }

    /// Notes that the request may go on. The thread is woken by [`wake`](Self::wake), when no lock is held.
    pub(crate) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Release);
    }

    pub(crate) fn wake(&self) {
        self.thread.unpark();
    }

    /// Notes that the request leaves; false if it had left before.
    pub(crate) fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::AcqRel)
    }

    /// Demotes the thread if its level can change; `None` if it cannot, otherwise whether the kernel did so.
    pub(crate) fn demote(&self, kernel: &impl LevelChange) -> Option<bool> {
        self.exchange(ORDINARY, CHANGING).then(|| {
            let is_done = kernel.demote(self);
            self.level.store(if is_done { DEMOTED } else { ORDINARY }, Ordering::Release);
            is_done
        })
    }

    /// Promotes the thread if it is demoted and its level can change; `None` if not, otherwise whether the kernel did so.
    pub(crate) fn promote(&self, kernel: &impl LevelChange) -> Option<bool> {
        self.exchange(DEMOTED, CHANGING).then(|| {
            let is_done = kernel.promote(self);
            self.level.store(ORDINARY, Ordering::Release);
            is_done
        })
    }

    /// Has the calling thread, whose cell this is, run as before and not be changed by others; `None` if it was not
    /// demoted, otherwise whether the kernel promoted it.
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
            // Somebody is within a system call that changes the level.
            yield_now();
        }
    }

    /// Whether nobody changes the level. Only the thread of the cell begins and ends this.
    pub(crate) fn is_fixed(&self) -> bool {
        self.level.load(Ordering::Acquire) == FIXED
    }

    /// Allows others to change the level again. It stays ordinary until the next demotion.
    pub(crate) fn release(&self) {
        self.exchange(FIXED, ORDINARY);
    }

    fn exchange(&self, from: u8, to: u8) -> bool {
        self.level.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
