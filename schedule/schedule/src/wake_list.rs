//! Wakers that are woken or dropped once no lock is held: both run code of others, which may come back to the gate, or panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
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

    /// Wakes and drops them all. A panic of one, of which the panic hook has told, ends neither the others nor the caller,
    /// whose request has entered or left already.
    pub(crate) fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(|waker| unless_it_panics(|| waker.wake()));
        self.discarded.into_iter().for_each(|waker| unless_it_panics(|| drop(waker)));
    }
}

fn unless_it_panics(run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        // What was thrown may panic when it is dropped.
        std::mem::forget(payload);
    }
}
