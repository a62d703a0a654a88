//! Placement on fewer servers than first fit: several orders, then a local search that empties one server at a time.
//!
//! The local search dissolves a server and distributes its workloads over the others: it inserts, exchanges a workload
//! for a smaller one, or forces a workload in and lets others look for another place; what has moved stays tabu for some
//! steps. It is seeded and counts attempts instead of time: the same effort gives the same placement.

use super::first_fit::place_first_fit;
use super::fleet::Fleet;
use super::result::{Placement, PlacementRefusal};
use super::server::{MembershipChange, PlacementServer};
use crate::effort::SearchEffort;
use crate::limits::LimitMethod;
use crate::lower_bound::workload_sizes;
use crate::problem::PlanningProblem;
use crate::rules::Place;
use crate::server::PlannedServer;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// The order in which workloads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementOrder {
    /// First fit in the order of arrival.
    Given,
    /// Fast-first-fit in the order of arrival: servers that look full at the rates in force are skipped.
    GivenFast,
    /// Whatever uses fewest servers: several orders, then a local search.
    Best,
}

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress {
    /// The evaluations that have been spent.
    pub spent: u64,
    /// The evaluations that the search may spend.
    pub allowed: u64,
    /// The number of servers of the best placement so far.
    pub servers: usize,
}

/// Steps that a workload stays where a swap has put it.
const TABU: u64 = 40;
/// Attempts to empty a server without success before the search rests.
pub(super) const ATTEMPTS: usize = 12;
/// Steps of one attempt, per workload in its pool at the start.
const STEPS_PER_WORKLOAD: u64 = 60;
/// The seed of the perturbations, which are the same in every run.
const SEED: u64 = 1;

/// Places every workload that fits. The search ends when it reaches `goal` servers, best set to a
/// [`lower_bound`](crate::lower_bound()). `watch` receives progress and may end the search by returning
/// false; the best placement so far is returned.
pub fn place(
    problem: &PlanningProblem,
    method: LimitMethod,
    order: PlacementOrder,
    effort: SearchEffort,
    goal: usize,
    watch: &mut dyn FnMut(SearchProgress) -> bool,
) -> Placement {
    let given: Vec<usize> = (0..problem.workloads.len()).collect();
    if order != PlacementOrder::Best {
        return place_first_fit(problem, method, &given, order == PlacementOrder::GivenFast);
    }
    let sizes = workload_sizes(problem);
    let mut best: Option<Placement> = None;
    for order in orders(problem, &sizes) {
        let found = place_first_fit(problem, method, &order, false);
        let found = best.take().filter(|best| cost(best) <= cost(&found)).unwrap_or(found);
        let reached = found.refused.is_empty() && found.servers.len() <= goal;
        let progress =
            SearchProgress { spent: 0, allowed: effort.evaluations_max(), servers: found.servers.len() };
        if reached || !watch(progress) {
            return found;
        }
        best = Some(found);
    }
    let best = best.expect("there is at least one order");
    PlacementSearch::new(problem, method, &sizes, effort, watch).improve(best, goal)
}

/// Cost of a placement: refused workloads first, then servers.
fn cost(placement: &Placement) -> (usize, usize) {
    (placement.refused.len(), placement.servers.len())
}

/// Position of the order by size among [`orders`].
pub(super) const BY_SIZE: usize = 1;

/// Orders worth trying: as given, by size, by SLO and then size, both ways, and by size over the root of the SLO. With
/// rules, the same after the workloads that fewer servers may have, and of those the ones with more bytes, come first.
pub(super) fn orders(problem: &PlanningProblem, sizes: &[f64]) -> Vec<Vec<usize>> {
    let mut orders = orders_without_rules(problem, sizes);
    let rules = &problem.rules;
    if !rules.is_empty() {
        let ruled: Vec<Vec<usize>> = orders
            .iter()
            .map(|order| {
                let mut order = order.clone();
                order.sort_by_key(|workload| {
                    let unit = rules.unit(workload);
                    let freedom = unit.iter().map(|&member| rules.freedom(member)).min();
                    (freedom, std::cmp::Reverse(rules.bytes(unit)))
                });
                order
            })
            .collect();
        orders.extend(ruled);
    }
    orders
}

fn orders_without_rules(problem: &PlanningProblem, sizes: &[f64]) -> Vec<Vec<usize>> {
    let slos: Vec<f64> = (0..problem.workloads.len()).map(|w| problem.least_latency_asked(w)).collect();
    let count = slos.len();
    vec![
        sorted_by_key(count, |_| (0.0, 0.0)),
        sorted_by_key(count, |w| (-sizes[w], 0.0)),
        sorted_by_key(count, |w| (slos[w], -sizes[w])),
        sorted_by_key(count, |w| (-slos[w], -sizes[w])),
        sorted_by_key(count, |w| (-sizes[w] / slos[w].sqrt(), 0.0)),
    ]
}

/// The indices below `count` by ascending key; equal keys keep the order of the indices.
fn sorted_by_key(count: usize, key: impl Fn(usize) -> (f64, f64)) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| {
        let a = key(a);
        let b = key(b);
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    order
}

/// A local search in progress.
pub(super) struct PlacementSearch<'a> {
    pub(super) problem: &'a PlanningProblem,
    pub(super) method: LimitMethod,
    /// Share of a server that each workload takes, by index; that of workloads which are together counts for the first.
    sizes: Vec<f64>,
    evaluations_max: u64,
    evaluations: u64,
    step: u64,
    /// The step until which a workload may not be moved again, by its index.
    tabu_until: Vec<u64>,
    random: StdRng,
    watch: &'a mut dyn FnMut(SearchProgress) -> bool,
    stopped: bool,
}

/// A placement while a search improves it.
pub(super) struct SearchedPlacement {
    pub(super) servers: Vec<PlacementServer>,
    /// Workloads that found no server left, one of those that are together.
    pub(super) unplaced: Vec<usize>,
    /// Workloads that no empty server takes.
    pub(super) refused: Vec<PlacementRefusal>,
}

impl<'a> PlacementSearch<'a> {
    pub(super) fn new(
        problem: &'a PlanningProblem,
        method: LimitMethod,
        sizes: &[f64],
        effort: SearchEffort,
        watch: &'a mut dyn FnMut(SearchProgress) -> bool,
    ) -> Self {
        let of_unit = |workload: usize| match problem.rules.unit(&workload) {
            unit if unit[0] == workload => unit.iter().map(|&member| sizes[member]).sum(),
            _ => 0.0,
        };
        Self {
            problem,
            method,
            sizes: (0..sizes.len()).map(of_unit).collect(),
            evaluations_max: effort.evaluations_max(),
            evaluations: 0,
            step: 0,
            tabu_until: vec![0; problem.workloads.len()],
            random: StdRng::seed_from_u64(SEED),
            watch,
            stopped: false,
        }
    }

    /// Finds room for the workloads that found no server left, or empties servers one after the other, until the
    /// goal, the effort or the ideas are exhausted.
    fn improve(mut self, placement: Placement, goal: usize) -> Placement {
        let SearchedPlacement { servers: mut best, mut unplaced, refused } = self.taken_up(placement);
        let mut failures = 0;
        while failures < ATTEMPTS
            && (best.len() > goal || !unplaced.is_empty())
            && !self.must_stop(best.len())
        {
            let before = unplaced.len();
            let (servers, left) = match before {
                0 => self.without_one_server(&best, failures),
                _ => self.fill(best.clone(), unplaced.clone()),
            };
            if left.is_empty() || left.len() < before {
                (best, unplaced, failures) = (servers, left, 0);
            } else {
                failures += 1;
            }
        }
        self.completed(SearchedPlacement { servers: best, unplaced, refused })
    }

    /// Takes a placement up, to search for a better one.
    pub(super) fn taken_up(&self, placement: Placement) -> SearchedPlacement {
        let problem = self.problem;
        let mut refused = placement.refused;
        let server = |s: PlannedServer| {
            PlacementServer::new(problem, self.method, s.class, s.members).expect("placed servers hold")
        };
        let servers = placement.servers.into_iter().map(server).collect();
        let mut unplaced: Vec<usize> =
            refused.extract_if(.., |r| r.alone.is_none()).map(|r| r.workload).collect();
        unplaced.retain(|&workload| problem.rules.leads(workload));
        SearchedPlacement { servers, unplaced, refused }
    }

    /// Returns the placement that a search has ended with.
    pub(super) fn completed(&self, searched: SearchedPlacement) -> Placement {
        let SearchedPlacement { servers, unplaced, mut refused } = searched;
        for workload in unplaced.iter().flat_map(|workload| self.problem.rules.unit(workload)) {
            refused.push(PlacementRefusal { workload: *workload, alone: None });
        }
        refused.sort_by_key(|r| r.workload);
        Fleet::of_servers(self.problem, self.method, servers).into_placement(refused)
    }

    /// Reports progress, and says whether the effort is spent or the caller wants the search to end.
    pub(super) fn must_stop(&mut self, servers: usize) -> bool {
        let progress = SearchProgress { spent: self.evaluations, allowed: self.evaluations_max, servers };
        self.stopped = self.stopped || self.evaluations >= self.evaluations_max || !(self.watch)(progress);
        self.stopped
    }

    /// Tries the change, which costs an evaluation.
    fn try_change(&mut self, server: &mut PlacementServer, change: MembershipChange) -> bool {
        self.evaluations += 1;
        server.try_change(self.problem, self.method, change)
    }

    /// Dissolves one server and finds room for its workloads on the others.
    fn without_one_server(
        &mut self,
        servers: &[PlacementServer],
        attempt: usize,
    ) -> (Vec<PlacementServer>, Vec<usize>) {
        let mut servers = servers.to_vec();
        let dissolved = self.server_to_dissolve(&servers, attempt);
        let mut pool = servers.remove(dissolved).members;
        pool.retain(|&workload| self.problem.rules.leads(workload));
        self.fill(servers, pool)
    }

    /// Places the pool on the servers, moving other workloads as needed. Gives the servers and the workloads that are
    /// left, as they were when fewest were left.
    pub(super) fn fill(
        &mut self,
        servers: Vec<PlacementServer>,
        pool: Vec<usize>,
    ) -> (Vec<PlacementServer>, Vec<usize>) {
        self.fill_within(servers, pool, STEPS_PER_WORKLOAD)
    }

    /// As [`Self::fill`], with at most so many steps for each workload of the pool.
    pub(super) fn fill_within(
        &mut self,
        mut servers: Vec<PlacementServer>,
        mut pool: Vec<usize>,
        steps_per_workload: u64,
    ) -> (Vec<PlacementServer>, Vec<usize>) {
        let last_step = self.step + steps_per_workload * pool.len() as u64;
        let mut best = (servers.clone(), pool.clone());
        while let Some(workload) = self.take_largest(&mut pool) {
            self.step += 1;
            if self.step > last_step || servers.is_empty() || self.must_stop(servers.len() + 1) {
                break;
            }
            if !self.insert(&mut servers, workload) && !self.swap(&mut servers, &mut pool, workload) {
                self.force(&mut servers, &mut pool, workload);
            }
            if pool.len() < best.1.len() {
                best = (servers.clone(), pool.clone());
            }
        }
        best
    }

    /// The index of the emptiest server at the first attempt, then of the next ones.
    fn server_to_dissolve(&self, servers: &[PlacementServer], attempt: usize) -> usize {
        let fullness = |server: &PlacementServer| server.members.iter().map(|&w| self.sizes[w]).sum::<f64>();
        let mut order: Vec<usize> = (0..servers.len()).collect();
        order.sort_by(|&a, &b| fullness(&servers[a]).total_cmp(&fullness(&servers[b])));
        order[attempt % order.len()]
    }

    /// Removes the largest workload from the pool.
    fn take_largest(&self, pool: &mut Vec<usize>) -> Option<usize> {
        let largest = (0..pool.len()).max_by(|&a, &b| self.sizes[pool[a]].total_cmp(&self.sizes[pool[b]]))?;
        Some(pool.swap_remove(largest))
    }

    fn is_excluded(&self, servers: &[PlacementServer], number: usize, change: MembershipChange) -> bool {
        let MembershipChange { joins, leave } = change;
        self.problem.rules.exclusion(servers, Place::On(number), joins, leave).is_some()
    }

    /// Puts the workload on the fullest server that takes it, if one does.
    fn insert(&mut self, servers: &mut [PlacementServer], workload: usize) -> bool {
        let change = MembershipChange { joins: self.problem.rules.unit(&workload), leave: &[] };
        let mut order: Vec<(f64, usize)> = Vec::new();
        for number in 0..servers.len() {
            if self.is_excluded(servers, number, change) {
                continue;
            }
            let server = &mut servers[number];
            if !server.is_hopeless(self.problem, change) {
                order.push((-server.predict(self.problem, change), number));
            }
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().any(|(_, number)| self.try_change(&mut servers[number], change))
    }

    /// Exchanges the workload for a smaller one, the smallest possible, which goes to the pool.
    fn swap(&mut self, servers: &mut [PlacementServer], pool: &mut Vec<usize>, workload: usize) -> bool {
        let mut candidates: Vec<(f64, usize, usize)> = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            for &out in &server.members {
                let is_smaller = self.sizes[out] < self.sizes[workload];
                if is_smaller && self.tabu_until[out] <= self.step && self.problem.rules.leads(out) {
                    candidates.push((self.sizes[out], number, out));
                }
            }
        }
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, number, out) in candidates {
            let rules = &self.problem.rules;
            let change = MembershipChange { joins: rules.unit(&workload), leave: rules.unit(&out) };
            if self.is_excluded(servers, number, change) {
                continue;
            }
            let server = &mut servers[number];
            if !server.is_hopeless(self.problem, change) && self.try_change(server, change) {
                self.tabu_until[workload] = self.step + TABU;
                pool.push(out);
                return true;
            }
        }
        false
    }

    /// Puts the workload on a random server and removes others from it until it fits. A class that the
    /// workload does not suit leaves it in the pool.
    fn force(&mut self, servers: &mut [PlacementServer], pool: &mut Vec<usize>, workload: usize) {
        let number = self.random.random_range(0..servers.len());
        let rules = &self.problem.rules;
        let mut leaving = servers[number].members.clone();
        leaving.retain(|&member| rules.leads(member));
        leaving.shuffle(&mut self.random);
        let mut leave = Vec::new();
        for count in 1..=leaving.len() {
            leave.extend(rules.unit(&leaving[count - 1]));
            let change = MembershipChange { joins: rules.unit(&workload), leave: &leave };
            if self.is_excluded(servers, number, change) {
                continue;
            }
            let server = &mut servers[number];
            if !server.is_hopeless(self.problem, change) && self.try_change(server, change) {
                pool.extend(&leaving[..count]);
                self.tabu_until[workload] = self.step + TABU;
                return;
            }
        }
        pool.push(workload);
    }
}
