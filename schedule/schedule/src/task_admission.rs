//! Requests of tasks at a gate, as a state machine with the clock as argument. It is a [`RequestPool`] with
//! wakers, a maximum wait per request, and a maximum number of waiting requests.
//!
//! Invariants after every call:
//!
//! 1. A request is present from [`enter`](TaskAdmission::enter) until [`leave`](TaskAdmission::leave), or
//!    until it is refused. The owner of the [`TaskEntry`] removes it. So a future that is dropped while it
//!    waits, or after its turn came unnoticed, gives up its entry in the same way.
//! 2. A request that may proceed has been woken: its wakers were handed out when it was admitted or refused,
//!    or it had none.
//! 3. At most `waiting_max` requests wait for their first turn; beyond that the youngest are refused.
//! 4. No request waits for its first turn beyond its expiry, once [`wake`](TaskAdmission::wake) has been
//!    called with that time.

use crate::entry_refusal::EntryRefusal;
use crate::wake_list::TaskWakeList;
use discipline::RequestKey;
use discipline::pool::{PoolAction, PoolCounts, PoolPlace, PoolRules, PooledRequest, RequestPool};
use discipline::serve::PoolOrder;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::task::Waker;

/// A request, with a number that is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskEntry {
    request: PooledRequest,
    number: u64,
}

/// Progress of a request towards its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryProgress {
    /// Its turn has not come.
    Waiting,
    /// It may proceed, or has left.
    Admitted,
    /// It is no longer at the gate.
    Refused(EntryRefusal),
}

/// One of several futures that may wait for the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenerNumber(u64);

/// Totals since the gate was created.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskTotals {
    pub(crate) entered: u64,
    pub(crate) left: u64,
    pub(crate) given_up: u64,
}

/// State of a request besides its place in the pool.
#[derive(Debug, Default)]
struct TaskSlot {
    /// Number of the request in this slot; 0 for none.
    number: u64,
    may_go_on: bool,
    /// Order among the requests waiting for their first turn, while this one does.
    rank: Option<(RequestKey, u64)>,
    /// Expiry of the wait for its first turn.
    expires: Option<u64>,
    listeners: Vec<(ListenerNumber, Waker)>,
}

/// Requests of tasks at a gate.
#[derive(Debug)]
pub(crate) struct TaskAdmission {
    pool: RequestPool,
    waiting_max: usize,
    slots: Vec<TaskSlot>,
    /// Requests waiting for their first turn, the youngest last. Empty if `waiting_max` is unlimited.
    waiting: BTreeMap<(RequestKey, u64), TaskEntryName>,
    /// Those of them with an expiry, the earliest first.
    expiries: BTreeSet<(u64, TaskEntryName)>,
    /// Refused requests whose futures have not noticed yet, by number.
    refused: BTreeMap<u64, EntryRefusal>,
    /// Empty between transitions; kept to reuse the allocation.
    actions: Vec<PoolAction>,
    numbers: u64,
    listeners: u64,
    totals: TaskTotals,
}

/// Number and slot of a request.
type TaskEntryName = (u64, PooledRequest);

impl TaskAdmission {
    /// Creates an admission without requests; `waiting_max` may wait for their first turn.
    pub(crate) fn new(rules: PoolRules, waiting_max: usize) -> Self {
        Self {
            pool: RequestPool::new(rules),
            waiting_max,
            slots: Vec::new(),
            waiting: BTreeMap::new(),
            expiries: BTreeSet::new(),
            refused: BTreeMap::new(),
            actions: Vec::new(),
            numbers: 0,
            listeners: 0,
            totals: TaskTotals::default(),
        }
    }

    /// Adds a request, which waits for its first turn until `expires`.
    pub(crate) fn enter(
        &mut self,
        now: u64,
        key: RequestKey,
        expires: Option<u64>,
        woken: &mut TaskWakeList,
    ) -> TaskEntry {
        let request = self.pool.enter(now, key, &mut self.actions);
        self.numbers += 1;
        self.totals.entered += 1;
        let entry = TaskEntry { request, number: self.numbers };
        if self.slots.len() <= request.index() {
            self.slots.resize_with(request.index() + 1, TaskSlot::default);
        }
        let slot = &mut self.slots[request.index()];
        slot.number = entry.number;
        slot.may_go_on = false;
        self.carry_out(woken);
        if !self.slots[request.index()].may_go_on {
            self.begin_first_wait(entry, key, expires);
            self.refuse_the_youngest(now, woken);
        }
        entry
    }

    /// Returns the progress of a request. A refusal is reported once.
    pub(crate) fn progress(&mut self, entry: TaskEntry) -> EntryProgress {
        if let Some(refusal) = self.refused.remove(&entry.number) {
            return EntryProgress::Refused(refusal);
        }
        match self.slot(entry) {
            Some(slot) if !slot.may_go_on => EntryProgress::Waiting,
            _ => EntryProgress::Admitted,
        }
    }

    /// Registers a waker, woken once when the request is admitted or refused. It replaces the listener's
    /// former waker.
    pub(crate) fn listen(
        &mut self,
        entry: TaskEntry,
        listener: Option<ListenerNumber>,
        waker: &Waker,
        woken: &mut TaskWakeList,
    ) -> ListenerNumber {
        self.listeners += 1;
        let number = listener.unwrap_or(ListenerNumber(self.listeners));
        let Some(slot) = self.slot(entry) else { return number };
        match slot.listeners.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) if known.will_wake(waker) => {}
            Some((_, known)) => woken.discard(std::mem::replace(known, waker.clone())),
            None => slot.listeners.push((number, waker.clone())),
        }
        number
    }

    /// Removes a listener.
    pub(crate) fn unlisten(&mut self, entry: TaskEntry, listener: ListenerNumber, woken: &mut TaskWakeList) {
        let Some(slot) = self.slot(entry) else { return };
        if let Some(place) = slot.listeners.iter().position(|(known, _)| *known == listener) {
            woken.discard(slot.listeners.swap_remove(place).1);
        }
    }

    /// Removes a request in any state. Returns false if it had left or was refused.
    pub(crate) fn leave(&mut self, now: u64, entry: TaskEntry, woken: &mut TaskWakeList) -> bool {
        let is_told = self.refused.remove(&entry.number).is_none();
        let is_there = is_told && self.slot(entry).is_some();
        if is_there {
            self.totals.given_up += u64::from(self.end_first_wait(entry.request));
            self.remove(now, entry.request, woken);
        }
        is_there
    }

    /// Notes that an admitted request waits for something other than a CPU. Does nothing if it is blocked,
    /// has left, or has a listener that waits for its turn.
    pub(crate) fn block(&mut self, now: u64, entry: TaskEntry, woken: &mut TaskWakeList) {
        let Some(slot) = self.slot(entry) else { return };
        let wants_to_go_on = !slot.listeners.is_empty();
        let is_blocked = self.pool.place(entry.request) == Some(PoolPlace::Blocked);
        if !is_blocked && !wants_to_go_on {
            self.slots[entry.request.index()].may_go_on = false;
            self.pool.block(now, entry.request, &mut self.actions);
            self.carry_out(woken);
        }
    }

    /// Notes that a blocked request can continue. Does nothing if it is not blocked or has left.
    pub(crate) fn unblock(&mut self, now: u64, entry: TaskEntry, woken: &mut TaskWakeList) {
        let is_there = self.slot(entry).is_some();
        if is_there && self.pool.place(entry.request) == Some(PoolPlace::Blocked) {
            self.pool.unblock(now, entry.request, &mut self.actions);
            self.carry_out(woken);
        }
    }

    /// Changes the limit c; `None` is no limit.
    pub(crate) fn set_limit(&mut self, now: u64, limit: Option<NonZeroU32>, woken: &mut TaskWakeList) {
        self.pool.set_limit(now, limit, &mut self.actions);
        self.carry_out(woken);
    }

    /// Advances the time to `now`.
    pub(crate) fn wake(&mut self, now: u64, woken: &mut TaskWakeList) {
        while let Some((instant, (_, request))) = self.expiries.first().copied()
            && instant <= now
        {
            self.refuse(now, request, EntryRefusal::TimedOut, woken);
        }
        self.pool.wake(now, &mut self.actions);
        self.carry_out(woken);
    }

    /// Returns the instant of the next change by time alone.
    pub(crate) fn wake_at(&self) -> Option<u64> {
        let expiry = self.expiries.first().map(|(instant, _)| *instant);
        self.pool.wake_at().into_iter().chain(expiry).min()
    }

    pub(crate) fn counts(&self) -> (PoolCounts, TaskTotals, PoolRules) {
        (self.pool.counts(), self.totals, *self.pool.rules())
    }

    /// Returns the slot of a present request.
    fn slot(&mut self, entry: TaskEntry) -> Option<&mut TaskSlot> {
        self.slots.get_mut(entry.request.index()).filter(|slot| slot.number == entry.number)
    }

    fn begin_first_wait(&mut self, entry: TaskEntry, key: RequestKey, expires: Option<u64>) {
        let TaskEntry { request, number } = entry;
        let key = if self.pool.rules().order == PoolOrder::Age { key } else { RequestKey(0) };
        let slot = &mut self.slots[request.index()];
        slot.rank = Some((key, number));
        slot.expires = expires;
        self.expiries.extend(expires.map(|instant| (instant, (number, request))));
        if self.waiting_max != usize::MAX {
            self.waiting.insert((key, number), (number, request));
        }
    }

    /// Ends the wait for the first turn. Returns false if there was none.
    fn end_first_wait(&mut self, request: PooledRequest) -> bool {
        let slot = &mut self.slots[request.index()];
        let Some(rank) = slot.rank.take() else { return false };
        if let Some(instant) = slot.expires.take() {
            self.expiries.remove(&(instant, (slot.number, request)));
        }
        if self.waiting_max != usize::MAX {
            self.waiting.remove(&rank);
        }
        true
    }

    fn refuse_the_youngest(&mut self, now: u64, woken: &mut TaskWakeList) {
        while self.waiting.len() > self.waiting_max
            && let Some((_, (_, request))) = self.waiting.last_key_value()
        {
            self.refuse(now, *request, EntryRefusal::Overloaded, woken);
        }
    }

    fn refuse(&mut self, now: u64, request: PooledRequest, refusal: EntryRefusal, woken: &mut TaskWakeList) {
        self.end_first_wait(request);
        self.refused.insert(self.slots[request.index()].number, refusal);
        self.totals.given_up += 1;
        let listeners = self.slots[request.index()].listeners.drain(..);
        listeners.for_each(|(_, waker)| woken.wake_later(waker));
        self.remove(now, request, woken);
    }

    fn remove(&mut self, now: u64, request: PooledRequest, woken: &mut TaskWakeList) {
        let slot = &mut self.slots[request.index()];
        slot.number = 0;
        slot.listeners.drain(..).for_each(|(_, waker)| woken.discard(waker));
        self.totals.left += 1;
        self.pool.leave(now, request, &mut self.actions);
        self.carry_out(woken);
    }

    /// Records the admissions of the pool.
    fn carry_out(&mut self, woken: &mut TaskWakeList) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            let PoolAction::Admit(request) = action else { unreachable!("nobody is displaced") };
            self.end_first_wait(request);
            let slot = &mut self.slots[request.index()];
            slot.may_go_on = true;
            slot.listeners.drain(..).for_each(|(_, waker)| woken.wake_later(waker));
        }
        self.actions = actions;
    }
}
