//! Per-worker run queues with fair sharing: a model of Linux's completely fair scheduler and its successor.
//!
//! Every worker serves the item of its own queue with the least service so far (*virtual runtime*). The slice
//! is the scheduling latency divided by the length of the queue, but at least the minimum granularity. An
//! arriving item goes to the worker with the fewest items. Like a thread that wakes up, it starts with the
//! least virtual runtime of that worker minus a credit. It preempts the running item if that is ahead by more
//! than the wake-up granularity. A worker that becomes idle steals an item from the longest queue.
//!
//! Weights, periodic balancing between busy workers, ticks, and the deadlines of EEVDF are not modelled.

use super::{Assignment, Discipline, QueueItem, UNTIL_DONE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parameters of a [`FairScheduler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FairSchedulerParameters {
    /// Period in which every item of a queue runs once, unless slices would be too short.
    pub latency: u64,
    /// Shortest slice, at least 1.
    pub min_granularity: u64,
    /// Lead of the running item beyond which an arriving one preempts it; `None` means never.
    pub wakeup_granularity: Option<u64>,
    /// Virtual runtime by which an arriving item starts behind the others.
    pub credit: u64,
}

/// Virtual runtime of an item, its sequence number among arrivals, and the item; the least is served first.
type RuntimeKey = (u64, u64, u32);

#[derive(Debug, Clone, Default)]
struct RunQueue {
    waiting: BinaryHeap<Reverse<RuntimeKey>>,
    /// Running item with its virtual runtime at the instant beside it.
    running: Option<(RuntimeKey, u64)>,
    /// Least virtual runtime so far, which never decreases. New items start relative to it.
    least_runtime: u64,
}

impl FairSchedulerParameters {
    fn slice(&self, items: usize) -> u64 {
        (self.latency / items.max(1) as u64).max(self.min_granularity)
    }
}

impl RunQueue {
    fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// Returns the running item with its virtual runtime at `now`.
    fn running_at(&self, now: u64) -> Option<RuntimeKey> {
        let ((runtime, arrival, id), since) = self.running?;
        Some((runtime + (now - since), arrival, id))
    }

    /// Raises the least virtual runtime to that of the items of the queue.
    fn update_least_runtime(&mut self, now: u64) {
        let waiting = self.waiting.peek().map(|Reverse(key)| key.0);
        let running = self.running_at(now).map(|key| key.0);
        if let Some(least) = waiting.into_iter().chain(running).min() {
            self.least_runtime = self.least_runtime.max(least);
        }
    }
}

/// Fair sharing among the items of each worker.
#[derive(Debug, Clone)]
pub struct FairScheduler {
    parameters: FairSchedulerParameters,
    queues: Vec<RunQueue>,
    arrivals: u64,
}

impl FairScheduler {
    /// Creates a station with `workers` idle workers.
    ///
    /// # Panics
    /// When there are no workers or the minimum granularity is 0.
    pub fn new(workers: u32, parameters: FairSchedulerParameters) -> Self {
        assert!(workers > 0 && parameters.min_granularity > 0, "workers and granularity: at least 1");
        Self { parameters, queues: vec![RunQueue::default(); workers as usize], arrivals: 0 }
    }

    /// Assigns the item with the least virtual runtime of a queue to its worker.
    fn assign_next(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let queue = &mut self.queues[worker as usize];
        queue.running = queue.waiting.pop().map(|Reverse(key)| (key, now));
        queue.update_least_runtime(now);
        let Some((key, _)) = queue.running else { return };
        // An item that is alone in its queue gets a slice at the next arrival.
        let slice = if queue.waiting.is_empty() { UNTIL_DONE } else { self.parameters.slice(queue.len()) };
        assignments.push(Assignment { worker, item: key.2, slice });
    }

    /// Moves the next item of the longest queue to the queue of an idle worker.
    fn steal(&mut self, worker: u32) {
        let longest = (0..self.queues.len()).max_by_key(|at| (self.queues[*at].waiting.len(), Reverse(*at)));
        let Some(longest) = longest else { return };
        let from = &mut self.queues[longest];
        if let Some(Reverse((runtime, arrival, id))) = from.waiting.pop() {
            // Virtual runtimes of two queues have different origins: the item keeps its distance from the least one.
            let ahead = runtime.saturating_sub(from.least_runtime);
            let to = &mut self.queues[worker as usize];
            to.waiting.push(Reverse((to.least_runtime.saturating_add(ahead), arrival, id)));
        }
    }

    /// Returns true if an item with this virtual runtime preempts the worker's item.
    fn preempts(&self, now: u64, worker: usize, runtime: u64) -> bool {
        match (self.queues[worker].running_at(now), self.parameters.wakeup_granularity) {
            (None, _) => true,
            (Some(running), Some(granularity)) => running.0 > runtime.saturating_add(granularity),
            (Some(_), None) => false,
        }
    }
}

impl Discipline for FairScheduler {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let worker = (0..self.queues.len()).min_by_key(|at| (self.queues[*at].len(), *at)).unwrap_or(0);
        self.queues[worker].update_least_runtime(now);
        let runtime = self.queues[worker].least_runtime.saturating_sub(self.parameters.credit);
        let preempts = self.preempts(now, worker, runtime);
        let queue = &mut self.queues[worker];
        queue.waiting.push(Reverse((runtime, self.arrivals, item.id)));
        self.arrivals += 1;
        #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
        let number = worker as u32;
        if preempts {
            // The displaced item has a larger virtual runtime than the arriving one, which is therefore next.
            queue.waiting.extend(queue.running_at(now).map(Reverse));
            self.assign_next(now, number, assignments);
        } else if let Some(((_, _, id), since)) = queue.running {
            // The queue is longer than at the start of this slice, so the slice ends earlier.
            let slice = self.parameters.slice(queue.len()).saturating_sub(now - since);
            assignments.push(Assignment { worker: number, item: id, slice });
        }
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let queue = &mut self.queues[worker as usize];
        queue.update_least_runtime(now);
        queue.running = None;
        if queue.waiting.is_empty() {
            self.steal(worker);
        }
        self.assign_next(now, worker, assignments);
    }

    fn expire(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let queue = &mut self.queues[worker as usize];
        if let Some(running) = queue.running_at(now) {
            queue.waiting.push(Reverse(running));
        }
        self.assign_next(now, worker, assignments);
    }

    fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }
}
