//! Which requests of a service may run: at most c, the oldest first. Oldest Request First of TailClipper (§3.2, §4,
//! Algorithm 1) for a service whose threads the kernel schedules, as a state machine with the clock as argument.
//!
//! A request [enters](RequestPool::enter) with a [`RequestKey`], the time of its entry into the system as a whole or its
//! deadline; smaller keys go first, and of equal ones the first that came. *Older* below is: of a smaller key. The pool
//! answers with [`PoolAction`]s. A request is in one [`PoolPlace`]:
//!
//! - *waiting*: its thread does not run. After a block it may be waiting again.
//! - *serving*: it counts towards c. Threads of these share the CPUs by the kernel's own slices, which take the place of
//!   the paper's round-robin queue.
//! - *demoted*: it was admitted, and then displaced by an older one; its thread runs only when nobody else does. Only
//!   [`Displacement::OfYoungest`] does this.
//! - *blocked*: it waits for something other than a CPU and does not count.
//! - *asleep*: it was serving, and a [look](RequestPool::look) at its thread found it sleeping. It does not count until a look finds it
//!   awake; its thread is not told.
//! - *overdue*: it was serving or demoted for [`PoolRules::patience`] while all that time somebody was waiting or demoted. It
//!   goes on beside the c and does not count.
//!
//! What holds after every call:
//!
//! 1. While anybody waits or is demoted, at least c are serving; at most c are, except after c was lowered, displacement
//!    forbidden, or, without displacement, somebody was found awake again: then those too many finish.
//! 2. With displacement those serving are the c oldest of all that are serving, demoted or waiting. Without it nobody
//!    is admitted before an older one that waits.
//! 3. c = 1 without blocking is first come, first served by key; without a limit everybody is admitted at once.
//! 4. **Nobody starves.** The k-th oldest of those waiting or demoted goes on within ⌈k/c⌉ · patience, whatever those
//!    serving do, if the caller wakes the pool in time, c stays and no older one enters or returns from a block or a sleep: nobody
//!    counts for longer than the patience while others want to go on. A request is demoted for at most the patience at a
//!    time, and then not again unless it blocks or sleeps. Requests with older keys go first without end, so keys must not be what
//!    a client can choose.
//! 5. **How long older ones can still enter.** By age, only those that entered the system earlier are older. By deadline,
//!    a request whose SLO is D is overtaken only by requests that entered the system at most D − S after it, S being the
//!    shortest SLO: one that entered later is due later. With L, the longest SLO of the set, that is at most L − S for every
//!    request. Once none that entered the system before then can still arrive here, 4 holds for it. A request without such
//!    a limit, due at no time, can be overtaken without end.
//!
//! [`crate::serve::LimitedSharing`] is the same order for workers and slices that the caller controls. Its pool (what is
//! on its workers and in its round-robin queue) with [`crate::serve::PoolEntrance::Preempt`] is at every instant the set of
//! those serving here with displacement, as tests of both show. It has a heap without positions and does not
//! share code with this one, because its items neither block nor leave early.
//!
//! A transition costs O(log n) comparisons.

mod look;
mod place;
mod slot_heap;
mod slots;

#[cfg(test)]
mod deadline_tests;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use place::{PoolCounts, PoolPlace};

use crate::RequestKey;
use crate::serve::PoolOrder;
use place::PLACES;
use slot_heap::SlotHeap;
use slots::{PoolKey, PoolSlots, SlotList};
use std::cmp::Reverse;
use std::num::NonZeroU32;

/// Whether a request that was admitted must step back for an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Displacement {
    /// Once admitted a request is serving until it blocks or leaves: admission only.
    Never,
    /// The youngest of those serving is demoted while c older ones are there.
    OfYoungest,
}

/// What a pool is to do. Times are in the caller's unit (nanoseconds in Tailwright).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRules {
    /// The most requests that serve at once, c; `None` for no limit.
    pub limit: Option<NonZeroU32>,
    /// The order in which they are chosen.
    pub order: PoolOrder,
    /// Whether older ones displace younger ones.
    pub displacement: Displacement,
    /// How long one counts while without interruption others want to go on, at least 1; `None`: as long as it is there.
    pub patience: Option<u64>,
}

/// The name of a request while it is in the pool. Later another one may get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PooledRequest(u32);

impl PooledRequest {
    /// A number that no other request in the pool has; they are as small as possible.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the caller does, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolAction {
    /// The request, which has just entered, returned from a block or waited, goes on.
    Admit(PooledRequest),
    /// Its thread runs only when nobody else does.
    Demote(PooledRequest),
    /// Its thread runs as before.
    Promote(PooledRequest),
}

/// The requests of a service, and which of them may run.
#[derive(Debug, Clone)]
pub struct RequestPool {
    rules: PoolRules,
    slots: PoolSlots,
    /// Those waiting and those demoted, the oldest first.
    ready: SlotHeap<PoolKey>,
    /// Those serving, the youngest first.
    serving: SlotHeap<Reverse<PoolKey>>,
    /// Those serving, the first admitted first.
    by_admission: SlotList,
    /// Those demoted, the first demoted first.
    by_demotion: SlotList,
    /// Those asleep, the first set aside first.
    by_sleep: SlotList,
    counts: [usize; PLACES],
    /// Since when somebody is waiting or demoted; `None` when nobody is.
    contended_since: Option<u64>,
    arrivals: u64,
    now: u64,
}

impl RequestPool {
    /// A pool without requests.
    ///
    /// # Panics
    /// When the patience is 0.
    pub fn new(rules: PoolRules) -> Self {
        assert!(rules.patience != Some(0), "patience: at least 1");
        Self {
            rules,
            slots: PoolSlots::default(),
            ready: SlotHeap::new(),
            serving: SlotHeap::new(),
            by_admission: SlotList::new(),
            by_demotion: SlotList::new(),
            by_sleep: SlotList::new(),
            counts: [0; PLACES],
            contended_since: None,
            arrivals: 0,
            now: 0,
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> &PoolRules {
        &self.rules
    }

    /// How many requests are where.
    pub fn counts(&self) -> PoolCounts {
        let [waiting, serving, demoted, blocked, overdue, asleep] = self.counts;
        PoolCounts { waiting, serving, demoted, blocked, overdue, asleep }
    }

    /// Where a request is; `None` when it is not in the pool.
    pub fn place(&self, request: PooledRequest) -> Option<PoolPlace> {
        self.slots.get(request.0)?.place
    }

    /// Adds a request. It goes on when it is told to be admitted, which may be at once. An instant before that of an
    /// earlier call counts as that one, here and in all other calls.
    pub fn enter(&mut self, now: u64, key: RequestKey, actions: &mut Vec<PoolAction>) -> PooledRequest {
        let first = match self.rules.order {
            PoolOrder::Age => key,
            PoolOrder::Arrival => RequestKey(self.arrivals),
        };
        let slot = self.slots.insert((first, self.arrivals), PoolPlace::Waiting);
        self.arrivals += 1;
        self.begin_waiting(slot);
        self.settle(now, actions);
        PooledRequest(slot)
    }

    /// Removes a request, wherever it is: it is done, it failed, or it was cancelled. A demoted one is not told to be
    /// promoted; its thread does so itself, before.
    ///
    /// # Panics
    /// When it is not in the pool.
    pub fn leave(&mut self, now: u64, request: PooledRequest, actions: &mut Vec<PoolAction>) {
        self.take_out(request.0);
        self.slots.remove(request.0);
        self.settle(now, actions);
    }

    /// Notes that a request waits for something other than a CPU, whether it was admitted or was still to be. A demoted one
    /// is not told to be promoted.
    ///
    /// # Panics
    /// When it is blocked already, or not in the pool.
    pub fn block(&mut self, now: u64, request: PooledRequest, actions: &mut Vec<PoolAction>) {
        let before = self.take_out(request.0);
        assert_ne!(before, PoolPlace::Blocked, "it is not blocked, so that it can block");
        self.put(request.0, PoolPlace::Blocked);
        self.settle(now, actions);
    }

    /// Notes that a blocked request can go on. It does so when it is told to be admitted, which may be at once, with the
    /// key with which it entered.
    ///
    /// # Panics
    /// When it is not blocked.
    pub fn unblock(&mut self, now: u64, request: PooledRequest, actions: &mut Vec<PoolAction>) {
        let before = self.take_out(request.0);
        assert_eq!(before, PoolPlace::Blocked, "it returns from a block");
        self.begin_waiting(request.0);
        self.settle(now, actions);
    }

    /// Changes c; `None` for no limit.
    pub fn set_limit(&mut self, now: u64, limit: Option<NonZeroU32>, actions: &mut Vec<PoolAction>) {
        self.rules.limit = limit;
        self.settle(now, actions);
    }

    /// Demotes nobody from now on. All that are demoted are promoted and serve, even where that is more than c.
    pub fn forbid_displacement(&mut self, now: u64, actions: &mut Vec<PoolAction>) {
        self.rules.displacement = Displacement::Never;
        self.now = self.now.max(now);
        while let Some(slot) = self.by_demotion.first() {
            self.start(slot, actions);
        }
        self.settle(now, actions);
    }

    /// The instant at which time alone changes something. The caller then calls [`wake`](Self::wake), unless it called
    /// something else after that instant.
    pub fn wake_at(&self) -> Option<u64> {
        if self.ready.len() == 0 {
            return None;
        }
        let firsts = [self.by_admission.first(), self.by_demotion.first()];
        firsts.into_iter().flatten().filter_map(|slot| self.overdue_at(slot)).min()
    }

    /// Notes that it is that late.
    pub fn wake(&mut self, now: u64, actions: &mut Vec<PoolAction>) {
        self.settle(now, actions);
    }

    fn overdue_at(&self, slot: u32) -> Option<u64> {
        let since = self.slots.of(slot).since.max(self.contended_since?);
        Some(since.saturating_add(self.rules.patience?))
    }

    fn is_overdue(&self, slot: u32) -> bool {
        self.overdue_at(slot).is_some_and(|instant| instant <= self.now)
    }

    /// Brings those serving to c and to the oldest.
    fn settle(&mut self, now: u64, actions: &mut Vec<PoolAction>) {
        self.now = self.now.max(now);
        self.contended_since.get_or_insert(self.now);
        let limit = self.rules.limit.map_or(usize::MAX, |limit| limit.get() as usize);
        while let Some(slot) = self.by_demotion.first().filter(|slot| self.is_overdue(*slot)) {
            self.take_out(slot);
            self.put(slot, PoolPlace::Overdue);
            actions.push(PoolAction::Promote(PooledRequest(slot)));
        }
        let displaces = self.rules.displacement == Displacement::OfYoungest;
        loop {
            let serving = self.serving.len();
            let oldest = self.ready.first();
            let youngest = self.serving.first().filter(|_| displaces);
            let leaves_out = oldest.is_some() || (displaces && serving > limit);
            match (oldest, youngest) {
                (Some((_, slot)), _) if serving < limit => self.start(slot, actions),
                _ if leaves_out && self.make_overdue() => {}
                (_, Some((_, slot))) if serving > limit => self.demote(slot, actions),
                (Some((oldest, _)), Some((Reverse(youngest), slot))) if oldest < youngest => {
                    self.demote(slot, actions);
                }
                _ => break,
            }
        }
        if self.ready.len() == 0 {
            self.contended_since = None;
        }
    }

    /// Stops counting the one that serves for the longest time, if that is the patience.
    fn make_overdue(&mut self) -> bool {
        let Some(slot) = self.by_admission.first().filter(|slot| self.is_overdue(*slot)) else {
            return false;
        };
        self.take_out(slot);
        self.put(slot, PoolPlace::Overdue);
        true
    }

    /// Has a request serve that is waiting or demoted.
    fn start(&mut self, slot: u32, actions: &mut Vec<PoolAction>) {
        let action = match self.take_out(slot) {
            PoolPlace::Demoted => PoolAction::Promote,
            _ => PoolAction::Admit,
        };
        self.put(slot, PoolPlace::Serving);
        self.slots.of_mut(slot).since = self.now;
        self.serving.insert(slot, Reverse(self.slots.of(slot).key));
        self.by_admission.append(&mut self.slots, slot);
        actions.push(action(PooledRequest(slot)));
    }

    fn demote(&mut self, slot: u32, actions: &mut Vec<PoolAction>) {
        self.take_out(slot);
        self.put(slot, PoolPlace::Demoted);
        self.slots.of_mut(slot).since = self.now;
        self.ready.insert(slot, self.slots.of(slot).key);
        self.by_demotion.append(&mut self.slots, slot);
        actions.push(PoolAction::Demote(PooledRequest(slot)));
    }

    fn begin_waiting(&mut self, slot: u32) {
        self.put(slot, PoolPlace::Waiting);
        self.ready.insert(slot, self.slots.of(slot).key);
    }

    fn put(&mut self, slot: u32, place: PoolPlace) {
        self.slots.of_mut(slot).place = Some(place);
        self.counts[place as usize] += 1;
    }

    /// Takes a request out of the heap and the list of its place, which it returns.
    fn take_out(&mut self, slot: u32) -> PoolPlace {
        let place = self.slots.get(slot).and_then(|slot| slot.place).expect("the request is in the pool");
        self.counts[place as usize] -= 1;
        match place {
            PoolPlace::Waiting => self.ready.remove(slot),
            PoolPlace::Demoted => {
                self.ready.remove(slot);
                self.by_demotion.remove(&mut self.slots, slot);
            }
            PoolPlace::Serving => {
                self.serving.remove(slot);
                self.by_admission.remove(&mut self.slots, slot);
            }
            PoolPlace::Asleep => self.by_sleep.remove(&mut self.slots, slot),
            PoolPlace::Blocked | PoolPlace::Overdue => {}
        }
        place
    }
}
