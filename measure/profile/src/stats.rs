//! Confidence intervals for a median from a few repeats, and percentiles of many samples, without
//! assumptions about the distribution.

use units::Percentile;

/// The probability with which a confidence interval should contain the median.
const CONFIDENCE: f64 = 0.95;

/// Median and a distribution-free confidence interval for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Median {
    /// The median of the samples.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The probability that the interval contains the median of the population. It is below 0.95 for fewer than
    /// six samples.
    pub confidence: f64,
}

impl Median {
    /// Computes the median of `samples`, in any order; `None` without samples, or if one is not a number.
    pub(crate) fn from_samples(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|sample| sample.is_nan()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (rank, confidence) = interval_rank(sorted.len());
        let lower = (sorted.len() - 1) / 2;
        let upper = sorted.len() / 2;
        Some(Self {
            value: f64::midpoint(sorted[lower], sorted[upper]),
            low: sorted[rank],
            high: sorted[sorted.len() - 1 - rank],
            confidence,
        })
    }

    /// Half the width of the interval, as a fraction of the median.
    pub(crate) fn relative_noise(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.value
    }
}

/// Returns the number of samples to leave out at each end so that the interval between the others
/// contains the median with probability [`CONFIDENCE`]. Also returns the exact probability, by the sign
/// test: 1 − 2·P(Binomial(n, ½) ≤ rank).
fn interval_rank(samples: usize) -> (usize, f64) {
    // The powers of two would underflow far beyond any sensible number of repeats.
    let n = samples.min(1000);
    // P(Binomial(n, ½) = rank), and the probability of both tails up to `rank`.
    let mut point = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut tails = 2.0 * point;
    let mut rank = 0;
    while rank + 1 < n.div_ceil(2) {
        point *= (n - rank) as f64 / (rank + 1) as f64;
        if tails + 2.0 * point > 1.0 - CONFIDENCE {
            break;
        }
        tails += 2.0 * point;
        rank += 1;
    }
    (rank, (1.0 - tails).max(0.0))
}

/// The smallest sample that at least `percentile` of all samples do not exceed (nearest rank); `None`
/// without samples.
pub fn percentile(sorted: &[u64], percentile: Percentile) -> Option<u64> {
    debug_assert!(sorted.is_sorted());
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the fraction is at most 1, so that the rank is at most the length"
    )]
    let rank = (sorted.len() as f64 * percentile.percent() / 100.0).ceil() as usize;
    sorted.get(rank.max(1) - 1).or(sorted.last()).copied()
}

/// Returns the number of samples of which ten are expected above `percentile`.
pub(crate) fn samples_needed(percentile: Percentile) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates for the 100th percentile, for which no number of samples is enough"
    )]
    let samples = (10.0 / (1.0 - percentile.fraction())).round() as u64;
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_of_the_sign_test() {
        // Published tables of the sign test: order statistics for a 95 % interval of the median.
        for (n, rank, confidence) in
            [(1, 0, 0.0), (2, 0, 0.5), (5, 0, 0.9375), (6, 0, 0.96875), (9, 1, 0.9609), (20, 5, 0.9586)]
        {
            let (found, probability) = interval_rank(n);
            assert_eq!(found, rank, "{n} samples");
            assert!((probability - confidence).abs() < 1e-4, "{n} samples: {probability}");
        }
    }

    #[test]
    fn median_by_hand() {
        let median = Median::from_samples(&[3.0, 1.0, 10.0, 2.0]).unwrap();
        assert_eq!((median.value, median.low, median.high), (2.5, 1.0, 10.0));
        assert_eq!(median.relative_noise(), 1.8);
        assert_eq!(Median::from_samples(&[]), None);
        assert_eq!(Median::from_samples(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn percentile_by_nearest_rank() {
        let thousand: Vec<u64> = (1..=1000).collect();
        for (p, value) in [(99.9, 999), (50.0, 500), (100.0, 1000), (0.01, 1), (99.95, 1000)] {
            assert_eq!(percentile(&thousand, Percentile::new(p).unwrap()), Some(value), "{p}");
        }
        assert_eq!(percentile(&[], Percentile::new(50.0).unwrap()), None);
        assert_eq!(samples_needed(Percentile::new(99.9).unwrap()), 10_000);
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_median(samples in prop::collection::vec(1.0f64..1e9, 1..40)) {
            let median = Median::from_samples(&samples).unwrap();
            prop_assert!(median.low <= median.value && median.value <= median.high);
            prop_assert!((0.0..1.0).contains(&median.confidence));
        }

        #[test]
        fn percentile_is_the_definition(mut samples in prop::collection::vec(0u64..50, 1..200), p in 0.1f64..100.0) {
            samples.sort_unstable();
            let p = Percentile::new(p).unwrap();
            let enough = |value: u64| {
                let below = samples.iter().filter(|&&sample| sample <= value).count();
                below as f64 >= samples.len() as f64 * p.percent() / 100.0
            };
            let slow = samples.iter().copied().find(|&value| enough(value));
            prop_assert_eq!(percentile(&samples, p), slow);
        }
    }
}
