//! Latencies as a distribution: percentiles, the complementary distribution function, the mean.

use crate::observe::nearest_rank;
use units::{Nanos, Percentile, Seconds};

/// At least one latency, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution(Vec<Nanos>);

impl Distribution {
    /// `None` without values.
    pub fn new(mut values: Vec<Nanos>) -> Option<Self> {
        values.sort_unstable();
        (!values.is_empty()).then_some(Self(values))
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All values, ascending.
    pub fn values(&self) -> &[Nanos] {
        &self.0
    }

    /// By nearest rank.
    pub fn percentile(&self, percentile: Percentile) -> Nanos {
        self.0[nearest_rank(percentile, self.0.len()) - 1]
    }

    /// The sum over the count.
    pub fn mean(&self) -> Seconds {
        let sum: u128 = self.0.iter().map(|ns| u128::from(ns.0)).sum();
        Seconds(sum as f64 / 1e9 / self.0.len() as f64)
    }

    /// The part of the values that is above `latency`.
    pub fn above(&self, latency: Nanos) -> f64 {
        let not_above = self.0.partition_point(|value| *value <= latency);
        (self.0.len() - not_above) as f64 / self.0.len() as f64
    }

    /// The complementary distribution function at up to `points` values: (x, share of values that are at least x),
    /// with shares spaced evenly on a logarithmic axis from 1 down to that of the maximum.
    ///
    /// # Panics
    /// With fewer than two points.
    pub fn ccdf(&self, points: usize) -> Vec<(Nanos, f64)> {
        assert!(points >= 2, "a line has two ends");
        let n = self.0.len();
        let index = |step: usize| {
            let share = (n as f64).powf(-(step as f64) / (points - 1) as f64);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let at_least = (share * n as f64).round() as usize;
            n - at_least.clamp(1, n)
        };
        let mut indices: Vec<usize> = (0..points).map(index).collect();
        indices.dedup();
        let share = |x: Nanos| (n - self.0.partition_point(|value| *value < x)) as f64 / n as f64;
        let mut line: Vec<(Nanos, f64)> =
            indices.into_iter().map(|i| (self.0[i], share(self.0[i]))).collect();
        line.dedup();
        line
    }

    /// The largest difference between the two distribution functions (Kolmogorov's distance), 0 to 1.
    pub fn distance(&self, other: &Self) -> f64 {
        let below = |values: &[Nanos], x: Nanos| {
            values.partition_point(|value| *value <= x) as f64 / values.len() as f64
        };
        let at = |x: &Nanos| (below(&self.0, *x) - below(&other.0, *x)).abs();
        self.0.iter().chain(&other.0).map(at).fold(0.0, f64::max)
    }
}
