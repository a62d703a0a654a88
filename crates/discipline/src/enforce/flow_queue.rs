//! The queue of a flow with its limiter.

use super::rules::{BEST_EFFORT, DeviceOperation, FlowRules, OverLimit};
use crate::TokenBuckets;
use std::collections::VecDeque;

/// A request that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedRequest {
    pub(super) id: u32,
    pub(super) flow: u32,
    pub(super) operation: DeviceOperation,
    pub(super) cost: u64,
    pub(super) bytes: u64,
    pub(super) arrived: u64,
    /// The position among all arrivals.
    pub(super) number: u64,
    /// Since when it may be served at its level: its arrival, or when it came within the limits.
    pub(super) since: u64,
}

/// A queue, first in, first out, of which the first `passed` requests have passed the limiter, which took their tokens.
/// The limiter considers the request behind them. It may do so late, because it goes by the instants at which requests
/// arrived and tokens were there.
#[derive(Debug, Clone)]
pub(super) struct FlowQueue {
    pub(super) level: u32,
    pub(super) over_limit: OverLimit,
    pub(super) buckets: TokenBuckets,
    pub(super) queue: VecDeque<QueuedRequest>,
    pub(super) passed: usize,
    /// When the first request that has not passed will come within the limits; meaningless if all have passed.
    due: u64,
}

impl FlowQueue {
    pub(super) fn new(rules: &FlowRules, buckets: TokenBuckets) -> Self {
        let (queue, passed, due) = (VecDeque::new(), 0, 0);
        Self { level: rules.level, over_limit: rules.over_limit, buckets, queue, passed, due }
    }

    /// When the head will come within the limits, if it has not passed them.
    pub(super) fn head_due(&self) -> Option<u64> {
        (self.passed == 0 && !self.queue.is_empty()).then_some(self.due)
    }

    /// The level at which the head may be served now, if it may.
    #[inline]
    pub(super) fn head_level(&self) -> Option<u32> {
        match (self.head_due(), self.over_limit) {
            (None, _) => Some(self.level),
            (Some(_), OverLimit::Demote) => Some(BEST_EFFORT),
            (Some(_), OverLimit::Queue) => None,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, now: u64, item: QueuedRequest) {
        self.queue.push_back(item);
        if self.passed + 1 == self.queue.len() {
            self.update_due(now);
            self.advance_limiter(now);
        }
    }

    /// Removes and returns the head. A request that leaves before the limits allow it takes no tokens.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<QueuedRequest> {
        let head = self.queue.pop_front()?;
        match self.passed.checked_sub(1) {
            Some(left) => self.passed = left,
            None => self.update_due(now),
        }
        Some(head)
    }

    /// Computes when the limiter lets the next request pass, at `now` at the earliest.
    #[inline]
    pub(super) fn update_due(&mut self, now: u64) {
        if let Some(item) = self.queue.get(self.passed) {
            let from = now.max(item.arrived);
            self.due = self.buckets.ready_at(from, item.cost).unwrap_or(u64::MAX);
        }
    }

    /// Lets all requests pass that the limits allow by `now`.
    #[inline]
    pub(super) fn advance_limiter(&mut self, now: u64) {
        while self.due <= now
            && let Some(item) = self.queue.get_mut(self.passed)
        {
            let taken = self.buckets.take(self.due, item.cost);
            debug_assert!(taken, "tokens are there when they are due");
            item.since = self.due;
            self.passed += 1;
            self.update_due(self.due);
        }
    }
}
