//! Other placements of the same workloads, which may take fewer servers in all once failures count: spread over failure
//! domains, or without one of the classes.

use crate::effort::SearchEffort;
use crate::limits::LimitMethod;
use crate::lower_bound::workload_sizes;
use crate::placement::first_fit::place_first_fit;
use crate::placement::result::Placement;
use crate::placement::search::{PlacementOrder, orders, place};
use crate::problem::PlanningProblem;
use std::collections::BTreeSet;

/// Numbers of servers per domain that are tried.
const SPREADS: usize = 6;
/// Beyond this number of workloads, fewer are tried, each by first fit in one order.
const IMPROVED_MAX: usize = 200;
const LARGE_VARIANTS: usize = 2;

/// Returns such placements, each searched for when it is asked for.
pub(super) fn other_placements<'a>(
    problem: &'a PlanningProblem,
    method: LimitMethod,
    domains: &'a [Option<usize>],
    given: &Placement,
) -> impl Iterator<Item = Placement> + use<'a> {
    let counts: Vec<usize> = problem.classes.iter().map(|class| class.count).collect();
    let usable = counts.iter().filter(|count| **count > 0).count();
    let servers = given.servers.len();
    let refused: BTreeSet<usize> = given.refused.iter().map(|refusal| refusal.workload).collect();
    let shared: BTreeSet<usize> = domains.iter().copied().flatten().collect();
    let groups = shared.len() + usize::from(domains.contains(&None));
    let mut tried: BTreeSet<Vec<usize>> = BTreeSet::from([counts.clone()]);
    let mut variants: Vec<Vec<usize>> = Vec::new();
    if usable > 1 {
        let spreads = (servers.div_ceil(groups.max(1))..servers).take(SPREADS);
        variants.extend(spreads.map(|most| counts.iter().map(|count| most.min(*count)).collect()));
        for left_out in 0..counts.len() {
            let count = |(class, count): (usize, &usize)| if class == left_out { 0 } else { *count };
            variants.push(counts.iter().enumerate().map(count).collect());
        }
    }
    variants.retain(|variant| variant.iter().any(|count| *count > 0) && tried.insert(variant.clone()));
    if problem.workloads.len() > IMPROVED_MAX {
        variants.truncate(LARGE_VARIANTS);
    }
    variants.into_iter().filter_map(move |variant| {
        let mut fewer = problem.clone();
        fewer.classes.iter_mut().zip(&variant).for_each(|(class, count)| class.count = *count);
        let count = fewer.workloads.len();
        let found = if count > IMPROVED_MAX {
            let order = orders(&fewer, &workload_sizes(&fewer)).pop().expect("there are orders");
            place_first_fit(&fewer, method, &order, false)
        } else {
            let effort = SearchEffort::for_workloads(count);
            place(&fewer, method, PlacementOrder::Best, effort, 1, &mut |_| true)
        };
        let is_same = found.refused.len() == refused.len()
            && found.refused.iter().all(|refusal| refused.contains(&refusal.workload));
        is_same.then_some(found)
    })
}
