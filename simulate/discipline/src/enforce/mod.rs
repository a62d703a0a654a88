//! The queueing logic of an enforcer in front of a shared device: which flow's request is dispatched next, by strict
//! priority of any depth and under token buckets, and how much is outstanding. It is a pure state machine, so that a
//! storage proxy, an emulation and the simulator run the same code.
//!
//! **Order.** Every flow is first in, first out. The next request is the head of the flow with the least level; among
//! equal levels the one that has been within its limits for longest (since its arrival, if it never exceeded them), then
//! the one that arrived first. Unknown flows and demoted heads are best effort, below all levels, and among them the
//! oldest is next.
//!
//! **Limits.** A flow's limiter stands in front of its level, as in §2.2 of the thesis. It lets requests pass in order,
//! each at the first instant, not before its arrival, at which every bucket allows it, and takes their tokens then. From
//! then on the request has the flow's level, however long others make it wait. So over any time t at most rate · t +
//! burst *comes within* a limit (and the part of the largest request that exceeds the burst), and a flow whose arrivals
//! keep its limits is never demoted nor delayed by them. Taking tokens at dispatch instead would break the second
//! property: a flow that was delayed by a higher level and then has several requests to send at once would count as
//! bursty, and lose its level for what others did to it.
//!
//! **Shared limits.** A flow may take tokens from the limiter of another one ([`FlowRules::shares_limits_of`]), with a line
//! and a level of its own: the limits then hold for both together. Of the requests that are the next of their flows, the
//! limiter lets pass the one that it allows first, and of several at once the one that arrived first. So small requests
//! do not wait behind a large one of the other flow, and enough of them keep it waiting.
//!
//! **Beyond the limits.** With [`OverLimit::Demote`] a head that has not passed is served when nobody else wants the
//! device, and then takes no tokens: the limiter turns to the next request as if that one had never been there. So what a
//! flow gets for nothing neither uses up its guarantee nor adds to it. With [`OverLimit::Queue`] it waits. A request that
//! costs more than [`FlowRules::largest`] is beyond the limits whatever they are: it keeps its place in the line, is best
//! effort there also with [`OverLimit::Queue`], and those behind it are considered when it has left. So no claim
//! puts a flow into debt for longer than the largest request takes.
//!
//! **Settlement.** The tokens that a request takes are a claim. When it is done, [`settle`](Enforcer::settle) corrects
//! them by what was served; a request that is [withdrawn](Enforcer::withdraw) or [moved](Enforcer::move_to_flow) was
//! not served at all. Tokens come back unless they would have overflowed meanwhile ([`TokenBuckets`](crate::TokenBuckets)
//! says why). So over any time t at most rate · t + burst is *served* within a limit of what arrived in it, and the part of
//! the largest claim that exceeds the burst, and what those requests that wait or are outstanding together turn out to cost
//! more than they claimed. The latter is a debt, which is paid before anything else passes.
//!
//! **Bounds.** At most `bounds` is outstanding, of it at most `reads` and `writes`. While something is outstanding, at most
//! `lower_levels` of what is below its highest level is (§2.2.1, SSDs: low priority work in the device delays high
//! priority work that is in it). The text can also be read as a limit on how many low priority requests are sent *during*
//! one high priority request; here it is how many are outstanding together with it. Best effort stops `reserve` requests
//! before the device is full, so that a request with a level seldom waits for best effort that is in the device already.
//! A best-effort request that costs more than `largest_best_effort` is dispatched when nothing is outstanding: so there is
//! never more than one of them, and what a request with a level finds at the device grows by no more than what one is
//! larger.
//! A request that is next and does not fit waits, and nothing below or behind it passes: small requests must not delay a
//! large one for ever.
//!
//! **Cost.** With n flows, an arrival, a dispatch, a completion, a settlement, a withdrawal and a move cost O(log n)
//! comparisons and the arithmetic of a flow's buckets, once per request, however many wait; where k flows share a limiter,
//! k times that. [`wake_at`](Enforcer::wake_at) takes constant time. A flow that comes within its limits with k requests at
//! once costs O(k) then. Nothing is allocated unless more requests wait than ever before.
//! [`reconfigure`](Enforcer::reconfigure) looks at all waiting requests.
//!
//! What a request costs (device profiles), which writes are sequential, and back-pressure on clients are not covered.

mod flow_queue;
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
use outstanding::{DeviceBounds, OutstandingRequests};
pub use policy_rules::{DeviceUsage, LARGEST_WITH_LEVEL, OwnerBounds, ProfileBounds};
pub use rules::{
    BEST_EFFORT, DeviceAccess, DeviceOperation, EARLY_BEST_EFFORT, EnforcementRules, FlowRules,
    OutstandingBounds, OverLimit, SEQUENTIAL_GAP_MAX,
};
use std::collections::BTreeMap;
use waiting_list::QueuedRequest;
pub use waiting_list::WaitingRequest;

/// A request as it arrives at an enforcer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivingRequest {
    /// The caller's name for the request, which its dispatch returns.
    pub id: u32,
    /// The caller's name for the flow that it belongs to.
    pub flow: u32,
    /// What it does at the device.
    pub operation: DeviceOperation,
    /// The tokens that it takes from the flow's limits, in whatever unit they count: nanoseconds of device time, or bytes.
    pub cost: u64,
    /// What it counts under the bounds on bytes.
    pub bytes: u64,
    /// Whether the cost is a guess, which is settled when the request is done. No more of these pass a limiter before
    /// they are settled than may be outstanding: so that what is behind a wrong guess is judged by what comes of it.
    pub is_estimate: bool,
}

/// A request that was dispatched. The caller returns it to [`Enforcer::complete`] when the device is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a dispatched request stays outstanding until it is returned to `complete`"]
pub struct DispatchedRequest {
    /// The caller's name for the request.
    pub id: u32,
    /// The caller's name for the flow that it belongs to.
    pub flow: u32,
    /// The level at which it is served: the flow's, or [`BEST_EFFORT`].
    pub level: u32,
    /// Whether it is best effort and costs more than the rules expect of best effort: bounds do not count it.
    pub is_unexpected: bool,
    operation: DeviceOperation,
    bytes: u64,
    charge: TokenCharge,
}

/// The queues and limiters of flows in front of one device, and what is outstanding there. Instants are in nanoseconds
/// and must not decrease from call to call. After every arrival, completion and reconfiguration, and at
/// [`wake_at`](Self::wake_at), the caller asks for [`dispatch_next`](Self::dispatch_next) until there is none.
#[derive(Debug, Clone)]
pub struct Enforcer {
    queues: LimitedQueues,
    /// The heads that may be dispatched, by flow.
    heads: Tournament<HeadRank>,
    /// The instants at which heads come within their limits, by flow. Where flows share a limiter it is the instant at
    /// which a head would, if no other passed before.
    due: Tournament<u64>,
    outstanding: OutstandingRequests,
    bounds: DeviceBounds,
    arrivals: u64,
    /// How often limits were set that are not those before.
    generations: u64,
    /// The limiters of flows that are no longer known and lack tokens, by name.
    former: BTreeMap<u32, FlowLimiter>,
}

impl Enforcer {
    /// An enforcer without requests, whose buckets are full at `now`.
    ///
    /// # Errors
    /// What is wrong with the rules.
    pub fn new(now: u64, rules: &EnforcementRules) -> Result<Self, String> {
        let mut enforcer = Self {
            queues: LimitedQueues::default(),
            heads: Tournament::new(1),
            due: Tournament::new(1),
            outstanding: OutstandingRequests::new(std::iter::empty()),
            bounds: DeviceBounds::new(rules),
            arrivals: 0,
            generations: 0,
            former: BTreeMap::new(),
        };
        enforcer.reconfigure(now, rules)?;
        Ok(enforcer)
    }

    /// Adds a request that arrives, and returns what to call it by while it waits.
    #[inline]
    pub fn arrive(&mut self, now: u64, arrival: ArrivingRequest) -> WaitingRequest {
        let ArrivingRequest { id, flow, operation, cost, bytes, is_estimate } = arrival;
        let number = 0;
        let taken = None;
        let arrived = now;
        let since = now;
        let request =
            QueuedRequest { id, flow, operation, cost, is_estimate, bytes, arrived, number, since, taken };
        let waiting = self.queues.slab.insert(request);
        self.join(now, waiting);
        waiting
    }

    /// Dispatches the request that is to be sent to the device now, if any may be sent.
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

    /// Dispatches the request behind `dispatch` in its flow, if it would be served at the same level and `continues` says
    /// that it belongs to it: a further sequential write, which a disk writes in the same pass (thesis §2.2.1). Bounds on
    /// the number of requests do not apply to it; those on bytes do.
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

    /// Notes that the device is done with a request, and returns what it was charged, for [`settle`](Self::settle).
    ///
    /// # Panics
    /// When the request was not outstanding, as far as that can be known.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "taken by value, so that no request is completed twice"
    )]
    #[inline]
    pub fn complete(&mut self, dispatch: DispatchedRequest) -> TokenCharge {
        self.outstanding.remove(dispatch.level, dispatch.operation, dispatch.bytes);
        dispatch.charge
    }

    /// The earliest instant at which time alone changes which head is next, because one comes within its limits. `None`
    /// when there is none, or when nothing can be sent before a request is complete. Where flows share a limiter, another
    /// request may pass first, and then the instant was too early.
    #[inline]
    pub fn wake_at(&self) -> Option<u64> {
        let is_full = self.outstanding.requests() >= self.bounds.requests();
        self.due.first().map(|(due, _)| due).filter(|due| !is_full && *due < u64::MAX)
    }

    /// The number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.queues.slab.len()
    }

    /// The number of requests that are dispatched and not complete.
    pub fn outstanding(&self) -> u32 {
        self.outstanding.requests()
    }

    /// Puts a request that is in no list at the end of the line of its flow.
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
        // A head that others may have overtaken at its limiter, or that has passed it, or is new.
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
        let &QueuedRequest { id, flow, operation, bytes, cost, taken, .. } = request;
        let is_unexpected = self.bounds.is_unexpected(level, cost);
        if taken.is_none() {
            self.queues.advance(now, self.queues.flows[place].limiter);
        }
        self.queues.take_out(now, place, head);
        self.queues.slab.remove(head);
        self.update_heads(place);
        self.outstanding.add(level, operation, bytes);
        Some(DispatchedRequest { id, flow, level, is_unexpected, operation, bytes, charge })
    }

    /// Updates what is known of the heads of a flow and of those that share its limiter.
    #[inline]
    fn update_heads(&mut self, place: usize) {
        self.update_heads_behind(self.queues.flows[place].limiter);
    }

    /// Updates what is known of the heads behind a limiter: they may be others, have come within their limits, or come
    /// there at another instant.
    #[inline]
    fn update_heads_behind(&mut self, limiter: usize) {
        for place in &self.queues.limiters[limiter].members {
            self.heads.set(*place, self.queues.head_rank(*place));
            self.due.set(*place, self.queues.flows[*place].head_due());
        }
    }
}
