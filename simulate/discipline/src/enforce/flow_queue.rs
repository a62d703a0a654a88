//! Queue of a flow, and the requests in it that have passed the limiter.

use super::rules::{BEST_EFFORT, FlowRules, OverLimit};
use super::waiting_list::{QueuedRequest, WaitingList, WaitingRequest, WaitingSlab};
use crate::TokenBuckets;

/// A FIFO queue whose first `passed` requests have passed the limiter and taken their tokens. The request
/// behind them is the candidate. The limiter may process it late, because it works with the instants of
/// arrivals and token availability, not with the time of the call.
#[derive(Debug, Clone)]
pub(super) struct FlowQueue {
    pub(super) level: u32,
    over_limit: OverLimit,
    largest: u64,
    /// Index of its limiter.
    pub(super) limiter: usize,
    pub(super) list: WaitingList,
    /// Nothing more of it is dispatched: it holds too many places at the device.
    pub(super) is_held_back: bool,
    pub(super) passed: usize,
    pub(super) candidate: Option<WaitingRequest>,
    /// Instant at which the candidate conforms to the limits, and its sequence number; `None` without a
    /// candidate or if it never does.
    pub(super) due: Option<(u64, u64)>,
}

impl FlowQueue {
    pub(super) fn new(rules: &FlowRules, limiter: usize) -> Self {
        Self {
            level: rules.level,
            over_limit: rules.over_limit,
            largest: rules.largest.unwrap_or(u64::MAX),
            limiter,
            list: WaitingList::default(),
            is_held_back: false,
            passed: 0,
            candidate: None,
            due: None,
        }
    }

    pub(super) fn head<'a>(&self, slab: &'a WaitingSlab) -> Option<&'a QueuedRequest> {
        self.list.first.map(|head| slab.get(head))
    }

    /// Returns the instant at which the head conforms to the limits; `None` if it has passed them already or
    /// never will.
    #[inline]
    pub(super) fn head_due(&self) -> Option<u64> {
        if self.passed == 0 { self.due.map(|(due, _)| due) } else { None }
    }

    /// Returns the level at which the given head may be served now; `None` if it may not.
    #[inline]
    pub(super) fn head_level(&self, head: &QueuedRequest) -> Option<u32> {
        if self.is_held_back {
            return None;
        }
        if self.passed > 0 {
            return Some(self.level);
        }
        let is_served = self.over_limit == OverLimit::Demote || head.cost > self.largest;
        is_served.then_some(BEST_EFFORT)
    }

    /// Computes when the limiter lets the candidate pass if no other passes before, at `now` at the earliest.
    /// `may_estimate` is true if a request with an estimated cost may pass.
    #[inline]
    pub(super) fn update_due(
        &mut self,
        now: u64,
        slab: &mut WaitingSlab,
        buckets: &mut TokenBuckets,
        may_estimate: bool,
    ) {
        let (due, lacks_tokens) = self.due_of_candidate(now, slab, buckets, may_estimate);
        self.due = due;
        if lacks_tokens && let Some(candidate) = self.candidate {
            slab.get_mut(candidate).has_lacked_tokens = true;
        }
    }

    /// Returns when the limiter lets the candidate pass, and true if the buckets lack tokens for it.
    #[inline]
    pub(super) fn due_of_candidate(
        &self,
        now: u64,
        slab: &WaitingSlab,
        buckets: &mut TokenBuckets,
        may_estimate: bool,
    ) -> (Option<(u64, u64)>, bool) {
        let Some(candidate) = self.candidate else { return (None, false) };
        let candidate = slab.get(candidate);
        if candidate.cost > self.largest {
            return (None, false);
        }
        let ready = buckets.ready_at(now, candidate.cost);
        let lacks_tokens = ready.is_none_or(|ready| ready > now);
        // A wait for the settlement of other estimates says nothing about the limits.
        let has_turn = !candidate.is_estimate || may_estimate;
        (ready.filter(|_| has_turn).map(|ready| (ready, candidate.number)), lacks_tokens)
    }

    /// Returns true for a cost beyond the largest request that has a level.
    #[inline]
    pub(super) fn is_too_large(&self, cost: u64) -> bool {
        cost > self.largest
    }
}
