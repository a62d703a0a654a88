//! Queues of all flows behind their limiters.

use super::flow_queue::FlowQueue;
use super::limiter::{FlowLimiter, TakenTokens, TokenCharge};
use super::waiting_list::{QueuedRequest, WaitingRequest, WaitingSlab};

/// Rank of a head, least first: its level, the instant from which it may be served there, and its sequence
/// number among arrivals.
pub(super) type HeadRank = (u32, u64, u64);

/// Waiting requests in the queues of their flows, and the limiters that let them pass.
///
/// A limiter is evaluated lazily: requests pass when it is advanced, but as of the instants at which they
/// were due. Before any change at a limiter it must therefore be [advanced](Self::advance) to the present.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitedQueues {
    pub(super) slab: WaitingSlab,
    /// Names of the known flows, sorted. The name at index i is that of `flows[i]`.
    pub(super) names: Vec<u32>,
    /// Known flows; the last entry serves all others.
    pub(super) flows: Vec<FlowQueue>,
    /// Limiters of the known flows by name; the last entry serves all others.
    pub(super) limiters: Vec<FlowLimiter>,
    /// Maximum number of passed requests per limiter with an estimated, unsettled cost.
    pub(super) unsettled_max: u32,
}

impl LimitedQueues {
    #[inline]
    pub(super) fn place_of(&self, flow: u32) -> usize {
        self.names.binary_search(&flow).unwrap_or(self.names.len())
    }

    /// Returns the index of the limiter of this name.
    #[inline]
    pub(super) fn limiter_of(&self, name: u32) -> Option<usize> {
        let (_, known) = self.limiters.split_last()?;
        known.binary_search_by_key(&name, |limiter| limiter.name).ok()
    }

    /// Passes all requests that a limiter allows by `now`. Returns true if there were any.
    #[inline]
    pub(super) fn advance(&mut self, now: u64, limiter: usize) -> bool {
        let mut has_passed = false;
        while let Some(((due, _), place)) = self.first_due(limiter)
            && due <= now
        {
            self.pass(due, place);
            has_passed = true;
        }
        has_passed
    }

    /// Returns the rank of the head of a flow, if it may be served.
    #[inline]
    pub(super) fn head_rank(&self, place: usize) -> Option<HeadRank> {
        let flow = &self.flows[place];
        let head = flow.head(&self.slab)?;
        Some((flow.head_level(head)?, head.since, head.number))
    }

    /// Returns true if several flows take tokens from a limiter.
    #[inline]
    pub(super) fn is_shared(&self, limiter: usize) -> bool {
        self.limiters[limiter].members.len() > 1
    }

    /// Returns the due instant and the flow of the candidate that a limiter passes next.
    #[inline]
    fn first_due(&self, limiter: usize) -> Option<((u64, u64), usize)> {
        let members = &self.limiters[limiter].members;
        // Fast path: most limiters serve one flow.
        if let [place] = members[..] {
            return Some((self.flows[place].due?, place));
        }
        members.iter().filter_map(|place| Some((self.flows[*place].due?, *place))).min()
    }

    /// Passes the candidate of a flow through its limiter.
    #[inline]
    fn pass(&mut self, at: u64, place: usize) {
        let flow = &mut self.flows[place];
        let limiter = &mut self.limiters[flow.limiter];
        let Some(candidate) = flow.candidate else { return };
        let request = self.slab.get_mut(candidate);
        let has_taken = limiter.buckets.take(at, request.cost);
        debug_assert!(has_taken, "tokens are there when they are due");
        request.taken = Some(limiter.taken(request.is_estimate));
        request.since = at;
        limiter.unsettled += u32::from(request.is_estimate);
        flow.passed += 1;
        flow.candidate = self.slab.next(candidate);
        let limiter = flow.limiter;
        self.update_dues(at, limiter);
    }

    /// Recomputes the due instants of the candidates of a limiter.
    #[inline]
    pub(super) fn update_dues(&mut self, now: u64, limiter: usize) {
        let may_estimate = self.limiters[limiter].may_estimate(self.unsettled_max);
        let FlowLimiter { buckets, members, .. } = &mut self.limiters[limiter];
        for place in members {
            self.flows[*place].update_due(now, &mut self.slab, buckets, may_estimate);
        }
    }

    /// Appends a request to its flow's queue. The limiter must have been advanced to `now`; it is advanced
    /// again afterwards.
    #[inline]
    pub(super) fn push(&mut self, now: u64, place: usize, waiting: WaitingRequest) {
        let flow = &mut self.flows[place];
        flow.list.push(&mut self.slab, waiting);
        if flow.candidate.is_none() {
            flow.candidate = Some(waiting);
            let limiter = flow.limiter;
            self.update_due(now, place);
            self.advance(now, limiter);
        }
    }

    /// Recomputes the due instant of a flow's candidate.
    #[inline]
    fn update_due(&mut self, now: u64, place: usize) {
        let flow = &mut self.flows[place];
        let limiter = &mut self.limiters[flow.limiter];
        let may_estimate = limiter.may_estimate(self.unsettled_max);
        flow.update_due(now, &mut self.slab, &mut limiter.buckets, may_estimate);
    }

    /// Appends a request to its flow's queue. A request of a known flow keeps the tokens that it took;
    /// unknown flows have no limits.
    pub(super) fn put_back(&mut self, waiting: WaitingRequest) {
        let place = self.place_of(self.slab.get(waiting).flow);
        let flow = &mut self.flows[place];
        flow.list.push(&mut self.slab, waiting);
        let request = self.slab.get_mut(waiting);
        if place == self.names.len() {
            request.taken = Some(self.limiters[flow.limiter].taken(false));
        }
        if request.taken.is_some() {
            flow.passed += 1;
        } else {
            flow.candidate = flow.candidate.or(Some(waiting));
        }
    }

    /// Removes a request from its flow's queue. The limiter must have been advanced to `now`. A request that
    /// has not passed takes no tokens, and the next one becomes the candidate.
    #[inline]
    pub(super) fn take_out(&mut self, now: u64, place: usize, waiting: WaitingRequest) {
        let flow = &mut self.flows[place];
        let next = self.slab.next(waiting);
        flow.list.unlink(&mut self.slab, waiting);
        if self.slab.get(waiting).taken.is_some() {
            flow.passed -= 1;
        } else if flow.candidate == Some(waiting) {
            flow.candidate = next;
            let limiter = flow.limiter;
            self.update_due(now, place);
            self.advance(now, limiter);
        }
    }

    /// Returns the charge of a request.
    #[inline]
    pub(super) fn charge_of(&self, place: usize, request: &QueuedRequest) -> TokenCharge {
        let taken = request.taken.filter(|_| place < self.names.len());
        TokenCharge { taken, tokens: taken.map_or(0, |_| request.cost) }
    }

    /// Corrects the limiter at this index, which must have been advanced to `now`, and passes the requests
    /// that this allows.
    #[inline]
    pub(super) fn settle(&mut self, now: u64, limiter: usize, taken: TakenTokens, charged: u64, served: u64) {
        self.limiters[limiter].settle(now, taken, charged, served);
        if charged != served || taken.is_estimate() {
            self.update_dues(now, limiter);
            self.advance(now, limiter);
        }
    }
}
