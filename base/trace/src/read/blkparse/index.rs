//! The sectors of pending requests that have not completed.

use model::Op;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of ranges before a completion that are searched for one that reaches into it, and of
/// those that it cuts. Ranges that do not overlap need one and two; only requests of the same sectors at
/// the same time need more.
const PARTIAL_MAX: usize = 64;

/// Maximum number of ranges of one completion that are searched for common sectors.
const SHARED_MAX: usize = 1024;

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

    /// Removes the sectors up to `end` (exclusive) from the requests of the device and direction, those that
    /// several requests have from the latest. Calls `completed` with the number of each request and the
    /// number of its sectors that were removed.
    pub(super) fn complete(&mut self, from: Sectors, end: u64, mut completed: impl FnMut(u64, u64)) {
        let mut found = std::mem::take(&mut self.found);
        let mut partial = 0;
        found.extend(self.overlapping(from, end).take_while(|&(range, _, range_end)| {
            partial += usize::from(range.first < from.first || end < range_end);
            partial <= PARTIAL_MAX
        }));
        // Found from the last to the first.
        let has_shared =
            found.len() <= SHARED_MAX && found.windows(2).any(|pair| pair[1].2 > pair[0].0.first);
        let mut left = vec![(from.first, end)];
        if has_shared {
            found.sort_unstable_by_key(|&(_, request, _)| Reverse(request));
        }
        for (range, request, range_end) in found.drain(..) {
            let reach = (range.first, range_end);
            let cuts: Vec<(u64, u64)> =
                left.iter().map(|&part| overlap(part, reach)).filter(|&(low, high)| low < high).collect();
            if has_shared {
                left = left.iter().flat_map(|&part| without(part, reach)).collect();
            }
            self.cut(range, request, range_end, &cuts);
            completed(request, cuts.iter().map(|&(low, high)| high - low).sum());
        }
        self.found = found;
    }

    /// Removes parts of a range, in order.
    fn cut(&mut self, range: Sectors, request: u64, range_end: u64, cuts: &[(u64, u64)]) {
        if cuts.is_empty() {
            return;
        }
        self.ends.remove(&(range, request));
        if let Some(ranges) = self.of_cut.get_mut(&request) {
            ranges.retain(|&other| other != range);
        }
        let mut first = range.first;
        for &(low, high) in cuts.iter().chain(&[(range_end, range_end)]) {
            if first < low {
                let rest = Sectors { first, ..range };
                self.ends.insert((rest, request), low);
                self.of_cut.entry(request).or_default().push(rest);
            }
            first = high;
        }
    }
}

/// Returns the sectors that both ranges have, perhaps none.
fn overlap(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.max(b.0), a.1.min(b.1))
}

/// Returns the parts of `a` outside `b`.
fn without(a: (u64, u64), b: (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    [(a.0, a.1.min(b.0)), (a.0.max(b.1), a.1)].into_iter().filter(|&(low, high)| low < high)
}
