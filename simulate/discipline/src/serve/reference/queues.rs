//! Reference implementations of per-worker fair sharing and of shares under reactive control.

use super::super::test_driver::{jobs, play};
use super::super::{
    Assignment, Discipline, DisciplineSpec, FairSchedulerParameters, FeedbackClass, FeedbackParameters,
    QueueItem, UNTIL_DONE,
};
use super::build;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
struct Thread {
    worker: usize,
    runtime: u64,
    arrival: usize,
    id: u32,
    /// Instant from which it runs.
    since: Option<u64>,
}

/// Fair sharing as its module defines it: one list of all threads, searched for every decision.
struct FairTwin {
    parameters: FairSchedulerParameters,
    threads: Vec<Thread>,
    least: Vec<u64>,
    arrivals: usize,
}

impl FairTwin {
    fn on(&self, worker: usize) -> Vec<Thread> {
        self.threads.iter().copied().filter(|thread| thread.worker == worker).collect()
    }

    fn charged(now: u64, thread: &Thread) -> u64 {
        thread.runtime + thread.since.map_or(0, |since| now - since)
    }

    fn follow(&mut self, now: u64, worker: usize) {
        let least = self.on(worker).iter().map(|thread| Self::charged(now, thread)).min();
        self.least[worker] = self.least[worker].max(least.unwrap_or(0));
    }

    fn stop(&mut self, now: u64, worker: usize) {
        for thread in self.threads.iter_mut().filter(|thread| thread.worker == worker) {
            thread.runtime = Self::charged(now, thread);
            thread.since = None;
        }
    }

    fn slice(&self, worker: usize) -> u64 {
        (self.parameters.latency / self.on(worker).len() as u64).max(self.parameters.min_granularity)
    }

    fn next(&mut self, now: u64, worker: usize, assignments: &mut Vec<Assignment>) {
        let next = self.on(worker).iter().map(|thread| (thread.runtime, thread.arrival, thread.id)).min();
        let Some((_, arrival, item)) = next else { return };
        self.threads.iter_mut().filter(|thread| thread.arrival == arrival).for_each(|t| t.since = Some(now));
        self.follow(now, worker);
        let alone = self.on(worker).len() == 1;
        let slice = if alone { UNTIL_DONE } else { self.slice(worker) };
        assignments.push(Assignment { worker: u32::try_from(worker).unwrap(), item, slice });
    }
}

impl Discipline for FairTwin {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let worker = (0..self.least.len()).min_by_key(|worker| (self.on(*worker).len(), *worker)).unwrap();
        self.follow(now, worker);
        let runtime = self.least[worker].saturating_sub(self.parameters.credit);
        let running = self.on(worker).into_iter().find(|thread| thread.since.is_some());
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.threads.push(Thread { worker, runtime, arrival, id: item.id, since: None });
        let far = |running: &Thread| {
            let granularity = self.parameters.wakeup_granularity;
            granularity.is_some_and(|granularity| Self::charged(now, running) > runtime + granularity)
        };
        match running {
            Some(running) if !far(&running) => {
                let slice = self.slice(worker).saturating_sub(now - running.since.unwrap());
                assignments.push(Assignment {
                    worker: u32::try_from(worker).unwrap(),
                    item: running.id,
                    slice,
                });
            }
            _ => {
                self.stop(now, worker);
                self.next(now, worker, assignments);
            }
        }
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let worker = worker as usize;
        self.follow(now, worker);
        self.threads.retain(|thread| thread.worker != worker || thread.since.is_none());
        if self.on(worker).is_empty() {
            let waiting = |of: usize| self.on(of).into_iter().filter(|thread| thread.since.is_none());
            let from = (0..self.least.len()).rev().max_by_key(|of| waiting(*of).count()).unwrap();
            let taken = waiting(from).min_by_key(|thread| (thread.runtime, thread.arrival));
            if let Some(taken) = taken {
                let thread = self.threads.iter_mut().find(|thread| thread.arrival == taken.arrival).unwrap();
                let ahead = taken.runtime.saturating_sub(self.least[from]);
                (thread.worker, thread.runtime) = (worker, self.least[worker] + ahead);
            }
        }
        self.next(now, worker, assignments);
    }

    fn expire(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.stop(now, worker as usize);
        self.next(now, worker as usize, assignments);
    }

    fn waiting(&self) -> usize {
        self.threads.iter().filter(|thread| thread.since.is_none()).count()
    }
}

#[derive(Debug, Clone, Copy)]
struct Tagged {
    item: QueueItem,
    arrived: u64,
    came: u64,
    /// Instant at which it became the head of its class.
    start: Option<u64>,
}

/// Reactive shares from lists: all latencies of every class are kept, and sorted for every decision.
struct Control {
    parameters: FeedbackParameters,
    weights: Vec<u64>,
    ends: Vec<u64>,
    virtual_now: u64,
    /// In order of arrival.
    waiting: Vec<Tagged>,
    on: Vec<Option<Tagged>>,
    /// Interval, class, latency.
    seen: Vec<(u64, u32, u64)>,
    interval: u64,
}

impl Control {
    fn new(workers: u32, parameters: FeedbackParameters) -> Self {
        let weights: Vec<u64> =
            parameters.classes.iter().map(|class| u64::from(class.weight) * 1000).collect();
        let ends = vec![0; weights.len()];
        let on = vec![None; workers as usize];
        let waiting = Vec::new();
        let seen = Vec::new();
        Self { parameters, weights, ends, virtual_now: 0, waiting, on, seen, interval: 0 }
    }

    fn decide(&mut self, now: u64) {
        let interval = now / self.parameters.interval;
        if interval == self.interval {
            return;
        }
        for (class, rules) in (0u32..).zip(&self.parameters.classes) {
            let of = self.seen.iter().filter(|(when, whose, _)| (*when, *whose) == (self.interval, class));
            let mut latencies: Vec<u64> = of.map(|(_, _, latency)| *latency).collect();
            latencies.sort_unstable();
            let (Some(slo), false) = (rules.slo, latencies.is_empty()) else { continue };
            // The least value that is not exceeded by more than the allowed share.
            let wanted = latencies.len() as f64 * f64::from(self.parameters.percentile_milli) / 1e5;
            let rank = (1..=latencies.len()).find(|rank| *rank as f64 >= wanted - 1e-9).unwrap();
            let measured = 100 * latencies[rank - 1];
            let upper = slo * u64::from(self.parameters.upper_percent);
            let lower = slo * u64::from(self.parameters.lower_percent);
            let weight = &mut self.weights[class as usize];
            if measured > upper {
                *weight = (*weight * measured / upper).min(2 * *weight);
            } else if measured < lower {
                *weight = (*weight * measured / lower).max(*weight / 2);
            }
            *weight = (*weight).clamp(u64::from(rules.weight), u64::from(rules.weight) * 1_000_000);
        }
        self.interval = interval;
    }

    fn serve(&mut self, assignments: &mut Vec<Assignment>) {
        loop {
            for at in 0..self.waiting.len() {
                let Tagged { item, came, start, .. } = self.waiting[at];
                let first = self.waiting[..at].iter().all(|other| other.item.class != item.class);
                if first && start.is_none() {
                    let class = item.class as usize;
                    let start = came.max(self.ends[class]);
                    self.ends[class] = start + (item.size << 16) / self.weights[class];
                    self.waiting[at].start = Some(start);
                }
            }
            let idle = self.on.iter().position(Option::is_none);
            let next = (0..self.waiting.len()).filter_map(|at| Some((self.waiting[at].start?, at))).min();
            let (Some(worker), Some((start, at))) = (idle, next) else { return };
            self.virtual_now = start;
            let taken = self.waiting.remove(at);
            self.on[worker] = Some(taken);
            assignments.push(Assignment {
                worker: u32::try_from(worker).unwrap(),
                item: taken.item.id,
                slice: UNTIL_DONE,
            });
        }
    }
}

impl Discipline for Control {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        self.decide(now);
        self.waiting.push(Tagged { item, arrived: now, came: self.virtual_now, start: None });
        self.serve(assignments);
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.decide(now);
        let done = self.on[worker as usize].take().unwrap();
        self.seen.push((now / self.parameters.interval, done.item.class, now - done.arrived));
        self.serve(assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

proptest! {
    #[test]
    fn fair_sharing_agrees_with_one_list(
        workers in 1u32..4, jobs in jobs(), latency in 2u64..40, min_granularity in 1u64..6,
        wakeup_granularity in prop::option::of(0u64..8), credit in 0u64..8,
    ) {
        let parameters = FairSchedulerParameters { latency, min_granularity, wakeup_granularity, credit };
        let got = play(workers, &jobs, &mut build(&DisciplineSpec::Fair(parameters), workers));
        let least = vec![0; workers as usize];
        let mut twin = FairTwin { parameters, threads: Vec::new(), least, arrivals: 0 };
        prop_assert_eq!(got, play(workers, &jobs, &mut twin));
    }

    #[test]
    fn reactive_shares_agree_with_lists(
        workers in 1u32..3, jobs in jobs(), interval in 1u64..80, percentile_milli in 1u32..=100_000,
        classes in prop::collection::vec((1u32..9, prop::option::of(1u64..200)), 3), lower_percent in 0u32..=100,
    ) {
        let class = |(weight, slo): (u32, Option<u64>)| FeedbackClass { weight, slo };
        let classes = classes.into_iter().map(class).collect();
        let parameters = FeedbackParameters {
            percentile_milli, lower_percent, ..FeedbackParameters::new(classes, interval)
        };
        let got = play(workers, &jobs, &mut build(&DisciplineSpec::Feedback(parameters.clone()), workers));
        prop_assert_eq!(got, play(workers, &jobs, &mut Control::new(workers, parameters)));
    }
}
