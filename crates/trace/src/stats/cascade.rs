//! Arrivals per bin at every dyadic scale at once, in memory that is logarithmic in the length.
//!
//! Two neighbouring bins of one level make one bin of the next; their difference is the level's Haar
//! wavelet detail, from which the Hurst parameter is estimated. Runs of empty bins are passed on whole,
//! so a gap costs a step per level, not per bin.

use super::counts::Moments;
use units::Nanos;

/// Length of the finest bins: 2^13 ns, about 8 us.
const BASE_SHIFT: u32 = 13;
const LEVELS: usize = 64 - BASE_SHIFT as usize;

/// Arrivals in bins of one length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Length of a bin.
    pub scale: Nanos,
    /// Complete bins.
    pub bins: u64,
    /// Mean arrivals per bin.
    pub mean: f64,
    /// Index of dispersion for counts: variance over mean.
    pub dispersion: f64,
    /// Mean of the squared differences between the two halves of the bins of twice this length.
    pub(super) detail: f64,
    /// How many such differences there are.
    pub(super) details: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// The first bin of an incomplete pair.
    half: Option<u64>,
    moments: Moments,
    /// Sum of squared differences of pairs.
    detail_squares: u128,
}

#[derive(Debug)]
pub(super) struct Cascade {
    levels: Vec<Level>,
    bin: u64,
    in_bin: u64,
}

impl Default for Cascade {
    fn default() -> Self {
        Self { levels: vec![Level::default(); LEVELS], bin: 0, in_bin: 0 }
    }
}

impl Cascade {
    #[inline]
    pub(super) fn add(&mut self, since_first_ns: u64) {
        let bin = since_first_ns >> BASE_SHIFT;
        if bin != self.bin {
            self.push(self.in_bin);
            self.push_empty(bin - self.bin - 1);
            self.bin = bin;
            self.in_bin = 0;
        }
        self.in_bin += 1;
    }

    /// One complete finest bin.
    fn push(&mut self, count: u64) {
        let mut count = count;
        for level in &mut self.levels {
            level.moments.add(count);
            let Some(half) = level.half.take() else {
                level.half = Some(count);
                return;
            };
            let difference = u128::from(half.abs_diff(count));
            level.detail_squares += difference * difference;
            count += half;
        }
    }

    /// A run of empty finest bins.
    fn push_empty(&mut self, bins: u64) {
        let mut run = bins;
        // A bin that the run completes goes up before the rest of the run.
        let mut carried = None;
        for level in &mut self.levels {
            if let Some(count) = carried.take() {
                level.moments.add(count);
                match level.half.take() {
                    None => level.half = Some(count),
                    Some(half) => {
                        let difference = u128::from(half.abs_diff(count));
                        level.detail_squares += difference * difference;
                        carried = Some(half + count);
                    }
                }
            }
            if run > 0 && level.half.is_some() {
                let half = level.half.take().unwrap_or(0);
                // Only one of the two can be: a carried bin that completes a pair leaves no half.
                debug_assert!(carried.is_none());
                level.detail_squares += u128::from(half) * u128::from(half);
                carried = Some(half);
                run -= 1;
            }
            if run % 2 == 1 {
                level.half = Some(0);
            }
            run /= 2;
            if run == 0 && carried.is_none() {
                return;
            }
        }
    }

    /// `span_ns` is the time between the first and the last arrival. Levels with at least two bins.
    pub(super) fn finish(self, span_ns: u64) -> Vec<Scale> {
        let bins_total = span_ns >> BASE_SHIFT;
        let scale = |(index, level): (usize, Level)| {
            let bins = bins_total >> index;
            let details = bins / 2;
            let dispersion = level.moments.dispersion(bins)?;
            let detail = level.detail_squares as f64 / details as f64;
            let mean = level.moments.mean(bins);
            Some(Scale {
                scale: Nanos(1 << (BASE_SHIFT as usize + index)),
                bins,
                mean,
                dispersion,
                detail,
                details,
            })
        };
        self.levels.into_iter().enumerate().map_while(scale).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The definition: make all bins of a level and look at them.
        #[test]
        fn the_cascade_equals_counting_every_bin(gaps in proptest::collection::vec(prop_oneof![0u64..20_000, 0u64..3_000_000], 1..80)) {
            let mut cascade = Cascade::default();
            let (mut at, mut times) = (0, vec![0]);
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
                prop_assert!((scale.detail - detail).abs() < 1e-6 * (1.0 + detail), "{} {}", scale.detail, detail);
            }
        }
    }
}
