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
//! **Beyond the limits.** With [`OverLimit::Demote`] a head that has not passed is served when nobody else wants the
//! device, and then takes no tokens: the limiter turns to the next request as if that one had never been there. So what a
//! flow gets for nothing neither uses up its guarantee nor adds to it. With [`OverLimit::Queue`] it waits.
//!
//! **Bounds.** At most `bounds` is outstanding, of it at most `reads` and `writes`. While something is outstanding, at most
//! `lower_levels` of what is below its highest level is (§2.2.1, SSDs: low priority work in the device delays high
//! priority work that is in it). The text can also be read as a limit on how many low priority requests are sent *during*
//! one high priority request; here it is how many are outstanding together with it. Best effort stops `reserve` requests
//! before the device is full, so that a request with a level seldom waits for best effort that is in the device already.
//! A request that is next and does not fit waits, and nothing below or behind it passes: small requests must not delay a
//! large one for ever.
//!
//! **Cost.** With n flows, an arrival, a dispatch and a completion cost O(log n) comparisons and the arithmetic of a flow's
//! buckets, once per request; [`wake_at`](Enforcer::wake_at) takes constant time. A flow that comes within its limits with
//! k requests at once costs O(k) then. Nothing is allocated unless more requests wait than ever before.
//! [`reconfigure`](Enforcer::reconfigure) looks at all waiting requests.
//!
//! What a request costs (device profiles), which writes are sequential, and back-pressure on clients are not covered.

mod flow_queue;
mod outstanding;
mod reconfigure;
mod rules;
#[cfg(test)]
mod tests;

use crate::TokenBuckets;
use crate::tournament::Tournament;
use flow_queue::{FlowQueue, QueuedRequest};
use outstanding::{DeviceBounds, OutstandingRequests};
pub use rules::{BEST_EFFORT, DeviceOperation, EnforcementRules, FlowRules, OutstandingBounds, OverLimit};
use std::collections::BTreeMap;

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
    operation: DeviceOperation,
    bytes: u64,
}

/// What orders heads, least first: the level, since when the head may be served there, and its position among arrivals.
type HeadRank = (u32, u64, u64);

/// The queues and limiters of flows in front of one device, and what is outstanding there. Instants are in nanoseconds
/// and must not decrease from call to call. After every arrival, completion and reconfiguration, and at
/// [`wake_at`](Self::wake_at), the caller asks for [`dispatch_next`](Self::dispatch_next) until there is none.
#[derive(Debug, Clone)]
pub struct Enforcer {
    /// The names of the known flows, sorted. The name at position i is that of `flows[i]`.
    names: Vec<u32>,
    /// The known flows, and at the end one for all others.
    flows: Vec<FlowQueue>,
    /// The heads that may be dispatched, by flow.
    heads: Tournament<HeadRank>,
    /// The instants at which heads come within their limits, by flow.
    due: Tournament<u64>,
    outstanding: OutstandingRequests,
    bounds: DeviceBounds,
    arrivals: u64,
    waiting: usize,
    /// The limiters of flows that are no longer known and lack tokens, by name.
    former: BTreeMap<u32, TokenBuckets>,
}

impl Enforcer {
    /// An enforcer without requests, whose buckets are full at `now`.
    ///
    /// # Errors
    /// What is wrong with the rules.
    pub fn new(now: u64, rules: &EnforcementRules) -> Result<Self, String> {
        let mut enforcer = Self {
            names: Vec::new(),
            flows: Vec::new(),
            heads: Tournament::new(1),
            due: Tournament::new(1),
            outstanding: OutstandingRequests::new(std::iter::empty()),
            bounds: DeviceBounds::new(rules),
            arrivals: 0,
            waiting: 0,
            former: BTreeMap::new(),
        };
        enforcer.reconfigure(now, rules)?;
        Ok(enforcer)
    }

    /// Adds a request that arrives.
    #[inline]
    pub fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        let ArrivingRequest { id, flow, operation, cost, bytes } = arrival;
        let number = self.arrivals;
        self.arrivals += 1;
        self.waiting += 1;
        let place = self.place_of(flow);
        let item = QueuedRequest { id, flow, operation, cost, bytes, arrived: now, number, since: now };
        self.flows[place].push(now, item);
        if self.flows[place].queue.len() == 1 {
            self.update_head(now, place);
        }
    }

    /// Dispatches the request that is to be sent to the device now, if any may be sent.
    #[inline]
    pub fn dispatch_next(&mut self, now: u64) -> Option<DispatchedRequest> {
        while let Some((due, place)) = self.due.first()
            && due <= now
        {
            self.update_head(now, place);
        }
        let ((level, _, _), place) = self.heads.first()?;
        let &QueuedRequest { operation, bytes, .. } = self.flows[place].queue.front()?;
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
        let place = self.place_of(dispatch.flow);
        let flow = &mut self.flows[place];
        flow.advance_limiter(now);
        let head = flow.queue.front().filter(|head| head.flow == dispatch.flow)?;
        let (level, operation, bytes) = (flow.head_level()?, head.operation, head.bytes);
        let fits = self.outstanding.admits(level, operation, bytes, &self.bounds.without_counts());
        if level != dispatch.level || !fits || !continues(head.id) {
            return None;
        }
        self.dispatch_head(now, place, level)
    }

    /// Removes the waiting requests of a flow that are withdrawn, by name. Tokens that they have taken stay taken.
    pub fn withdraw(&mut self, now: u64, flow: u32, mut is_withdrawn: impl FnMut(u32) -> bool) {
        let place = self.place_of(flow);
        let flow = &mut self.flows[place];
        flow.advance_limiter(now);
        let (mut position, mut passed, before) = (0, 0, flow.queue.len());
        flow.queue.retain(|item| {
            let stays = !is_withdrawn(item.id);
            passed += usize::from(stays && position < flow.passed);
            position += 1;
            stays
        });
        self.waiting -= before - flow.queue.len();
        flow.passed = passed;
        flow.update_due(now);
        self.update_head(now, place);
    }

    /// Notes that the device is done with a request.
    ///
    /// # Panics
    /// When the request was not outstanding, as far as that can be known.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "taken by value, so that no request is completed twice"
    )]
    #[inline]
    pub fn complete(&mut self, dispatch: DispatchedRequest) {
        self.outstanding.remove(dispatch.level, dispatch.operation, dispatch.bytes);
    }

    /// The earliest instant at which time alone changes which head is next, because one comes within its limits. `None`
    /// when there is none, or when nothing can be sent before a request is complete.
    #[inline]
    pub fn wake_at(&self) -> Option<u64> {
        let is_full = self.outstanding.requests() >= self.bounds.requests();
        self.due.first().map(|(due, _)| due).filter(|due| !is_full && *due < u64::MAX)
    }

    /// The number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The number of requests that are dispatched and not complete.
    pub fn outstanding(&self) -> u32 {
        self.outstanding.requests()
    }

    /// Dispatches the head of a flow at this level.
    #[inline]
    fn dispatch_head(&mut self, now: u64, place: usize, level: u32) -> Option<DispatchedRequest> {
        let QueuedRequest { id, flow, operation, bytes, .. } = self.flows[place].pop(now)?;
        self.waiting -= 1;
        self.update_head(now, place);
        self.outstanding.add(level, operation, bytes);
        Some(DispatchedRequest { id, flow, level, operation, bytes })
    }

    #[inline]
    fn place_of(&self, flow: u32) -> usize {
        self.names.binary_search(&flow).unwrap_or(self.names.len())
    }

    /// Updates what is known of the head of a flow, which may be another one or have come within its limits.
    #[inline]
    fn update_head(&mut self, now: u64, place: usize) {
        let flow = &mut self.flows[place];
        flow.advance_limiter(now);
        let due = flow.head_due();
        let level = flow.head_level();
        let rank = flow.queue.front().and_then(|head| Some((level?, head.since, head.number)));
        self.heads.set(place, rank);
        self.due.set(place, due);
    }
}
