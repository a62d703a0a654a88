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
//! [`place_whole_curves`] is about servers that preempt. [`place_by_rule`] places by any other [`CompanyRule`], such as one that
//! counts turns on links, lost tokens and the limits that enforcers keep.
//!
//! First fit is that of [`place_first_fit`](super::place_first_fit). The best order tries the same orders as the search
//! for single limits, and then moves the workloads of one server after the other to the rest where they fit. It exchanges
//! none, so that it may need more servers than a longer search.

use super::PlacementOrder;
use super::cheapest::class_orders;
use super::search::orders;
use crate::levels::priority_levels;
use crate::limiters;
use crate::lower_bound::workload_sizes;
use crate::prioritise::meets_all;
use crate::problem::PlanningProblem;
use crate::rules::Place;
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
    /// The same, with bounds that analyse each of equal priorities as if all others of them went first: the conservative
    /// treatment that §5.4.7 reports of several limiters.
    EqualsFirst,
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
    /// Number of each server within its class, where its workloads ask for one.
    pub numbers: Vec<Option<usize>>,
}

/// A rule that decides which workloads may share a server.
pub trait CompanyRule {
    /// Returns true if every member keeps its SLO on a server of this class.
    fn keeps(&self, class: usize, members: &[usize]) -> bool;
}

/// Places every workload that fits, in the order of arrival or in the best of several orders, on servers that preempt.
pub fn place_whole_curves(
    problem: &PlanningProblem,
    priorities: CurvePriorities,
    order: PlacementOrder,
) -> CurvePlacement {
    place_by_rule(problem, &WholeCurveRule::new(problem, priorities), order)
}

/// Places every workload that fits by a rule, in the order of arrival or in the best of several orders.
pub fn place_by_rule(
    problem: &PlanningProblem,
    rule: &impl CompanyRule,
    order: PlacementOrder,
) -> CurvePlacement {
    let search = RuleSearch { problem, rule };
    let sizes = if order == PlacementOrder::Best { workload_sizes(problem) } else { Vec::new() };
    let orders = match order {
        PlacementOrder::Best => orders(problem, &sizes),
        _ => vec![(0..problem.workloads.len()).collect()],
    };
    let mut best = None::<CurvePlacement>;
    for order in orders {
        for classes in class_orders(problem) {
            let found = search.first_fit(&order, &classes);
            best = Some(match best {
                Some(best) if !found.is_cheaper_than(&best, problem) => best,
                _ => found,
            });
        }
    }
    let best = best.expect("there is at least one order");
    if order == PlacementOrder::Best { search.with_servers_emptied(best, &sizes) } else { best }
}

impl CurvePlacement {
    /// Returns the price of its servers; 0 if they have none.
    pub fn price(&self, problem: &PlanningProblem) -> f64 {
        problem.price(self.servers.iter().map(|(class, _)| *class))
    }

    /// Returns true for fewer refused workloads, or a lower price, or fewer servers.
    fn is_cheaper_than(&self, other: &Self, problem: &PlanningProblem) -> bool {
        let by_refused = self.refused.len().cmp(&other.refused.len());
        let by_price = self.price(problem).total_cmp(&other.price(problem));
        by_refused.then(by_price).then(self.servers.len().cmp(&other.servers.len())).is_lt()
    }
}

/// The rule of servers without enforcers: limiters of whole curves before every stage.
struct WholeCurveRule<'a> {
    problem: &'a PlanningProblem,
    priorities: CurvePriorities,
    /// The curve of the limiters of each workload, by class and then workload.
    curves: Vec<Vec<PerStage<ArrivalCurve>>>,
}

impl<'a> WholeCurveRule<'a> {
    fn new(problem: &'a PlanningProblem, priorities: CurvePriorities) -> Self {
        let of_limiters = |curve: &ArrivalCurve| match priorities {
            CurvePriorities::BySlo | CurvePriorities::EqualsFirst => curve.clone(),
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

    fn keeps_with_equals_first(&self, class: usize, members: &[usize]) -> bool {
        let begun = self.problem.least_blocking(class, members);
        let mut above = PerStage::from_fn(|_| PriorityQueue::new());
        priority_levels(self.problem, class, members).into_iter().all(|level| {
            let is_kept = level.members.iter().all(|&member| {
                let delays = PerStage::from_fn(|stage| {
                    let mut queue = above[stage].clone();
                    for &other in level.members.iter().filter(|other| **other != member) {
                        queue.add(self.curve(other, class, stage), 0.0);
                    }
                    queue.delay(self.curve(member, class, stage), begun[stage])
                });
                round_up(delays.iter().map(|(_, delay)| delay).sum()) <= level.budget
            });
            for stage in Stage::ALL {
                level
                    .members
                    .iter()
                    .for_each(|&member| above[stage].add(self.curve(member, class, stage), 0.0));
            }
            is_kept
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
}

impl CompanyRule for WholeCurveRule<'_> {
    fn keeps(&self, class: usize, members: &[usize]) -> bool {
        match self.priorities {
            CurvePriorities::BySlo => self.keeps_by_slo(class, members),
            CurvePriorities::EqualsFirst => self.keeps_with_equals_first(class, members),
            CurvePriorities::Searched => self.keeps_by_search(class, members),
        }
    }
}

/// Placement by a rule.
struct RuleSearch<'a, R> {
    problem: &'a PlanningProblem,
    rule: &'a R,
}

impl<R: CompanyRule> RuleSearch<'_, R> {
    fn first_fit(&self, order: &[usize], classes: &[usize]) -> CurvePlacement {
        let mut placement = CurvePlacement { servers: Vec::new(), refused: Vec::new(), numbers: Vec::new() };
        for &workload in order.iter().filter(|&&workload| self.problem.rules.leads(workload)) {
            let unit = self.problem.rules.unit(&workload);
            if !self.join(&mut placement.servers, unit) && !self.open(&mut placement.servers, unit, classes) {
                placement.refused.extend(unit);
            }
        }
        self.with_numbers(placement)
    }

    fn with_numbers(&self, mut placement: CurvePlacement) -> CurvePlacement {
        placement.numbers = self.problem.rules.numbers(placement.servers.as_slice());
        placement
    }

    /// Puts workloads on the first server where all members keep their SLOs and all rules hold. Returns false if there is
    /// none.
    fn join(&self, servers: &mut [(usize, Vec<usize>)], unit: &[usize]) -> bool {
        (0..servers.len()).any(|number| {
            if self.problem.rules.exclusion(servers, Place::On(number), unit, &[]).is_some() {
                return false;
            }
            let (class, members) = &mut servers[number];
            let before = members.len();
            members.extend(unit);
            let fits = self.rule.keeps(*class, members);
            if !fits {
                members.truncate(before);
            }
            fits
        })
    }

    /// Opens a server of the first suitable class with one left. Returns false if there is none.
    fn open(&self, servers: &mut Vec<(usize, Vec<usize>)>, unit: &[usize], classes: &[usize]) -> bool {
        for &class in classes {
            let kind = &self.problem.classes[class];
            let taken = servers.iter().filter(|(of, _)| *of == class).count();
            let place = Place::Empty { class };
            let is_excluded = self.problem.rules.exclusion(servers.as_slice(), place, unit, &[]).is_some();
            if taken < kind.count && !is_excluded && self.rule.keeps(class, unit) {
                servers.push((class, unit.to_vec()));
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
            members.retain(|&member| self.problem.rules.leads(member));
            if members.iter().all(|member| self.join(&mut rest, self.problem.rules.unit(member))) {
                (placement.servers, number) = (rest, 0);
            } else {
                number += 1;
            }
        }
        self.with_numbers(placement)
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
