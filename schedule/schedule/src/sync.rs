//! Locks, atomics and threads of the hand-over, in one place, so that tests can replace them by a
//! checker's.

#[cfg(test)]
pub(crate) use shuttle::{
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Thread, current, yield_now},
};
#[cfg(not(test))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Thread, current, yield_now},
};
