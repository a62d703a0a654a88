//! Round-robin among a limited number of items, chosen by age: Oldest Request First of TailClipper (§3.2, §4,
//! Algorithm 1). Without age it is limited processor sharing, and without a limit centralised round-robin.
//! With deadlines instead of ages it is earliest deadline first with the same limit
//! ([`LimitedSharing::by_deadline`]).
//!
//! The *pool* consists of the items on the workers and in the round-robin queue; the other items wait in a
//! heap. Where the paper is silent or ambiguous, we read it like this:
//!
//! - Algorithm 1 compares the length of the round-robin queue with c, and the text of §4 the size of the
//!   pool ("only c threads are allocated CPU time", "in the pool is in the round-robin queue or currently
//!   running"). [`LimitScope`] has both. With the pool, c below the number of workers counts as that
//!   number, so that c = 1 is global first come, first served on any number of workers, as in §3.2.
//! - Line 19 of Algorithm 1 pops the *front* of the queue where its comment and §4 speak of the youngest. Here it is the
//!   youngest.
//! - §4 inserts a reordered old request into the round-robin queue, which is popped at the front and filled at the
//!   back; Figure 3 shows it at the head. [`PoolEntrance`] has both, a third that does not wait for the end of a
//!   slice, and a fourth that leaves the pool alone.
//!
//! If the youngest item of an oversized pool is on a worker, the limit is exceeded until its slice ends; then
//! the item moves to the heap. A slice that ends while no item waits continues, and time is counted in whole
//! slices from the assignment to the worker. An item that other work displaces goes to the back of the
//! round-robin queue and gets a whole slice at its next turn. Finding the youngest item looks at up to c
//! items.

use super::{Assignment, Discipline, QueueItem, UNTIL_DONE};
use crate::RequestKey;
use crate::bit_set::BitSet;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Order in which items are chosen for the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolOrder {
    /// By the time of entry into the whole system, or by deadline if items have one.
    Age,
    /// By arrival at this station: the ablation.
    Arrival,
}

/// Items that count towards the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitScope {
    /// Items on workers and in the round-robin queue (the text of §4).
    Pool,
    /// Items in the round-robin queue (Algorithm 1 to the letter).
    Queue,
}

/// Treatment of an arriving item that is older than the youngest of a full pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolEntrance {
    /// It goes to the back of the round-robin queue (§4).
    Back,
    /// It goes to the front of the round-robin queue (Figure 3).
    Front,
    /// It takes the worker of the youngest running item at once, if it is older than that.
    Preempt,
    /// It waits in the heap until an item of the pool is done. Items in the pool stay there, as when threads
    /// cannot be descheduled.
    Wait,
}

/// Parameters of [`LimitedSharing`]: the limit, the slice and the orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitedSharingParameters {
    /// Limit c, at least 1.
    pub limit: u32,
    /// Service before the next item of the queue has its turn, at least 1.
    pub slice: u64,
    /// Order in which items are chosen for the pool.
    pub order: PoolOrder,
    /// Items that count towards `limit`.
    pub count: LimitScope,
    /// Treatment of old items that arrive while the pool is full.
    pub entrance: PoolEntrance,
}

impl LimitedSharingParameters {
    /// TailClipper's discipline: the c oldest items share the workers.
    pub fn oldest_first(limit: u32, slice: u64) -> Self {
        Self { limit, slice, order: PoolOrder::Age, count: LimitScope::Pool, entrance: PoolEntrance::Back }
    }

    /// The same limit without age: the c items that arrived here first share the workers.
    pub fn without_age(limit: u32, slice: u64) -> Self {
        Self { order: PoolOrder::Arrival, ..Self::oldest_first(limit, slice) }
    }

    /// All items in one round-robin queue, as a stand-in for Shinjuku.
    pub fn round_robin(slice: u64) -> Self {
        Self::without_age(u32::MAX, slice)
    }

    /// Checks that all values are within their ranges; the error describes the first that is not.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.limit == 0 {
            return Err("the limit of processor sharing is at least 1".to_owned());
        }
        if self.slice == 0 {
            return Err("a slice is at least 1".to_owned());
        }
        Ok(())
    }
}

/// Sort key of an item, older first: its key, its sequence number among arrivals here, the item.
type AgeKey = (RequestKey, u64, u32);

/// Limited processor sharing with slices, by age, by deadline, or by neither.
#[derive(Debug, Clone)]
pub struct LimitedSharing {
    parameters: LimitedSharingParameters,
    /// Time from entry to deadline by class; empty if age decides.
    allowed: Vec<u64>,
    queue: VecDeque<AgeKey>,
    heap: BinaryHeap<Reverse<AgeKey>>,
    /// The item on each worker.
    running: Vec<Option<RunningItem>>,
    idle: BitSet,
    busy: u32,
    arrivals: u64,
}

/// An item on a worker.
#[derive(Debug, Clone, Copy)]
struct RunningItem {
    key: AgeKey,
    /// Instant of its assignment, from which slices are counted.
    since: u64,
    /// True while its slice is timed; false as long as no item waits.
    is_timed: bool,
}

impl LimitedSharing {
    /// Creates a station with `workers` idle workers.
    ///
    /// # Panics
    /// When there are no workers, or limit or slice are 0.
    pub fn new(workers: u32, mut parameters: LimitedSharingParameters) -> Self {
        assert!(
            workers > 0 && parameters.limit > 0 && parameters.slice > 0,
            "workers, limit, slice: at least 1"
        );
        if parameters.count == LimitScope::Pool {
            parameters.limit = parameters.limit.max(workers);
        }
        Self {
            parameters,
            allowed: Vec::new(),
            queue: VecDeque::new(),
            heap: BinaryHeap::new(),
            running: vec![None; workers as usize],
            idle: BitSet::full(workers as usize),
            busy: 0,
            arrivals: 0,
        }
    }

    /// Orders by deadlines instead of ages; `allowed[class]` is the time from entry to deadline.
    #[must_use]
    pub fn by_deadline(self, allowed: Vec<u64>) -> Self {
        Self { allowed, ..self }
    }

    /// Returns the sort key of an item that arrives now.
    fn key(&self, item: &QueueItem) -> RequestKey {
        match (self.parameters.order, self.allowed.as_slice()) {
            (PoolOrder::Arrival, _) => RequestKey(self.arrivals),
            (PoolOrder::Age, []) => RequestKey(item.age),
            (PoolOrder::Age, allowed) => RequestKey::due(item.age, allowed[item.class as usize]),
        }
    }

    /// Returns the number of items that count towards the limit.
    fn counted(&self) -> usize {
        match self.parameters.count {
            LimitScope::Pool => self.queue.len() + self.busy as usize,
            LimitScope::Queue => self.queue.len(),
        }
    }

    /// Returns the items on workers and in the round-robin queue.
    #[cfg(test)]
    pub(crate) fn pool(&self) -> std::collections::BTreeSet<u32> {
        let running = self.running.iter().flatten().map(|running| running.key);
        self.queue.iter().copied().chain(running).map(|(_, _, item)| item).collect()
    }

    fn limit(&self) -> usize {
        self.parameters.limit as usize
    }

    /// Returns the youngest item that counts, and its worker if it is on one.
    fn youngest(&self) -> Option<(AgeKey, Option<u32>)> {
        let queued = self.queue.iter().max().map(|key| (*key, None));
        let running = match self.parameters.count {
            LimitScope::Pool => self.youngest_running().map(|(key, worker)| (key, Some(worker))),
            LimitScope::Queue => None,
        };
        // Keys are unique, so the worker never decides the comparison.
        queued.max(running)
    }

    fn youngest_running(&self) -> Option<(AgeKey, u32)> {
        let keys = (0u32..).zip(&self.running);
        keys.filter_map(|(worker, running)| Some((running.as_ref()?.key, worker))).max()
    }

    /// Assigns an item to a worker.
    fn assign(&mut self, now: u64, worker: u32, key: AgeKey, assignments: &mut Vec<Assignment>) {
        let is_timed = !self.queue.is_empty();
        let slice = if is_timed { self.parameters.slice } else { UNTIL_DONE };
        self.running[worker as usize] = Some(RunningItem { key, since: now, is_timed });
        assignments.push(Assignment { worker, item: key.2, slice });
    }

    /// Starts timing the slices of all running items, because an item waits for its turn.
    fn time_all_slices(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        let slice = self.parameters.slice;
        for (worker, running) in (0u32..).zip(&mut self.running) {
            if let Some(running) = running
                && !running.is_timed
            {
                running.is_timed = true;
                let elapsed = (now - running.since) % slice;
                assignments.push(Assignment { worker, item: running.key.2, slice: slice - elapsed });
            }
        }
    }

    /// Assigns queued items to idle workers, then adjusts the pool to its size: the oldest items of the heap
    /// move to the queue, or the youngest of the queue to the heap.
    fn rebalance(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        loop {
            if !self.queue.is_empty()
                && let Some(worker) = self.idle.first()
                && let Some(key) = self.queue.pop_front()
            {
                self.idle.remove(worker);
                self.busy += 1;
                #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
                self.assign(now, worker as u32, key, assignments);
            } else if self.counted() < self.limit()
                && let Some(Reverse(key)) = self.heap.pop()
            {
                self.queue.push_back(key);
            } else {
                break;
            }
        }
        self.shrink_pool();
        if !self.queue.is_empty() {
            self.time_all_slices(now, assignments);
        }
    }

    /// Adds an item that is not the youngest to a full pool.
    fn enter_full_pool(
        &mut self,
        now: u64,
        key: AgeKey,
        youngest: (AgeKey, Option<u32>),
        assignments: &mut Vec<Assignment>,
    ) {
        if self.parameters.entrance == PoolEntrance::Preempt
            && let Some((displaced, worker)) = self.youngest_running()
            && key < displaced
        {
            if self.parameters.count == LimitScope::Pool && youngest.0 == displaced {
                self.heap.push(Reverse(displaced));
            } else {
                self.queue.push_back(displaced);
            }
            self.assign(now, worker, key, assignments);
            return;
        }
        match self.parameters.entrance {
            PoolEntrance::Back => self.queue.push_back(key),
            PoolEntrance::Front | PoolEntrance::Preempt => self.queue.push_front(key),
            PoolEntrance::Wait => self.heap.push(Reverse(key)),
        }
    }

    /// Moves the youngest items to the heap while the pool is too large and the youngest is in the queue.
    fn shrink_pool(&mut self) {
        while self.counted() > self.limit()
            && let Some((key, None)) = self.youngest()
            && let Some(place) = self.queue.iter().position(|queued| *queued == key)
        {
            self.queue.remove(place);
            self.heap.push(Reverse(key));
        }
    }
}

impl Discipline for LimitedSharing {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let key = (self.key(&item), self.arrivals, item.id);
        self.arrivals += 1;
        if self.counted() < self.limit() {
            self.queue.push_back(key);
        } else if self.parameters.order == PoolOrder::Arrival
            || self.parameters.entrance == PoolEntrance::Wait
        {
            self.heap.push(Reverse(key));
        } else {
            match self.youngest() {
                Some(youngest) if key < youngest.0 => self.enter_full_pool(now, key, youngest, assignments),
                _ => self.heap.push(Reverse(key)),
            }
        }
        self.rebalance(now, assignments);
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.running[worker as usize] = None;
        self.idle.insert(worker as usize);
        self.busy -= 1;
        self.rebalance(now, assignments);
    }

    fn expire(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let Some(RunningItem { key, .. }) = self.running[worker as usize] else { return };
        let too_many = self.counted() > self.limit();
        match self.queue.pop_front() {
            None => self.running[worker as usize] = Some(RunningItem { key, since: now, is_timed: false }),
            Some(next) => {
                if too_many && self.youngest_running().is_some_and(|(youngest, _)| youngest == key) {
                    self.heap.push(Reverse(key));
                } else {
                    self.queue.push_back(key);
                }
                self.assign(now, worker, next, assignments);
                self.rebalance(now, assignments);
            }
        }
    }

    // "Resets the time slice of the thread and adds the preempted thread back to the round-robin queue" (§4).
    fn take_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        match self.running[worker as usize].take() {
            Some(RunningItem { key, .. }) => {
                self.busy -= 1;
                self.queue.push_back(key);
                self.rebalance(now, assignments);
            }
            None => self.idle.remove(worker as usize),
        }
    }

    fn return_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.idle.insert(worker as usize);
        self.rebalance(now, assignments);
    }

    fn waiting(&self) -> usize {
        self.queue.len() + self.heap.len()
    }
}
