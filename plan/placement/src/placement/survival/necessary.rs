//! Lower bound on the servers of a plan that survives failures.

use crate::problem::PlanningProblem;
use std::collections::BTreeMap;

/// Returns a number of servers, in use or kept idle, that no plan which survives any failure can do without, where no plan
/// has fewer than `at_least` servers; `None` if no such plan exists with the servers that there are.
///
/// Of the servers of a plan, those that remain after the failure of the domain with the most of them, t, hold all
/// workloads, so there are `at_least` + t or more. No domain has more than t of them, so they are no more than the sum over
/// domains of the lesser of t and the domain's servers. The least t that allows both is the bound. A server without a
/// domain is one of its own.
pub fn servers_to_survive(
    problem: &PlanningProblem,
    domains: &[Option<usize>],
    at_least: usize,
) -> Option<usize> {
    if at_least == 0 {
        return Some(0);
    }
    let mut single = 0;
    let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
    for (class, domain) in problem.classes.iter().zip(domains) {
        match domain {
            None => single += class.count,
            Some(domain) => *shared.entry(*domain).or_default() += class.count,
        }
    }
    let within = |most: usize| single + shared.values().map(|count| most.min(*count)).sum::<usize>();
    let largest = shared.values().copied().max().unwrap_or(0).max(1);
    (1..=largest).find(|&most| within(most) >= at_least + most).map(|most| at_least + most)
}
