//! Percentiles of samples by nearest rank.

use confidence::nearest_rank;
use units::Nanos;

/// The smallest sample that at least `percent` of all samples do not exceed; `None` without samples.
pub(crate) fn percentile(sorted: &[Nanos], percent: f64) -> Option<Nanos> {
    (!sorted.is_empty()).then(|| sorted[nearest_rank(percent, sorted.len()) - 1])
}

/// The same as [`percentile`], in seconds.
pub(crate) fn percentile_s(sorted: &[Nanos], percent: f64) -> Option<f64> {
    percentile(sorted, percent).map(Nanos::as_secs)
}
