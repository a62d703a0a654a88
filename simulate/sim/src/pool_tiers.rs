//! Tiers that admit requests by [`RequestPool`], with requests that wait without CPU in the middle of a visit.
//!
//! The pool is the one that services run. The requests it admits share the CPUs of a tier evenly at every instant, as
//! threads under a kernel's scheduler do, and demoted requests share what is left. So there are no slices, and a wait
//! that is not reported keeps its place. [`crate::engine`] models neither; without waits, and with reported ones,
//! it is the judge of this simulator.

use discipline::RequestKey;
use discipline::pool::{PoolPlace, PoolRules, PooledRequest, RequestPool};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use units::Nanos;

/// Treatment of waits in the middle of visits, at all tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTreatment {
    /// Requests report their waits, and others have the place meanwhile.
    Reported,
    /// Requests do not report their waits, and keep their place.
    Silent,
    /// A sentinel looks for sleeping requests at this interval, above 0.
    Sentinel(Nanos),
}

/// A tier of a service.
#[derive(Debug, Clone)]
pub struct PoolTier {
    pub cpus: NonZeroU32,
    pub rules: PoolRules,
}

/// A visit of a request to a tier, or the rest of a visit after a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteHop {
    /// Index of the tier.
    pub tier: usize,
    /// Time without CPU before the work. Above 0 only if the previous hop is at the same tier: then both are
    /// one visit.
    pub wait: Nanos,
    /// CPU time that the request needs there, above 0.
    pub work: Nanos,
}

/// A request that passes the tiers.
#[derive(Debug, Clone, Copy)]
pub struct RoutedRequest<'a> {
    pub arrival: Nanos,
    /// Index of its entry.
    pub entry: usize,
    pub key: RequestKey,
    /// Tiers that it visits, one calling the next; at least one.
    pub route: &'a [RouteHop],
}

/// Outcome of a request, live or simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedRequest {
    /// Completion time, on the clock of its arrival; `None` if it was not answered.
    pub done: Option<Nanos>,
    /// Time spent at each tier, from arrival there to the end of its work, summed over its visits.
    pub at_tiers: Vec<Nanos>,
}

/// Simulates requests, which are in order of arrival, until all have ended. An entry admits as many requests at a time as
/// its window (none: no limit).
///
/// # Panics
/// When a request names an entry or a tier that there is not, or has no route.
pub fn simulate_pool_tiers(
    tiers: &[PoolTier],
    windows: &[Option<u32>],
    requests: &[RoutedRequest<'_>],
    waits: WaitTreatment,
) -> Vec<PlayedRequest> {
    let end = PlayedRequest { done: None, at_tiers: vec![Nanos::ZERO; tiers.len()] };
    let mut simulation = PoolSimulation {
        requests,
        waits,
        now: 0,
        arrived: 0,
        entries: windows.iter().map(|window| EntryQueue::with(*window)).collect(),
        tiers: tiers.iter().map(SimulatedTier::at_rest).collect(),
        ends: vec![end; requests.len()],
    };
    while simulation.step() {}
    simulation.ends
}

/// Requests of an entry.
#[derive(Debug, Clone)]
struct EntryQueue {
    window: u32,
    inside: u32,
    waiting: VecDeque<usize>,
}

impl EntryQueue {
    fn with(window: Option<u32>) -> Self {
        Self { window: window.unwrap_or(u32::MAX), inside: 0, waiting: VecDeque::new() }
    }
}

/// A request at a tier.
#[derive(Debug)]
struct SimulatedVisit {
    request: usize,
    /// Index of the present hop in its route.
    hop: usize,
    /// Arrival at the tier, or the end of its last wait there.
    arrived: u64,
    /// Remaining work of the hop, nanoseconds.
    left: f64,
    /// End of its wait, while it waits.
    wakes: Option<u64>,
}

#[derive(Debug)]
struct SimulatedTier {
    cpus: NonZeroU32,
    pool: RequestPool,
    visits: BTreeMap<PooledRequest, SimulatedVisit>,
    next_look: Option<u64>,
    /// Requests that the last look found sleeping, by place in the pool and number: a place can have a new request.
    seen: BTreeSet<(PooledRequest, usize)>,
}

impl SimulatedTier {
    fn at_rest(tier: &PoolTier) -> Self {
        Self {
            cpus: tier.cpus,
            pool: RequestPool::new(tier.rules),
            visits: BTreeMap::new(),
            next_look: None,
            seen: BTreeSet::new(),
        }
    }

    /// Requests whose threads want a CPU, with true for demoted ones.
    fn runnable(&self) -> impl Iterator<Item = (PooledRequest, bool)> + '_ {
        let awake = self.visits.iter().filter(|(_, visit)| visit.wakes.is_none());
        awake.filter_map(|(request, _)| match self.pool.place(*request)? {
            // A request that was found asleep and has woken runs: its thread was never stopped.
            PoolPlace::Serving | PoolPlace::Overdue | PoolPlace::Asleep => Some((*request, false)),
            PoolPlace::Demoted => Some((*request, true)),
            PoolPlace::Waiting | PoolPlace::Blocked => None,
        })
    }

    /// Returns the share of a CPU that each ordinary thread has, and each demoted one.
    fn shares(&self) -> (f64, f64) {
        let cpus = f64::from(self.cpus.get());
        let demoted = self.runnable().filter(|(_, is_demoted)| *is_demoted).count() as f64;
        let ordinary = self.runnable().count() as f64 - demoted;
        let left = (cpus - ordinary).max(0.0);
        (share(cpus, ordinary), share(left, demoted))
    }

    /// Requests that run, with their shares of a CPU.
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

    /// Returns the time of the next event at the tier.
    fn next_event(&self, now: u64) -> Option<u64> {
        let ends = self.running().into_iter().map(|(request, share)| {
            let left = self.visits.get(&request).map_or(0.0, |visit| visit.left.max(0.0));
            // Nanoseconds within the length of a play.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let time = (left / share).ceil() as u64;
            now + time
        });
        let wakes = self.visits.values().filter_map(|visit| visit.wakes);
        ends.chain(wakes).chain(self.pool.wake_at()).chain(self.next_look).min()
    }

    /// Returns a request whose work is done.
    fn done(&self) -> Option<PooledRequest> {
        // Work is in nanoseconds: less than half of one is an error of rounding.
        let is_done =
            |request: &PooledRequest| self.visits.get(request).is_some_and(|visit| visit.left < 0.5);
        self.running().into_iter().map(|(request, _)| request).find(is_done)
    }

    /// Returns a request whose wait is over.
    fn awoken(&self, now: u64) -> Option<PooledRequest> {
        let mut visits = self.visits.iter();
        visits.find(|(_, visit)| visit.wakes.is_some_and(|wakes| wakes <= now)).map(|(request, _)| *request)
    }

    /// Runs the sentinel, which looks at each interval while there are requests to watch.
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
        // Only what two looks in a row found asleep leaves its place, as live: a short sleep is no wait.
        let still = asleep.intersection(&self.seen).map(|(request, _)| *request).collect();
        self.pool.look(now, &still, self.cpus, &mut Vec::new());
        self.seen = asleep;
        self.next_look = Some(now + every);
    }
}

/// Returns the part of a CPU that each thread has if they share so many CPUs evenly.
fn share(cpus: f64, threads: f64) -> f64 {
    if threads > 0.0 { (cpus / threads).min(1.0) } else { 0.0 }
}

struct PoolSimulation<'a> {
    requests: &'a [RoutedRequest<'a>],
    waits: WaitTreatment,
    now: u64,
    /// Number of requests that have arrived.
    arrived: usize,
    entries: Vec<EntryQueue>,
    tiers: Vec<SimulatedTier>,
    ends: Vec<PlayedRequest>,
}

impl PoolSimulation<'_> {
    /// Advances to the next event and processes it; returns false when there is none.
    fn step(&mut self) -> bool {
        let arrival = self.requests.get(self.arrived).map(|request| request.arrival.0);
        let events = self.tiers.iter().filter_map(|tier| tier.next_event(self.now));
        let Some(next) = events.chain(arrival).min() else { return false };
        let time = next.saturating_sub(self.now);
        self.tiers.iter_mut().for_each(|tier| tier.elapse(time));
        self.now += time;
        (0..self.tiers.len()).for_each(|tier| self.end_hops_and_waits(tier));
        while let Some(request) = self.requests.get(self.arrived).filter(|next| next.arrival.0 <= self.now) {
            self.entries[request.entry].waiting.push_back(self.arrived);
            self.arrived += 1;
            self.let_in(request.entry);
        }
        (0..self.tiers.len()).for_each(|tier| self.let_time_pass(tier));
        true
    }

    /// Work that ends in an instant frees its place before a wait that ends in the same instant claims one.
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
        while self.entries[entry].inside < self.entries[entry].window
            && let Some(request) = self.entries[entry].waiting.pop_front()
        {
            self.entries[entry].inside += 1;
            self.enter(request, 0);
        }
    }

    /// A request begins a visit with this hop.
    fn enter(&mut self, request: usize, hop: usize) {
        let routed = &self.requests[request];
        let RouteHop { tier, work, .. } = routed.route[hop];
        let now = self.now;
        let tier = &mut self.tiers[tier];
        let pooled = tier.pool.enter(now, routed.key, &mut Vec::new());
        let visit = SimulatedVisit { request, hop, arrived: now, left: work.0 as f64, wakes: None };
        tier.visits.insert(pooled, visit);
    }

    fn end_wait(&mut self, tier: usize, request: PooledRequest) {
        let now = self.now;
        let tier = &mut self.tiers[tier];
        let visit = tier.visits.get_mut(&request).expect("it waits here");
        visit.wakes = None;
        visit.arrived = now;
        if self.waits == WaitTreatment::Reported {
            tier.pool.unblock(now, request, &mut Vec::new());
        }
    }

    /// The work of a hop is done: a wait follows, another tier, or the answer.
    fn finish_hop(&mut self, tier: usize, request: PooledRequest) {
        let now = self.now;
        let here = &mut self.tiers[tier];
        let visit = here.visits.get_mut(&request).expect("it works here");
        let number = visit.request;
        let time = &mut self.ends[number].at_tiers[tier];
        *time = *time + Nanos(now - visit.arrived);
        let next = visit.hop + 1;
        let following = self.requests[number].route.get(next);
        if let Some(hop) = following.filter(|hop| hop.tier == tier && hop.wait > Nanos::ZERO) {
            visit.hop = next;
            visit.left = hop.work.0 as f64;
            visit.wakes = Some(now + hop.wait.0);
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
        self.ends[number].done = Some(Nanos(now));
        let entry = self.requests[number].entry;
        self.entries[entry].inside -= 1;
        self.let_in(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discipline::pool::Displacement;
    use discipline::serve::PoolOrder;
    use proptest::prelude::*;

    /// Ends of requests by arrival, each of pieces of (wait, work) at a tier of one CPU that serves the oldest.
    fn ends(requests: &[(u64, Vec<(u64, u64)>)], c: Option<u32>, waits: WaitTreatment) -> Vec<u64> {
        let rules = PoolRules {
            limit: c.and_then(NonZeroU32::new),
            order: PoolOrder::Age,
            displacement: Displacement::OfYoungest,
            patience: Some(u64::MAX),
        };
        let routes: Vec<Vec<RouteHop>> = requests
            .iter()
            .map(|(_, pieces)| {
                let hop =
                    |(wait, work): &(u64, u64)| RouteHop { tier: 0, wait: Nanos(*wait), work: Nanos(*work) };
                pieces.iter().map(hop).collect()
            })
            .collect();
        let routed: Vec<RoutedRequest<'_>> = requests
            .iter()
            .zip(&routes)
            .map(|((arrival, _), route)| RoutedRequest {
                arrival: Nanos(*arrival),
                entry: 0,
                key: RequestKey(*arrival),
                route,
            })
            .collect();
        let tier = PoolTier { cpus: NonZeroU32::MIN, rules };
        simulate_pool_tiers(&[tier], &[None], &routed, waits)
            .iter()
            .map(|end| end.done.expect("all are played").0)
            .collect()
    }

    /// Two requests of 10, a wait of 100 and 10, with c = 1 on one CPU.
    #[test]
    fn two_requests_by_hand() {
        let two = [(0, vec![(0, 10), (100, 10)]), (1, vec![(0, 10), (100, 10)])];
        assert_eq!(ends(&two, Some(1), WaitTreatment::Silent), [120, 240]);
        assert_eq!(ends(&two, Some(1), WaitTreatment::Reported), [120, 130]);
        // Looks at 1, 6, 11, 16: the second that finds the first asleep is at 16, and the other ends 120 later.
        assert_eq!(ends(&two, Some(1), WaitTreatment::Sentinel(Nanos(5))), [120, 136]);
        assert_eq!(ends(&two, None, WaitTreatment::Silent)[0], 138, "without a limit they share the CPU");
    }

    proptest! {
        /// c = 1 without waits is the textbook recursion of one server, under any treatment of waits.
        #[test]
        fn without_waits_a_limit_of_one_is_first_come_first_served(
            drawn in proptest::collection::vec((1u64..20, 1u64..20), 1..40),
        ) {
            let mut arrival = 0;
            let mut free = 0;
            let mut requests = Vec::new();
            let mut expected = Vec::new();
            for (gap, work) in drawn {
                arrival += gap;
                free = free.max(arrival) + work;
                requests.push((arrival, vec![(0, work)]));
                expected.push(free);
            }
            for waits in [WaitTreatment::Reported, WaitTreatment::Silent, WaitTreatment::Sentinel(Nanos(3))] {
                prop_assert_eq!(&ends(&requests, Some(1), waits), &expected);
            }
        }

        /// Every request ends, and no sooner than alone.
        #[test]
        fn all_requests_end(
            drawn in proptest::collection::vec((1u64..20, 1u64..20, 1u64..60, 1u64..20), 1..30),
            c in 1u32..4,
        ) {
            let mut arrival = 0;
            let mut requests = Vec::new();
            let mut alone = Vec::new();
            for (gap, first, wait, second) in drawn {
                arrival += gap;
                requests.push((arrival, vec![(0, first), (wait, second)]));
                alone.push(arrival + first + wait + second);
            }
            for waits in [WaitTreatment::Reported, WaitTreatment::Silent, WaitTreatment::Sentinel(Nanos(2))] {
                let ends = ends(&requests, Some(c), waits);
                prop_assert!(ends.iter().zip(&alone).all(|(end, alone)| end >= alone));
            }
        }
    }
}
