//! Channels and atomics of the mailbox, in one place, so that tests can replace them by a checker's.

#[cfg(test)]
pub(super) use shuttle::sync::{
    Arc,
    atomic::{AtomicBool, Ordering, fence},
    mpsc::{Receiver, Sender, TryRecvError, channel},
};
#[cfg(not(test))]
pub(super) use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering, fence},
    mpsc::{Receiver, Sender, TryRecvError, channel},
};
