//! Latencies as a sorted list: exact percentiles, shares, the mean, the distance to others.

use crate::rank::nearest_rank;
use units::{Nanos, Percentile, Seconds};

/// The empirical distribution of at least one latency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyDistribution(Vec<Nanos>);

impl LatencyDistribution {
    /// The distribution of these latencies, which need not be sorted; `None` without any.
    pub fn new(mut values: Vec<Nanos>) -> Option<Self> {
        values.sort_unstable();
        (!values.is_empty()).then_some(Self(values))
    }

    /// The number of latencies.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All latencies in ascending order.
    pub fn values(&self) -> &[Nanos] {
        &self.0
    }

    /// A percentile by nearest rank.
    pub fn percentile(&self, percentile: Percentile) -> Nanos {
        self.0[nearest_rank(percentile, self.0.len()) - 1]
    }

    /// The mean of all latencies.
    pub fn mean(&self) -> Seconds {
        let sum: u128 = self.0.iter().map(|ns| u128::from(ns.0)).sum();
        Seconds(sum as f64 / 1e9 / self.0.len() as f64)
    }

    /// The share of the latencies that are above `latency`.
    pub fn above(&self, latency: Nanos) -> f64 {
        let not_above = self.0.partition_point(|value| *value <= latency);
        (self.0.len() - not_above) as f64 / self.0.len() as f64
    }

    /// The largest difference between the two distribution functions (Kolmogorov's distance), 0 to 1.
    pub fn distance(&self, other: &Self) -> f64 {
        let difference = |x: &Nanos| (share_at_most(&self.0, *x) - share_at_most(&other.0, *x)).abs();
        self.0.iter().chain(&other.0).map(difference).fold(0.0, f64::max)
    }
}

/// The share of the sorted values that are at most `x`.
fn share_at_most(sorted: &[Nanos], x: Nanos) -> f64 {
    sorted.partition_point(|value| *value <= x) as f64 / sorted.len() as f64
}
