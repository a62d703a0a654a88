//! Waiting lines: which item comes next when a worker becomes free.

use super::Item;
use super::shares::Shares;
use crate::StrictPriority;
use crate::random::SplitMix;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Items that wait, in the order of a discipline.
pub trait Line {
    /// Puts an item in.
    fn push(&mut self, item: Item);
    /// Takes the next one out.
    fn pop(&mut self) -> Option<u32>;
    /// Items inside.
    fn len(&self) -> usize;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// First come, first served.
impl Line for VecDeque<u32> {
    #[inline]
    fn push(&mut self, item: Item) {
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

impl Line for Lifo {
    fn push(&mut self, item: Item) {
        self.0.push(item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Any of those that wait, with equal chances.
#[derive(Debug, Clone)]
pub struct RandomOrder {
    items: Vec<u32>,
    random: SplitMix,
}

impl RandomOrder {
    /// The same seed gives the same order.
    pub fn new(seed: u64) -> Self {
        Self { items: Vec::new(), random: SplitMix::new(seed) }
    }
}

impl Line for RandomOrder {
    fn push(&mut self, item: Item) {
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
impl Line for StrictPriority<u32> {
    fn push(&mut self, item: Item) {
        StrictPriority::push(self, item.class as usize, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        StrictPriority::pop(self).map(|(_, id)| id)
    }
    fn len(&self) -> usize {
        StrictPriority::len(self)
    }
}

/// Items by a number, then by arrival.
#[derive(Debug, Clone, Default)]
struct Numbered {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrivals: u64,
}

impl Numbered {
    fn push(&mut self, number: u64, id: u32) {
        self.heap.push(Reverse((number, self.arrivals, id)));
        self.arrivals += 1;
    }

    fn pop(&mut self) -> Option<(u64, u32)> {
        self.heap.pop().map(|Reverse((number, _, id))| (number, id))
    }
}

/// Oldest first by the time of entry into the whole system: global first come, first served.
#[derive(Debug, Clone, Default)]
pub struct ByAge(Numbered);

impl Line for ByAge {
    fn push(&mut self, item: Item) {
        self.0.push(item.age, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop().map(|(_, id)| id)
    }
    fn len(&self) -> usize {
        self.0.heap.len()
    }
}

/// Earliest deadline first: a deadline is the time of entry plus what the class may take.
#[derive(Debug, Clone)]
pub struct ByDeadline {
    allowed: Vec<u64>,
    line: Numbered,
}

impl ByDeadline {
    /// `allowed[class]` is the time from entry to deadline.
    pub fn new(allowed: Vec<u64>) -> Self {
        Self { allowed, line: Numbered::default() }
    }
}

impl Line for ByDeadline {
    fn push(&mut self, item: Item) {
        let deadline = item.age.saturating_add(self.allowed[item.class as usize]);
        self.line.push(deadline, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.line.pop().map(|(_, id)| id)
    }
    fn len(&self) -> usize {
        self.line.heap.len()
    }
}

/// Shares in proportion to weights, by start-time fair queueing. Looks at sizes.
///
/// Among classes that always have items waiting, the work served differs from the shares by less than the
/// largest item of each.
#[derive(Debug, Clone)]
pub struct Proportional(Shares<u32>);

impl Proportional {
    /// `weights[class]`, each at least 1.
    ///
    /// # Panics
    /// When a weight is 0.
    pub fn new(weights: Vec<u32>) -> Self {
        Self(Shares::new(weights))
    }
}

impl Line for Proportional {
    fn push(&mut self, item: Item) {
        self.0.push(item.class as usize, item.size, item.id);
    }
    fn pop(&mut self) -> Option<u32> {
        self.0.pop()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}
