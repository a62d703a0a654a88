//! Inter-arrival times: moments exactly, the distribution in logarithmic bins.

/// Sub-bins of a power of two: about 4% wide.
const SUB_BITS: u32 = 4;
const BINS: usize = (65 << SUB_BITS) as usize;

/// Gaps between `from_ns` and the next bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapBin {
    /// Smallest gap of the bin in nanoseconds.
    pub from_ns: u64,
    /// Gaps in it.
    pub count: u64,
}

#[derive(Debug)]
pub(super) struct Gaps {
    count: u64,
    /// The squares of gaps cannot exceed the square of their sum, which is a time: all fits 128 bits.
    sum: u128,
    squares: u128,
    bins: Vec<u64>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0, bins: vec![0; BINS] }
    }
}

impl Gaps {
    #[inline]
    pub(super) fn add(&mut self, gap_ns: u64) {
        self.count += 1;
        self.sum += u128::from(gap_ns);
        self.squares += u128::from(gap_ns) * u128::from(gap_ns);
        self.bins[bin(gap_ns)] += 1;
    }

    /// Variance over squared mean (population); `None` when all gaps are zero or there are none.
    pub(super) fn scv(&self) -> Option<f64> {
        let mean = self.sum as f64 / self.count as f64;
        (self.sum > 0).then(|| (self.squares as f64 / self.count as f64 / (mean * mean) - 1.0).max(0.0))
    }

    /// The bins that are not empty.
    pub(super) fn bins(&self) -> Vec<GapBin> {
        let filled = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, &count)| GapBin { from_ns: bin_start(index), count }).collect()
    }
}

/// Small values have bins of their own; larger ones share by their leading bits.
fn bin(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let leading = usize::try_from(value >> shift).expect("a few bits");
    (shift as usize * (1 << SUB_BITS)) + leading
}

fn bin_start(index: usize) -> u64 {
    let per = 1usize << SUB_BITS;
    let shift = (index / per).saturating_sub(1);
    ((index - shift * per) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_their_start_and_nothing_below() {
        for value in (0..100).chain([1 << 20, (1 << 20) + 5, u64::MAX / 3, u64::MAX]) {
            let start = bin_start(bin(value));
            assert!(start <= value && (value - start) as f64 <= value as f64 / 16.0, "{value}: {start}");
            assert_eq!(bin(start), bin(value));
        }
    }
}
