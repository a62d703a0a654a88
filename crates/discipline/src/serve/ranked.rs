//! Preemptive service by rank: the c items of lowest rank are the ones in service, at every instant.

use super::{Discipline, Item, Run, UNTIL_DONE};
use crate::bits::BitSet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What ranks an item; lower goes first, ties by arrival here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rank {
    /// The class as priority level.
    Class,
    /// The time of entry into the system.
    Age,
    /// The time of entry plus what the class may take.
    Deadline(Vec<u64>),
}

type Key = (u64, u64, u32);

/// Preemptive priority, earliest deadline first, or oldest first. What is displaced goes on where it was when it
/// is its turn again; a displaced item keeps its place among those of its rank. An arrival looks at all workers.
#[derive(Debug, Clone)]
pub struct Ranked {
    rank: Rank,
    waiting: BinaryHeap<Reverse<Key>>,
    running: Vec<Option<Key>>,
    idle: BitSet,
    arrivals: u64,
}

impl Ranked {
    /// All of `workers` are idle.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn new(workers: u32, rank: Rank) -> Self {
        assert!(workers > 0, "at least one worker");
        Self {
            rank,
            waiting: BinaryHeap::new(),
            running: vec![None; workers as usize],
            idle: BitSet::full(workers as usize),
            arrivals: 0,
        }
    }

    fn key(&mut self, item: &Item) -> Key {
        let rank = match &self.rank {
            Rank::Class => u64::from(item.class),
            Rank::Age => item.age,
            Rank::Deadline(allowed) => item.age.saturating_add(allowed[item.class as usize]),
        };
        self.arrivals += 1;
        (rank, self.arrivals, item.id)
    }

    fn start(&mut self, worker: u32, key: Key, runs: &mut Vec<Run>) {
        self.running[worker as usize] = Some(key);
        runs.push(Run { worker, item: key.2, slice: UNTIL_DONE });
    }
}

impl Discipline for Ranked {
    fn arrive(&mut self, _now: u64, item: Item, runs: &mut Vec<Run>) {
        let key = self.key(&item);
        // Workers were counted by a u32.
        #[allow(clippy::cast_possible_truncation)]
        if let Some(worker) = self.idle.first() {
            self.idle.remove(worker);
            self.start(worker as u32, key, runs);
            return;
        }
        let last = (0u32..).zip(&self.running).filter_map(|(worker, key)| Some(((*key)?, worker))).max();
        match last {
            Some((displaced, worker)) if key < displaced => {
                self.waiting.push(Reverse(displaced));
                self.start(worker, key, runs);
            }
            _ => self.waiting.push(Reverse(key)),
        }
    }

    fn depart(&mut self, _now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.running[worker as usize] = None;
        match self.waiting.pop() {
            Some(Reverse(key)) => self.start(worker, key, runs),
            None => self.idle.insert(worker as usize),
        }
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Run>) {}

    fn leave(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Run>) {
        self.idle.remove(worker as usize);
    }

    fn back(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.depart(now, worker, runs);
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
