//! A queue per worker: an arriving item joins one of them and stays there.

use super::{Assignment, Discipline, QueueItem, UNTIL_DONE};
use crate::split_mix::SplitMix64;
use std::collections::VecDeque;

/// Choice of the queue for an arriving item. Lengths count the item in service, and ties go to the lowest
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueChoice {
    /// Any queue, uniformly at random.
    Random,
    /// The shortest of all queues.
    Shortest,
    /// The shorter of two distinct random queues (Mitzenmacher).
    TwoChoices,
}

/// Workers with queues of their own, first come, first served.
#[derive(Debug, Clone)]
pub struct QueuePerWorker {
    choice: QueueChoice,
    /// The queues by worker, each with the item in service at its head.
    queues: Vec<VecDeque<u32>>,
    random: SplitMix64,
}

impl QueuePerWorker {
    /// Creates a station with `workers` idle workers; the same seed gives the same choices.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn new(workers: u32, choice: QueueChoice, seed: u64) -> Self {
        assert!(workers > 0, "at least one worker");
        Self { choice, queues: vec![VecDeque::new(); workers as usize], random: SplitMix64::new(seed) }
    }

    fn length(&self, worker: usize) -> (usize, usize) {
        (self.queues[worker].len(), worker)
    }

    fn choose_queue(&mut self) -> usize {
        let count = self.queues.len();
        match self.choice {
            QueueChoice::Shortest => (0..count).min_by_key(|worker| self.length(*worker)).unwrap_or(0),
            QueueChoice::TwoChoices if count > 1 => {
                let first = self.random.below(count);
                let other = self.random.below(count - 1);
                // `second` skips `first`, so all pairs are equally likely.
                let second = other + usize::from(other >= first);
                if self.length(second) < self.length(first) { second } else { first }
            }
            QueueChoice::Random | QueueChoice::TwoChoices => self.random.below(count),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
fn assignment(worker: usize, item: u32) -> Assignment {
    Assignment { worker: worker as u32, item, slice: UNTIL_DONE }
}

impl Discipline for QueuePerWorker {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let worker = self.choose_queue();
        self.queues[worker].push_back(item.id);
        if self.queues[worker].len() == 1 {
            assignments.push(assignment(worker, item.id));
        }
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let worker = worker as usize;
        self.queues[worker].pop_front();
        if let Some(next) = self.queues[worker].front() {
            assignments.push(assignment(worker, *next));
        }
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.len().saturating_sub(1)).sum()
    }
}
