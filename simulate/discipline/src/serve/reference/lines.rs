//! Reference implementations of random and proportional disciplines.

use super::super::test_driver::{jobs, play};
use super::super::{Assignment, Discipline, DisciplineSpec, QueueChoice, QueueItem, UNTIL_DONE};
use super::{SEED, build};
use crate::split_mix::SplitMix64;
use proptest::prelude::*;

/// Waiting items in a list. Draws use the discipline's generator, and the last item takes the place of the
/// drawn one.
struct Lots {
    random: SplitMix64,
    on: Vec<Option<u32>>,
    waiting: Vec<u32>,
}

impl Lots {
    fn serve(&mut self, assignments: &mut Vec<Assignment>) {
        while let Some(worker) = self.on.iter().position(Option::is_none)
            && !self.waiting.is_empty()
        {
            let drawn = self.random.below(self.waiting.len());
            let item = self.waiting[drawn];
            self.waiting[drawn] = *self.waiting.last().unwrap();
            self.waiting.pop();
            self.on[worker] = Some(item);
            assignments.push(Assignment { worker: u32::try_from(worker).unwrap(), item, slice: UNTIL_DONE });
        }
    }
}

impl Discipline for Lots {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        self.waiting.push(item.id);
        self.serve(assignments);
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.on[worker as usize] = None;
        self.serve(assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// All items in one list in order of arrival, each with its worker; the first of a worker is in service.
struct Queues {
    choice: QueueChoice,
    random: SplitMix64,
    inside: Vec<(usize, u32)>,
    workers: usize,
}

impl Queues {
    fn choose(&mut self) -> usize {
        let length = |worker: usize| self.inside.iter().filter(|(on, _)| *on == worker).count();
        if self.choice == QueueChoice::Shortest {
            return (0..self.workers).rev().min_by_key(|worker| (length(*worker), *worker)).unwrap();
        }
        let first = self.random.below(self.workers);
        if self.choice == QueueChoice::Random || self.workers == 1 {
            return first;
        }
        let others: Vec<usize> = (0..self.workers).filter(|worker| *worker != first).collect();
        let second = others[self.random.below(self.workers - 1)];
        let length = |worker: usize| self.inside.iter().filter(|(on, _)| *on == worker).count();
        if (length(first), first) < (length(second), second) { first } else { second }
    }
}

impl Discipline for Queues {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let worker = self.choose();
        if self.inside.iter().all(|(on, _)| *on != worker) {
            assignments.push(Assignment {
                worker: u32::try_from(worker).unwrap(),
                item: item.id,
                slice: UNTIL_DONE,
            });
        }
        self.inside.push((worker, item.id));
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let of = |inside: &[(usize, u32)]| inside.iter().position(|(on, _)| *on == worker as usize);
        let done = of(&self.inside).unwrap();
        self.inside.remove(done);
        if let Some(next) = of(&self.inside) {
            assignments.push(Assignment { worker, item: self.inside[next].1, slice: UNTIL_DONE });
        }
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn waiting(&self) -> usize {
        let busy = (0..self.workers).filter(|worker| self.inside.iter().any(|(on, _)| on == worker)).count();
        self.inside.len() - busy
    }
}

/// Start-time fair queueing by its definition: every item gets its start and end in virtual time when it arrives.
struct Tags {
    weights: [u32; 3],
    ends: [u64; 3],
    virtual_now: u64,
    arrivals: u64,
    on: Vec<bool>,
    waiting: Vec<(u64, u64, u32)>,
}

impl Tags {
    fn new(workers: u32, weights: [u32; 3]) -> Self {
        let on = vec![false; workers as usize];
        Self { weights, ends: [0; 3], virtual_now: 0, arrivals: 0, on, waiting: Vec::new() }
    }

    fn serve(&mut self, assignments: &mut Vec<Assignment>) {
        while let Some(worker) = self.on.iter().position(|on| !on)
            && let Some(next) = self.waiting.iter().copied().min()
        {
            self.waiting.retain(|other| *other != next);
            self.virtual_now = next.0;
            self.on[worker] = true;
            assignments.push(Assignment {
                worker: u32::try_from(worker).unwrap(),
                item: next.2,
                slice: UNTIL_DONE,
            });
        }
    }
}

impl Discipline for Tags {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let class = item.class as usize;
        let start = self.virtual_now.max(self.ends[class]);
        self.ends[class] = start + (item.size << 16) / u64::from(self.weights[class]);
        self.waiting.push((start, self.arrivals, item.id));
        self.arrivals += 1;
        self.serve(assignments);
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.on[worker as usize] = false;
        self.serve(assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

proptest! {
    #[test]
    fn random_order_agrees_with_a_list_that_draws_the_same_lots(workers in 1u32..4, jobs in jobs()) {
        let got = play(workers, &jobs, &mut build(&DisciplineSpec::RandomOrder, workers));
        let random = SplitMix64::new(SEED);
        prop_assert_eq!(got, play(workers, &jobs, &mut Lots { random, on: vec![None; workers as usize], waiting: vec![] }));
    }

    #[test]
    fn queues_of_their_own_agree_with_lists(workers in 1u32..5, jobs in jobs()) {
        for choice in [QueueChoice::Random, QueueChoice::Shortest, QueueChoice::TwoChoices] {
            let got = play(workers, &jobs, &mut build(&DisciplineSpec::Split(choice), workers));
            let mut twin = Queues { choice, random: SplitMix64::new(SEED), inside: vec![], workers: workers as usize };
            prop_assert_eq!(got, play(workers, &jobs, &mut twin), "{:?}", choice);
        }
    }

    #[test]
    fn shares_agree_with_tags_given_at_arrival(
        workers in 1u32..4, jobs in jobs(), weights in prop::array::uniform3(1u32..9),
    ) {
        let kind = DisciplineSpec::Proportional { weights: weights.to_vec() };
        let got = play(workers, &jobs, &mut build(&kind, workers));
        prop_assert_eq!(got, play(workers, &jobs, &mut Tags::new(workers, weights)));
    }
}
