//! The one rule by which times in seconds become integer nanoseconds.

use units::Nanos;

/// The nearest nanosecond; times beyond [`Nanos`] (584 years) become its largest value. Monotone.
pub(crate) fn saturating_nanos(secs: f64) -> Nanos {
    Nanos::from_secs(secs).unwrap_or(Nanos(u64::MAX))
}
