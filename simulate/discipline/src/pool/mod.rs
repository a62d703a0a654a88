//! Admission of requests to a service: at most c run, the oldest first. Oldest Request First of TailClipper
//! (§3.2, §4, Algorithm 1) for a service whose threads the kernel schedules, as a state machine that takes
//! the clock as an argument.
//!
//! A request [enters](RequestPool::enter) with a [`RequestKey`]: the time at which it entered the whole
//! system, or its deadline. Smaller keys go first; equal keys go in order of arrival. Below, *older* means a
//! smaller key. The pool answers with [`PoolAction`]s. A request is in one [`PoolPlace`]:
//!
//! - *waiting*: its thread does not run. A request that returns from a block may be waiting again.
//! - *serving*: it counts towards c. The threads of these requests share the CPUs in the kernel's own slices,
//!   which replace the round-robin queue of the paper.
//! - *demoted*: it was admitted and later displaced by an older request; its thread runs only when no other
//!   thread wants the CPU. Occurs only under [`Displacement::OfYoungest`].
//! - *blocked*: it waits for something other than a CPU and does not count.
//! - *asleep*: it was serving, and a [look](RequestPool::look) at its thread found it sleeping. It does not
//!   count until a look finds it awake; its thread is not informed.
//! - *overdue*: it was serving or demoted for [`PoolRules::patience`] while other requests were waiting or
//!   demoted throughout. It runs in addition to the c and does not count.
//!
//! Invariants after every call:
//!
//! 1. While any request waits or is demoted, at least c are serving. At most c are serving, except after c
//!    was lowered or displacement was forbidden, or, without displacement, after a sleeper was found awake.
//!    The excess then drains as requests finish.
//! 2. With displacement, the serving requests are the c oldest of all that are serving, demoted or waiting.
//!    Without it, no request is admitted before an older one that waits.
//! 3. c = 1 without blocking is first come, first served by key; without a limit every request is admitted at
//!    once.
//! 4. **No starvation.** The k-th oldest request of those waiting or demoted continues within ⌈k/c⌉ · patience,
//!    whatever the serving requests do, because none counts for longer than the patience while others want to
//!    go on. Conditions: the caller wakes the pool in time, c stays, and no older request enters or returns
//!    from a block or a sleep. A request is demoted for at most the patience at a time, and then not again
//!    unless it blocks or sleeps. An endless supply of older keys can still overtake, so a client must not be
//!    able to choose its key.
//! 5. **Bounded overtaking.** By age, only requests that entered the system earlier are older. By deadline, a
//!    request with SLO D is overtaken only by requests that entered the system at most D − S after it, S being
//!    the shortest SLO: later ones are due later. With L, the longest SLO of the set, that is at most L − S
//!    for every request. Once none of those can still arrive here, 4 holds for the request. A request without
//!    a deadline can be overtaken without end.
//!
//! [`crate::serve::LimitedSharing`] is the same order for workers and slices that the caller controls. With
//! [`crate::serve::PoolEntrance::Preempt`] its pool (the requests on its workers and in its round-robin
//! queue) is at every instant the set that serves here with displacement; tests of both check this. It uses a
//! heap without positions and shares no code with this pool, because its items neither block nor leave early.
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

/// Treatment of an admitted request when an older one arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Displacement {
    /// An admitted request serves until it blocks or leaves: admission control only.
    Never,
    /// The youngest serving request is demoted while c older ones are in the pool.
    OfYoungest,
}

/// Configuration of a pool. Times are in the caller's unit (nanoseconds in Tailwright).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRules {
    /// Maximum number of requests that serve at once, c; `None` for no limit.
    pub limit: Option<NonZeroU32>,
    /// Order of admission.
    pub order: PoolOrder,
    /// Treatment of admitted requests when older ones arrive.
    pub displacement: Displacement,
    /// Time for which a request counts while others are kept waiting without interruption, at least 1;
    /// `None`: until it leaves.
    pub patience: Option<u64>,
}

/// Handle of a request while it is in the pool. The pool reuses handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PooledRequest(u32);

impl PooledRequest {
    /// Returns a number that is unique in the pool; the numbers in use are as small as possible.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Instruction to the caller, to be carried out in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolAction {
    /// The request, which has just entered, returned from a block or waited, continues.
    Admit(PooledRequest),
    /// Its thread runs only when no other thread wants the CPU.
    Demote(PooledRequest),
    /// Its thread runs as before.
    Promote(PooledRequest),
}

/// The requests of a service, and which of them may run.
#[derive(Debug, Clone)]
pub struct RequestPool {
    rules: PoolRules,
    slots: PoolSlots,
    /// Waiting and demoted requests, the oldest first.
    ready: SlotHeap<PoolKey>,
    /// Serving requests, the youngest first.
    serving: SlotHeap<Reverse<PoolKey>>,
    /// Serving requests, the earliest admitted first.
    by_admission: SlotList,
    /// Demoted requests, the earliest demoted first.
    by_demotion: SlotList,
    /// Sleeping requests that do not count, the earliest set aside first.
    by_sleep: SlotList,
    counts: [usize; PLACES],
    /// Start of the current period in which requests are waiting or demoted; `None` outside such a period.
    contended_since: Option<u64>,
    arrivals: u64,
    now: u64,
}

impl RequestPool {
    /// Creates an empty pool.
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

    pub fn rules(&self) -> &PoolRules {
        &self.rules
    }

    /// Returns the number of requests in each place.
    pub fn counts(&self) -> PoolCounts {
        let [waiting, serving, demoted, blocked, overdue, asleep] = self.counts;
        PoolCounts { waiting, serving, demoted, blocked, overdue, asleep }
    }

    /// Returns the place of a request; `None` when it is not in the pool.
    pub fn place(&self, request: PooledRequest) -> Option<PoolPlace> {
        self.slots.get(request.0)?.place
    }

    /// Adds a request. It continues once the pool emits [`PoolAction::Admit`] for it, which may be in this
    /// call. Here and in all other calls, an instant before that of an earlier call counts as the earlier
    /// call's.
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

    /// Removes a request from any place: it is done, failed or was cancelled. The pool emits no promotion for
    /// a demoted request; its thread restores its own priority before the call.
    ///
    /// # Panics
    /// When it is not in the pool.
    pub fn leave(&mut self, now: u64, request: PooledRequest, actions: &mut Vec<PoolAction>) {
        self.take_out(request.0);
        self.slots.remove(request.0);
        self.settle(now, actions);
    }

    /// Notes that a request, admitted or not, waits for something other than a CPU. The pool emits no
    /// promotion for a demoted request.
    ///
    /// # Panics
    /// When it is blocked already, or not in the pool.
    pub fn block(&mut self, now: u64, request: PooledRequest, actions: &mut Vec<PoolAction>) {
        let before = self.take_out(request.0);
        assert_ne!(before, PoolPlace::Blocked, "it is not blocked, so that it can block");
        self.put(request.0, PoolPlace::Blocked);
        self.settle(now, actions);
    }

    /// Notes that a blocked request can continue. It keeps the key with which it entered, and continues once the
    /// pool emits [`PoolAction::Admit`] for it, which may be in this call.
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

    /// Stops demoting. All demoted requests are promoted and serve, even if that exceeds c.
    pub fn forbid_displacement(&mut self, now: u64, actions: &mut Vec<PoolAction>) {
        self.rules.displacement = Displacement::Never;
        self.now = self.now.max(now);
        while let Some(slot) = self.by_demotion.first() {
            self.start(slot, actions);
        }
        self.settle(now, actions);
    }

    /// Returns the next instant at which the passage of time alone changes the pool. The caller must call
    /// [`wake`](Self::wake) at it, or any other method after it.
    pub fn wake_at(&self) -> Option<u64> {
        if self.ready.len() == 0 {
            return None;
        }
        let firsts = [self.by_admission.first(), self.by_demotion.first()];
        firsts.into_iter().flatten().filter_map(|slot| self.overdue_at(slot)).min()
    }

    /// Advances the clock of the pool.
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

    /// Restores invariants 1 and 2: at most c requests serve, and with displacement the oldest ones.
    fn settle(&mut self, now: u64, actions: &mut Vec<PoolAction>) {
        self.now = self.now.max(now);
        // Provisional start of a contended period; cleared below when no request is left waiting or demoted.
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
                // Before any demotion: an overdue request gives up its place, which is what bounds waiting
                // (invariant 4).
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

    /// Stops counting the request that has served longest if it is overdue. Returns false when it is not.
    fn make_overdue(&mut self) -> bool {
        let Some(slot) = self.by_admission.first().filter(|slot| self.is_overdue(*slot)) else {
            return false;
        };
        self.take_out(slot);
        self.put(slot, PoolPlace::Overdue);
        true
    }

    /// Admits a waiting request or promotes a demoted one.
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

    /// Removes a request from the heap and the list of its place, and returns that place.
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
