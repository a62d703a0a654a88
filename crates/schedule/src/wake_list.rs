//! Wakers that are woken or dropped once no lock is held: both run code of others, which may come back to the gate.

use std::task::Waker;

/// What is done when the lock is free.
#[derive(Debug, Default)]
pub(crate) struct TaskWakeList {
    /// Most transitions wake one task at most.
    first: Option<Waker>,
    others: Vec<Waker>,
    discarded: Vec<Waker>,
}

impl TaskWakeList {
    pub(crate) fn wake_later(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    pub(crate) fn discard(&mut self, waker: Waker) {
        self.discarded.push(waker);
    }

    pub(crate) fn wake(self) {
        if let Some(first) = self.first {
            first.wake();
            self.others.into_iter().for_each(Waker::wake);
        }
    }
}
