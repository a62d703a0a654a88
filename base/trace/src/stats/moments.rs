//! Exact moments of arrival counts.

/// The sums of counts over bins and of their squares. They are exact integers, and empty bins add nothing to them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CountMoments {
    sum: u128,
    squares: u128,
}

impl CountMoments {
    pub(super) fn add(&mut self, count: u64) {
        self.sum += u128::from(count);
        self.squares += u128::from(count) * u128::from(count);
    }

    pub(super) fn mean(&self, bins: u64) -> f64 {
        self.sum as f64 / bins as f64
    }

    /// The index of dispersion: unbiased sample variance over mean; `None` below two bins or without arrivals.
    pub(super) fn dispersion(&self, bins: u64) -> Option<f64> {
        if bins < 2 || self.sum == 0 {
            return None;
        }
        let mean = self.mean(bins);
        // Σx² − n·mean² in one rounding of each term: counts are small integers, so cancellation does no harm.
        let deviations = (self.squares as f64 - self.sum as f64 * mean).max(0.0);
        Some(deviations / (bins - 1) as f64 / mean)
    }
}
