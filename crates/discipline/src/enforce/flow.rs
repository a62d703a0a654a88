//! A flow's queue and its limiter.

use super::rules::{BEST_EFFORT, FlowRules, Operation, Over};
use crate::TokenBuckets;
use std::collections::VecDeque;

/// An item that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queued {
    pub(super) id: u32,
    pub(super) flow: u32,
    pub(super) operation: Operation,
    pub(super) cost: u64,
    pub(super) bytes: u64,
    pub(super) arrived: u64,
    /// Position among all arrivals.
    pub(super) number: u64,
    /// Since when it may be served where it is served: its arrival, then when it came within the limits.
    pub(super) since: u64,
}

/// First in, first out. The first `within` items have passed the limiter: their tokens are taken. The limiter looks
/// at the one behind them, and may do so late: it goes by the instants at which things happened.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) level: u32,
    pub(super) over: Over,
    pub(super) buckets: TokenBuckets,
    pub(super) queue: VecDeque<Queued>,
    pub(super) within: usize,
    /// When the first item that is not within the limits will be; meaningless if all are.
    due: u64,
}

impl Flow {
    pub(super) fn new(rules: &FlowRules, buckets: TokenBuckets) -> Self {
        let (queue, within, due) = (VecDeque::new(), 0, 0);
        Self { level: rules.level, over: rules.over, buckets, queue, within, due }
    }

    /// When the head comes within the limits, if it is not.
    pub(super) fn head_due(&self) -> Option<u64> {
        (self.within == 0 && !self.queue.is_empty()).then_some(self.due)
    }

    /// The level at which the head may be served now, if it may.
    #[inline]
    pub(super) fn head_level(&self) -> Option<u32> {
        match (self.head_due(), self.over) {
            (None, _) => Some(self.level),
            (Some(_), Over::Demote) => Some(BEST_EFFORT),
            (Some(_), Over::Queue) => None,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, now: u64, item: Queued) {
        self.queue.push_back(item);
        if self.within + 1 == self.queue.len() {
            self.look(now);
            self.settle(now);
        }
    }

    /// Takes the head out. What leaves before the limits allow it takes no tokens.
    #[inline]
    pub(super) fn pop(&mut self, now: u64) -> Option<Queued> {
        let head = self.queue.pop_front()?;
        match self.within.checked_sub(1) {
            Some(left) => self.within = left,
            None => self.look(now),
        }
        Some(head)
    }

    /// The limiter looks at the next item, from `now` on.
    #[inline]
    pub(super) fn look(&mut self, now: u64) {
        if let Some(item) = self.queue.get(self.within) {
            let from = now.max(item.arrived);
            self.due = self.buckets.ready(from, item.cost).unwrap_or(u64::MAX);
        }
    }

    /// Lets pass all that the limits allow by `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: u64) {
        while self.due <= now
            && let Some(item) = self.queue.get_mut(self.within)
        {
            let passed = self.buckets.take(self.due, item.cost);
            debug_assert!(passed, "tokens are there when they are due");
            item.since = self.due;
            self.within += 1;
            self.look(self.due);
        }
    }
}
