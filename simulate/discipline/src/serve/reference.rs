//! Every discipline against a simple reference implementation that searches lists from end to end.

mod deadlines;
mod lines;
mod queues;

use super::test_driver::{Job, Other, conserves_work, jobs, play, play_with};
use super::{
    AnyDiscipline, Assignment, BuiltDiscipline, Discipline, DisciplineSpec, FairSchedulerParameters,
    LimitScope, LimitedSharingParameters, PoolEntrance, PoolOrder, QueueChoice, QueueItem, UNTIL_DONE,
};
use proptest::prelude::*;

const SEED: u64 = 7;

fn build(kind: &DisciplineSpec, workers: u32) -> AnyDiscipline {
    match kind.build(workers, SEED) {
        BuiltDiscipline::Workers(any) => any,
        BuiltDiscipline::Shared(_) => unreachable!("{kind:?} has workers"),
    }
}

/// One list of all items. On any change the workers serve the items that `rank` puts first; with `preempt` an
/// item may lose its worker. For disciplines whose choice is a rank that does not change.
struct List<R> {
    rank: R,
    preempt: bool,
    /// Items with their sequence numbers among arrivals, in that order.
    present: Vec<(usize, QueueItem)>,
    on: Vec<Option<u32>>,
    arrivals: usize,
}

impl<R: Fn(usize, &QueueItem) -> (i64, i64)> List<R> {
    fn new(workers: u32, preempt: bool, rank: R) -> Self {
        Self { rank, preempt, present: Vec::new(), on: vec![None; workers as usize], arrivals: 0 }
    }

    fn ranked(&self, wanted: impl Fn(u32) -> bool) -> Vec<(i64, i64, u32)> {
        let mut ranked: Vec<_> = (self.present.iter())
            .filter(|(_, item)| wanted(item.id))
            .map(|(position, item)| {
                let (first, second) = (self.rank)(*position, item);
                (first, second, item.id)
            })
            .collect();
        ranked.sort_unstable();
        ranked
    }

    fn decide(&mut self, assignments: &mut Vec<Assignment>) {
        let waiting = |list: &Self| list.ranked(|id| !list.on.contains(&Some(id)));
        while let (Some(worker), Some(next)) =
            (self.on.iter().position(Option::is_none), waiting(self).first().copied())
        {
            self.take(worker, next.2, assignments);
        }
        while self.preempt
            && let (Some(worst), Some(next)) = (
                self.ranked(|id| self.on.contains(&Some(id))).last().copied(),
                waiting(self).first().copied(),
            )
            && next < worst
        {
            let worker = self.on.iter().position(|on| *on == Some(worst.2)).unwrap();
            self.take(worker, next.2, assignments);
        }
    }

    fn take(&mut self, worker: usize, item: u32, assignments: &mut Vec<Assignment>) {
        self.on[worker] = Some(item);
        assignments.push(Assignment { worker: u32::try_from(worker).unwrap(), item, slice: UNTIL_DONE });
    }
}

impl<R: Fn(usize, &QueueItem) -> (i64, i64)> Discipline for List<R> {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        self.present.push((self.arrivals, item));
        self.arrivals += 1;
        self.decide(assignments);
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let gone = self.on[worker as usize].take().unwrap();
        self.present.retain(|(_, item)| item.id != gone);
        self.decide(assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn waiting(&self) -> usize {
        self.present.len() - self.on.iter().flatten().count()
    }
}

fn int(value: impl TryInto<i64>) -> i64 {
    value.try_into().ok().unwrap()
}

type Rank = fn(usize, &QueueItem) -> (i64, i64);

const ALLOWED: [u64; 3] = [30, 5, 90];

/// Disciplines that are defined by a rank, each with a flag for preemption.
fn by_rank() -> Vec<(DisciplineSpec, bool, Rank)> {
    let class: Rank = |position, item| (int(item.class), int(position));
    let age: Rank = |position, item| (int(item.age), int(position));
    let deadline: Rank = |position, item| (int(item.age + ALLOWED[item.class as usize]), int(position));
    vec![
        (DisciplineSpec::Fifo, false, |position, _| (int(position), 0)),
        (DisciplineSpec::Lifo, false, |position, _| (-int(position), 0)),
        (DisciplineSpec::Priority { levels: 3 }, false, class),
        (DisciplineSpec::PreemptivePriority { levels: 3 }, true, class),
        (DisciplineSpec::OldestFirst, false, age),
        (DisciplineSpec::PreemptiveOldestFirst, true, age),
        (DisciplineSpec::Deadline { allowed: ALLOWED.to_vec() }, false, deadline),
        (DisciplineSpec::PreemptiveDeadline { allowed: ALLOWED.to_vec() }, true, deadline),
    ]
}

/// ORF as §4 of TailClipper words it, instant by instant: every slice is timed even if no item waits, and
/// every decision sorts the whole pool.
struct Orf {
    parameters: LimitedSharingParameters,
    /// Time from entry to deadline by class; zeros if age decides.
    allowed: [u64; 3],
    limit: usize,
    queue: Vec<Key>,
    heap: Vec<Key>,
    on: Vec<Option<Key>>,
    away: Vec<bool>,
    arrivals: u64,
}

type Key = (u64, u64, u32);

impl Orf {
    fn new(workers: u32, parameters: LimitedSharingParameters) -> Self {
        let least = if parameters.count == LimitScope::Pool { workers } else { 1 };
        let limit = parameters.limit.max(least) as usize;
        let on = vec![None; workers as usize];
        let away = vec![false; workers as usize];
        let allowed = [0; 3];
        Self { parameters, allowed, limit, queue: Vec::new(), heap: Vec::new(), on, away, arrivals: 0 }
    }

    fn by_deadline(self, allowed: [u64; 3]) -> Self {
        Self { allowed, ..self }
    }

    fn pool(&self) -> Vec<Key> {
        let mut pool = self.queue.clone();
        if self.parameters.count == LimitScope::Pool {
            pool.extend(self.on.iter().flatten());
        }
        pool.sort_unstable();
        pool
    }

    fn give(&mut self, worker: usize, key: Key, assignments: &mut Vec<Assignment>) {
        self.on[worker] = Some(key);
        let worker = u32::try_from(worker).unwrap();
        assignments.push(Assignment { worker, item: key.2, slice: self.parameters.slice });
    }

    /// One scheduling round without ends of slices: idle workers first, then the size of the pool.
    fn round(&mut self, assignments: &mut Vec<Assignment>) {
        loop {
            let is_idle = |list: &Self, worker: &usize| list.on[*worker].is_none() && !list.away[*worker];
            while let Some(idle) = (0..self.on.len()).find(|worker| is_idle(self, worker))
                && !self.queue.is_empty()
            {
                let next = self.queue.remove(0);
                self.give(idle, next, assignments);
            }
            while self.pool().len() > self.limit
                && let Some(at) = self.queue.iter().position(|key| Some(key) == self.pool().last())
            {
                let youngest = self.queue.remove(at);
                self.heap.push(youngest);
            }
            if self.pool().len() >= self.limit || self.heap.is_empty() {
                return;
            }
            self.heap.sort_unstable();
            let oldest = self.heap.remove(0);
            self.queue.push(oldest);
        }
    }
}

impl Discipline for Orf {
    fn arrive(&mut self, _now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let due = item.age + self.allowed[item.class as usize];
        let time = if self.parameters.order == PoolOrder::Age { due } else { self.arrivals };
        let key = (time, self.arrivals, item.id);
        self.arrivals += 1;
        let pool = self.pool();
        let worst = (0..self.on.len()).max_by_key(|worker| self.on[*worker]).unwrap();
        let preempts =
            self.parameters.entrance == PoolEntrance::Preempt && self.on[worst].is_some_and(|on| key < on);
        if pool.len() < self.limit {
            self.queue.push(key);
        } else if self.parameters.entrance == PoolEntrance::Wait
            || pool.last().is_none_or(|youngest| key > *youngest)
        {
            self.heap.push(key);
        } else if preempts {
            // The item that the round sends to the heap if it is the youngest of all.
            self.queue.extend(self.on[worst]);
            self.give(worst, key, assignments);
        } else if self.parameters.entrance == PoolEntrance::Back {
            self.queue.push(key);
        } else {
            self.queue.insert(0, key);
        }
        self.round(assignments);
    }

    fn depart(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.on[worker as usize] = None;
        self.round(assignments);
    }

    fn expire(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let worker = worker as usize;
        let key = self.on[worker].unwrap();
        let pool = self.pool();
        if pool.len() > self.limit && pool.last() == Some(&key) {
            self.heap.push(key);
        } else {
            self.queue.push(key);
        }
        let next = self.queue.remove(0);
        self.give(worker, next, assignments);
        self.round(assignments);
    }

    fn take_worker(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.away[worker as usize] = true;
        self.queue.extend(self.on[worker as usize].take());
        self.round(assignments);
    }

    fn return_worker(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.away[worker as usize] = false;
        self.round(assignments);
    }

    fn waiting(&self) -> usize {
        self.queue.len() + self.heap.len()
    }
}

/// Other work on workers; a worker is away at most once at a time.
fn other(workers: u32) -> impl Strategy<Value = Vec<Other>> {
    let of_worker = |worker: u32| {
        proptest::collection::vec((0u64..20, 1u64..15), 0..4).prop_map(move |drawn| {
            let mut free = 0;
            let one = |(gap, length): (u64, u64)| {
                let from = free + gap;
                free = from + length;
                (worker, from, length)
            };
            drawn.into_iter().map(one).collect::<Vec<Other>>()
        })
    };
    (0..workers).map(of_worker).collect::<Vec<_>>().prop_map(|all| all.concat())
}

fn limited() -> impl Strategy<Value = LimitedSharingParameters> {
    let order = prop::sample::select(vec![PoolOrder::Age, PoolOrder::Arrival]);
    let count = prop::sample::select(vec![LimitScope::Pool, LimitScope::Queue]);
    use PoolEntrance::{Back, Front, Preempt, Wait};
    let entrance = prop::sample::select(vec![Back, Front, Preempt, Wait]);
    let limit = prop_oneof![4 => 1u32..7, 1 => Just(u32::MAX)];
    (limit, 1u64..6, order, count, entrance).prop_map(|(limit, slice, order, count, entrance)| {
        LimitedSharingParameters { limit, slice, order, count, entrance }
    })
}

fn fair() -> FairSchedulerParameters {
    FairSchedulerParameters { latency: 10, min_granularity: 2, wakeup_granularity: Some(1), credit: 5 }
}

proptest! {
    #[test]
    fn ranks_agree_with_a_searched_list(workers in 1u32..4, jobs in jobs()) {
        for (kind, preempt, rank) in by_rank() {
            let got = play(workers, &jobs, &mut build(&kind, workers));
            let judge = play(workers, &jobs, &mut List::new(workers, preempt, rank));
            prop_assert_eq!(got, judge, "{:?}", kind);
        }
    }

    #[test]
    fn what_other_work_displaces_is_queued_as_the_paper_says(
        (workers, other) in (1u32..4).prop_flat_map(|workers| (Just(workers), other(workers))),
        parameters in limited(),
        jobs in jobs(),
    ) {
        let got = play_with(workers, &jobs, &other, &mut build(&DisciplineSpec::Limited(parameters), workers));
        let judge = play_with(workers, &jobs, &other, &mut Orf::new(workers, parameters));
        prop_assert_eq!(got, judge);
    }

    #[test]
    fn limited_sharing_agrees_with_the_words_of_the_paper(
        workers in 1u32..4, jobs in jobs(), parameters in limited(),
    ) {
        let got = play(workers, &jobs, &mut build(&DisciplineSpec::Limited(parameters), workers));
        let judge = play(workers, &jobs, &mut Orf::new(workers, parameters));
        prop_assert_eq!(got, judge);
    }

    #[test]
    fn one_line_and_fair_queues_conserve_work(workers in 1u32..4, jobs in jobs(), parameters in limited()) {
        let more = [
            DisciplineSpec::RandomOrder,
            DisciplineSpec::Proportional { weights: vec![1, 2, 5] },
            DisciplineSpec::Fair(fair()),
            DisciplineSpec::Limited(parameters),
        ];
        for kind in by_rank().into_iter().map(|(kind, _, _)| kind).chain(more) {
            let history = play(workers, &jobs, &mut build(&kind, workers));
            prop_assert!(conserves_work(&history, &jobs), "{:?}", kind);
        }
    }

    /// An item that leaves the heap is older than those that stay. With c at least the size of the pool, the
    /// c oldest have the workers at every end of a slice. Checked in the exact case: non-preemptive, c =
    /// workers.
    #[test]
    fn a_limit_of_the_workers_is_global_first_come_first_served(workers in 1u32..4, jobs in jobs()) {
        let orf = DisciplineSpec::Limited(LimitedSharingParameters::oldest_first(1, u64::MAX / 2));
        // With arrivals in order of age, no arrival is older than an item in service.
        let in_order: Vec<Job> = jobs.iter().map(|job| Job { age: job.at, ..*job }).collect();
        let got = play(workers, &in_order, &mut build(&orf, workers));
        prop_assert_eq!(got, play(workers, &in_order, &mut build(&DisciplineSpec::OldestFirst, workers)));
    }

    #[test]
    fn queues_per_worker_keep_their_order(workers in 1u32..5, jobs in jobs()) {
        for choice in [QueueChoice::Random, QueueChoice::Shortest, QueueChoice::TwoChoices] {
            let history = play(workers, &jobs, &mut build(&DisciplineSpec::Split(choice), workers));
            for worker in 0..workers as usize {
                let mut served: Vec<u32> = history.iter().filter_map(|on| on[worker]).collect();
                prop_assert!(served.is_sorted(), "{:?}", choice);
                served.dedup();
                let whole = |item: &u32| {
                    let units = history.iter().filter(|on| on[worker] == Some(*item)).count();
                    units as u64 == jobs[*item as usize].size
                };
                prop_assert!(served.iter().all(whole));
            }
        }
    }
}

/// Returns the units of service of each class after `time`.
fn served(history: &[Vec<Option<u32>>], jobs: &[Job], time: usize) -> Vec<u64> {
    let mut served = vec![0; 3];
    history[..time]
        .iter()
        .flatten()
        .flatten()
        .for_each(|item| served[jobs[*item as usize].class as usize] += 1);
    served
}

#[test]
fn shares_are_those_of_the_weights() {
    // All arrive at the beginning. Until the first class is empty, shares are 1 : 2 : 5 within one item.
    let job = |i: u32| Job { at: 0, class: i % 3, age: 0, size: u64::from(i % 4 + 1) };
    let jobs: Vec<Job> = (0..600).map(job).collect();
    let kind = DisciplineSpec::Proportional { weights: vec![1, 2, 5] };
    let history = play(1, &jobs, &mut build(&kind, 1));
    let time = 700;
    for (served, share) in served(&history, &jobs, time).into_iter().zip([1.0, 2.0, 5.0]) {
        let exact = time as f64 * share / 8.0;
        assert!((served as f64 - exact).abs() <= 8.0, "{served} instead of {exact}");
    }
}

#[test]
fn fair_sharing_gives_everybody_the_same_on_one_worker() {
    let jobs = vec![Job { at: 0, class: 0, age: 0, size: 100 }; 5];
    let history = play(1, &jobs, &mut build(&DisciplineSpec::Fair(fair()), 1));
    for time in [50, 200, 333] {
        for item in 0..5 {
            let units = history[..time].iter().filter(|on| on[0] == Some(item)).count();
            assert!(units.abs_diff(time / 5) <= 2, "item {item}: {units} of {time}");
        }
    }
}

#[test]
fn a_waking_item_preempts_a_long_one_and_a_short_wait_does_not() {
    let long = Job { at: 0, class: 0, age: 0, size: 50 };
    let short = Job { at: 20, class: 0, age: 20, size: 3 };
    let start = |wakeup_granularity, credit| {
        let parameters =
            FairSchedulerParameters { wakeup_granularity, credit, latency: 44, min_granularity: 10 };
        let history = play(1, &[long, short], &mut build(&DisciplineSpec::Fair(parameters), 1));
        history.iter().position(|on| on[0] == Some(1)).unwrap()
    };
    assert_eq!(start(Some(4), 5), 20);
    // Not far enough behind, or never: at the end of the slice of 44/2.
    assert_eq!((start(Some(4), 4), start(None, 5)), (22, 22));
}

proptest! {
    /// Without age no item is sent back, so at most c have begun and are not done.
    #[test]
    fn no_more_than_the_limit_are_under_way(workers in 1u32..4, jobs in jobs(), limit in 1u32..6, slice in 1u64..5) {
        let kind = DisciplineSpec::Limited(LimitedSharingParameters::without_age(limit, slice));
        let history = play(workers, &jobs, &mut build(&kind, workers));
        let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
        for on in &history {
            on.iter().flatten().for_each(|item| left[*item as usize] -= 1);
            let begun = jobs.iter().zip(&left).filter(|(job, left)| **left > 0 && **left < job.size).count();
            prop_assert!(begun <= limit.max(workers) as usize);
        }
    }
}

#[test]
fn a_pool_that_was_too_large_shrinks_when_an_item_departs() {
    // Two are admitted at 17 while the youngest assignments; when it is done at 20 one of them is too many still.
    let job = |at, age, size| Job { at, class: 0, age, size };
    let jobs = [job(2, 2, 18), job(12, 0, 11), job(17, 0, 3), job(17, 1, 1)];
    let parameters = LimitedSharingParameters::oldest_first(1, 5);
    let history = play(2, &jobs, &mut build(&DisciplineSpec::Limited(parameters), 2));
    assert_eq!(history, play(2, &jobs, &mut Orf::new(2, parameters)));
    assert_eq!(history.last().unwrap(), &[Some(3), None]);
}
