//! One queue in front of all workers, without preemption.

use super::{Assignment, Discipline, QueueItem, UNTIL_DONE, WaitingLine};
use crate::bit_set::BitSet;

/// A station whose idle workers take the next item of one queue and keep it until it is done.
#[derive(Debug, Clone)]
pub struct CentralQueue<L> {
    line: L,
    idle: BitSet,
}

impl<L: WaitingLine> CentralQueue<L> {
    /// Creates a station with `workers` idle workers and an empty queue.
    ///
    /// # Panics
    /// When there are no workers, or the queue is not empty.
    pub fn new(workers: u32, line: L) -> Self {
        assert!(workers > 0 && line.is_empty(), "at least one worker, and nothing that waits");
        Self { line, idle: BitSet::full(workers as usize) }
    }
}

impl<L: WaitingLine> Discipline for CentralQueue<L> {
    #[inline]
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        self.line.push(item);
        if let Some(worker) = self.idle.first() {
            self.idle.remove(worker);
            #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
            self.assign_next(worker as u32, assignments);
        }
    }

    #[inline]
    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.assign_next(worker, assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn take_worker(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Assignment>) {
        self.idle.remove(worker as usize);
    }

    fn return_worker(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.assign_next(worker, assignments);
    }

    fn waiting(&self) -> usize {
        self.line.len()
    }
}

impl<L: WaitingLine> CentralQueue<L> {
    #[inline]
    fn assign_next(&mut self, worker: u32, assignments: &mut Vec<Assignment>) {
        match self.line.pop() {
            Some(item) => assignments.push(Assignment { worker, item, slice: UNTIL_DONE }),
            None => self.idle.insert(worker as usize),
        }
    }
}
