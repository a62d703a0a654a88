//! The locks, counters and threads of the hand-over, in one place, so that its tests put those of a checker there.

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
