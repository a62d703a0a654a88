//! Counts of times in buckets whose upper ends grow by a constant factor.
//!
//! The text format of OpenMetrics has no native histograms, so the ends are written out. With a constant
//! factor, the relative error of a percentile from the buckets is the same everywhere: a percentile lies
//! in a bucket, and its two ends are a factor of 2^(1/n) apart.

use std::sync::Arc;

/// The least upper end of a bucket, in nanoseconds.
const FIRST_NS: f64 = 1_000.0;

/// The number of doublings from the first end to the last one: from 1 µs to 16.8 s.
const DOUBLINGS: u32 = 24;

/// The upper ends of buckets, shared by all counts that have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketScale(Arc<[u64]>);

impl BucketScale {
    /// Ends from 1 µs to 2²⁴ µs (16.8 s), `per_doubling` for each factor of two, rounded to nanoseconds: neighbours are a
    /// factor of 2^(1/`per_doubling`) apart.
    ///
    /// # Panics
    /// When there are none per doubling.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and below 2^35")]
    pub fn new(per_doubling: u32) -> Self {
        assert!(per_doubling > 0, "a scale has steps");
        let steps = 0..=DOUBLINGS * per_doubling;
        let end = |step: u32| FIRST_NS * (f64::from(step) / f64::from(per_doubling)).exp2();
        Self(steps.map(|step| end(step).round() as u64).collect())
    }
}

/// Counts of times by bucket of a scale, their number and their sum.
#[derive(Debug, Clone)]
pub struct ExponentialCounts {
    scale: BucketScale,
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u128,
}

impl ExponentialCounts {
    /// Counts of nothing yet.
    pub fn new(scale: &BucketScale) -> Self {
        // The last bucket has no end.
        Self { scale: scale.clone(), buckets: vec![0; scale.0.len() + 1], count: 0, sum_ns: 0 }
    }

    /// Counts a time in nanoseconds.
    pub fn add(&mut self, time_ns: u64) {
        let bucket = self.scale.0.partition_point(|end| *end < time_ns);
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum_ns += u128::from(time_ns);
    }

    /// Returns the number of times in each bucket, and their sum in nanoseconds.
    pub fn parts(&self) -> (&[u64], u128) {
        (&self.buckets, self.sum_ns)
    }

    /// Adds the counts of another process, from its [`parts`](Self::parts). Returns false, and adds nothing, if those
    /// have another number of buckets.
    pub fn add_parts(&mut self, buckets: &[u64], sum_ns: u128) -> bool {
        if buckets.len() != self.buckets.len() {
            return false;
        }
        for (own, other) in self.buckets.iter_mut().zip(buckets) {
            *own = own.saturating_add(*other);
            self.count = self.count.saturating_add(*other);
        }
        self.sum_ns = self.sum_ns.saturating_add(sum_ns);
        true
    }

    /// Returns the number of times counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all times, in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Returns the buckets that hold times: their upper ends in nanoseconds, `None` for the one without an end, and the
    /// number of times in each alone.
    pub fn filled_buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let ends = self.scale.0.iter().copied().map(Some).chain([None]);
        ends.zip(self.buckets.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// The upper end of each bucket in seconds with the number of times in it alone; the last end is [`f64::MAX`], which
    /// stands for infinity where histograms are encoded.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let ends = self.scale.0.iter().map(|end| *end as f64 / 1e9).chain([f64::MAX]);
        ends.zip(self.buckets.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_grow_by_the_factor_that_is_promised() {
        for per_doubling in [1, 4] {
            let scale = BucketScale::new(per_doubling);
            let ends = &scale.0;
            assert_eq!((ends[0], ends[ends.len() - 1]), (1_000, 1_000 << 24));
            let factor = (1.0 / f64::from(per_doubling)).exp2();
            for pair in ends.windows(2) {
                let found = pair[1] as f64 / pair[0] as f64;
                assert!((found / factor - 1.0).abs() < 1e-3, "{pair:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_time_is_in_the_first_bucket_that_holds_it(times in prop::collection::vec(0u64..40_000_000_000, 1..50)) {
            let scale = BucketScale::new(4);
            let mut counts = ExponentialCounts::new(&scale);
            times.iter().for_each(|time| counts.add(*time));
            let mut below = 0;
            for (end, count) in counts.buckets() {
                below += count;
                let expected = times.iter().filter(|time| **time as f64 / 1e9 <= end).count() as u64;
                prop_assert_eq!(below, expected, "{}", end);
            }
            prop_assert_eq!(below, counts.count());
            prop_assert_eq!(counts.sum_seconds(), times.iter().map(|t| u128::from(*t)).sum::<u128>() as f64 / 1e9);
        }
    }
}
