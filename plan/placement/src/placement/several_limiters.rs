//! Placement where several limiters at once hold every workload to its whole curve, to compare with one limit each
//! (thesis §5.4.7).
//!
//! No limits are chosen: each workload has at every stage the limiters of all segments of its curve, so that nothing
//! within a server changes when another workload comes, but for priorities. The delay of a level at a stage is that of
//! [`PriorityQueue`], and those of the stages add up, as where limiters hold traffic to its curve before each of them.
//! Any single limit on a curve admits at least as much as the curve, so with the same priorities no bound is above that
//! of Eq. 5.5. The search for priorities asks for hundreds of bounds for each set of members, so there the limiters are the fewest
//! that admit at most [`TOLERANCE`] more than the curve.
//!
//! What a stage has begun counts as for single limits; that equal priorities take turns on a link, and that buckets there
//! have to last, does not.
//!
//! First fit is that of [`place_first_fit`](super::place_first_fit). The best order tries the same orders as the search
//! for single limits, and then moves the workloads of one server after the other to the rest where they fit. It exchanges
//! none, so that it may need more servers than a longer search.

use super::PlacementOrder;
use super::search::orders;
use crate::levels::priority_levels;
use crate::limiters;
use crate::lower_bound::workload_sizes;
use crate::prioritise::meets_all;
use crate::problem::PlanningProblem;
use calculus::{ArrivalCurve, PriorityQueue, round_up};
use model::{PerStage, Stage};
use std::collections::BTreeMap;

/// Share by which limiters may exceed the curve where priorities are searched.
const TOLERANCE: f64 = 0.01;

/// Priority rule for workloads with several limiters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurvePriorities {
    /// The tighter the SLO, the higher; workloads with equal SLOs share a priority (§5.2.1).
    BySlo,
    /// By the search of PriorityMeister, which may order each stage differently and lets none share (§3.2.2).
    Searched,
}

/// Which workloads share a server, without limits of their own choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurvePlacement {
    /// The class and the members of each server in use.
    pub servers: Vec<(usize, Vec<usize>)>,
    /// The workloads that found no server.
    pub refused: Vec<usize>,
}

/// Places every workload that fits, in the order of arrival or in the best of several orders.
pub fn place_whole_curves(
    problem: &PlanningProblem,
    priorities: CurvePriorities,
    order: PlacementOrder,
) -> CurvePlacement {
    let given: Vec<usize> = (0..problem.workloads.len()).collect();
    let rule = WholeCurveRule::new(problem, priorities);
    if order != PlacementOrder::Best {
        return rule.first_fit(&given);
    }
    let sizes = workload_sizes(problem);
    let found = orders(problem, &sizes).into_iter().map(|order| rule.first_fit(&order));
    let best = found.min_by_key(|placement| (placement.refused.len(), placement.servers.len()));
    rule.with_servers_emptied(best.expect("there is at least one order"), &sizes)
}

/// Rule that decides which workloads share a server.
struct WholeCurveRule<'a> {
    problem: &'a PlanningProblem,
    priorities: CurvePriorities,
    /// The curve of the limiters of each workload, by class and then workload.
    curves: Vec<Vec<PerStage<ArrivalCurve>>>,
}

impl<'a> WholeCurveRule<'a> {
    fn new(problem: &'a PlanningProblem, priorities: CurvePriorities) -> Self {
        let of_limiters = |curve: &ArrivalCurve| match priorities {
            CurvePriorities::BySlo => curve.clone(),
            CurvePriorities::Searched => {
                let limits = limiters(curve, TOLERANCE);
                let limits: Vec<(f64, f64)> = limits.iter().map(|limit| (limit.rate, limit.burst)).collect();
                ArrivalCurve::from_limits(&limits)
            }
        };
        let mut curves = Vec::with_capacity(problem.classes.len());
        for class in 0..problem.classes.len() {
            let workloads = problem.workloads.iter();
            curves.push(workloads.map(|w| w.on_class[class].curves.map(of_limiters)).collect());
        }
        Self { problem, priorities, curves }
    }

    /// Returns true if every member keeps its SLO.
    fn keeps(&self, class: usize, members: &[usize]) -> bool {
        match self.priorities {
            CurvePriorities::BySlo => self.keeps_by_slo(class, members),
            CurvePriorities::Searched => self.keeps_by_search(class, members),
        }
    }

    fn curve(&self, workload: usize, class: usize, stage: Stage) -> &ArrivalCurve {
        &self.curves[class][workload][stage]
    }

    fn keeps_by_slo(&self, class: usize, members: &[usize]) -> bool {
        let begun = self.problem.least_blocking(class, members);
        let mut queues = PerStage::from_fn(|_| PriorityQueue::new());
        priority_levels(self.problem, class, members).into_iter().all(|level| {
            let mut latency = 0.0;
            for stage in Stage::ALL {
                let members = level.members.iter().map(|&member| self.curve(member, class, stage));
                let curve = ArrivalCurve::sum(members);
                latency += queues[stage].delay(&curve, begun[stage]);
                queues[stage].add(&curve, 0.0);
            }
            round_up(latency) <= level.budget
        })
    }

    fn keeps_by_search(&self, class: usize, members: &[usize]) -> bool {
        let budgets: Vec<f64> = members.iter().map(|&member| self.problem.budget(member, class)).collect();
        let begun = self.problem.least_blocking(class, members);
        // The search repeats questions about stages at which nothing has changed.
        let mut known: BTreeMap<(Stage, usize, Vec<usize>), f64> = BTreeMap::new();
        let mut latency = |member: usize, above: &PerStage<Vec<usize>>| {
            PerStage::from_fn(|stage| {
                let key = (stage, member, above[stage].clone());
                *known.entry(key).or_insert_with(|| {
                    let mut queue = PriorityQueue::new();
                    for &other in &above[stage] {
                        queue.add(self.curve(members[other], class, stage), 0.0);
                    }
                    queue.delay(self.curve(members[member], class, stage), begun[stage])
                })
            })
        };
        meets_all(&budgets, &mut latency)
    }

    fn first_fit(&self, order: &[usize]) -> CurvePlacement {
        let mut placement = CurvePlacement { servers: Vec::new(), refused: Vec::new() };
        for &workload in order {
            if !self.join(&mut placement.servers, workload) && !self.open(&mut placement.servers, workload) {
                placement.refused.push(workload);
            }
        }
        placement
    }

    /// Puts the workload on the first server where all members keep their SLOs. Returns false if there is
    /// none.
    fn join(&self, servers: &mut [(usize, Vec<usize>)], workload: usize) -> bool {
        servers.iter_mut().any(|(class, members)| {
            members.push(workload);
            let fits = self.keeps(*class, members);
            if !fits {
                members.pop();
            }
            fits
        })
    }

    /// Opens a server of the first suitable class with one left. Returns false if there is none.
    fn open(&self, servers: &mut Vec<(usize, Vec<usize>)>, workload: usize) -> bool {
        for (class, kind) in self.problem.classes.iter().enumerate() {
            let taken = servers.iter().filter(|(of, _)| *of == class).count();
            if taken < kind.count && self.keeps(class, &[workload]) {
                servers.push((class, vec![workload]));
                return true;
            }
        }
        false
    }

    /// Gives up every server whose workloads, the largest first, all fit on the others.
    fn with_servers_emptied(&self, mut placement: CurvePlacement, sizes: &[f64]) -> CurvePlacement {
        let mut number = 0;
        while number < placement.servers.len() {
            let mut rest = placement.servers.clone();
            let (_, mut members) = rest.remove(number);
            members.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]).then(a.cmp(&b)));
            if members.into_iter().all(|member| self.join(&mut rest, member)) {
                (placement.servers, number) = (rest, 0);
            } else {
                number += 1;
            }
        }
        placement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_workload, problem};
    use crate::{LimitMethod, place_first_fit};
    use proptest::prelude::*;

    fn members(placement: &CurvePlacement) -> Vec<usize> {
        let mut all: Vec<usize> = placement.servers.iter().flat_map(|(_, members)| members.clone()).collect();
        all.extend(&placement.refused);
        all.sort_unstable();
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Workloads that fit together with one limit each also fit with several.
        #[test]
        fn several_limiters_admit_what_one_does(workloads in prop::collection::vec(any_workload(), 1..7)) {
            let problem = problem(workloads);
            let rule = WholeCurveRule::new(&problem, CurvePriorities::BySlo);
            let given: Vec<usize> = (0..problem.workloads.len()).collect();
            for server in place_first_fit(&problem, LimitMethod::Exact, &given, false).servers {
                prop_assert!(rule.keeps(server.class, &server.members), "{:?}", server.members);
            }
        }

        #[test]
        fn everybody_is_placed_once_and_the_best_order_is_no_worse(
            workloads in prop::collection::vec(any_workload(), 1..7),
        ) {
            let problem = problem(workloads);
            for priorities in [CurvePriorities::BySlo, CurvePriorities::Searched] {
                let rule = WholeCurveRule::new(&problem, priorities);
                let given = place_whole_curves(&problem, priorities, PlacementOrder::Given);
                let best = place_whole_curves(&problem, priorities, PlacementOrder::Best);
                prop_assert!((best.refused.len(), best.servers.len()) <= (given.refused.len(), given.servers.len()));
                for placement in [given, best] {
                    prop_assert_eq!(members(&placement), (0..problem.workloads.len()).collect::<Vec<_>>());
                    for (class, members) in &placement.servers {
                        prop_assert!(rule.keeps(*class, members));
                    }
                }
            }
        }
    }

    #[test]
    fn there_are_no_more_servers_than_the_class_has() {
        let curve = ArrivalCurve::from_limits(&[(0.01, 0.3)]);
        let mut problem = problem(vec![(3, [curve.clone(), curve.clone(), curve]); 3]);
        problem.classes[0].count = 2;
        for priorities in [CurvePriorities::BySlo, CurvePriorities::Searched] {
            let placement = place_whole_curves(&problem, priorities, PlacementOrder::Best);
            assert_eq!(placement.servers.len(), 2);
            assert_eq!(placement.refused, [2]);
        }
    }
}
