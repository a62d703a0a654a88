//! The locks, counters and threads of the hand-over, in one place so that a test can put those of a checker there.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::{Thread, current, yield_now};
