//! The queue of a flow, with what its limiter has let pass.

use super::rules::{BEST_EFFORT, FlowRules, OverLimit};
use super::waiting_list::{QueuedRequest, WaitingList, WaitingRequest, WaitingSlab};
use crate::TokenBuckets;

/// A queue, first in, first out, of which the first `passed` requests have passed the limiter, which took their tokens.
/// The limiter considers the request behind them, the candidate. It may do so late, because it goes by the instants at
/// which requests arrived and tokens were there.
#[derive(Debug, Clone)]
pub(super) struct FlowQueue {
    pub(super) level: u32,
    over_limit: OverLimit,
    largest: u64,
    /// The place of its limiter.
    pub(super) limiter: usize,
    pub(super) list: WaitingList,
    pub(super) passed: usize,
    pub(super) candidate: Option<WaitingRequest>,
    /// When the candidate will come within the limits, and its number; none if there is no candidate or it never will.
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
            passed: 0,
            candidate: None,
            due: None,
        }
    }

    pub(super) fn head<'a>(&self, slab: &'a WaitingSlab) -> Option<&'a QueuedRequest> {
        self.list.first.map(|head| slab.get(head))
    }

    /// When the head will come within the limits, if it has not passed them and ever will.
    #[inline]
    pub(super) fn head_due(&self) -> Option<u64> {
        if self.passed == 0 { self.due.map(|(due, _)| due) } else { None }
    }

    /// The level at which the head, which is given, may be served now, if it may.
    #[inline]
    pub(super) fn head_level(&self, head: &QueuedRequest) -> Option<u32> {
        if self.passed > 0 {
            return Some(self.level);
        }
        let is_served = self.over_limit == OverLimit::Demote || head.cost > self.largest;
        is_served.then_some(BEST_EFFORT)
    }

    /// Computes when the limiter lets the candidate pass if no other passes before, at `now` at the earliest.
    /// `may_estimate` tells whether it lets pass a request whose cost is a guess.
    #[inline]
    pub(super) fn update_due(
        &mut self,
        now: u64,
        slab: &WaitingSlab,
        buckets: &mut TokenBuckets,
        may_estimate: bool,
    ) {
        self.due = self.candidate.and_then(|candidate| {
            let candidate = slab.get(candidate);
            if candidate.cost > self.largest || (candidate.is_estimate && !may_estimate) {
                return None;
            }
            Some((buckets.ready_at(now, candidate.cost)?, candidate.number))
        });
    }
}
