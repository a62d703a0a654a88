//! The distribution of measured times in bounded memory: exact moments and extremes, and a uniform sample.

use crate::graph::MeasuredTimes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;

/// Collects values. Up to the capacity all are kept; of more, each subset is kept with the same probability
/// (Vitter's algorithm R), by a generator with the given seed.
#[derive(Debug)]
pub(crate) struct TimesCollector {
    capacity: usize,
    random: StdRng,
    count: u64,
    sum: u128,
    sum_of_squares: f64,
    least: u64,
    most: u64,
    sample: Vec<u64>,
}

impl TimesCollector {
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Self {
            capacity,
            random,
            count: 0,
            sum: 0,
            sum_of_squares: 0.0,
            least: u64::MAX,
            most: 0,
            sample: Vec::new(),
        }
    }

    /// Adds one measured time.
    pub(crate) fn push(&mut self, value: Nanos) {
        self.count += 1;
        self.sum += u128::from(value.0);
        self.sum_of_squares += (value.0 as f64).powi(2);
        self.least = self.least.min(value.0);
        self.most = self.most.max(value.0);
        if self.sample.len() < self.capacity {
            self.sample.push(value.0);
            return;
        }
        let index = self.random.random_range(0..self.count);
        if let Some(kept) = usize::try_from(index).ok().and_then(|index| self.sample.get_mut(index)) {
            *kept = value.0;
        }
    }

    /// The sum of all times, seconds.
    pub(crate) fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// The distribution of the times.
    pub(crate) fn finish(mut self) -> MeasuredTimes {
        self.sample.sort_unstable();
        let n = self.count.max(1) as f64;
        let mean = self.sum as f64 / n;
        let c2 = if mean > 0.0 { (self.sum_of_squares / n / (mean * mean) - 1.0).max(0.0) } else { 0.0 };
        MeasuredTimes {
            count: self.count,
            mean_s: mean / 1e9,
            c2,
            least_ns: if self.count == 0 { 0 } else { self.least },
            most_ns: self.most,
            sample_ns: self.sample,
        }
    }
}
