//! Inter-arrival times: their moments exactly, and their distribution in logarithmic bins.

/// Number of leading bits that decide the bin of a value: 16 bins for each power of two, about 4% wide.
const SUB_BITS: u32 = 4;
const BINS: usize = (65 << SUB_BITS) as usize;

/// Number of inter-arrival times from `from_ns` up to the beginning of the next bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterarrivalBin {
    /// The smallest time of the bin in nanoseconds.
    pub from_ns: u64,
    /// Number of inter-arrival times in the bin.
    pub count: u64,
}

#[derive(Debug)]
pub(super) struct InterarrivalTimes {
    count: u64,
    /// The sum is at most the trace's duration, and the squares together at most its square: both fit 128 bits.
    sum: u128,
    squares: u128,
    bins: Vec<u64>,
}

impl Default for InterarrivalTimes {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0, bins: vec![0; BINS] }
    }
}

impl InterarrivalTimes {
    #[inline]
    pub(super) fn add(&mut self, time_ns: u64) {
        self.count += 1;
        self.sum += u128::from(time_ns);
        self.squares += u128::from(time_ns) * u128::from(time_ns);
        self.bins[bin_of(time_ns)] += 1;
    }

    /// Returns the squared coefficient of variation: population variance over squared mean. `None` if all
    /// times are zero or there are none.
    pub(super) fn squared_variation(&self) -> Option<f64> {
        let mean = self.sum as f64 / self.count as f64;
        (self.sum > 0).then(|| (self.squares as f64 / self.count as f64 / (mean * mean) - 1.0).max(0.0))
    }

    /// Returns the non-empty bins.
    pub(super) fn bins(&self) -> Vec<InterarrivalBin> {
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, &count)| InterarrivalBin { from_ns: bin_start(index), count }).collect()
    }
}

/// Returns the bin of a value: small values have bins of their own, larger ones share them by their
/// leading bits.
fn bin_of(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let leading = usize::try_from(value >> shift).expect("a few bits");
    (shift as usize * (1 << SUB_BITS)) + leading
}

/// Returns the smallest value of a bin.
fn bin_start(index: usize) -> u64 {
    let bins_per_octave = 1usize << SUB_BITS;
    let shift = (index / bins_per_octave).saturating_sub(1);
    ((index - shift * bins_per_octave) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_their_start_and_nothing_below() {
        for value in (0..100).chain([1 << 20, (1 << 20) + 5, u64::MAX / 3, u64::MAX]) {
            let start = bin_start(bin_of(value));
            assert!(start <= value && (value - start) as f64 <= value as f64 / 16.0, "{value}: {start}");
            assert_eq!(bin_of(start), bin_of(value));
        }
    }
}
