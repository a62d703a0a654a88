//! How large requests are: exactly while there are few different sizes, then in bins below 0.2% wide.

use std::collections::BTreeMap;
use units::Bytes;

/// Different sizes that are kept apart.
const EXACT_MAX: usize = 1 << 15;
/// Leading bits that remain of a size when there are more.
const KEPT_BITS: u32 = 10;
/// Recent sizes whose counts wait to be added: most traces alternate between a few.
const RECENT: usize = 64;

/// The distribution of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    /// Size and number of requests, ascending by size.
    pub counts: Vec<SizeCount>,
    /// Whether sizes are exact; otherwise they are rounded down by less than 0.2%.
    pub exact: bool,
}

/// How many requests have one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeCount {
    /// The size.
    pub size: Bytes,
    /// Requests of it.
    pub count: u64,
}

impl Sizes {
    /// The smallest size that at least the share `q` (0 to 1) of requests do not exceed.
    pub fn quantile(&self, q: f64) -> Bytes {
        let total: u64 = self.counts.iter().map(|entry| entry.count).sum();
        let mut below = 0;
        for entry in &self.counts {
            below += entry.count;
            if below as f64 >= q * total as f64 {
                return entry.size;
            }
        }
        self.counts.last().map_or(Bytes(0), |entry| entry.size)
    }

    /// The `n` sizes with most requests, most first; ties by size.
    pub fn most_common(&self, n: usize) -> Vec<SizeCount> {
        let mut counts = self.counts.clone();
        counts.sort_by_key(|entry| (std::cmp::Reverse(entry.count), entry.size));
        counts.truncate(n);
        counts
    }
}

#[derive(Debug)]
pub(super) struct SizeCollector {
    recent: [(u64, u64); RECENT],
    counts: BTreeMap<u64, u64>,
    exact: bool,
}

impl Default for SizeCollector {
    fn default() -> Self {
        Self { recent: [(0, 0); RECENT], counts: BTreeMap::new(), exact: true }
    }
}

impl SizeCollector {
    #[inline]
    pub(super) fn add(&mut self, size: u64) {
        // Sizes are mostly multiples of 512: fold the higher bits in.
        let slot = usize::try_from((size ^ size >> 9 ^ size >> 12) % RECENT as u64).unwrap_or(0);
        let (recent, count) = &mut self.recent[slot];
        if *recent == size {
            *count += 1;
            return;
        }
        let (old, waiting) = std::mem::replace(&mut self.recent[slot], (size, 1));
        self.count(old, waiting);
    }

    fn count(&mut self, size: u64, count: u64) {
        if count == 0 {
            return;
        }
        let size = if self.exact { size } else { coarse(size) };
        *self.counts.entry(size).or_insert(0) += count;
        if self.exact && self.counts.len() > EXACT_MAX {
            self.exact = false;
            let exact = std::mem::take(&mut self.counts);
            for (size, count) in exact {
                *self.counts.entry(coarse(size)).or_insert(0) += count;
            }
        }
    }

    pub(super) fn finish(mut self) -> Sizes {
        for (size, count) in self.recent {
            self.count(size, count);
        }
        let entry = |(size, count)| SizeCount { size: Bytes(size), count };
        Sizes { counts: self.counts.into_iter().map(entry).collect(), exact: self.exact }
    }
}

/// `size` with only its leading bits.
fn coarse(size: u64) -> u64 {
    let shift = (u64::BITS - size.leading_zeros()).saturating_sub(KEPT_BITS);
    size >> shift << shift
}
