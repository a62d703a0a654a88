//! Placement on cheap servers, where classes of servers have prices.
//!
//! The search begins with the best of several placements: first fit in several orders of the workloads, each with several
//! orders in which classes are opened, and the placement on servers of each class alone, where there are enough of them.
//! Then it gives one or two servers up and opens up to three that cost less in their place, or none, and the local search
//! of [`super::search`] distributes the workloads over all that are left. It is a heuristic: a cheaper fleet may exist.

use super::first_fit::place_first_fit;
use super::fleet::Fleet;
use super::result::Placement;
use super::search::{
    ATTEMPTS, BY_SIZE, PlacementOrder, PlacementSearch, SearchProgress, SearchedPlacement, orders, place,
};
use super::server::PlacementServer;
use crate::effort::SearchEffort;
use crate::limits::LimitMethod;
use crate::lower_bound::{ClassShares, lower_bound, shares_on_classes, workload_sizes};
use crate::problem::PlanningProblem;

#[cfg(test)]
mod tests;

/// Workloads beyond which first fit tries one order of them only; each takes time that grows faster than their number.
const ORDERS_MAX: usize = 200;
/// Classes up to which all orders of opening them are tried.
const PERMUTED_MAX: usize = 3;
/// Servers that are opened at most in place of those given up.
const OPENED_MAX: usize = 3;
/// Servers that are given up in pairs, those with most room.
const PAIRED_MAX: usize = 24;
/// Changes that are tried in a round at most, the most promising.
const CHANGES_MAX: usize = 200;
/// Steps of one change, per workload of the servers given up.
const STEPS_PER_WORKLOAD: u64 = 12;

/// A cheap placement, with the placements on one class that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct CheapestFleet {
    pub placement: Placement,
    /// By class.
    pub alone: Vec<OneClass>,
}

/// Servers of one class alone, as many as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneClass {
    /// Number of servers.
    pub servers: usize,
    /// Number of workloads that no server of the class takes.
    pub refused: usize,
}

/// Places every workload that fits on servers that cost little together, and on the fewest of those that cost the same. The
/// search ends at the price `goal`, best set to a [`lower_bound`](crate::lower_bound()). `watch` is that of
/// [`place`](super::place()).
///
/// # Panics
/// When servers have no prices.
pub fn place_cheapest(
    problem: &PlanningProblem,
    method: LimitMethod,
    order: PlacementOrder,
    effort: SearchEffort,
    goal: f64,
    watch: &mut dyn FnMut(SearchProgress) -> bool,
) -> CheapestFleet {
    assert!(!problem.prices.is_empty(), "servers have prices");
    let mut best = None::<Placement>;
    let mut alone = Vec::new();
    for class in 0..problem.classes.len() {
        let placement = place_on_one_class(problem, method, class, order, effort, watch);
        let servers = placement.servers.len();
        alone.push(OneClass { servers, refused: placement.refused.len() });
        if placement.refused.is_empty() && servers <= problem.classes[class].count {
            best = Some(cheaper(problem, best, on_class(placement, class)));
        }
    }
    let shares = shares_on_classes(problem);
    let sizes = workload_sizes(problem);
    let is_best = order == PlacementOrder::Best;
    let orders = match is_best {
        true if problem.workloads.len() <= ORDERS_MAX => orders(problem, &sizes),
        true => vec![orders(problem, &sizes).swap_remove(BY_SIZE)],
        false => vec![(0..problem.workloads.len()).collect()],
    };
    for order_of_workloads in orders {
        for openings in openings(problem, &shares) {
            let fleet = Fleet::new(problem, method).skipping_full(order == PlacementOrder::GivenFast);
            let mut fleet = fleet.opening(openings);
            let refused = order_of_workloads.iter().filter_map(|&w| fleet.arrive(w).err()).collect();
            let found = cheaper(problem, best, fleet.into_placement(refused));
            let progress =
                SearchProgress { spent: 0, allowed: effort.evaluations_max(), servers: found.servers.len() };
            let is_reached = found.refused.is_empty() && price(problem, &found) <= goal;
            if is_reached || !watch(progress) {
                return CheapestFleet { placement: found, alone };
            }
            best = Some(found);
        }
    }
    let best = best.expect("there is at least one order");
    if !is_best {
        return CheapestFleet { placement: best, alone };
    }
    let search = PlacementSearch::new(problem, method, &sizes, effort, watch);
    CheapestFleet { placement: search.cheapen(best, &shares, goal), alone }
}

fn place_on_one_class(
    problem: &PlanningProblem,
    method: LimitMethod,
    class: usize,
    order: PlacementOrder,
    effort: SearchEffort,
    watch: &mut dyn FnMut(SearchProgress) -> bool,
) -> Placement {
    let problem = problem.on_one_class(class);
    if order == PlacementOrder::Best {
        let goal = lower_bound(&problem, method).servers;
        return place(&problem, method, order, effort, goal, watch);
    }
    let given: Vec<usize> = (0..problem.workloads.len()).collect();
    place_first_fit(&problem, method, &given, order == PlacementOrder::GivenFast)
}

/// The placement of a problem of one class as one of all classes.
fn on_class(mut placement: Placement, class: usize) -> Placement {
    placement.servers.iter_mut().for_each(|server| server.class = class);
    placement
}

fn price(problem: &PlanningProblem, placement: &Placement) -> f64 {
    problem.price(placement.servers.iter().map(|server| server.class))
}

/// Returns the placement with fewer refused workloads, or the cheaper one, or that on fewer servers; the first of equals.
fn cheaper(problem: &PlanningProblem, one: Option<Placement>, other: Placement) -> Placement {
    let Some(one) = one else { return other };
    let by_refused = other.refused.len().cmp(&one.refused.len());
    let by_price = price(problem, &other).total_cmp(&price(problem, &one));
    let by_servers = other.servers.len().cmp(&one.servers.len());
    if by_refused.then(by_price).then(by_servers).is_lt() { other } else { one }
}

/// Orders in which workloads open servers of the classes: the same for all, and by the price of the share that the workload
/// takes of a server.
fn openings(problem: &PlanningProblem, shares: &ClassShares) -> Vec<Vec<Vec<usize>>> {
    let cheapest = problem.classes_by_price();
    let workloads = problem.workloads.len();
    let orders = class_orders(problem).into_iter();
    let mut openings: Vec<Vec<Vec<usize>>> = orders.map(|order| vec![order; workloads]).collect();
    let by_share = |w: usize| {
        let cost =
            |class: usize| shares[class][w].map_or(f64::INFINITY, |share| share * problem.prices[class]);
        let mut classes = cheapest.clone();
        classes.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        classes
    };
    openings.push((0..workloads).map(by_share).collect());
    openings
}

/// Orders in which classes are opened: all of a few classes, and each class first of many; without prices that of the problem.
pub(super) fn class_orders(problem: &PlanningProblem) -> Vec<Vec<usize>> {
    let cheapest = problem.classes_by_price();
    let mut orders = Vec::new();
    if problem.prices.is_empty() {
        return vec![cheapest];
    }
    if cheapest.len() <= PERMUTED_MAX {
        permute(&cheapest, &mut Vec::new(), &mut orders);
    } else {
        orders.push(cheapest.clone());
        for &first in &cheapest[1..] {
            let rest = cheapest.iter().copied().filter(|&class| class != first);
            orders.push(std::iter::once(first).chain(rest).collect());
        }
    }
    orders
}

fn permute(rest: &[usize], before: &mut Vec<usize>, orders: &mut Vec<Vec<usize>>) {
    if rest.is_empty() {
        orders.push(before.clone());
    }
    for (position, &class) in rest.iter().enumerate() {
        before.push(class);
        permute(&[&rest[..position], &rest[position + 1..]].concat(), before, orders);
        before.pop();
    }
}

/// Servers that are given up, by position, and the classes of those that are opened.
#[derive(Debug, Clone)]
struct FleetChange {
    given_up: Vec<usize>,
    opened: Vec<usize>,
    /// Share of a server that the workloads leave free, as far as shares add up.
    room: f64,
}

impl PlacementSearch<'_> {
    /// Finds room for the workloads that found no server left, then replaces servers by cheaper ones, until the goal, the
    /// effort or the ideas are exhausted.
    fn cheapen(mut self, placement: Placement, shares: &ClassShares, goal: f64) -> Placement {
        let problem = self.problem;
        let SearchedPlacement { servers: mut best, mut unplaced, refused } = self.taken_up(placement);
        self.make_room(&mut best, &mut unplaced);
        while problem.price(best.iter().map(|server| server.class)) > goal || !unplaced.is_empty() {
            let changes = self.changes(&best, shares);
            let mut changes = changes.into_iter();
            match changes.find_map(|change| self.try_fleet(&best, &change)) {
                Some(cheaper) => best = cheaper,
                None => break,
            }
            // A server that was given up may be what a workload lacks.
            self.make_room(&mut best, &mut unplaced);
        }
        self.completed(SearchedPlacement { servers: best, unplaced, refused })
    }

    /// Finds places for workloads on the servers and on those that are not in use.
    fn make_room(&mut self, servers: &mut Vec<PlacementServer>, unplaced: &mut Vec<usize>) {
        let problem = self.problem;
        let mut failures = 0;
        while !unplaced.is_empty() && failures < ATTEMPTS && !self.must_stop(servers.len()) {
            let mut all = servers.clone();
            for class in problem.classes_by_price() {
                let used = servers.iter().filter(|server| server.class == class).count();
                let left = (problem.classes[class].count - used).min(unplaced.len());
                all.extend((0..left).map(|_| PlacementServer::empty(problem, class)));
            }
            let before = unplaced.len();
            let (filled, left) = self.fill(all, unplaced.clone());
            if left.len() < before {
                *servers = in_use(filled);
                *unplaced = left;
                failures = 0;
            } else {
                failures += 1;
            }
        }
    }

    /// Makes the change if all workloads find a place after it.
    fn try_fleet(
        &mut self,
        servers: &[PlacementServer],
        change: &FleetChange,
    ) -> Option<Vec<PlacementServer>> {
        if self.must_stop(servers.len()) {
            return None;
        }
        let mut changed = Vec::new();
        let mut pool = Vec::new();
        for (position, server) in servers.iter().enumerate() {
            if change.given_up.contains(&position) {
                pool.extend(server.members.iter().filter(|member| self.problem.rules.leads(**member)));
            } else {
                changed.push(server.clone());
            }
        }
        changed.extend(change.opened.iter().map(|&class| PlacementServer::empty(self.problem, class)));
        let (changed, left) = self.fill_within(changed, pool, STEPS_PER_WORKLOAD);
        left.is_empty().then(|| in_use(changed))
    }

    /// Changes that make the servers cheaper, or fewer at the same price, those that leave most room first.
    fn changes(&self, servers: &[PlacementServer], shares: &ClassShares) -> Vec<FleetChange> {
        let load = |server: &PlacementServer| -> f64 {
            server.members.iter().map(|&w| shares[server.class][w].unwrap_or(1.0)).sum()
        };
        let mut loads: Vec<(f64, usize)> =
            servers.iter().enumerate().map(|(position, server)| (load(server), position)).collect();
        loads.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut given_up: Vec<Vec<usize>> = loads.iter().map(|(_, position)| vec![*position]).collect();
        let paired: Vec<usize> = loads.iter().take(PAIRED_MAX).map(|(_, position)| *position).collect();
        for (number, &one) in paired.iter().enumerate() {
            given_up.extend(paired[..number].iter().map(|&other| vec![other, one]));
        }
        let room: f64 = loads.iter().map(|(load, _)| (1.0 - load).max(0.0)).sum();
        let opened = multisets(self.problem.classes.len(), OPENED_MAX);
        let mut changes = Vec::new();
        for given_up in given_up {
            let before = self.problem.price(given_up.iter().map(|&position| servers[position].class));
            for opened in &opened {
                let after = self.problem.price(opened.iter().copied());
                let is_cheaper = after < before || (after == before && opened.len() < given_up.len());
                if !is_cheaper || !self.has_servers(servers, &given_up, opened) {
                    continue;
                }
                let members = given_up.iter().flat_map(|&position| &servers[position].members);
                let needed = members.map(|&w| least_share(shares, opened, servers, &given_up, w));
                let lost: f64 =
                    given_up.iter().map(|&position| (1.0 - load(&servers[position])).max(0.0)).sum();
                let room = room - lost + opened.len() as f64 - needed.sum::<f64>();
                changes.push(FleetChange { given_up: given_up.clone(), opened: opened.clone(), room });
            }
        }
        changes.retain(|change| change.room.is_finite());
        changes.sort_by(|a, b| b.room.total_cmp(&a.room));
        changes.truncate(CHANGES_MAX);
        changes
    }

    /// Returns true if there are as many servers of the classes as after a change.
    fn has_servers(&self, servers: &[PlacementServer], given_up: &[usize], opened: &[usize]) -> bool {
        opened.iter().all(|&class| {
            let is_left = |(position, server): &(usize, &PlacementServer)| {
                server.class == class && !given_up.contains(position)
            };
            let left = servers.iter().enumerate().filter(is_left).count();
            left + opened.iter().filter(|&&of| of == class).count() <= self.problem.classes[class].count
        })
    }
}

/// The least share of a server that a workload takes after a change; infinite if no server suits it.
fn least_share(
    shares: &ClassShares,
    opened: &[usize],
    servers: &[PlacementServer],
    given_up: &[usize],
    workload: usize,
) -> f64 {
    let others = servers.iter().enumerate().filter(|(position, _)| !given_up.contains(position));
    let classes = opened.iter().copied().chain(others.map(|(_, server)| server.class));
    classes.filter_map(|class| shares[class][workload]).fold(f64::INFINITY, f64::min)
}

fn in_use(mut servers: Vec<PlacementServer>) -> Vec<PlacementServer> {
    servers.retain(|server| !server.members.is_empty());
    servers
}

/// All multisets of at most `size_max` classes, the empty one included.
fn multisets(classes: usize, size_max: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..size_max {
        let until = all.len();
        for number in from..until {
            let first = all[number].last().copied().unwrap_or(0);
            for class in first..classes {
                let mut larger = all[number].clone();
                larger.push(class);
                all.push(larger);
            }
        }
        from = until;
    }
    all
}
