//! What is kept of the latencies of a replay.

use crate::budget::LatencyTarget;
use std::ops::ControlFlow;
use units::{Nanos, Percentile};

/// Is told the latency of every request that arrives within the window.
pub trait Observer {
    /// `Break` ends the replay.
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()>;
}

/// [`confidence::nearest_rank`] of a percentile.
///
/// # Panics
/// When there are no values.
pub fn nearest_rank(percentile: Percentile, count: usize) -> usize {
    confidence::nearest_rank(percentile.percent(), count)
}

/// One exact percentile and the maximum of every stream, without keeping its latencies: only as many of the
/// longest as can still matter, twice over.
#[derive(Debug, Clone, Default)]
pub struct Percentiles {
    streams: Vec<Tail>,
}

/// The longest latencies of a stream.
#[derive(Debug, Clone, Default)]
struct Tail {
    /// The percentile is the `keep`-th longest.
    keep: usize,
    /// A latency that is not longer cannot change the percentile.
    floor: Option<u64>,
    longest: Vec<u64>,
}

impl Tail {
    #[inline]
    fn push(&mut self, latency: u64) {
        if self.floor.is_some_and(|floor| latency <= floor) {
            return;
        }
        self.longest.push(latency);
        if self.longest.len() >= 2 * self.keep + 64 {
            self.floor = Some(self.settle());
            self.longest.truncate(self.keep);
        }
    }

    /// Brings the longest `keep` to the front; gives the least of them.
    fn settle(&mut self) -> u64 {
        *self.longest.select_nth_unstable_by(self.keep - 1, |a, b| b.cmp(a)).1
    }
}

impl Percentiles {
    /// Makes ready for a replay in which stream i will have `counts[i]` requests, and its percentile
    /// `percentiles[i]` is wanted. Memory is kept from one replay to the next.
    pub fn reset(&mut self, counts: &[usize], percentiles: &[Percentile]) {
        self.streams.resize_with(counts.len(), Tail::default);
        for ((tail, &count), &percentile) in self.streams.iter_mut().zip(counts).zip(percentiles) {
            tail.keep = if count == 0 { 0 } else { count - nearest_rank(percentile, count) + 1 };
            tail.floor = None;
            tail.longest.clear();
        }
    }

    /// The percentile of each stream; `None` without requests.
    pub fn take(&mut self) -> Vec<Option<Nanos>> {
        self.streams.iter_mut().map(|tail| (tail.keep > 0).then(|| Nanos(tail.settle()))).collect()
    }

    /// The longest latency of each stream; `None` without requests.
    pub fn longest(&self) -> Vec<Option<Nanos>> {
        self.streams.iter().map(|tail| tail.longest.iter().max().map(|ns| Nanos(*ns))).collect()
    }
}

impl Observer for Percentiles {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        self.streams[stream].push(latency.0);
        ControlFlow::Continue(())
    }
}

/// All latencies of every stream, in order of departure: for distributions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// By stream.
    pub streams: Vec<Vec<Nanos>>,
}

impl Latencies {
    /// For `streams` streams.
    pub fn new(streams: usize) -> Self {
        Self { streams: vec![Vec::new(); streams] }
    }

    /// In ascending order per stream: the `i`-th of n (from 1) is exceeded by the share 1 − i/n.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.streams.iter_mut().for_each(|stream| stream.sort_unstable());
        self
    }
}

impl Observer for Latencies {
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        self.streams[stream].push(latency);
        ControlFlow::Continue(())
    }
}

/// Counts the latencies above a budget and finds the streams that have more than their percentile allows: it
/// then exceeds the budget, whatever follows.
#[derive(Debug, Clone, Default)]
pub struct Exceedances {
    budgets: Vec<Nanos>,
    /// How many more a stream may have; `None` once it had more.
    left: Vec<Option<usize>>,
    exceeded: Vec<usize>,
    stop_at_first: bool,
}

impl Exceedances {
    /// Makes ready for a replay in which stream i will have `counts[i]` requests; it ends when the first stream
    /// exceeds its budget, if so wished.
    pub fn reset(&mut self, counts: &[usize], targets: &[LatencyTarget], stop_at_first: bool) {
        let allowed = |count, target: &LatencyTarget| match count {
            0 => 0,
            _ => count - nearest_rank(target.percentile, count),
        };
        self.left.clear();
        self.left.extend(counts.iter().zip(targets).map(|(count, target)| Some(allowed(*count, target))));
        self.budgets.clear();
        self.budgets.extend(targets.iter().map(|target| target.budget));
        self.exceeded.clear();
        self.stop_at_first = stop_at_first;
    }

    /// Streams whose percentile was found to exceed its budget, in the order in which they were found.
    pub fn exceeded(&self) -> &[usize] {
        &self.exceeded
    }

    /// One more above the budget.
    fn count(&mut self, stream: usize) -> ControlFlow<()> {
        let Some(left) = self.left[stream] else { return ControlFlow::Continue(()) };
        self.left[stream] = left.checked_sub(1);
        if left > 0 {
            return ControlFlow::Continue(());
        }
        self.exceeded.push(stream);
        if self.stop_at_first { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Observer for Exceedances {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        if latency <= self.budgets[stream] { ControlFlow::Continue(()) } else { self.count(stream) }
    }
}
