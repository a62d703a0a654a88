//! One waiting line before all workers, no preemption.

use super::{Discipline, Item, Line, Run, UNTIL_DONE};
use crate::bits::BitSet;

/// An idle worker takes what is next in the line and keeps it until it is done.
#[derive(Debug, Clone)]
pub struct Central<L> {
    line: L,
    idle: BitSet,
}

impl<L: Line> Central<L> {
    /// All of `workers` are idle; `line` is empty.
    ///
    /// # Panics
    /// When there are no workers, or the line is not empty.
    pub fn new(workers: u32, line: L) -> Self {
        assert!(workers > 0 && line.is_empty(), "at least one worker, and nothing that waits");
        Self { line, idle: BitSet::full(workers as usize) }
    }
}

impl<L: Line> Discipline for Central<L> {
    #[inline]
    fn arrive(&mut self, _now: u64, item: Item, runs: &mut Vec<Run>) {
        self.line.push(item);
        if let Some(worker) = self.idle.first() {
            self.idle.remove(worker);
            // Workers were counted by a u32.
            #[allow(clippy::cast_possible_truncation)]
            self.next(worker as u32, runs);
        }
    }

    #[inline]
    fn depart(&mut self, _now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.next(worker, runs);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Run>) {}

    fn leave(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Run>) {
        self.idle.remove(worker as usize);
    }

    fn back(&mut self, _now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.next(worker, runs);
    }

    fn waiting(&self) -> usize {
        self.line.len()
    }
}

impl<L: Line> Central<L> {
    #[inline]
    fn next(&mut self, worker: u32, runs: &mut Vec<Run>) {
        match self.line.pop() {
            Some(item) => runs.push(Run { worker, item, slice: UNTIL_DONE }),
            None => self.idle.insert(worker as usize),
        }
    }
}
