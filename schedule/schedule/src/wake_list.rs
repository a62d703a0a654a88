//! Wakers that are woken or dropped once no lock is held: both run foreign code, which may call the gate
//! again, or panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Actions to perform once the lock is free.
#[derive(Debug, Default)]
pub(crate) struct TaskWakeList {
    /// Most transitions wake at most one task.
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

    /// Wakes and drops them all. A panic of one, which the panic hook has reported, affects neither the
    /// others nor the caller, whose request has already entered or left.
    pub(crate) fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(|waker| unless_it_panics(|| waker.wake()));
        self.discarded.into_iter().for_each(|waker| unless_it_panics(|| drop(waker)));
    }
}

fn unless_it_panics(run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        // Dropping the payload of a panic may panic itself.
        std::mem::forget(payload);
    }
}
