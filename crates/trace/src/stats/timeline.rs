//! Requests and bytes over time in at most [`BINS_MAX`] bins, whose length doubles as the trace grows.

use units::Nanos;

const BINS_MAX: usize = 1024;
const FIRST_LENGTH_NS: u64 = 1000;

/// Requests and bytes in equal bins from the first arrival; the last bin may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Length of a bin.
    pub bin: Nanos,
    /// Requests in each bin.
    pub requests: Vec<u64>,
    /// Bytes in each bin.
    pub bytes: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct TimelineCollector {
    length_ns: u64,
    bins: Vec<(u64, u64)>,
}

impl Default for TimelineCollector {
    fn default() -> Self {
        Self { length_ns: FIRST_LENGTH_NS, bins: Vec::new() }
    }
}

impl TimelineCollector {
    #[inline]
    pub(super) fn add(&mut self, since_first_ns: u64, size: u64) {
        while since_first_ns / self.length_ns >= BINS_MAX as u64 {
            self.double();
        }
        let index = usize::try_from(since_first_ns / self.length_ns).expect("below BINS_MAX");
        if index >= self.bins.len() {
            self.bins.resize(index + 1, (0, 0));
        }
        let (requests, bytes) = &mut self.bins[index];
        *requests += 1;
        *bytes = bytes.saturating_add(size);
    }

    fn double(&mut self) {
        let pair = |pair: &[(u64, u64)]| {
            pair.iter().fold((0, 0), |sum: (u64, u64), bin| (sum.0 + bin.0, sum.1.saturating_add(bin.1)))
        };
        self.bins = self.bins.chunks(2).map(pair).collect();
        self.length_ns = self.length_ns.saturating_mul(2);
    }

    pub(super) fn finish(self) -> Timeline {
        let (requests, bytes) = self.bins.into_iter().unzip();
        Timeline { bin: Nanos(self.length_ns), requests, bytes }
    }
}
