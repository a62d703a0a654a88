//! Counts of durations in buckets of bounded relative width.

use crate::rank::nearest_rank;
use units::{Nanos, Percentile};

/// Bits kept of a value besides its leading one.
const MANTISSA_BITS: u32 = 8;
/// Buckets between two powers of two.
const BUCKETS_PER_OCTAVE: u64 = 1 << MANTISSA_BITS;

/// Durations as counts; 8-bit mantissas, so that a value read back is within [`Histogram::RELATIVE_ERROR`] of the
/// value recorded, and exact below 512. The memory is fixed (116 KiB at most), recording is a few instructions, merging
/// is addition. Mean, least and largest are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
    /// The largest bitwise complement, which is that of the least value.
    max_complement: u64,
}

impl Histogram {
    /// Half the width of a bucket ÷ its lower end, 2⁻⁹.
    pub const RELATIVE_ERROR: f64 = 1.0 / (2 * BUCKETS_PER_OCTAVE) as f64;

    /// Counts one value in.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.max_complement = self.max_complement.max(!value);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest, exact; zero when there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean, exact but for the division; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.max_complement = self.max_complement.max(other.max_complement);
    }

    /// Returns the percentile by nearest rank: the ⌈p·n⌉-th value, as the middle of its bucket, clamped to
    /// least and largest.
    pub fn percentile(&self, percentile: Percentile) -> Option<Nanos> {
        if self.count == 0 {
            return None;
        }
        let rank = nearest_rank(percentile, usize::try_from(self.count).unwrap_or(usize::MAX)) as u64;
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(self.typical(bucket))
    }

    /// Returns the representative value of a bucket.
    fn typical(&self, bucket: usize) -> Nanos {
        Nanos(middle(bucket).clamp(!self.max_complement, self.max))
    }

    /// Returns the number of values at or below `value`, counting the whole bucket in which it lies.
    pub fn at_or_below(&self, value: u64) -> u64 {
        self.counts.iter().take(bucket(value) + 1).sum()
    }

    /// Returns the share of the values above `value`, counting its bucket as not above; `None` without
    /// values.
    pub fn share_above(&self, value: u64) -> Option<f64> {
        (self.count > 0).then(|| (self.count - self.at_or_below(value)) as f64 / self.count as f64)
    }

    /// Returns the complementary distribution function: (value, share of the values at least as large), from
    /// the least value at 1 to the largest at 1/n. The shares between have equal ratios, twenty to a power of
    /// ten.
    pub fn ccdf(&self) -> Vec<(Nanos, f64)> {
        let n = self.count as f64;
        let Some(least) = self.counts.iter().position(|count| *count > 0) else { return Vec::new() };
        let shares = (1..).map(|step: i32| 10f64.powf(-f64::from(step) / 20.0));
        let mut shares = shares.take_while(|share| share * n > 1.0).peekable();
        let mut line = vec![(self.typical(least), 1.0)];
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            // All shares that this bucket takes the line below.
            while let Some(share) = shares.next_if(|share| (self.count - below) as f64 / n < *share) {
                line.push((self.typical(bucket), share));
            }
        }
        line.push((Nanos(self.max), 1.0 / n));
        line
    }

    /// Removes all values; the memory stays allocated.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum, self.max, self.max_complement) = (0, 0, 0, 0);
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - (value | BUCKETS_PER_OCTAVE).leading_zeros()) - MANTISSA_BITS - 1;
    // At most 56·2⁸ + 2⁹.
    #[allow(clippy::cast_possible_truncation)]
    let bucket = (u64::from(shift) * BUCKETS_PER_OCTAVE + (value >> shift)) as usize;
    bucket
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / BUCKETS_PER_OCTAVE).saturating_sub(1);
    let low = (bucket - shift * BUCKETS_PER_OCTAVE) << shift;
    low + ((1u64 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_value_comes_back_within_the_stated_error(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let back = middle(bucket(value));
            let error = back.abs_diff(value) as f64 / value.max(1) as f64;
            proptest::prop_assert!(error <= Histogram::RELATIVE_ERROR, "{value} {back}");
            proptest::prop_assert!(value >= 512 || back == value);
        }

        /// The judge: a sorted list.
        #[test]
        fn percentiles_are_those_of_a_list(
            mut values in proptest::collection::vec(0u64..512, 1..300),
            percent in 0.1f64..99.9,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            let p = Percentile::new(percent).unwrap();
            proptest::prop_assert_eq!(histogram.percentile(p).unwrap().0, values[nearest_rank(p, values.len()) - 1]);
            proptest::prop_assert_eq!(histogram.max(), *values.last().unwrap());
        }
    }

    proptest::proptest! {
        /// The judge: counting. Values are below 512 and come back exactly.
        #[test]
        fn a_line_is_the_share_of_a_list(values in proptest::collection::vec(0u64..512, 1..300)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            let line = histogram.ccdf();
            for (at, share) in &line {
                let at_least = values.iter().filter(|value| **value >= at.0).count() as f64;
                let above = values.iter().filter(|value| **value > at.0).count() as f64;
                let n = values.len() as f64;
                proptest::prop_assert!(above / n <= *share && *share <= at_least / n + 1e-12, "{line:?}");
            }
            proptest::prop_assert!(line.is_sorted_by(|a, b| a.0 <= b.0 && a.1 >= b.1), "{line:?}");
            proptest::prop_assert_eq!(line[0].0.0, *values.iter().min().unwrap());
            proptest::prop_assert_eq!(line.last().unwrap().0.0, *values.iter().max().unwrap());
        }
    }

    #[test]
    fn a_line_of_nothing_is_empty_and_of_one_value_falls() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.ccdf(), []);
        (0..100).for_each(|_| histogram.record(50_000));
        let line = histogram.ccdf();
        assert!(line.len() > 20 && line.iter().all(|(at, _)| *at == Nanos(50_000)), "{line:?}");
        assert_eq!(line.last().unwrap().1, 0.01);
    }

    #[test]
    fn merging_is_recording_everything() {
        let mut one = Histogram::default();
        let mut two = Histogram::default();
        let mut all = Histogram::default();
        for value in [0, 1, 511, 512, 513, 1_000_000, u64::MAX] {
            [&mut one, &mut two][usize::from(value % 2 == 1)].record(value);
            all.record(value);
        }
        one.merge(&two);
        assert_eq!(one, all);
        assert_eq!((one.count(), one.at_or_below(511)), (7, 3));
        one.clear();
        assert_eq!((one.mean(), one.percentile(Percentile::new(50.0).unwrap())), (None, None));
    }
}
