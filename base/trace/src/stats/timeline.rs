//! Requests and bytes over time, in at most [`BINS_MAX`] bins whose length doubles as the trace grows.

use units::Nanos;

const BINS_MAX: usize = 1024;
const FIRST_LENGTH_NS: u64 = 1000;

/// Requests and bytes over time, in bins of equal length from the first arrival; the last one may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalTimeline {
    /// The length of a bin.
    pub bin_length: Nanos,
    /// The number of requests in each bin.
    pub requests: Vec<u64>,
    /// The number of bytes in each bin.
    pub bytes: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct TimelineCounter {
    bin_length_ns: u64,
    /// Requests and bytes of each bin.
    bins: Vec<(u64, u64)>,
}

impl Default for TimelineCounter {
    fn default() -> Self {
        Self { bin_length_ns: FIRST_LENGTH_NS, bins: Vec::new() }
    }
}

impl TimelineCounter {
    #[inline]
    pub(super) fn add(&mut self, since_first_ns: u64, size: u64) {
        while since_first_ns / self.bin_length_ns >= BINS_MAX as u64 {
            self.double_length();
        }
        let index = usize::try_from(since_first_ns / self.bin_length_ns).expect("below BINS_MAX");
        if index >= self.bins.len() {
            self.bins.resize(index + 1, (0, 0));
        }
        let (requests, bytes) = &mut self.bins[index];
        *requests += 1;
        *bytes = bytes.saturating_add(size);
    }

    /// Merges neighbouring bins pairwise into bins of twice the length.
    fn double_length(&mut self) {
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| match pair {
                [a, b] => (a.0 + b.0, a.1.saturating_add(b.1)),
                _ => pair[0],
            })
            .collect();
        self.bin_length_ns = self.bin_length_ns.saturating_mul(2);
    }

    pub(super) fn finish(self) -> ArrivalTimeline {
        let (requests, bytes) = self.bins.into_iter().unzip();
        ArrivalTimeline { bin_length: Nanos(self.bin_length_ns), requests, bytes }
    }
}
