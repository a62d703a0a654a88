//! The limit of a gate that is chosen by measurement, as all handles of the gate share it, and which requests are measured.

use crate::service_variation::AutomaticLimit;
use crate::settings::ConcurrencyLimit;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// 2⁶⁴ ÷ the golden ratio: multiples of it are spread evenly, without a short period.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The measurement behind a limit, if the limit is chosen by it.
#[derive(Debug)]
pub(crate) struct MeasuredLimit {
    workers: NonZeroU32,
    /// Whether the limit is chosen by measurement; `automatic` is looked at only then.
    measures: AtomicBool,
    automatic: Mutex<AutomaticLimit>,
    /// Requests that could have been measured.
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

    /// Whether the CPU time of requests is measured.
    pub(crate) fn measures(&self) -> bool {
        self.measures.load(Ordering::Relaxed)
    }

    /// Whether the CPU time of the next request is measured: after the first 1000 of one in eight, at scattered positions,
    /// because it takes two system calls.
    pub(crate) fn measures_next(&self) -> bool {
        if !self.measures() {
            return false;
        }
        let position = self.measurable.fetch_add(1, Ordering::Relaxed);
        position < 1000 || position.wrapping_mul(SCATTER) >> 61 == 0
    }

    /// Begins anew with a limit that the user gives, and applies the one that holds from now on. A lock is held meanwhile, so
    /// that limits are applied in the order in which they were chosen; what follows is for the caller, without it.
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

    /// Notes the CPU time of a request, in nanoseconds, and applies the limit that follows, if it is another one, as
    /// [`change`](Self::change) does. `None` when it is not.
    pub(crate) fn add<T>(&self, time_ns: u64, apply: impl FnOnce(Option<NonZeroU32>) -> T) -> Option<T> {
        let mut automatic = self.automatic();
        let changed = automatic.add(time_ns as f64 / 1e9).filter(|_| self.measures());
        changed.map(apply)
    }

    /// The squared coefficient of variation of what was measured, if the limit is chosen by it and enough was.
    pub(crate) fn c2(&self) -> Option<f64> {
        if self.measures() { self.automatic().variation.c2() } else { None }
    }

    fn automatic(&self) -> MutexGuard<'_, AutomaticLimit> {
        self.automatic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limit before anything was measured.
pub(crate) fn first_limit(limit: ConcurrencyLimit) -> Option<NonZeroU32> {
    match limit {
        ConcurrencyLimit::Fixed(limit) => Some(limit),
        ConcurrencyLimit::Unlimited | ConcurrencyLimit::Auto => None,
    }
}
