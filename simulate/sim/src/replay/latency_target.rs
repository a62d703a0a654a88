//! Percentiles with a limit, and the observer that finds out which are exceeded.

use super::observer::Observer;
use crate::rank::nearest_rank;
use std::ops::ControlFlow;
use units::{Nanos, Percentile};

/// A percentile of the latency of a stream over one alignment, and the latency that it may not exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyTarget {
    /// The percentile of the latencies that has a limit.
    pub percentile: Percentile,
    /// The largest latency that this percentile may have.
    pub budget: Nanos,
}

/// An observer that counts the latencies above a budget and finds the streams that have more of them than
/// their percentile allows: whatever follows, their percentile exceeds the budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exceedances {
    budgets: Vec<Nanos>,
    /// Number of further latencies above its budget that a stream may have; `None` once it had more.
    left: Vec<Option<usize>>,
    exceeded: Vec<usize>,
    stop_at_first: bool,
}

impl Exceedances {
    /// Prepares for a replay in which stream i will have `counts[i]` requests; with `stop_at_first` it ends when the
    /// first stream exceeds its budget.
    pub(crate) fn reset(&mut self, counts: &[usize], targets: &[LatencyTarget], stop_at_first: bool) {
        self.left.clear();
        let allowed = counts.iter().zip(targets).map(|(count, target)| Some(target.allowed_above(*count)));
        self.left.extend(allowed);
        self.budgets.clear();
        self.budgets.extend(targets.iter().map(|target| target.budget));
        self.exceeded.clear();
        self.stop_at_first = stop_at_first;
    }

    /// Returns the streams whose percentile was found to exceed its budget, in the order of discovery.
    pub(crate) fn exceeded(&self) -> &[usize] {
        &self.exceeded
    }

    /// Counts a latency above the budget of a stream.
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

impl LatencyTarget {
    /// Returns the number of `count` latencies that may be above the budget while the percentile is not.
    pub(super) fn allowed_above(&self, count: usize) -> usize {
        if count == 0 { 0 } else { count - nearest_rank(self.percentile, count) }
    }
}

impl Observer for Exceedances {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        if latency <= self.budgets[stream] { ControlFlow::Continue(()) } else { self.count(stream) }
    }

    fn depends_on(&mut self, stream: usize, longest: Nanos) -> bool {
        self.left[stream].is_some() && longest > self.budgets[stream]
    }
}
