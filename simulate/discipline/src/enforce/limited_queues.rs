//! The queues of all flows behind their limiters.

use super::flow_queue::FlowQueue;
use super::limiter::{FlowLimiter, TakenTokens, TokenCharge};
use super::waiting_list::{QueuedRequest, WaitingRequest, WaitingSlab};

/// What orders heads, least first: the level, since when the head may be served there, and its position among arrivals.
pub(super) type HeadRank = (u32, u64, u64);

/// The waiting requests in the queues of their flows, and the limiters that let them pass.
///
/// A limiter lets requests pass when it is asked, but as of the instants at which they were due. So before
/// anything changes at a limiter, it is [advanced](Self::advance) to the present.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitedQueues {
    pub(super) slab: WaitingSlab,
    /// The names of the known flows, sorted. The name at position i is that of `flows[i]`.
    pub(super) names: Vec<u32>,
    /// The known flows, and at the end one for all others.
    pub(super) flows: Vec<FlowQueue>,
    /// The limiters of the known flows by name, and at the end one for all others.
    pub(super) limiters: Vec<FlowLimiter>,
    /// The most requests behind one limiter that have passed, whose cost was a guess and is not settled.
    pub(super) unsettled_max: u32,
}

impl LimitedQueues {
    #[inline]
    pub(super) fn place_of(&self, flow: u32) -> usize {
        self.names.binary_search(&flow).unwrap_or(self.names.len())
    }

    /// The place of the limiter of this name.
    #[inline]
    pub(super) fn limiter_of(&self, name: u32) -> Option<usize> {
        let (_, known) = self.limiters.split_last()?;
        known.binary_search_by_key(&name, |limiter| limiter.name).ok()
    }

    /// Lets all requests pass that a limiter allows by `now`, and returns whether there were any.
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

    /// What orders the head of a flow among others, if it may be served.
    #[inline]
    pub(super) fn head_rank(&self, place: usize) -> Option<HeadRank> {
        let flow = &self.flows[place];
        let head = flow.head(&self.slab)?;
        Some((flow.head_level(head)?, head.since, head.number))
    }

    /// Whether several flows take tokens from a limiter.
    #[inline]
    pub(super) fn is_shared(&self, limiter: usize) -> bool {
        self.limiters[limiter].members.len() > 1
    }

    /// Which candidate a limiter lets pass next, and when.
    #[inline]
    fn first_due(&self, limiter: usize) -> Option<((u64, u64), usize)> {
        let members = &self.limiters[limiter].members;
        // Most limiters serve one flow.
        if let [place] = members[..] {
            return Some((self.flows[place].due?, place));
        }
        members.iter().filter_map(|place| Some((self.flows[*place].due?, *place))).min()
    }

    /// The candidate of a flow passes its limiter.
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

    /// Computes anew when the candidates of a limiter are due.
    #[inline]
    pub(super) fn update_dues(&mut self, now: u64, limiter: usize) {
        let may_estimate = self.limiters[limiter].may_estimate(self.unsettled_max);
        let FlowLimiter { buckets, members, .. } = &mut self.limiters[limiter];
        for place in members {
            self.flows[*place].update_due(now, &self.slab, buckets, may_estimate);
        }
    }

    /// Adds a request at the end of its flow's queue. The limiter has been advanced to `now`, and is again.
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

    /// Computes anew when the candidate of a flow is due.
    #[inline]
    fn update_due(&mut self, now: u64, place: usize) {
        let flow = &mut self.flows[place];
        let limiter = &mut self.limiters[flow.limiter];
        let may_estimate = limiter.may_estimate(self.unsettled_max);
        flow.update_due(now, &self.slab, &mut limiter.buckets, may_estimate);
    }

    /// Adds a request at the end of its flow's queue that keeps what it took, if the flow is known. Unknown flows have no
    /// limits to pass.
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

    /// Takes a request out of its flow's queue. The limiter has been advanced to `now`. A request that has not passed it
    /// takes no tokens, and the limiter turns to the one behind it.
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

    /// What a request is charged.
    #[inline]
    pub(super) fn charge_of(&self, place: usize, request: &QueuedRequest) -> TokenCharge {
        let taken = request.taken.filter(|_| place < self.names.len());
        TokenCharge { taken, tokens: taken.map_or(0, |_| request.cost) }
    }

    /// Corrects the limiter of this place, which has been advanced to `now`, and lets it go on.
    #[inline]
    pub(super) fn settle(&mut self, now: u64, limiter: usize, taken: TakenTokens, charged: u64, served: u64) {
        self.limiters[limiter].settle(now, taken, charged, served);
        if charged != served || taken.is_estimate() {
            self.update_dues(now, limiter);
            self.advance(now, limiter);
        }
    }
}
