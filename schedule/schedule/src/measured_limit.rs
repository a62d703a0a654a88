//! The measured limit of a gate, shared by all its handles, and the selection of measured requests.

use crate::service_variation::AutomaticLimit;
use crate::settings::ConcurrencyLimit;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// 2⁶⁴ ÷ the golden ratio: its multiples are spread evenly, without a short period.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The measurement behind a limit, if the limit is chosen by it.
#[derive(Debug)]
pub(crate) struct MeasuredLimit {
    workers: NonZeroU32,
    /// True if the limit is chosen by measurement; `automatic` is used only then.
    measures: AtomicBool,
    automatic: Mutex<AutomaticLimit>,
    /// Number of requests that could have been measured.
    measurable: AtomicU64,
}

impl MeasuredLimit {
    pub(crate) fn new(limit: ConcurrencyLimit, workers: NonZeroU32) -> Self {
        Self {
            workers,
            measures: AtomicBool::new(limit == ConcurrencyLimit::Auto),
            automatic: Mutex::new(AutomaticLimit::new(workers)),
            measurable: AtomicU64::new(0),
        }
    }

    /// Returns true if the CPU time of requests is measured.
    pub(crate) fn measures(&self) -> bool {
        self.measures.load(Ordering::Relaxed)
    }

    /// Returns true if the CPU time of the next request is measured: of the first 1000 and then of one in
    /// eight, at scattered positions, because it costs two system calls.
    pub(crate) fn measures_next(&self) -> bool {
        if !self.measures() {
            return false;
        }
        let position = self.measurable.fetch_add(1, Ordering::Relaxed);
        position < 1000 || position.wrapping_mul(SCATTER) >> 61 == 0
    }

    /// Starts anew with a limit from the user, and applies the limit now in force. A lock is held
    /// meanwhile, so that limits are applied in the order in which they were chosen; the caller continues
    /// without the lock.
    pub(crate) fn change<T>(
        &self,
        limit: ConcurrencyLimit,
        apply: impl FnOnce(Option<NonZeroU32>) -> T,
    ) -> T {
        let mut automatic = self.automatic();
        *automatic = AutomaticLimit::new(self.workers);
        self.measures.store(limit == ConcurrencyLimit::Auto, Ordering::Relaxed);
        apply(first_limit(limit))
    }

    /// Records the CPU time of a request, nanoseconds, and applies the resulting limit if it differs, as
    /// [`change`](Self::change) does. `None` if it does not.
    pub(crate) fn add<T>(&self, time_ns: u64, apply: impl FnOnce(Option<NonZeroU32>) -> T) -> Option<T> {
        let mut automatic = self.automatic();
        let changed = automatic.add(time_ns as f64 / 1e9).filter(|_| self.measures());
        changed.map(apply)
    }

    /// Returns the squared coefficient of variation of the measured times, if the limit is chosen by it
    /// and enough were measured.
    pub(crate) fn c2(&self) -> Option<f64> {
        if self.measures() { self.automatic().variation.c2() } else { None }
    }

    fn automatic(&self) -> MutexGuard<'_, AutomaticLimit> {
        self.automatic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the limit before any measurement.
pub(crate) fn first_limit(limit: ConcurrencyLimit) -> Option<NonZeroU32> {
    match limit {
        ConcurrencyLimit::Fixed(limit) => Some(limit),
        ConcurrencyLimit::Unlimited | ConcurrencyLimit::Auto => None,
    }
}
