//! Percentiles by nearest rank.

use units::Percentile;

/// The rank, from 1, of the value that is this percentile of `count` values: [`confidence::nearest_rank`].
///
/// # Panics
/// When there are no values.
pub fn nearest_rank(percentile: Percentile, count: usize) -> usize {
    confidence::nearest_rank(percentile.percent(), count)
}
