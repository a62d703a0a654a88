//! Preemptive service by rank: at every instant the c items of the lowest ranks are in service.

use super::{Assignment, Discipline, QueueItem, UNTIL_DONE};
use crate::RequestKey;
use crate::bit_set::BitSet;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Definition of an item's rank. Lower ranks go first; ties are broken by arrival at this station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreemptiveRank {
    /// Class, as a priority level.
    Class,
    /// Time of entry into the system.
    Age,
    /// Deadline: the time of entry plus the time allowed to the class.
    Deadline(Vec<u64>),
}

/// Rank, sequence number among arrivals, and item.
type RankKey = (u64, u64, u32);

/// Preemptive priority, earliest deadline first, or oldest first. A displaced item keeps its place among
/// those of its rank, and resumes where it was interrupted. An arrival costs O(workers).
#[derive(Debug, Clone)]
pub struct PreemptiveRanked {
    rank: PreemptiveRank,
    waiting: BinaryHeap<Reverse<RankKey>>,
    running: Vec<Option<RankKey>>,
    idle: BitSet,
    arrivals: u64,
}

impl PreemptiveRanked {
    /// Creates a station with `workers` idle workers.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn new(workers: u32, rank: PreemptiveRank) -> Self {
        assert!(workers > 0, "at least one worker");
        Self {
            rank,
            waiting: BinaryHeap::new(),
            running: vec![None; workers as usize],
            idle: BitSet::full(workers as usize),
            arrivals: 0,
        }
    }

    fn key(&mut self, item: &QueueItem) -> RankKey {
        let rank = match &self.rank {
            PreemptiveRank::Class => u64::from(item.class),
            PreemptiveRank::Age => item.age,
            PreemptiveRank::Deadline(allowed) => RequestKey::due(item.age, allowed[item.class as usize]).0,
        };
        self.arrivals += 1;
        (rank, self.arrivals, item.id)
    }

    fn start(&mut self, worker: u32, key: RankKey, assignments: &mut Vec<Assignment>) {
        self.running[worker as usize] = Some(key);
        assignments.push(Assignment { worker, item: key.2, slice: UNTIL_DONE });
    }
}

impl Discipline for PreemptiveRanked {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let key = self.key(&item);
        #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
        if let Some(worker) = self.idle.first() {
            self.idle.remove(worker);
            self.start(worker as u32, key, assignments);
            return;
        }
        // At most one item is displaced: the last of those in service.
        let last = (0u32..).zip(&self.running).filter_map(|(worker, key)| Some(((*key)?, worker))).max();
        match last {
            Some((displaced, worker)) if key < displaced => {
                self.waiting.push(Reverse(displaced));
                self.start(worker, key, assignments);
            }
            _ => self.waiting.push(Reverse(key)),
        }
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.running[worker as usize] = None;
        match self.waiting.pop() {
            Some(Reverse(key)) => self.start(worker, key, assignments),
            None => self.idle.insert(worker as usize),
        }
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn take_worker(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Assignment>) {
        self.idle.remove(worker as usize);
    }

    fn return_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.depart(now, worker, assignments);
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
