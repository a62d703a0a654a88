//! Latencies as a sorted list: exact percentiles, shares, the mean, the distance to others.

use crate::observe::nearest_rank;
use units::{Nanos, Percentile, Seconds};

/// At least one latency, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyDistribution(Vec<Nanos>);

impl LatencyDistribution {
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

    /// The largest difference between the two distribution functions (Kolmogorov's distance), 0 to 1.
    pub fn distance(&self, other: &Self) -> f64 {
        let below = |values: &[Nanos], x: Nanos| {
            values.partition_point(|value| *value <= x) as f64 / values.len() as f64
        };
        let at = |x: &Nanos| (below(&self.0, *x) - below(&other.0, *x)).abs();
        self.0.iter().chain(&other.0).map(at).fold(0.0, f64::max)
    }
}
