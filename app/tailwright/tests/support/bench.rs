//! What tests of benches of services share: the CPUs, which one bench at a time has, and the figures of documents.

use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Benches of a test program play one at a time, because they take the same CPUs.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static PLAYING: Mutex<()> = Mutex::new(());
    PLAYING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether two services have a CPU each; says so where they have not.
pub(crate) fn has_two_cpus() -> bool {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        testkit::skip("two services need two CPUs");
    }
    cpus >= 2
}

/// The number that a document has in a place.
#[track_caller]
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("expected a number, found {value}"))
}
