//! One exact percentile of every stream, without keeping all latencies.

use super::observer::Observer;
use crate::rank::nearest_rank;
use std::ops::ControlFlow;
use units::{Nanos, Percentile};

/// An observer that finds one exact percentile and the maximum of every stream. It keeps only as many of the longest
/// latencies as can still matter, twice over.
#[derive(Debug, Clone, Default)]
pub struct Percentiles {
    streams: Vec<LongestLatencies>,
}

/// The longest latencies of a stream.
#[derive(Debug, Clone, Default)]
struct LongestLatencies {
    /// The percentile is the `keep`-th longest.
    keep: usize,
    /// A latency that is not longer cannot change the percentile.
    floor: Option<u64>,
    longest: Vec<u64>,
}

impl LongestLatencies {
    #[inline]
    fn push(&mut self, latency: u64) {
        if self.floor.is_some_and(|floor| latency <= floor) {
            return;
        }
        self.longest.push(latency);
        // Selecting only when the list is twice as long as needed keeps the cost per latency constant.
        if self.longest.len() >= 2 * self.keep + 64 {
            self.floor = Some(self.select_longest());
            self.longest.truncate(self.keep);
        }
    }

    /// Returns true if latencies of at most `longest` may change the percentile.
    fn depends_on(&mut self, longest: u64) -> bool {
        if self.keep > 0 && self.longest.len() >= self.keep {
            self.floor = Some(self.select_longest());
            self.longest.truncate(self.keep);
        }
        self.keep > 0 && self.floor.is_none_or(|floor| longest > floor)
    }

    /// Brings the longest `keep` latencies to the front and returns the least of them.
    fn select_longest(&mut self) -> u64 {
        *self.longest.select_nth_unstable_by(self.keep - 1, |a, b| b.cmp(a)).1
    }
}

impl Percentiles {
    /// Prepares for a replay in which stream i will have `counts[i]` requests, and its percentile
    /// `percentiles[i]` is wanted. Memory is kept from one replay to the next.
    pub fn reset(&mut self, counts: &[usize], percentiles: &[Percentile]) {
        self.streams.resize_with(counts.len(), LongestLatencies::default);
        for ((stream, &count), &percentile) in self.streams.iter_mut().zip(counts).zip(percentiles) {
            stream.keep = if count == 0 { 0 } else { count - nearest_rank(percentile, count) + 1 };
            stream.floor = None;
            stream.longest.clear();
        }
    }

    /// The percentile of each stream; `None` without requests.
    pub fn take(&mut self) -> Vec<Option<Nanos>> {
        let streams = self.streams.iter_mut();
        streams.map(|stream| (stream.keep > 0).then(|| Nanos(stream.select_longest()))).collect()
    }

    /// Returns the percentile of each stream, after an observer has seen every latency above `budgets[i]`
    /// and some others; `None` if it is at most the budget.
    pub(super) fn take_above(&mut self, budgets: impl Iterator<Item = Nanos>) -> Vec<Option<Nanos>> {
        let mut percentiles = Vec::with_capacity(self.streams.len());
        for (stream, budget) in self.streams.iter_mut().zip(budgets) {
            let is_enough = stream.keep > 0 && stream.longest.len() >= stream.keep;
            let percentile = is_enough.then(|| Nanos(stream.select_longest()));
            percentiles.push(percentile.filter(|percentile| *percentile > budget));
        }
        percentiles
    }

    /// The longest latency of each stream; `None` without requests.
    pub fn longest(&self) -> Vec<Option<Nanos>> {
        self.streams.iter().map(|stream| stream.longest.iter().max().map(|ns| Nanos(*ns))).collect()
    }
}

impl Observer for Percentiles {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        self.streams[stream].push(latency.0);
        ControlFlow::Continue(())
    }

    fn depends_on(&mut self, stream: usize, longest: Nanos) -> bool {
        self.streams[stream].depends_on(longest.0)
    }
}
