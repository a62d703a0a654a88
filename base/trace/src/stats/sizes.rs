//! The distribution of request sizes: exact while there are few different sizes, then in bins less than 0.2% wide.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use units::{Bytes, in_base_units};

/// Maximum number of different sizes that are counted exactly.
const EXACT_MAX: usize = 1 << 15;
/// Number of leading bits of a size that are kept if there are more sizes.
const KEPT_BITS: u32 = 10;
/// Number of recent sizes with a counter in front of the map: most traces alternate between a few sizes.
const RECENT: usize = 64;

/// The distribution of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeDistribution {
    /// The number of requests of each size, in ascending order of size.
    pub counts: Vec<SizeCount>,
    /// True if sizes are exact; otherwise they are rounded down by less than 0.2%.
    pub exact: bool,
}

/// Number of requests of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SizeCount {
    /// The size of these requests.
    #[serde(rename = "size_bytes", serialize_with = "in_base_units")]
    #[schemars(with = "u64")]
    pub size: Bytes,
    /// Number of requests of this size.
    pub count: u64,
}

impl SizeDistribution {
    /// Returns the smallest size that at least a share `q` (0 to 1) of all requests do not exceed.
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

    /// Returns the `n` most common sizes, the most common first; equally common ones in ascending order.
    pub fn most_common(&self, n: usize) -> Vec<SizeCount> {
        let mut counts = self.counts.clone();
        counts.sort_by_key(|entry| (std::cmp::Reverse(entry.count), entry.size));
        counts.truncate(n);
        counts
    }
}

#[derive(Debug)]
pub(super) struct SizeCounter {
    /// Recent sizes with counts not yet added to `counts`.
    recent: [(u64, u64); RECENT],
    counts: BTreeMap<u64, u64>,
    exact: bool,
}

impl Default for SizeCounter {
    fn default() -> Self {
        Self { recent: [(0, 0); RECENT], counts: BTreeMap::new(), exact: true }
    }
}

impl SizeCounter {
    #[inline]
    pub(super) fn add(&mut self, size: u64) {
        // Sizes are mostly multiples of 512, so higher bits must take part in the choice of the slot.
        let slot = usize::try_from((size ^ size >> 9 ^ size >> 12) % RECENT as u64).unwrap_or(0);
        let (recent, count) = &mut self.recent[slot];
        if *recent == size {
            *count += 1;
            return;
        }
        let (old, old_count) = std::mem::replace(&mut self.recent[slot], (size, 1));
        self.add_count(old, old_count);
    }

    fn add_count(&mut self, size: u64, count: u64) {
        if count == 0 {
            return;
        }
        let size = if self.exact { size } else { round_down(size) };
        *self.counts.entry(size).or_insert(0) += count;
        if self.exact && self.counts.len() > EXACT_MAX {
            self.exact = false;
            let exact = std::mem::take(&mut self.counts);
            for (size, count) in exact {
                *self.counts.entry(round_down(size)).or_insert(0) += count;
            }
        }
    }

    pub(super) fn finish(mut self) -> SizeDistribution {
        for (size, count) in self.recent {
            self.add_count(size, count);
        }
        let counts = self.counts.into_iter().map(|(size, count)| SizeCount { size: Bytes(size), count });
        SizeDistribution { counts: counts.collect(), exact: self.exact }
    }
}

/// Keeps only the leading bits of a size.
fn round_down(size: u64) -> u64 {
    let shift = (u64::BITS - size.leading_zeros()).saturating_sub(KEPT_BITS);
    size >> shift << shift
}
