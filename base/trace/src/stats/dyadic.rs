//! Arrival counts in bins of every dyadic length at once, in memory that is logarithmic in the trace's duration.
//!
//! Two neighbouring bins of one level make one bin of the next; their difference is the level's Haar
//! wavelet detail, from which the Hurst parameter is estimated. Runs of empty bins are added as a whole,
//! so an idle time costs a step for each level, not for each bin.

use super::moments::CountMoments;
use units::Nanos;

/// The length of the finest bins as a power of two: 2^13 ns, about 8 us.
const BASE_SHIFT: u32 = 13;
const LEVELS: usize = 64 - BASE_SHIFT as usize;

/// The arrival counts in bins of one dyadic length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DyadicScale {
    /// The length of a bin.
    pub bin_length: Nanos,
    /// Number of complete bins.
    pub bins: u64,
    /// The mean number of arrivals in a bin.
    pub mean: f64,
    /// The index of dispersion for counts: variance over mean.
    pub dispersion: f64,
    /// The energy of the Haar details: the mean squared difference between the two bins of a pair.
    pub(super) detail_energy: f64,
    /// Number of pairs of bins.
    pub(super) details: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct DyadicLevel {
    /// Count of the first bin of a pair whose second bin is not yet complete.
    first_of_pair: Option<u64>,
    moments: CountMoments,
    /// The sum of the squared differences of pairs.
    detail_squares: u128,
}

impl DyadicLevel {
    /// Adds a complete bin; returns the count of the pair that it completes.
    #[inline]
    fn add(&mut self, count: u64) -> Option<u64> {
        self.moments.add(count);
        let Some(first) = self.first_of_pair.take() else {
            self.first_of_pair = Some(count);
            return None;
        };
        let difference = u128::from(first.abs_diff(count));
        self.detail_squares += difference * difference;
        Some(first + count)
    }
}

#[derive(Debug)]
pub(super) struct DyadicCascade {
    levels: Vec<DyadicLevel>,
    /// Finest bin of the latest arrival, and the arrivals in it so far.
    bin: u64,
    in_bin: u64,
}

impl Default for DyadicCascade {
    fn default() -> Self {
        Self { levels: vec![DyadicLevel::default(); LEVELS], bin: 0, in_bin: 0 }
    }
}

impl DyadicCascade {
    #[inline]
    pub(super) fn add(&mut self, since_first_ns: u64) {
        let bin = since_first_ns >> BASE_SHIFT;
        if bin != self.bin {
            self.add_bin(self.in_bin);
            self.add_empty_bins(bin - self.bin - 1);
            self.bin = bin;
            self.in_bin = 0;
        }
        self.in_bin += 1;
    }

    /// Adds one complete finest bin.
    fn add_bin(&mut self, count: u64) {
        let mut count = count;
        for level in &mut self.levels {
            match level.add(count) {
                Some(pair) => count = pair,
                None => return,
            }
        }
    }

    /// Adds a run of empty finest bins.
    fn add_empty_bins(&mut self, bins: u64) {
        let mut run = bins;
        // Bin of the next level that the run has completed; it precedes the rest of the run there.
        let mut completed = None;
        for level in &mut self.levels {
            if let Some(count) = completed.take() {
                completed = level.add(count);
            }
            if run > 0
                && let Some(first) = level.first_of_pair.take()
            {
                // A completed bin that completes a pair here leaves no first bin, so the two cannot coincide.
                debug_assert!(completed.is_none());
                level.detail_squares += u128::from(first) * u128::from(first);
                completed = Some(first);
                run -= 1;
            }
            if run % 2 == 1 {
                level.first_of_pair = Some(0);
            }
            run /= 2;
            if run == 0 && completed.is_none() {
                return;
            }
        }
    }

    /// Returns the scales with at least two bins, of a trace whose last arrival is `span_ns` after the
    /// first.
    pub(super) fn finish(self, span_ns: u64) -> Vec<DyadicScale> {
        let finest_bins = span_ns >> BASE_SHIFT;
        let mut scales = Vec::new();
        for (index, level) in self.levels.into_iter().enumerate() {
            let bins = finest_bins >> index;
            let Some(dispersion) = level.moments.dispersion(bins) else { break };
            let details = bins / 2;
            scales.push(DyadicScale {
                bin_length: Nanos(1 << (BASE_SHIFT as usize + index)),
                bins,
                mean: level.moments.mean(bins),
                dispersion,
                detail_energy: level.detail_squares as f64 / details as f64,
                details,
            });
        }
        scales
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The definition: build all bins of a level and compare.
        #[test]
        fn the_cascade_equals_counting_every_bin(gaps in proptest::collection::vec(prop_oneof![0u64..20_000, 0u64..3_000_000], 1..80)) {
            let mut cascade = DyadicCascade::default();
            let mut at = 0;
            let mut times = vec![0];
            cascade.add(0);
            for gap in gaps {
                at += gap;
                times.push(at);
                cascade.add(at);
            }
            let scales = cascade.finish(at);
            for (level, scale) in scales.iter().enumerate() {
                let len = (1u64 << BASE_SHIFT) << level;
                let bins = usize::try_from((at >> BASE_SHIFT) >> level).unwrap();
                let mut counts = vec![0u64; bins];
                for time in &times {
                    if let Some(count) = counts.get_mut(usize::try_from(time / len).unwrap()) {
                        *count += 1;
                    }
                }
                prop_assert_eq!(scale.bins, bins as u64);
                let mean = counts.iter().sum::<u64>() as f64 / bins as f64;
                prop_assert!((scale.mean - mean).abs() < 1e-9);
                let variance = counts.iter().map(|&c| (c as f64 - mean).powi(2)).sum::<f64>() / (bins - 1) as f64;
                prop_assert!((scale.dispersion - variance / mean).abs() < 1e-6 * (1.0 + variance));
                let details: Vec<f64> = counts.chunks_exact(2).map(|p| (p[0] as f64 - p[1] as f64).powi(2)).collect();
                let detail = details.iter().sum::<f64>() / details.len() as f64;
                prop_assert!((scale.detail_energy - detail).abs() < 1e-6 * (1.0 + detail), "{} {}", scale.detail_energy, detail);
            }
        }
    }
}
