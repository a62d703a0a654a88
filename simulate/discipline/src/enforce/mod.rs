//! Queueing logic of an enforcer in front of a shared device: selects the request to dispatch next, by strict
//! priority of any depth under token buckets, and bounds the outstanding requests. A pure state machine, so
//! that a storage proxy, an emulation and the simulator run the same code.
//!
//! **Order.** Every flow is first in, first out. The next request is the head of the flow with the least level; among
//! equal levels the one that has been within its limits for longest (since its arrival, if it never exceeded them), then
//! the one that arrived first. Unknown flows and demoted heads are best effort, below all levels, and among them the
//! oldest is next.
//!
//! **Limits.** A flow's limiter stands in front of its level, as in §2.2 of the thesis. It lets requests
//! pass in order, each at the first instant, not before its arrival, at which every bucket allows it, and
//! takes their tokens then. From then on the request has the flow's level, however long others make it
//! wait. So over any time t at most rate · t + burst *comes within* a limit (and the part of the largest
//! request that exceeds the burst). A flow whose arrivals keep its limits is never demoted nor delayed by
//! them. Taking tokens at dispatch instead would break the second property. A flow that was delayed by a
//! higher level and then has several requests to send at once would count as bursty, and lose its level
//! because of others.
//!
//! **Shared limits.** A flow may take tokens from the limiter of another one
//! ([`FlowRules::shares_limits_of`]), with a queue and a level of its own: the limits then hold for both
//! together. Among the heads of the flows, the limiter passes the one that it allows first; of several at
//! once, the one that arrived first. So small requests do not wait behind a large one of the other flow,
//! but enough of them keep it waiting.
//!
//! **Beyond the limits.** With [`OverLimit::Demote`] a head that has not passed is served when no other
//! request wants the device. It then takes no tokens, and the limiter turns to the next request as if that
//! one had never been there. Surplus service thus neither uses up a flow's guarantee nor adds to it. With
//! [`OverLimit::Queue`] the head waits. A request that costs more than [`FlowRules::largest`] never conforms.
//! It keeps its place in the queue, is best effort there also with [`OverLimit::Queue`], and those behind it
//! are considered once it has left. So no claim puts a flow into debt for longer than the largest request
//! takes.
//!
//! **Settlement.** The tokens that a request takes are a claim. When it is done,
//! [`settle`](Enforcer::settle) corrects them by the cost served. A request that is
//! [withdrawn](Enforcer::withdraw) or [moved](Enforcer::move_to_flow) was not served at all. Tokens come
//! back unless they would have overflowed meanwhile (`TokenBuckets` says why). So
//! over any time t at most rate · t + burst of the arrivals in it is *served* within a limit. Added to
//! that are the part of the largest claim that exceeds the burst, and the excess of actual over claimed
//! cost of the requests that wait or are outstanding together. The latter is a debt, which is paid before
//! anything else passes.
//!
//! **Bounds.** At most `bounds` is outstanding, of it at most `reads` and `writes`. Of the outstanding
//! requests, at most `lower_levels` are below the highest level among them (§2.2.1, SSDs: low priority
//! work in the device delays high priority work that is in it). The text can also be read as a limit on
//! the number of low priority requests sent *during* one high priority request; here it limits those
//! outstanding together with it. Best effort stops `reserve` requests before the device is full, so that
//! a request with a level seldom waits for best effort that is in the device already. A best-effort
//! request that costs more than `largest_best_effort` is dispatched only when nothing is outstanding. So
//! there is never more than one of them, and it lengthens the queue that a request with a level finds at
//! the device only by its own excess.
//! A request that is overdue can be [detached](Enforcer::detach): it then counts for its own workload only,
//! which never has more than `bounds` at the device, detached ones included.
//! A request that is next and does not fit waits, and nothing below or behind it passes: small requests
//! must not delay a large one for ever.
//!
//! **Cost.** With n flows, an arrival, a dispatch, a completion, a settlement, a withdrawal and a move
//! cost O(log n) comparisons and the arithmetic of a flow's buckets, once per request, regardless of the
//! number of waiting ones. If k flows share a limiter, the cost is k times that.
//! [`wake_at`](Enforcer::wake_at) takes constant time. A flow that comes within its limits with k
//! requests at once costs O(k) then. Nothing is allocated unless more requests wait than ever before.
//! [`reconfigure`](Enforcer::reconfigure) visits all waiting requests.
//!
//! Not covered: the cost of a request (device profiles), detection of sequential writes, and
//! back-pressure on clients.

mod flow_queue;
mod holds;
mod inheritance;
mod invariants;
mod limited_queues;
mod limiter;
mod outstanding;
mod policy_rules;
mod reconfigure;
mod rules;
mod settle;
#[cfg(test)]
mod tests;
mod waiting_list;

use crate::tournament::Tournament;
use limited_queues::{HeadRank, LimitedQueues};
use limiter::FlowLimiter;
pub use limiter::TokenCharge;
use outstanding::{DeviceBounds, FlowHold, OutstandingRequests};
pub use policy_rules::{DeviceUsage, LARGEST_WITH_LEVEL, OwnerBounds, ProfileBounds};
pub use rules::{
    BEST_EFFORT, DeviceAccess, DeviceOperation, EARLY_BEST_EFFORT, EnforcementRules, FlowRules,
    OutstandingBounds, OverLimit, SEQUENTIAL_GAP_MAX,
};
use std::collections::BTreeMap;
use waiting_list::QueuedRequest;
pub use waiting_list::WaitingRequest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivingRequest {
    /// Caller's identifier of the request, returned by its dispatch.
    pub id: u32,
    /// Caller's identifier of its flow.
    pub flow: u32,
    /// Operation at the device.
    pub operation: DeviceOperation,
    /// Tokens that it takes from the flow's limits, in the unit of the limits: nanoseconds of device time, or
    /// bytes.
    pub cost: u64,
    /// Size under the bounds on bytes.
    pub bytes: u64,
    /// True if the cost is an estimate, which is settled when the request is done. At most as many estimates
    /// pass a limiter before they are settled as may be outstanding, so that a wrong estimate affects later
    /// requests only until its settlement.
    pub is_estimate: bool,
}

/// A request that was dispatched. The caller returns it to [`Enforcer::complete`] when the device is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a dispatched request stays outstanding until it is returned to `complete`"]
pub struct DispatchedRequest {
    /// Caller's identifier of the request.
    pub id: u32,
    /// Caller's identifier of its flow.
    pub flow: u32,
    /// Level at which it is served: the flow's, or [`BEST_EFFORT`].
    pub level: u32,
    /// True if it is best effort and costs more than the rules assume for best effort: the bounds do not
    /// cover it.
    pub is_unexpected: bool,
    /// True if its flow's limits did not cover it when it was its turn: its buckets lacked tokens, or it costs more
    /// than the largest request of a level.
    pub is_beyond_limits: bool,
    operation: DeviceOperation,
    bytes: u64,
    charge: TokenCharge,
    /// It counts for its own workload only.
    is_detached: bool,
}

/// Queues and limiters of flows in front of one device, and the requests outstanding there. Instants are in
/// nanoseconds and must not decrease from call to call. After every arrival, completion and reconfiguration,
/// and at [`wake_at`](Self::wake_at), the caller must call [`dispatch_next`](Self::dispatch_next) until it
/// returns `None`.
#[derive(Debug, Clone)]
pub struct Enforcer {
    queues: LimitedQueues,
    /// Heads that may be dispatched, by flow.
    heads: Tournament<HeadRank>,
    /// Instants at which heads conform to their limits, by flow. Behind a shared limiter, the instant assumes
    /// that no other request passes before.
    due: Tournament<u64>,
    outstanding: OutstandingRequests,
    /// Requests at the device by flow. Entries stay, so that requests allocate nothing.
    holds: BTreeMap<u32, FlowHold>,
    /// Number of detached requests of all flows.
    detached: u32,
    bounds: DeviceBounds,
    arrivals: u64,
    /// Number of times that limits changed.
    generations: u64,
    /// Limiters of flows that are no longer known and lack tokens, by name.
    former: BTreeMap<u32, FlowLimiter>,
}

impl Enforcer {
    /// Creates an enforcer without requests, whose buckets are full at `now`.
    ///
    /// # Errors
    /// Describes the defect of the rules.
    pub fn new(now: u64, rules: &EnforcementRules) -> Result<Self, String> {
        let mut enforcer = Self {
            queues: LimitedQueues::default(),
            heads: Tournament::new(1),
            due: Tournament::new(1),
            outstanding: OutstandingRequests::new(std::iter::empty()),
            holds: BTreeMap::new(),
            detached: 0,
            bounds: DeviceBounds::new(rules),
            arrivals: 0,
            generations: 0,
            former: BTreeMap::new(),
        };
        enforcer.reconfigure(now, rules)?;
        Ok(enforcer)
    }

    /// Adds a request that arrives, and returns its handle while it waits.
    #[inline]
    pub fn arrive(&mut self, now: u64, arrival: ArrivingRequest) -> WaitingRequest {
        let ArrivingRequest { id, flow, operation, cost, bytes, is_estimate } = arrival;
        let number = 0;
        let taken = None;
        let arrived = now;
        let since = now;
        let request = QueuedRequest {
            id,
            flow,
            operation,
            cost,
            is_estimate,
            bytes,
            arrived,
            number,
            since,
            taken,
            has_lacked_tokens: false,
        };
        let waiting = self.queues.slab.insert(request);
        self.join(now, waiting);
        waiting
    }

    /// Dispatches the next request to the device, if one may be sent.
    #[inline]
    pub fn dispatch_next(&mut self, now: u64) -> Option<DispatchedRequest> {
        while let Some((due, place)) = self.due.first()
            && due <= now
        {
            self.queues.advance(now, self.queues.flows[place].limiter);
            self.update_heads(place);
        }
        let ((level, _, _), place) = self.heads.first()?;
        let &QueuedRequest { operation, bytes, cost, .. } =
            self.queues.flows[place].head(&self.queues.slab)?;
        if self.bounds.is_unexpected(level, cost) && self.outstanding.requests() > 0 {
            return None;
        }
        if !self.outstanding.admits(level, operation, bytes, &self.bounds) {
            return None;
        }
        self.dispatch_head(now, place, level)
    }

    /// Dispatches the request behind `dispatch` in its flow, if it would be served at the same level and
    /// `continues` returns true for it. Meant for a further sequential write, which a disk writes in the same
    /// pass (thesis §2.2.1). Bounds on the number of requests do not apply to it; those on bytes do.
    pub fn dispatch_continuation(
        &mut self,
        now: u64,
        dispatch: &DispatchedRequest,
        continues: impl FnOnce(u32) -> bool,
    ) -> Option<DispatchedRequest> {
        let place = self.queues.place_of(dispatch.flow);
        if self.queues.advance(now, self.queues.flows[place].limiter) {
            self.update_heads(place);
        }
        let flow = &self.queues.flows[place];
        let head = flow.head(&self.queues.slab).filter(|head| head.flow == dispatch.flow)?;
        let level = flow.head_level(head)?;
        let operation = head.operation;
        let bytes = head.bytes;
        let fits = !self.bounds.is_unexpected(level, head.cost)
            && self.outstanding.admits(level, operation, bytes, &self.bounds.without_counts());
        if level != dispatch.level || !fits || !continues(head.id) {
            return None;
        }
        self.dispatch_head(now, place, level)
    }

    /// Notes that the device is done with a request, and returns its charge, for [`settle`](Self::settle).
    ///
    /// # Panics
    /// When the request was not outstanding, as far as the counts show.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "taken by value, so that no request is completed twice"
    )]
    #[inline]
    pub fn complete(&mut self, dispatch: DispatchedRequest) -> TokenCharge {
        if !dispatch.is_detached {
            self.outstanding.remove(dispatch.level, dispatch.operation, dispatch.bytes);
        }
        self.let_go(&dispatch);
        dispatch.charge
    }

    /// Returns the earliest instant at which the passage of time alone changes the next head, because one
    /// conforms to its limits. `None` without such a head, or when nothing can be sent before a completion.
    /// With shared limiters another request may pass first; the caller then wakes too early, which is
    /// harmless.
    #[inline]
    pub fn wake_at(&self) -> Option<u64> {
        let is_full = self.outstanding.requests() >= self.bounds.requests();
        self.due.first().map(|(due, _)| due).filter(|due| !is_full && *due < u64::MAX)
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.queues.slab.len()
    }

    /// Returns the number of requests that are dispatched, not complete and not detached.
    pub fn outstanding(&self) -> u32 {
        self.outstanding.requests()
    }

    /// Appends a request that is in no list to the queue of its flow.
    #[inline]
    fn join(&mut self, now: u64, waiting: WaitingRequest) {
        let request = self.queues.slab.get_mut(waiting);
        request.number = self.arrivals;
        let flow = request.flow;
        self.arrivals += 1;
        let place = self.queues.place_of(flow);
        let limiter = self.queues.flows[place].limiter;
        let has_passed = self.queues.advance(now, limiter);
        self.queues.push(now, place, waiting);
        // The head may have changed: it is new, has passed, or may have been overtaken at a shared limiter.
        if has_passed || self.queues.flows[place].list.len == 1 || self.queues.is_shared(limiter) {
            self.update_heads(place);
        }
    }

    /// Dispatches the head of a flow at this level.
    #[inline]
    fn dispatch_head(&mut self, now: u64, place: usize, level: u32) -> Option<DispatchedRequest> {
        let head = self.queues.flows[place].list.first?;
        let request = self.queues.slab.get(head);
        let charge = self.queues.charge_of(place, request);
        let &QueuedRequest { id, flow, operation, bytes, cost, taken, has_lacked_tokens, .. } = request;
        let is_unexpected = self.bounds.is_unexpected(level, cost);
        let is_beyond_limits = has_lacked_tokens || self.queues.flows[place].is_too_large(cost);
        if taken.is_none() {
            self.queues.advance(now, self.queues.flows[place].limiter);
        }
        self.queues.take_out(now, place, head);
        self.queues.slab.remove(head);
        self.update_heads(place);
        self.outstanding.add(level, operation, bytes);
        self.hold(flow);
        let is_detached = false;
        Some(DispatchedRequest {
            id,
            flow,
            level,
            is_unexpected,
            is_beyond_limits,
            operation,
            bytes,
            charge,
            is_detached,
        })
    }

    /// Updates the heads of a flow and of those that share its limiter.
    #[inline]
    fn update_heads(&mut self, place: usize) {
        self.update_heads_behind(self.queues.flows[place].limiter);
    }

    /// Updates the heads behind a limiter after any change there: of the head, its level or its due instant.
    #[inline]
    fn update_heads_behind(&mut self, limiter: usize) {
        for place in &self.queues.limiters[limiter].members {
            self.heads.set(*place, self.queues.head_rank(*place));
            self.due.set(*place, self.queues.flows[*place].head_due());
        }
    }
}
