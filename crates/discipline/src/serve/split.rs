//! A queue per worker: an arrival chooses one and stays there.

use super::{Discipline, Item, Run, UNTIL_DONE};
use crate::random::SplitMix;
use std::collections::VecDeque;

/// How an arrival chooses its worker. Lengths count the item in service; ties go to the lowest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Any, with equal chances.
    Random,
    /// The shortest queue; looks at all of them.
    Shortest,
    /// The shorter of two different ones, chosen with equal chances (Mitzenmacher).
    TwoChoices,
}

/// Queues of their own, first come, first served.
#[derive(Debug, Clone)]
pub struct Split {
    choice: Choice,
    /// The head is in service.
    queues: Vec<VecDeque<u32>>,
    random: SplitMix,
}

impl Split {
    /// All of `workers` are idle; the same seed gives the same choices.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn new(workers: u32, choice: Choice, seed: u64) -> Self {
        assert!(workers > 0, "at least one worker");
        Self { choice, queues: vec![VecDeque::new(); workers as usize], random: SplitMix::new(seed) }
    }

    fn choose(&mut self) -> usize {
        let count = self.queues.len();
        let length = |worker: &usize| (self.queues[*worker].len(), *worker);
        match self.choice {
            Choice::Shortest => (0..count).min_by_key(length).unwrap_or(0),
            Choice::TwoChoices if count > 1 => {
                let first = self.random.below(count);
                let other = self.random.below(count - 1);
                // Skips the first, so that all pairs have equal chances.
                let second = other + usize::from(other >= first);
                [first, second].into_iter().min_by_key(length).unwrap_or(first)
            }
            Choice::Random | Choice::TwoChoices => self.random.below(count),
        }
    }
}

/// Workers were counted by a u32.
#[allow(clippy::cast_possible_truncation)]
fn run(worker: usize, item: u32) -> Run {
    Run { worker: worker as u32, item, slice: UNTIL_DONE }
}

impl Discipline for Split {
    fn arrive(&mut self, _now: u64, item: Item, runs: &mut Vec<Run>) {
        let worker = self.choose();
        self.queues[worker].push_back(item.id);
        if self.queues[worker].len() == 1 {
            runs.push(run(worker, item.id));
        }
    }

    fn depart(&mut self, _now: u64, worker: u32, runs: &mut Vec<Run>) {
        let worker = worker as usize;
        self.queues[worker].pop_front();
        if let Some(next) = self.queues[worker].front() {
            runs.push(run(worker, *next));
        }
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Run>) {}

    fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.len().saturating_sub(1)).sum()
    }
}
