//! The sectors of pending requests that have not completed.

use model::Op;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of ranges before a completion that are searched for one that reaches into it, and of
/// those that it cuts. Ranges that do not overlap need one and two; only requests of the same sectors at
/// the same time need more.
const PARTIAL_MAX: usize = 64;

/// Beginning of a range of sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sectors {
    pub(super) device: u64,
    pub(super) op: Op,
    pub(super) first: u64,
}

/// Ranges of sectors by their beginning. A request has several when a completion cut its range.
#[derive(Default)]
pub(super) struct SectorIndex {
    /// Sector behind each range, by its beginning and the number of its request.
    ends: BTreeMap<(Sectors, u64), u64>,
    /// Beginnings of the ranges of each request that a completion cut.
    of_cut: HashMap<u64, Vec<Sectors>>,
    /// Ranges that a completion overlaps; empty between calls.
    found: Vec<(Sectors, u64, u64)>,
}

impl SectorIndex {
    /// Adds the sectors up to `end` (exclusive) of the request with this number.
    pub(super) fn insert(&mut self, from: Sectors, end: u64, request: u64) {
        self.ends.insert((from, request), end);
    }

    /// Removes all sectors of a request that began here.
    pub(super) fn forget(&mut self, from: Sectors, request: u64) {
        self.ends.remove(&(from, request));
        for rest in self.of_cut.remove(&request).unwrap_or_default() {
            self.ends.remove(&(rest, request));
        }
    }

    /// Returns true if a range begins exactly here.
    pub(super) fn begins(&self, from: Sectors) -> bool {
        self.ends.range((from, 0)..=(from, u64::MAX)).next().is_some()
    }

    /// Returns true if a range overlaps the sectors up to `end` (exclusive).
    pub(super) fn overlaps(&self, from: Sectors, end: u64) -> bool {
        self.overlapping(from, end).next().is_some()
    }

    fn overlapping(&self, from: Sectors, end: u64) -> impl Iterator<Item = (Sectors, u64, u64)> {
        let lowest = (Sectors { first: 0, ..from }, 0);
        let behind = (Sectors { first: end, ..from }, 0);
        let mut missed = 0;
        let ranges = if lowest < behind { Some(self.ends.range(lowest..behind).rev()) } else { None };
        ranges
            .into_iter()
            .flatten()
            .take_while(move |&(_, &range_end)| {
                missed = if range_end <= from.first { missed + 1 } else { 0 };
                missed < PARTIAL_MAX
            })
            .filter(move |&(_, &range_end)| range_end > from.first)
            .map(|(&(range, request), &range_end)| (range, request, range_end))
    }

    /// Removes the sectors up to `end` (exclusive) from every request of the device and direction. Calls
    /// `completed` with the number of each request and the number of its sectors that were removed.
    pub(super) fn complete(&mut self, from: Sectors, end: u64, mut completed: impl FnMut(u64, u64)) {
        let mut found = std::mem::take(&mut self.found);
        let mut partial = 0;
        found.extend(self.overlapping(from, end).take_while(|&(range, _, range_end)| {
            partial += usize::from(range.first < from.first || end < range_end);
            partial <= PARTIAL_MAX
        }));
        for (range, request, range_end) in found.drain(..) {
            self.ends.remove(&(range, request));
            let left = (range.first < from.first).then_some((range, from.first));
            let right = (end < range_end).then_some((Sectors { first: end, ..range }, range_end));
            if let Some(ranges) = self.of_cut.get_mut(&request) {
                ranges.retain(|&other| other != range);
            }
            for (rest, rest_end) in left.into_iter().chain(right) {
                self.ends.insert((rest, request), rest_end);
                self.of_cut.entry(request).or_default().push(rest);
            }
            completed(request, range_end.min(end) - range.first.max(from.first));
        }
        self.found = found;
    }
}
