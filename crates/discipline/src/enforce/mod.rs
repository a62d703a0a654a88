//! The queueing logic of an enforcer that stands before a shared device: which flow's request is dispatched next,
//! by strict priority of any depth, under token buckets, and how much is outstanding. A pure state machine:
//! a storage proxy, an emulation and the simulator run the same code.
//!
//! **Order.** Every flow is first in, first out. Of the heads the one of the least level is next; of equal levels
//! the one that has been within its limits for longest (its arrival, if it never was beyond), then the one that
//! arrived first. Unknown flows and demoted heads are best effort, below all levels: the oldest is next.
//!
//! **Limits.** A flow's limiter stands before its level, as in §2.2 of the thesis: it lets items pass in order,
//! each at the first instant, not before its arrival, at which every bucket allows it, and takes their tokens then.
//! From there on the item has the flow's level, however long others make it wait. So, over any time t, at most
//! rate · t + burst *comes within* a limit (and the part of the largest item beyond the burst); and a flow whose
//! arrivals keep its limits is never demoted nor held back. Taking tokens at dispatch instead would
//! break the second: a flow that was held up by a higher level and then has several items at once to
//! send would count as bursty, and lose its level for what others did to it.
//!
//! **Beyond the limits.** With [`Over::Demote`] a head that has not passed is served when nobody else wants the
//! device, and then takes no tokens: the limiter turns to the next item as if it had never been there. So what a
//! flow gets for nothing neither uses up its guarantee nor adds to it. With [`Over::Queue`] it waits.
//!
//! **Bounds.** At most `bounds` is outstanding, of it at most `reads` and `writes`; while something is, of what is below
//! the highest level outstanding at most `beside` (§2.2.1, SSDs: low priority work in the device delays high priority
//! work that is in it). The text can also be read as a limit on how many low priority requests are sent *during* one
//! high priority request; here it is how many are there with it. Best effort stops when `reserve` items fewer than may
//! be are outstanding: what has a level then seldom waits for best effort that is in the device already. An item that is
//! next and does not fit waits, and nobody below it or behind it passes: small items must not hold up a large one for
//! ever.
//!
//! **Cost.** With n flows, an arrival, a dispatch and a completion cost O(log n) comparisons and the arithmetic
//! of a flow's buckets, once per item; [`wake_at`](Enforcer::wake_at) costs nothing. A flow that comes
//! within its limits with k items at once costs O(k) then. Nothing is allocated unless more waits than ever before.
//! [`reconfigure`](Enforcer::reconfigure) looks at all that waits.
//!
//! Not covered: what an item costs (device profiles), which writes are sequential, back-pressure on clients.

mod flow;
mod outstanding;
mod reconfigure;
mod rules;
#[cfg(test)]
mod tests;

use crate::TokenBuckets;
use crate::tournament::Tournament;
use flow::{Flow, Queued};
use outstanding::{Outstanding, Room};
pub use rules::{BEST_EFFORT, Bounds, FlowRules, Operation, Over, Rules};
use std::collections::BTreeMap;

/// A request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The caller's name for it, returned when it is dispatched.
    pub id: u32,
    /// Whose it is.
    pub flow: u32,
    /// What it does.
    pub operation: Operation,
    /// What it takes of the flow's limits: nanoseconds of device time, bytes, whatever the limits count.
    pub cost: u64,
    /// What it counts against the bounds on bytes.
    pub bytes: u64,
}

/// A request that is dispatched, to be handed back when it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "what is dispatched stays outstanding until it is handed back to `done`"]
pub struct Dispatch {
    /// The name that it arrived with.
    pub id: u32,
    /// Whose it is.
    pub flow: u32,
    /// The level at which it is served: the flow's, or [`BEST_EFFORT`].
    pub level: u32,
    operation: Operation,
    bytes: u64,
}

/// Level, since when, position among arrivals.
type Rank = (u32, u64, u64);

/// Queues, limiters and bounds. Instants, in nanoseconds, never decrease from call to call. After every arrival,
/// completion and reconfiguration, and at [`wake_at`](Self::wake_at), ask for [`next`](Self::next) until there is none.
#[derive(Debug, Clone)]
pub struct Enforcer {
    /// Names of the known flows, sorted: position i is in `flows[i]`.
    names: Vec<u32>,
    /// The known flows, and last the one for all others.
    flows: Vec<Flow>,
    /// Heads that may be dispatched.
    heads: Tournament<Rank>,
    /// When heads that are beyond their limits come within.
    due: Tournament<u64>,
    outstanding: Outstanding,
    room: Room,
    arrivals: u64,
    waiting: usize,
    /// Limiters of flows that are no longer known and lack tokens, by name.
    former: BTreeMap<u32, TokenBuckets>,
}

impl Enforcer {
    /// Nothing waits, all buckets are full.
    ///
    /// # Errors
    /// What is wrong with the rules.
    pub fn new(now: u64, rules: &Rules) -> Result<Self, String> {
        let mut enforcer = Self {
            names: Vec::new(),
            flows: Vec::new(),
            heads: Tournament::new(1),
            due: Tournament::new(1),
            outstanding: Outstanding::new(std::iter::empty()),
            room: Room::of(rules),
            arrivals: 0,
            waiting: 0,
            former: BTreeMap::new(),
        };
        enforcer.reconfigure(now, rules)?;
        Ok(enforcer)
    }

    /// A request arrives.
    #[inline]
    pub fn arrive(&mut self, now: u64, arrival: Arrival) {
        let Arrival { id, flow, operation, cost, bytes } = arrival;
        let number = self.arrivals;
        self.arrivals += 1;
        self.waiting += 1;
        let place = self.place(flow);
        let item = Queued { id, flow, operation, cost, bytes, arrived: now, number, since: now };
        self.flows[place].push(now, item);
        if self.flows[place].queue.len() == 1 {
            self.rank(now, place);
        }
    }

    /// The request to send to the device now, if any may be sent.
    #[inline]
    pub fn next(&mut self, now: u64) -> Option<Dispatch> {
        while let Some((due, place)) = self.due.first()
            && due <= now
        {
            self.rank(now, place);
        }
        let ((level, _, _), place) = self.heads.first()?;
        let &Queued { operation, bytes, .. } = self.flows[place].queue.front()?;
        if !self.outstanding.admits(level, operation, bytes, &self.room) {
            return None;
        }
        self.take(now, place, level)
    }

    /// The request behind `dispatch` in its flow, if it would be served at the same level and `continues` says that it
    /// belongs to it: a further sequential write, which a disk writes in the same pass (thesis §2.2.1). It
    /// is sent although as many items are outstanding as may be; bounds on bytes hold.
    pub fn follow(
        &mut self,
        now: u64,
        dispatch: &Dispatch,
        continues: impl FnOnce(u32) -> bool,
    ) -> Option<Dispatch> {
        let place = self.place(dispatch.flow);
        let flow = &mut self.flows[place];
        flow.settle(now);
        let head = flow.queue.front().filter(|head| head.flow == dispatch.flow)?;
        let (level, operation, bytes) = (flow.head_level()?, head.operation, head.bytes);
        let fits = self.outstanding.admits(level, operation, bytes, &self.room.for_any_number());
        if level != dispatch.level || !fits || !continues(head.id) {
            return None;
        }
        self.take(now, place, level)
    }

    /// Takes back what waits in `flow` and is `gone`, by name. Tokens that it has taken stay taken.
    pub fn withdraw(&mut self, now: u64, flow: u32, mut gone: impl FnMut(u32) -> bool) {
        let place = self.place(flow);
        let flow = &mut self.flows[place];
        flow.settle(now);
        let (mut position, mut within, before) = (0, 0, flow.queue.len());
        flow.queue.retain(|item| {
            let stays = !gone(item.id);
            within += usize::from(stays && position < flow.within);
            position += 1;
            stays
        });
        self.waiting -= before - flow.queue.len();
        flow.within = within;
        flow.look(now);
        self.rank(now, place);
    }

    /// A request is done.
    ///
    /// # Panics
    /// When it was not outstanding and this can be told.
    // By value, so that nothing is handed back twice.
    #[allow(clippy::needless_pass_by_value)]
    #[inline]
    pub fn done(&mut self, dispatch: Dispatch) {
        self.outstanding.remove(dispatch.level, dispatch.operation, dispatch.bytes);
    }

    /// The earliest instant at which time alone changes which head is next: one comes within its limits. `None` when
    /// there is none or nothing can be sent before something is done.
    #[inline]
    pub fn wake_at(&self) -> Option<u64> {
        let full = self.outstanding.items() >= self.room.items();
        self.due.first().map(|(due, _)| due).filter(|due| !full && *due < u64::MAX)
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Requests that are dispatched and not done.
    pub fn outstanding(&self) -> u32 {
        self.outstanding.items()
    }

    /// The head of a flow goes to the device.
    #[inline]
    fn take(&mut self, now: u64, place: usize, level: u32) -> Option<Dispatch> {
        let Queued { id, flow, operation, bytes, .. } = self.flows[place].pop(now)?;
        self.waiting -= 1;
        self.rank(now, place);
        self.outstanding.add(level, operation, bytes);
        Some(Dispatch { id, flow, level, operation, bytes })
    }

    #[inline]
    fn place(&self, flow: u32) -> usize {
        self.names.binary_search(&flow).unwrap_or(self.names.len())
    }

    /// A flow has another head, or its head may have come within its limits.
    #[inline]
    fn rank(&mut self, now: u64, place: usize) {
        let flow = &mut self.flows[place];
        flow.settle(now);
        let due = flow.head_due();
        let level = flow.head_level();
        let rank = flow.queue.front().and_then(|head| Some((level?, head.since, head.number)));
        self.heads.set(place, rank);
        self.due.set(place, due);
    }
}
