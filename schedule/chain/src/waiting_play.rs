//! Requests that wait without CPU in the middle of a visit, simulated with the pool that decides live: with and without
//! reports of these waits, and with a sentinel.
//!
//! The running threads share the CPUs of a tier evenly at every instant, and demoted ones get the rest.
//! So there are no slices. Without waits, and with reported waits, [`crate::predicted_play`] plays the
//! same with slices and another discipline, and serves as the reference.

use crate::played_request::PlayedRequest;
use crate::workload::{ChainWorkload, RouteHop};
use discipline::RequestKey;
use discipline::pool::{Displacement, PoolPlace, PoolRules, PooledRequest, RequestPool};
use discipline::serve::PoolOrder;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use units::Nanos;

/// Treatment of waits in the middle of visits by all tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTreatment {
    /// They are reported, and others use the place meanwhile.
    Reported,
    /// They are not reported, and keep their place.
    Silent,
    /// A sentinel samples at this interval, above 0, which requests sleep.
    Sentinel(Nanos),
}

/// Returns the outcome of every request of a workload when each tier serves the oldest requests, up to
/// its limit (`None`: no limit), and older ones displace younger ones.
///
/// # Panics
/// Unless there are as many limits as tiers.
pub fn predicted_waiting_play(
    workload: &ChainWorkload,
    limits: &[Option<u32>],
    patience: Nanos,
    waits: WaitTreatment,
) -> Vec<PlayedRequest> {
    assert_eq!(limits.len(), workload.tiers.len(), "one limit for each tier");
    let tier = |(tier, limit): (&crate::workload::ChainTier, &Option<u32>)| {
        let order = PoolOrder::Age;
        let displacement = Displacement::OfYoungest;
        let limit = limit.and_then(NonZeroU32::new);
        let patience = Some(patience.0.max(1));
        let rules = PoolRules { limit, order, displacement, patience };
        WaitingTier::at_rest(NonZeroU32::new(tier.workers).unwrap_or(NonZeroU32::MIN), rules)
    };
    let played = PlayedRequest { done: None, at_tiers: vec![Nanos::ZERO; workload.tiers.len()] };
    let mut simulation = WaitingSimulation {
        workload,
        waits,
        now: 0,
        arrived: 0,
        entries: vec![WaitingEntry::default(); workload.entries.len()],
        tiers: workload.tiers.iter().zip(limits).map(tier).collect(),
        played: vec![played; workload.requests.len()],
    };
    while simulation.step() {}
    simulation.played
}

/// Requests of an entry with a window.
#[derive(Debug, Clone, Default)]
struct WaitingEntry {
    inside: u32,
    waiting: VecDeque<usize>,
}

/// A request at a tier.
#[derive(Debug)]
struct SimulatedVisit {
    request: usize,
    /// Index of the present hop in its route.
    hop: usize,
    /// Time of its arrival here, or of the end of its wait.
    arrived: u64,
    /// Remaining work of the hop, nanoseconds.
    left: f64,
    /// End of its wait, while it waits.
    wakes: Option<u64>,
}

#[derive(Debug)]
struct WaitingTier {
    workers: NonZeroU32,
    pool: RequestPool,
    visits: BTreeMap<PooledRequest, SimulatedVisit>,
    next_look: Option<u64>,
    /// Requests that the last sample found sleeping, with their numbers.
    seen: BTreeSet<(PooledRequest, usize)>,
}

impl WaitingTier {
    fn at_rest(workers: NonZeroU32, rules: PoolRules) -> Self {
        let pool = RequestPool::new(rules);
        let visits = BTreeMap::new();
        let seen = BTreeSet::new();
        Self { workers, pool, visits, next_look: None, seen }
    }

    /// Iterates over requests whose threads want a CPU; true for demoted ones.
    fn runnable(&self) -> impl Iterator<Item = (PooledRequest, bool)> + '_ {
        let awake = self.visits.iter().filter(|(_, visit)| visit.wakes.is_none());
        awake.filter_map(|(request, _)| match self.pool.place(*request)? {
            PoolPlace::Serving | PoolPlace::Overdue | PoolPlace::Asleep => Some((*request, false)),
            PoolPlace::Demoted => Some((*request, true)),
            PoolPlace::Waiting | PoolPlace::Blocked => None,
        })
    }

    /// Returns the share of a CPU for ordinary threads, and for demoted ones.
    fn shares(&self) -> (f64, f64) {
        let workers = f64::from(self.workers.get());
        let demoted = self.runnable().filter(|(_, is_demoted)| *is_demoted).count() as f64;
        let ordinary = self.runnable().count() as f64 - demoted;
        let left = (workers - ordinary).max(0.0);
        (share(workers, ordinary), share(left, demoted))
    }

    /// Returns the running requests, with their shares of a CPU.
    fn running(&self) -> Vec<(PooledRequest, f64)> {
        let (ordinary, demoted) = self.shares();
        let with_share = |(request, is_demoted)| (request, if is_demoted { demoted } else { ordinary });
        self.runnable().map(with_share).filter(|(_, share)| *share > 0.0).collect()
    }

    fn elapse(&mut self, time: u64) {
        for (request, share) in self.running() {
            if let Some(visit) = self.visits.get_mut(&request) {
                visit.left -= share * time as f64;
            }
        }
    }

    /// Returns the time of the next event here.
    fn next_event(&self, now: u64) -> Option<u64> {
        let ends = self.running().into_iter().map(|(request, share)| {
            let left = self.visits.get(&request).map_or(0.0, |visit| visit.left.max(0.0));
            // At most the length of a play in nanoseconds.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let time = (left / share).ceil() as u64;
            now + time
        });
        let wakes = self.visits.values().filter_map(|visit| visit.wakes);
        ends.chain(wakes).chain(self.pool.wake_at()).chain(self.next_look).min()
    }

    /// Returns a request whose work is done.
    fn done(&self) -> Option<PooledRequest> {
        let is_done =
            |request: &PooledRequest| self.visits.get(request).is_some_and(|visit| visit.left < 0.5);
        self.running().into_iter().map(|(request, _)| request).find(is_done)
    }

    /// Returns a request whose wait is over.
    fn awoken(&self, now: u64) -> Option<PooledRequest> {
        let mut visits = self.visits.iter();
        visits.find(|(_, visit)| visit.wakes.is_some_and(|wakes| wakes <= now)).map(|(request, _)| *request)
    }

    /// Performs the sentinel's samples: one after each `every` while there are requests to sample.
    fn look(&mut self, now: u64, every: u64) {
        let watched: BTreeSet<PooledRequest> = self.pool.watched().collect();
        if watched.is_empty() {
            self.next_look = None;
            self.seen.clear();
            return;
        }
        if self.next_look.is_some_and(|next| next > now) {
            return;
        }
        let sleeping = watched.iter().filter_map(|request| {
            let visit = self.visits.get(request)?;
            visit.wakes.map(|_| (*request, visit.request))
        });
        let asleep: BTreeSet<(PooledRequest, usize)> = sleeping.collect();
        let still = asleep.intersection(&self.seen).map(|(request, _)| *request).collect();
        self.pool.look(now, &still, self.workers, &mut Vec::new());
        self.seen = asleep;
        self.next_look = Some(now + every);
    }
}

/// Returns the share of a CPU for each thread.
fn share(cpus: f64, threads: f64) -> f64 {
    if threads > 0.0 { (cpus / threads).min(1.0) } else { 0.0 }
}

struct WaitingSimulation<'a> {
    workload: &'a ChainWorkload,
    waits: WaitTreatment,
    now: u64,
    /// Number of requests that have arrived.
    arrived: usize,
    entries: Vec<WaitingEntry>,
    tiers: Vec<WaitingTier>,
    played: Vec<PlayedRequest>,
}

impl WaitingSimulation<'_> {
    /// Advances time to the next event, and processes it. Returns false if there is none.
    fn step(&mut self) -> bool {
        let arrival = self.workload.requests.get(self.arrived).map(|request| request.arrival.0);
        let events = self.tiers.iter().filter_map(|tier| tier.next_event(self.now));
        let Some(next) = events.chain(arrival).min() else { return false };
        let time = next.saturating_sub(self.now);
        self.tiers.iter_mut().for_each(|tier| tier.elapse(time));
        self.now += time;
        (0..self.tiers.len()).for_each(|tier| self.end_hops_and_waits(tier));
        while let Some(request) =
            self.workload.requests.get(self.arrived).filter(|next| next.arrival.0 <= self.now)
        {
            self.entries[request.entry].waiting.push_back(self.arrived);
            self.arrived += 1;
            self.let_in(request.entry);
        }
        (0..self.tiers.len()).for_each(|tier| self.let_time_pass(tier));
        true
    }

    /// Ends come before admissions at the same instant.
    fn end_hops_and_waits(&mut self, tier: usize) {
        while let Some(request) = self.tiers[tier].done() {
            self.finish_hop(tier, request);
        }
        while let Some(request) = self.tiers[tier].awoken(self.now) {
            self.end_wait(tier, request);
        }
    }

    fn let_time_pass(&mut self, tier: usize) {
        self.tiers[tier].pool.wake(self.now, &mut Vec::new());
        if let WaitTreatment::Sentinel(every) = self.waits {
            self.tiers[tier].look(self.now, every.0.max(1));
        }
    }

    fn let_in(&mut self, entry: usize) {
        let window = self.workload.entries[entry].window.unwrap_or(u32::MAX);
        while self.entries[entry].inside < window
            && let Some(request) = self.entries[entry].waiting.pop_front()
        {
            self.entries[entry].inside += 1;
            self.enter(request, 0);
        }
    }

    /// Begins a visit of a request with this hop.
    fn enter(&mut self, request: usize, hop: usize) {
        let drawn = &self.workload.requests[request];
        let RouteHop { tier, work, .. } = drawn.route[hop];
        let key = drawn.arrival.0.saturating_add_signed(self.workload.entries[drawn.entry].skew_ns);
        let now = self.now;
        let tier = &mut self.tiers[tier];
        let pooled = tier.pool.enter(now, RequestKey(key), &mut Vec::new());
        let visit = SimulatedVisit { request, hop, arrived: now, left: work.0 as f64, wakes: None };
        tier.visits.insert(pooled, visit);
    }

    fn end_wait(&mut self, tier: usize, request: PooledRequest) {
        let now = self.now;
        let tier = &mut self.tiers[tier];
        let visit = tier.visits.get_mut(&request).expect("it waits here");
        (visit.wakes, visit.arrived) = (None, now);
        if self.waits == WaitTreatment::Reported {
            tier.pool.unblock(now, request, &mut Vec::new());
        }
    }

    /// Ends the work of a hop: a wait follows, another tier, or the answer.
    fn finish_hop(&mut self, tier: usize, request: PooledRequest) {
        let now = self.now;
        let here = &mut self.tiers[tier];
        let visit = here.visits.get_mut(&request).expect("it works here");
        let number = visit.request;
        let time = &mut self.played[number].at_tiers[tier];
        *time = *time + Nanos(now - visit.arrived);
        let next = visit.hop + 1;
        let following = self.workload.requests[number].route.get(next);
        if let Some(hop) = following.filter(|hop| hop.tier == tier && hop.wait > Nanos::ZERO) {
            (visit.hop, visit.left, visit.wakes) = (next, hop.work.0 as f64, Some(now + hop.wait.0));
            if self.waits == WaitTreatment::Reported {
                here.pool.block(now, request, &mut Vec::new());
            }
            return;
        }
        here.visits.remove(&request);
        here.pool.leave(now, request, &mut Vec::new());
        if following.is_some() {
            return self.enter(number, next);
        }
        self.played[number].done = Some(Nanos(now));
        let entry = self.workload.requests[number].entry;
        self.entries[entry].inside -= 1;
        self.let_in(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recursion::first_come_first_served;
    use crate::simulated::predicted_play;
    use crate::workload::{ChainClass, ChainEntry, ChainRequest, ChainTier};
    use discipline::serve::{DisciplineSpec, LimitedSharingParameters, PoolEntrance};
    use proptest::prelude::*;

    const PATIENCE: Nanos = Nanos(u64::MAX);

    /// Creates requests by arrival at a tier of one CPU, of one piece of work each, or two with a wait
    /// between them.
    fn workload(requests: &[(u64, Vec<(u64, u64)>)]) -> ChainWorkload {
        let hop = |(wait, work): &(u64, u64)| RouteHop { tier: 0, wait: Nanos(*wait), work: Nanos(*work) };
        let request = |(arrival, pieces): &(u64, Vec<(u64, u64)>)| ChainRequest {
            arrival: Nanos(*arrival),
            entry: 0,
            class: 0,
            route: pieces.iter().map(hop).collect(),
        };
        ChainWorkload {
            tiers: vec![ChainTier { name: "a".into(), workers: 1 }],
            entries: vec![ChainEntry { window: None, skew_ns: 0 }],
            classes: vec![ChainClass { name: "all".into(), slo: None }],
            requests: requests.iter().map(request).collect(),
            serialised: 0,
        }
    }

    fn ends(workload: &ChainWorkload, c: Option<u32>, waits: WaitTreatment) -> Vec<u64> {
        let played = predicted_waiting_play(workload, &[c], PATIENCE, waits);
        played.iter().map(|request| request.done.expect("it ends").0).collect()
    }

    /// Two requests of 10, a wait of 100 and 10, with c = 1 on one CPU.
    #[test]
    fn two_requests_by_hand() {
        let two = workload(&[(0, vec![(0, 10), (100, 10)]), (1, vec![(0, 10), (100, 10)])]);
        assert_eq!(ends(&two, Some(1), WaitTreatment::Silent), [120, 240]);
        assert_eq!(ends(&two, Some(1), WaitTreatment::Reported), [120, 130]);
        // Samples at 1, 6, 11, 16: the second that finds the first asleep is at 16, and the other ends
        // 120 later.
        assert_eq!(ends(&two, Some(1), WaitTreatment::Sentinel(Nanos(5))), [120, 136]);
        assert_eq!(ends(&two, None, WaitTreatment::Silent)[0], 138, "without a limit they share the CPU");
    }

    proptest! {
        /// c = 1 without waits is the textbook recursion, for any treatment.
        #[test]
        fn without_waits_a_limit_of_one_is_first_come_first_served(
            drawn in proptest::collection::vec((1u64..20, 1u64..20), 1..40),
        ) {
            let (requests, expected) = first_come_first_served(&drawn);
            let requests: Vec<_> =
                requests.into_iter().map(|(arrival, work)| (arrival, vec![(0, work)])).collect();
            for waits in [WaitTreatment::Reported, WaitTreatment::Silent, WaitTreatment::Sentinel(Nanos(3))] {
                prop_assert_eq!(&ends(&workload(&requests), Some(1), waits), &expected);
            }
        }

        /// The reference for reported waits is the simulator's engine, with a delay between steps at one
        /// station.
        #[test]
        fn with_reported_waits_it_is_the_simulator(
            drawn in proptest::collection::vec((1u64..20, 1u64..20, 1u64..30, 1u64..20), 1..40),
        ) {
            let mut arrival = 0;
            let mut requests = Vec::new();
            for (gap, first, wait, second) in drawn {
                arrival += gap;
                requests.push((arrival, vec![(0, first), (wait, second)]));
            }
            let workload = workload(&requests);
            let oldest = LimitedSharingParameters::oldest_first(1, 1);
            let oldest = LimitedSharingParameters { entrance: PoolEntrance::Preempt, ..oldest };
            let discipline = DisciplineSpec::Limited(oldest);
            let judge = predicted_play(&workload, &[discipline]).expect("it can be simulated");
            let judge: Vec<u64> = judge.iter().map(|request| request.done.expect("it ends").0).collect();
            prop_assert_eq!(ends(&workload, Some(1), WaitTreatment::Reported), judge);
        }

        /// Every request ends, and no sooner than alone.
        #[test]
        fn all_requests_end(
            drawn in proptest::collection::vec((1u64..20, 1u64..20, 1u64..60, 1u64..20), 1..30),
            c in 1u32..4,
        ) {
            let mut arrival = 0;
            let mut requests = Vec::new();
            for (gap, first, wait, second) in drawn {
                arrival += gap;
                requests.push((arrival, vec![(0, first), (wait, second)]));
            }
            let workload = workload(&requests);
            for waits in [WaitTreatment::Reported, WaitTreatment::Silent, WaitTreatment::Sentinel(Nanos(2))] {
                let ends = ends(&workload, Some(c), waits);
                prop_assert!(ends.iter().zip(&workload.requests).all(|(end, request)| *end >= request.ideal_end().0));
            }
        }
    }
}
