//! Arrival counts in bins of one fixed length.

use super::moments::CountMoments;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Nanos, in_base_units};

/// Variation of the arrival counts in bins of one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BinnedCounts {
    /// The length of a bin.
    #[serde(rename = "scale_s", serialize_with = "in_base_units")]
    #[schemars(with = "f64")]
    pub bin_length: Nanos,
    /// Number of complete bins.
    pub bins: u64,
    /// The largest count of a bin over the mean; `None` without a complete bin.
    pub peak_to_mean: Option<f64>,
    /// The index of dispersion for counts: variance over mean, 1 for a Poisson process. `None` below two bins.
    pub dispersion: Option<f64>,
}

#[derive(Debug)]
pub(super) struct BinCounter {
    bin_length: Nanos,
    /// Bin of the latest arrival, and the arrivals in it so far.
    bin: u64,
    in_bin: u64,
    moments: CountMoments,
    peak: u64,
}

impl BinCounter {
    pub(super) fn new(bin_length: Nanos) -> Self {
        Self { bin_length, bin: 0, in_bin: 0, moments: CountMoments::default(), peak: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, since_first_ns: u64) {
        let bin = since_first_ns / self.bin_length.0;
        if bin != self.bin {
            self.complete_bin();
            self.bin = bin;
        }
        self.in_bin += 1;
    }

    fn complete_bin(&mut self) {
        self.moments.add(self.in_bin);
        self.peak = self.peak.max(self.in_bin);
        self.in_bin = 0;
    }

    /// Returns the statistics of a trace whose last arrival is `span_ns` after the first.
    pub(super) fn finish(self, span_ns: u64) -> BinnedCounts {
        // The bin of the last arrival is incomplete and was not added; all before it are complete.
        let bins = span_ns / self.bin_length.0;
        let mean = self.moments.mean(bins);
        BinnedCounts {
            bin_length: self.bin_length,
            bins,
            peak_to_mean: (bins > 0).then(|| self.peak as f64 / mean),
            dispersion: self.moments.dispersion(bins),
        }
    }
}
