//! Run queues per worker with fair sharing: the stand-in for Linux's completely fair scheduler and its successor.
//!
//! Every worker serves the item that had the least service (*virtual runtime*) of its own queue; the slice is the
//! scheduling latency divided among the items of the queue, but not below the minimum granularity. An arrival goes
//! to the worker with the fewest items. It starts with the least virtual runtime of that worker's items minus a
//! credit, as a thread that wakes up does, and preempts what runs there if that is ahead by more than the wake-up
//! granularity. A worker that becomes idle takes an item from the longest queue.
//!
//! Not covered: weights, periodic balancing between workers that are all busy, ticks, deadlines within EEVDF.

use super::{Discipline, Item, Run, UNTIL_DONE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parameters of [`Fair`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairParameters {
    /// Time in which every item of a queue has a turn, as long as slices are not too short.
    pub latency: u64,
    /// Shortest slice, at least 1.
    pub min_granularity: u64,
    /// By how much the running item must be ahead to be preempted by an arrival; `None` for never.
    pub wakeup_granularity: Option<u64>,
    /// How far behind the others an arrival starts.
    pub credit: u64,
}

/// Least virtual runtime first, then arrival.
type Key = (u64, u64, u32);

#[derive(Debug, Clone, Default)]
struct Queue {
    waiting: BinaryHeap<Reverse<Key>>,
    /// What runs, with its virtual runtime at `since`.
    running: Option<(Key, u64)>,
    /// Never decreases: what a new item is measured by.
    least: u64,
}

impl FairParameters {
    fn slice(&self, items: usize) -> u64 {
        (self.latency / items.max(1) as u64).max(self.min_granularity)
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// The running item with its service up to `now`.
    fn charged(&self, now: u64) -> Option<Key> {
        let ((runtime, arrival, id), since) = self.running?;
        Some((runtime + (now - since), arrival, id))
    }

    fn follow(&mut self, now: u64) {
        let waiting = self.waiting.peek().map(|Reverse(key)| key.0);
        let running = self.charged(now).map(|key| key.0);
        if let Some(least) = waiting.into_iter().chain(running).min() {
            self.least = self.least.max(least);
        }
    }
}

/// Fair sharing by worker.
#[derive(Debug, Clone)]
pub struct Fair {
    parameters: FairParameters,
    queues: Vec<Queue>,
    arrivals: u64,
}

impl Fair {
    /// All of `workers` are idle.
    ///
    /// # Panics
    /// When there are no workers or the minimum granularity is 0.
    pub fn new(workers: u32, parameters: FairParameters) -> Self {
        assert!(workers > 0 && parameters.min_granularity > 0, "workers and granularity: at least 1");
        Self { parameters, queues: vec![Queue::default(); workers as usize], arrivals: 0 }
    }

    /// Puts the least of a queue on its worker.
    fn next(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        let queue = &mut self.queues[worker as usize];
        queue.running = queue.waiting.pop().map(|Reverse(key)| (key, now));
        queue.follow(now);
        let Some((key, _)) = queue.running else { return };
        let slice = if queue.waiting.is_empty() { UNTIL_DONE } else { self.parameters.slice(queue.len()) };
        runs.push(Run { worker, item: key.2, slice });
    }

    /// Takes the next item of the longest queue over to an idle worker.
    fn steal(&mut self, worker: u32) {
        let longest = (0..self.queues.len()).max_by_key(|at| (self.queues[*at].waiting.len(), Reverse(*at)));
        let Some(longest) = longest else { return };
        let from = &mut self.queues[longest];
        if let Some(Reverse((runtime, arrival, id))) = from.waiting.pop() {
            let ahead = runtime.saturating_sub(from.least);
            let to = &mut self.queues[worker as usize];
            to.waiting.push(Reverse((to.least.saturating_add(ahead), arrival, id)));
        }
    }

    /// Whether an item of a queue with this virtual runtime takes the worker at once.
    fn preempts(&self, now: u64, worker: usize, runtime: u64) -> bool {
        match (self.queues[worker].charged(now), self.parameters.wakeup_granularity) {
            (None, _) => true,
            (Some(running), Some(granularity)) => running.0 > runtime.saturating_add(granularity),
            (Some(_), None) => false,
        }
    }
}

impl Discipline for Fair {
    fn arrive(&mut self, now: u64, item: Item, runs: &mut Vec<Run>) {
        let worker = (0..self.queues.len()).min_by_key(|at| (self.queues[*at].len(), *at)).unwrap_or(0);
        self.queues[worker].follow(now);
        let runtime = self.queues[worker].least.saturating_sub(self.parameters.credit);
        let preempts = self.preempts(now, worker, runtime);
        let queue = &mut self.queues[worker];
        queue.waiting.push(Reverse((runtime, self.arrivals, item.id)));
        self.arrivals += 1;
        // Workers were counted by a u32.
        #[allow(clippy::cast_possible_truncation)]
        let number = worker as u32;
        if preempts {
            // What is displaced is ahead of the arrival, so that the arrival is not behind it in the queue.
            queue.waiting.extend(queue.charged(now).map(Reverse));
            self.next(now, number, runs);
        } else if let Some(((_, _, id), since)) = queue.running {
            let slice = self.parameters.slice(queue.len()).saturating_sub(now - since);
            runs.push(Run { worker: number, item: id, slice });
        }
    }

    fn depart(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        let queue = &mut self.queues[worker as usize];
        queue.follow(now);
        queue.running = None;
        if queue.waiting.is_empty() {
            self.steal(worker);
        }
        self.next(now, worker, runs);
    }

    fn expire(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        let queue = &mut self.queues[worker as usize];
        if let Some(running) = queue.charged(now) {
            queue.waiting.push(Reverse(running));
        }
        self.next(now, worker, runs);
    }

    fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }
}
