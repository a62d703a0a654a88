//! Round-robin among a limited number of items, chosen by age: Oldest Request First of TailClipper (§3.2, §4,
//! Algorithm 1), and the same with parts taken away: without age (limited processor sharing), without limit
//! (centralised round-robin).
//!
//! The *pool* is what is on the workers and in the round-robin queue; the others wait in a heap. What the paper
//! leaves open or says in two ways is read like this:
//!
//! - Algorithm 1 compares the length of the round-robin queue with c, the text of §4 the size of the pool ("only c
//!   threads are allocated CPU time", "in the pool is in the round-robin queue or currently running"). [`Count`]
//!   has both; with the pool, c below the number of workers counts as that number, so that c = 1 is global first
//!   come, first served on any number of workers, as §3.2 says.
//! - Line 19 of Algorithm 1 pops the *front* of the queue where its comment and §4 speak of the youngest. Here it is
//!   the youngest.
//! - §4 inserts a reordered old request into the round-robin queue, which is popped at the front and filled at the
//!   back; Figure 3 shows it at the head. [`Entrance`] has both, and a third that does not wait for a slice to end.
//!
//! When the youngest of a pool that is too large is on a worker, the limit is violated until its slice ends; then it
//! goes to the heap. A slice that ends while nobody waits goes on, and time is counted in whole slices from the
//! moment in which the worker took the item up. What other work displaces goes to the back of the round-robin queue
//! and has a whole slice when it is its turn again. Finding the youngest looks at up to c items.
//!
//! Not covered: what a switch costs and who decides.

use super::{Discipline, Item, Run, UNTIL_DONE};
use crate::bits::BitSet;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// By what items are chosen for the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Time of entry into the system as a whole.
    Age,
    /// Arrival at this station: the ablation.
    Arrival,
}

/// What the limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Items on workers and in the round-robin queue (the text of §4).
    Pool,
    /// Items in the round-robin queue (Algorithm 1 to the letter).
    Queue,
}

/// Where an arrival goes that is older than the youngest of a full pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// To the back of the round-robin queue (§4).
    Back,
    /// To its front (Figure 3).
    Front,
    /// Onto the worker of the youngest at once, if that is running and the arrival is older.
    Preempt,
}

/// Parameters of [`Limited`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitedParameters {
    /// c, at least 1.
    pub limit: u32,
    /// Service before the next of the queue has its turn, at least 1.
    pub slice: u64,
    /// Who is in the pool.
    pub order: Order,
    /// What `limit` counts.
    pub count: Count,
    /// Where old arrivals go.
    pub entrance: Entrance,
}

impl LimitedParameters {
    /// TailClipper's: c of the oldest share the workers.
    pub fn oldest_first(limit: u32, slice: u64) -> Self {
        Self { limit, slice, order: Order::Age, count: Count::Pool, entrance: Entrance::Back }
    }

    /// The same limit without age: the c that arrived here first.
    pub fn without_age(limit: u32, slice: u64) -> Self {
        Self { order: Order::Arrival, ..Self::oldest_first(limit, slice) }
    }

    /// Everybody in one queue: the stand-in for Shinjuku.
    pub fn round_robin(slice: u64) -> Self {
        Self::without_age(u32::MAX, slice)
    }
}

/// Older is smaller: time, then order of arrival here, then the item.
type Key = (u64, u64, u32);

/// Limited processor sharing with slices.
#[derive(Debug, Clone)]
pub struct Limited {
    parameters: LimitedParameters,
    queue: VecDeque<Key>,
    heap: BinaryHeap<Reverse<Key>>,
    /// What each worker has, since when, and whether its slice is being timed.
    running: Vec<Option<Running>>,
    idle: BitSet,
    busy: u32,
    arrivals: u64,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    key: Key,
    since: u64,
    timed: bool,
}

impl Limited {
    /// All of `workers` are idle.
    ///
    /// # Panics
    /// When there are no workers, or limit or slice are 0.
    pub fn new(workers: u32, mut parameters: LimitedParameters) -> Self {
        assert!(
            workers > 0 && parameters.limit > 0 && parameters.slice > 0,
            "workers, limit, slice: at least 1"
        );
        if parameters.count == Count::Pool {
            parameters.limit = parameters.limit.max(workers);
        }
        Self {
            parameters,
            queue: VecDeque::new(),
            heap: BinaryHeap::new(),
            running: vec![None; workers as usize],
            idle: BitSet::full(workers as usize),
            busy: 0,
            arrivals: 0,
        }
    }

    /// Items that count towards the limit.
    fn counted(&self) -> usize {
        match self.parameters.count {
            Count::Pool => self.queue.len() + self.busy as usize,
            Count::Queue => self.queue.len(),
        }
    }

    fn limit(&self) -> usize {
        self.parameters.limit as usize
    }

    /// The youngest that counts, and its worker if it is on one.
    fn youngest(&self) -> Option<(Key, Option<u32>)> {
        let queued = self.queue.iter().max().map(|key| (*key, None));
        let running = match self.parameters.count {
            Count::Pool => self.youngest_running().map(|(key, worker)| (key, Some(worker))),
            Count::Queue => None,
        };
        // Keys differ, so the worker decides nothing.
        queued.max(running)
    }

    fn youngest_running(&self) -> Option<(Key, u32)> {
        let keys = (0u32..).zip(&self.running);
        keys.filter_map(|(worker, running)| Some((running.as_ref()?.key, worker))).max()
    }

    /// Puts an item on a worker.
    fn start(&mut self, now: u64, worker: u32, key: Key, runs: &mut Vec<Run>) {
        let timed = !self.queue.is_empty();
        let slice = if timed { self.parameters.slice } else { UNTIL_DONE };
        self.running[worker as usize] = Some(Running { key, since: now, timed });
        runs.push(Run { worker, item: key.2, slice });
    }

    /// Somebody waits for a turn: slices that were not timed are from now on.
    fn time_slices(&mut self, now: u64, runs: &mut Vec<Run>) {
        let slice = self.parameters.slice;
        for (worker, running) in (0u32..).zip(&mut self.running) {
            if let Some(running) = running
                && !running.timed
            {
                running.timed = true;
                let into = (now - running.since) % slice;
                runs.push(Run { worker, item: running.key.2, slice: slice - into });
            }
        }
    }

    /// Gives idle workers to the queue, then sees to the size of the pool: the youngest of the queue go to the heap, or
    /// the oldest of the heap to the queue.
    fn fill(&mut self, now: u64, runs: &mut Vec<Run>) {
        loop {
            if !self.queue.is_empty()
                && let Some(worker) = self.idle.first()
                && let Some(key) = self.queue.pop_front()
            {
                self.idle.remove(worker);
                self.busy += 1;
                // Workers were counted by a u32.
                #[allow(clippy::cast_possible_truncation)]
                self.start(now, worker as u32, key, runs);
            } else if self.counted() < self.limit()
                && let Some(Reverse(key)) = self.heap.pop()
            {
                self.queue.push_back(key);
            } else {
                break;
            }
        }
        self.shed();
        if !self.queue.is_empty() {
            self.time_slices(now, runs);
        }
    }

    /// An old arrival while the pool is full: it goes in.
    fn squeeze(&mut self, now: u64, key: Key, youngest: (Key, Option<u32>), runs: &mut Vec<Run>) {
        if self.parameters.entrance == Entrance::Preempt
            && let Some((displaced, worker)) = self.youngest_running()
            && key < displaced
        {
            if self.parameters.count == Count::Pool && youngest.0 == displaced {
                self.heap.push(Reverse(displaced));
            } else {
                self.queue.push_back(displaced);
            }
            self.start(now, worker, key, runs);
            return;
        }
        match self.parameters.entrance {
            Entrance::Back => self.queue.push_back(key),
            Entrance::Front | Entrance::Preempt => self.queue.push_front(key),
        }
    }

    /// Sends the youngest to the heap while there are too many and it is in the queue.
    fn shed(&mut self) {
        while self.counted() > self.limit()
            && let Some((key, None)) = self.youngest()
            && let Some(at) = self.queue.iter().position(|queued| *queued == key)
        {
            self.queue.remove(at);
            self.heap.push(Reverse(key));
        }
    }
}

impl Discipline for Limited {
    fn arrive(&mut self, now: u64, item: Item, runs: &mut Vec<Run>) {
        let time = match self.parameters.order {
            Order::Age => item.age,
            Order::Arrival => self.arrivals,
        };
        let key = (time, self.arrivals, item.id);
        self.arrivals += 1;
        if self.counted() < self.limit() {
            self.queue.push_back(key);
        } else if self.parameters.order == Order::Arrival {
            self.heap.push(Reverse(key));
        } else {
            match self.youngest() {
                Some(youngest) if key < youngest.0 => self.squeeze(now, key, youngest, runs),
                _ => self.heap.push(Reverse(key)),
            }
        }
        self.fill(now, runs);
    }

    fn depart(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.running[worker as usize] = None;
        self.idle.insert(worker as usize);
        self.busy -= 1;
        self.fill(now, runs);
    }

    fn expire(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        let Some(Running { key, .. }) = self.running[worker as usize] else { return };
        let too_many = self.counted() > self.limit();
        match self.queue.pop_front() {
            None => self.running[worker as usize] = Some(Running { key, since: now, timed: false }),
            Some(next) => {
                if too_many && self.youngest_running().is_some_and(|(youngest, _)| youngest == key) {
                    self.heap.push(Reverse(key));
                } else {
                    self.queue.push_back(key);
                }
                self.start(now, worker, next, runs);
                self.fill(now, runs);
            }
        }
    }

    /// "Resets the time slice of the thread and adds the preempted thread back to the round-robin queue" (§4).
    fn leave(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        match self.running[worker as usize].take() {
            Some(Running { key, .. }) => {
                self.busy -= 1;
                self.queue.push_back(key);
                self.fill(now, runs);
            }
            None => self.idle.remove(worker as usize),
        }
    }

    fn back(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.idle.insert(worker as usize);
        self.fill(now, runs);
    }

    fn waiting(&self) -> usize {
        self.queue.len() + self.heap.len()
    }
}
