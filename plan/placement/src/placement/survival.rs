//! Plans that survive a failure: whichever server or failure domain is gone, its workloads have named places on the others
//! where all SLOs and rules hold, and no other workload moves.
//!
//! [`survive`] keeps servers idle for that, as few as it finds. Each failure is tried on its own: the workloads of a server
//! stay together on an idle one, where limits and bounds are as they were, or are divided among the remaining servers, whose
//! limits are then chosen again. With one class and no rules, one idle server is enough and, where the plan has as few
//! servers as any, necessary: with a server gone, the others hold all workloads.

mod attempt;
mod bases;
mod failure;
mod necessary;
#[cfg(test)]
mod tests;

use super::result::Placement;
use crate::limits::LimitMethod;
use crate::lower_bound::workload_sizes;
use crate::problem::PlanningProblem;
use attempt::FailureAttempts;
use std::collections::{BTreeMap, BTreeSet};

pub use failure::{FailOver, FailOverServer, ServerId, UnplacedWorkload};
pub use necessary::servers_to_survive;

/// Idle servers are tried without one by one if their number times that of all workloads is no more than this.
const REDUCTION_MAX: usize = 5_000;

/// More servers of a class with which every failure would be survived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoreServers {
    pub class: usize,
    pub count: usize,
}

/// A placement with what happens when servers fail.
#[derive(Debug, Clone, PartialEq)]
pub struct SurvivingPlacement {
    /// The placement while all servers work. Every server has a number.
    pub placement: Placement,
    /// Servers that are idle then and have to be kept for failures.
    pub idle: Vec<ServerId>,
    /// All failures of servers that have workloads.
    pub failures: Vec<FailOver>,
    /// Servers that would help where a failure is not survived, for each class alone.
    pub more_servers: Vec<MoreServers>,
}

impl SurvivingPlacement {
    /// Returns true if every failure is survived.
    pub fn is_survived(&self) -> bool {
        self.failures.iter().all(|failure| failure.unplaced.is_empty())
    }

    /// Returns the number of servers that it takes: those in use and those that are kept idle.
    pub fn servers(&self) -> usize {
        self.placement.servers.len() + self.idle.len()
    }

    /// Workloads without a place after some failure first, then servers.
    fn cost(&self) -> (usize, usize) {
        let unplaced = self.failures.iter().map(|failure| failure.unplaced.len()).sum();
        (unplaced, self.servers())
    }
}

/// Returns a placement that survives the failure of any server, or of any domain: `domains` has the failure domain of
/// each class, `None` if its servers fail one by one. It is the given placement or, unless that `is_kept`, another one of
/// the same workloads, where that takes fewer servers in all. `at_least` ends the search for such.
pub fn survive(
    problem: &PlanningProblem,
    method: LimitMethod,
    domains: &[Option<usize>],
    placement: Placement,
    is_kept: bool,
    at_least: Option<usize>,
) -> SurvivingPlacement {
    let sizes = workload_sizes(problem);
    let given = with_idle_servers(problem, method, domains, &sizes, placement);
    let is_good = |one: &SurvivingPlacement| one.is_survived() && at_least == Some(one.servers());
    let mut best = given;
    if !is_kept && !is_good(&best) {
        for other in bases::other_placements(problem, method, domains, &best.placement) {
            let other = with_idle_servers(problem, method, domains, &sizes, other);
            if other.cost() < best.cost() {
                best = other;
            }
            if is_good(&best) {
                break;
            }
        }
    }
    if !best.is_survived() {
        best.more_servers = more_servers(problem, method, domains, &sizes, &best);
    }
    best
}

/// Adds idle servers to a placement until every failure is survived, if that is possible.
fn with_idle_servers(
    problem: &PlanningProblem,
    method: LimitMethod,
    domains: &[Option<usize>],
    sizes: &[f64],
    mut placement: Placement,
) -> SurvivingPlacement {
    let numbers = numbers_beside_named(problem, &placement);
    placement.numbers = numbers.iter().copied().map(Some).collect();
    let mut attempts = FailureAttempts::new(problem, method, domains, sizes, &placement, &numbers);
    let failures = failures_of(&placement, domains);
    let mut by_size: Vec<&Vec<usize>> = failures.iter().collect();
    let size = |failed: &[usize]| -> f64 {
        failed.iter().flat_map(|&server| &placement.servers[server].members).map(|&w| sizes[w]).sum()
    };
    by_size.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut idle: Vec<ServerId> = Vec::new();
    for &failed in &by_size {
        if attempts.survives(failed, &idle).is_none() {
            idle.extend(attempts.with_more_servers(failed, &idle).opened);
        }
    }
    if idle.len() * problem.workloads.len() <= REDUCTION_MAX {
        reduce(&mut attempts, &by_size, &mut idle);
    }
    let failures = failures.iter().map(|failed| attempts.fail_over(failed, &idle)).collect();
    SurvivingPlacement { placement, idle, failures, more_servers: Vec::new() }
}

/// Removes idle servers that no failure needs.
fn reduce(attempts: &mut FailureAttempts<'_>, failures: &[&Vec<usize>], idle: &mut Vec<ServerId>) {
    if idle.len() < 2 {
        return;
    }
    let survived: Vec<&&Vec<usize>> =
        failures.iter().filter(|failed| attempts.survives(failed, idle).is_some()).collect();
    let mut position = 0;
    while position < idle.len() {
        let mut fewer = idle.clone();
        fewer.remove(position);
        if survived.iter().all(|failed| attempts.survives(failed, &fewer).is_some()) {
            *idle = fewer;
        } else {
            position += 1;
        }
    }
}

/// Returns the servers of a placement that fail together, by position, in the order of the first.
fn failures_of(placement: &Placement, domains: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut failures: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
    for (position, server) in placement.servers.iter().enumerate() {
        let domain = domains[server.class];
        match failures.iter_mut().find(|(known, _)| domain.is_some() && *known == domain) {
            Some((_, failed)) => failed.push(position),
            None => failures.push((domain, vec![position])),
        }
    }
    failures.into_iter().map(|(_, failed)| failed).collect()
}

/// Finds for each class how many more of its servers make every failure survived, where that helps.
fn more_servers(
    problem: &PlanningProblem,
    method: LimitMethod,
    domains: &[Option<usize>],
    sizes: &[f64],
    found: &SurvivingPlacement,
) -> Vec<MoreServers> {
    let mut helping = Vec::new();
    for class in 0..problem.classes.len() {
        let mut larger = problem.clone();
        larger.classes[class].count += found.placement.servers.len();
        let survived = with_idle_servers(&larger, method, domains, sizes, found.placement.clone());
        let used = survived.placement.servers.iter().filter(|server| server.class == class).count()
            + survived.idle.iter().filter(|id| id.class == class).count();
        let count = used.saturating_sub(problem.classes[class].count);
        if survived.is_survived() && count > 0 {
            helping.push(MoreServers { class, count });
        }
    }
    helping
}

/// Numbers for the servers of a placement that leave those free that workloads ask for, where others are left.
fn numbers_beside_named(problem: &PlanningProblem, placement: &Placement) -> Vec<usize> {
    let mut numbers = placement.numbers.clone();
    numbers.resize(placement.servers.len(), None);
    for class in 0..problem.classes.len() {
        let of_class = |position: &usize| placement.servers[*position].class == class;
        let positions: Vec<usize> = (0..numbers.len()).filter(of_class).collect();
        let taken: BTreeSet<usize> = positions.iter().filter_map(|&position| numbers[position]).collect();
        let named = problem.rules.named_numbers(class);
        let mut free: Vec<usize> = (1..=problem.classes[class].count.max(positions.len()))
            .filter(|number| !taken.contains(number))
            .collect();
        free.sort_by_key(|number| (named.contains(number), *number));
        let mut free = free.into_iter();
        for position in positions {
            if numbers[position].is_none() {
                numbers[position] = free.next();
            }
        }
    }
    numbers.into_iter().map(|number| number.expect("there are as many numbers as servers")).collect()
}

/// Numbers for servers of these classes: those that are asked for, and the first free ones of the class for the others.
pub fn fresh_numbers(classes: &[usize], asked: &[Option<usize>]) -> Vec<usize> {
    let asked = |position: usize| asked.get(position).copied().flatten();
    let taken: BTreeSet<(usize, usize)> =
        (0..classes.len()).filter_map(|position| Some((classes[position], asked(position)?))).collect();
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    let number_of = |position: usize| {
        asked(position).unwrap_or_else(|| {
            let class = classes[position];
            let used = used.entry(class).or_default();
            let mut free = (*used + 1..).filter(|&number| !taken.contains(&(class, number)));
            *used = free.next().expect("there are more numbers than servers");
            *used
        })
    };
    (0..classes.len()).map(number_of).collect()
}
