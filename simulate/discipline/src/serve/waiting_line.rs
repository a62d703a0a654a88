//! Waiting lines: the choice of the next item when a worker becomes idle.

use super::QueueItem;
use super::start_time_fair_queue::StartTimeFairQueue;
use crate::RequestKey;
use crate::StrictPriority;
use crate::split_mix::SplitMix64;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Waiting items in the order of a discipline.
pub trait WaitingLine {
    /// Adds an item to the line.
    fn push(&mut self, item: QueueItem);
    /// Removes and returns the next item.
    fn pop(&mut self) -> Option<u32>;
    /// Returns the number of items in the line.
    fn len(&self) -> usize;
    /// Returns true if the line has no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The order of arrival: first come, first served.
impl WaitingLine for VecDeque<u32> {
    #[inline]
    fn push(&mut self, item: QueueItem) {
        self.push_back(item.id);
    }
    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.pop_front()
    }
    fn len(&self) -> usize {
        VecDeque::len(self)
    }
}

/// Last come, first served.
#[derive(Debug, Clone, Default)]
pub struct Lifo(Vec<u32>);

impl WaitingLine for Lifo {
    fn push(&mut self, item: QueueItem) {
        self.0.push(item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A line whose next item is chosen uniformly at random.
#[derive(Debug, Clone)]
pub struct RandomOrder {
    items: Vec<u32>,
    random: SplitMix64,
}

impl RandomOrder {
    /// Creates an empty line; the same seed gives the same order.
    pub fn new(seed: u64) -> Self {
        Self { items: Vec::new(), random: SplitMix64::new(seed) }
    }
}

impl WaitingLine for RandomOrder {
    fn push(&mut self, item: QueueItem) {
        self.items.push(item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        if self.items.is_empty() {
            return None;
        }
        let chosen = self.random.below(self.items.len());
        Some(self.items.swap_remove(chosen))
    }
    fn len(&self) -> usize {
        self.items.len()
    }
}

/// A level per class, level 0 first; first come, first served within a level.
impl WaitingLine for StrictPriority<u32> {
    fn push(&mut self, item: QueueItem) {
        StrictPriority::push(self, item.class as usize, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        StrictPriority::pop(self).map(|(_, id)| id)
    }
    fn len(&self) -> usize {
        StrictPriority::len(self)
    }
}

/// Items by a key, then by arrival.
#[derive(Debug, Clone, Default)]
struct KeyedHeap {
    heap: BinaryHeap<Reverse<(RequestKey, u64, u32)>>,
    arrivals: u64,
}

impl KeyedHeap {
    fn push(&mut self, key: RequestKey, id: u32) {
        self.heap.push(Reverse((key, self.arrivals, id)));
        self.arrivals += 1;
    }

    fn pop(&mut self) -> Option<u32> {
        self.heap.pop().map(|Reverse((_, _, id))| id)
    }
}

/// Oldest first by the time of entry into the whole system, which is global first come, first served.
#[derive(Debug, Clone, Default)]
pub struct OldestFirst(KeyedHeap);

impl WaitingLine for OldestFirst {
    fn push(&mut self, item: QueueItem) {
        self.0.push(RequestKey(item.age), item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop()
    }
    fn len(&self) -> usize {
        self.0.heap.len()
    }
}

/// Earliest deadline first; a deadline is the time of entry into the system plus the time allowed to the
/// class.
#[derive(Debug, Clone)]
pub struct EarliestDeadlineFirst {
    allowed: Vec<u64>,
    line: KeyedHeap,
}

impl EarliestDeadlineFirst {
    /// Creates an empty line; `allowed[class]` is the time from entry to deadline.
    pub fn new(allowed: Vec<u64>) -> Self {
        Self { allowed, line: KeyedHeap::default() }
    }
}

impl WaitingLine for EarliestDeadlineFirst {
    fn push(&mut self, item: QueueItem) {
        let deadline = RequestKey::due(item.age, self.allowed[item.class as usize]);
        self.line.push(deadline, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.line.pop()
    }
    fn len(&self) -> usize {
        self.line.heap.len()
    }
}

/// Service in proportion to weights by start-time fair queueing. Uses sizes.
///
/// Among classes that are always backlogged, the work served differs from the shares by less than the largest
/// item of each.
#[derive(Debug, Clone)]
pub struct ProportionalShare(StartTimeFairQueue<u32>);

impl ProportionalShare {
    /// Creates an empty line; `weights[class]` are at least 1.
    ///
    /// # Panics
    /// When a weight is 0.
    pub fn new(weights: Vec<u32>) -> Self {
        Self(StartTimeFairQueue::new(weights))
    }
}

impl WaitingLine for ProportionalShare {
    fn push(&mut self, item: QueueItem) {
        self.0.push(item.class as usize, item.size, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}
