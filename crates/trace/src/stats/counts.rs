//! Arrivals per bin of one fixed length.

use units::Nanos;

/// How arrivals spread over bins of one length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtScale {
    /// Length of a bin.
    pub scale: Nanos,
    /// Complete bins.
    pub bins: u64,
    /// Most arrivals in a bin over the mean; `None` without a complete bin.
    pub peak_to_mean: Option<f64>,
    /// Index of dispersion for counts: variance over mean; 1 for Poisson. `None` below two bins.
    pub dispersion: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Counts {
    scale: Nanos,
    bin: u64,
    in_bin: u64,
    moments: Moments,
    peak: u64,
}

/// Exact sums over bins; empty bins add nothing to them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    pub(super) sum: u128,
    pub(super) squares: u128,
}

impl Moments {
    pub(super) fn add(&mut self, count: u64) {
        self.sum += u128::from(count);
        self.squares += u128::from(count) * u128::from(count);
    }

    pub(super) fn mean(&self, bins: u64) -> f64 {
        self.sum as f64 / bins as f64
    }

    /// Unbiased sample variance over mean; `None` below two bins or without arrivals.
    pub(super) fn dispersion(&self, bins: u64) -> Option<f64> {
        if bins < 2 || self.sum == 0 {
            return None;
        }
        let mean = self.mean(bins);
        // Σx² − n·mean² in one rounding of each term: counts are small integers, so nothing cancels badly.
        let deviations = (self.squares as f64 - self.sum as f64 * mean).max(0.0);
        Some(deviations / (bins - 1) as f64 / mean)
    }
}

impl Counts {
    pub(super) fn new(scale: Nanos) -> Self {
        Self { scale, bin: 0, in_bin: 0, moments: Moments::default(), peak: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, since_first_ns: u64) {
        let bin = since_first_ns / self.scale.0;
        if bin != self.bin {
            self.close();
            self.bin = bin;
        }
        self.in_bin += 1;
    }

    fn close(&mut self) {
        self.moments.add(self.in_bin);
        self.peak = self.peak.max(self.in_bin);
        self.in_bin = 0;
    }

    /// `span_ns` is the time between the first and the last arrival.
    pub(super) fn finish(self, span_ns: u64) -> AtScale {
        // The bin in progress is incomplete, and all before it are complete.
        let bins = span_ns / self.scale.0;
        let mean = self.moments.mean(bins);
        AtScale {
            scale: self.scale,
            bins,
            peak_to_mean: (bins > 0).then(|| self.peak as f64 / mean),
            dispersion: self.moments.dispersion(bins),
        }
    }
}
