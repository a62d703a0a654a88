//! The cheapest fleet against all assignments of small clusters, and the laws that it keeps.

use super::*;
use crate::problem::{PlanningClass, PlanningWorkload, WorkloadOnClass};
use crate::testing::{SLOS, any_workload};
use calculus::ArrivalCurve;
use model::{PerStage, Slo};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use units::Seconds;

/// A class of servers: number, price, and speed of its storage.
type AnyClass = (usize, f64, f64);

fn any_classes() -> impl Strategy<Value = Vec<AnyClass>> {
    let price = prop_oneof![Just(1.0), Just(2.0), Just(3.0), 0.5..4.0f64];
    prop::collection::vec((1usize..5, price, 0.15..1.2f64), 2..4)
}

fn priced(classes: &[AnyClass], workloads: &[(usize, [ArrivalCurve; 3])]) -> PlanningProblem {
    let planning = |(index, &(count, ..)): (usize, &AnyClass)| PlanningClass {
        name: format!("c{index}"),
        count,
        enforced: None,
    };
    let on_class = |speed: f64, curves: &[ArrivalCurve; 3]| WorkloadOnClass {
        curves: PerStage::from_fn(|stage| match stage {
            model::Stage::Storage => curves[stage as usize].scaled(1.0 / speed),
            _ => curves[stage as usize].clone(),
        }),
        mean_rate: PerStage::from_fn(|stage| curves[stage as usize].sustained_rate()),
        largest_request: 0.0,
        base_latency: 0.0,
        overtaking: 0.0,
    };
    let workload = |(index, (slo, curves)): (usize, &(usize, [ArrivalCurve; 3]))| PlanningWorkload {
        name: format!("w{index}"),
        slo: Slo::new("99.9".parse().unwrap(), Seconds(SLOS[*slo])).unwrap(),
        on_class: classes.iter().map(|&(_, _, speed)| on_class(speed, curves)).collect(),
    };
    let workloads = workloads.iter().enumerate().map(workload).collect();
    let of_problem = classes.iter().enumerate().map(planning).collect();
    PlanningProblem::new(of_problem, workloads, 0.999, 0.999)
        .unwrap()
        .with_prices(classes.iter().map(|(_, price, _)| *price).collect())
}

/// Tries all sets of workloads on all classes.
struct AllAssignments<'a> {
    problem: &'a PlanningProblem,
    method: LimitMethod,
    fits: BTreeMap<(usize, u32), bool>,
    known: BTreeMap<(u32, Vec<usize>), (usize, f64)>,
}

impl AllAssignments<'_> {
    /// The fewest workloads without a place, and the least price of servers for the others.
    fn best(problem: &PlanningProblem, method: LimitMethod) -> (usize, f64) {
        let mut all = AllAssignments { problem, method, fits: BTreeMap::new(), known: BTreeMap::new() };
        let counts = problem.classes.iter().map(|class| class.count).collect();
        all.from((1 << problem.workloads.len()) - 1, counts)
    }

    fn fits(&mut self, class: usize, set: u32) -> bool {
        let AllAssignments { problem, method, .. } = *self;
        *self.fits.entry((class, set)).or_insert_with(|| {
            let members = (0..problem.workloads.len()).filter(|w| set >> w & 1 == 1).collect();
            method.fit(problem, class, members).is_ok()
        })
    }

    fn from(&mut self, left: u32, counts: Vec<usize>) -> (usize, f64) {
        if left == 0 {
            return (0, 0.0);
        }
        if let Some(known) = self.known.get(&(left, counts.clone())) {
            return *known;
        }
        let first = 1 << left.trailing_zeros();
        let (refused, price) = self.from(left & !first, counts.clone());
        let mut best = (refused + 1, price);
        let others = left & !first;
        let mut set = others;
        loop {
            for class in (0..counts.len()).filter(|&class| counts[class] > 0) {
                if self.fits(class, set | first) {
                    let mut after = counts.clone();
                    after[class] -= 1;
                    let (refused, price) = self.from(others & !set, after);
                    let price = price + self.problem.prices[class];
                    if (refused, price) < best {
                        best = (refused, price);
                    }
                }
            }
            if set == 0 {
                break;
            }
            set = (set - 1) & others;
        }
        self.known.insert((left, counts), best);
        best
    }
}

fn any_problem(workloads_max: usize) -> impl Strategy<Value = PlanningProblem> {
    (any_classes(), prop::collection::vec(any_workload(), 1..=workloads_max))
        .prop_map(|(classes, workloads)| priced(&classes, &workloads))
}

fn cheapest(problem: &PlanningProblem, method: LimitMethod, order: PlacementOrder) -> CheapestFleet {
    let goal = lower_bound(problem, method).price;
    let effort = SearchEffort::for_workloads(problem.workloads.len());
    place_cheapest(problem, method, order, effort, goal, &mut |_| true)
}

/// Of 400 random clusters of at most six workloads on two or three classes, the search finds the least price, with as many
/// workloads as possible, in nearly all, and the bound is never above it.
#[test]
fn small_clusters_get_the_least_price_of_all_assignments() {
    let mut runner = TestRunner::deterministic();
    let strategy = any_problem(6);
    for (method, cases, worse_max) in [(LimitMethod::Exact, 400, 4), (LimitMethod::Knee, 100, 4)] {
        let mut worse = Vec::new();
        let mut mixed = 0;
        let mut tight = 0;
        for _ in 0..cases {
            let problem = strategy.new_tree(&mut runner).unwrap().current();
            let (refused, price) = AllAssignments::best(&problem, method);
            let found = cheapest(&problem, method, PlacementOrder::Best).placement;
            let found_price = super::price(&problem, &found);
            assert!(found.servers.iter().all(|server| server.verify(&problem).is_ok()));
            let is_least = found.refused.len() == refused && found_price <= price * (1.0 + 1e-9);
            assert!(found.refused.len() >= refused, "the search places more than there is room for");
            assert!(
                found.refused.len() > refused || found_price >= price * (1.0 - 1e-9),
                "{found_price} is below the least price {price}"
            );
            if !is_least {
                worse.push((found.refused.len() - refused, found_price / price));
            }
            let bound = lower_bound(&problem, method).price;
            if refused == 0 {
                assert!(bound <= price * (1.0 + 1e-9), "{method:?}: a bound of {bound} is above {price}");
                tight += usize::from(bound >= price * (1.0 - 1e-9));
            }
            let classes: std::collections::BTreeSet<usize> =
                found.servers.iter().map(|server| server.class).collect();
            mixed += usize::from(classes.len() > 1);
        }
        println!(
            "{method:?}: {} of {cases} worse {worse:?}, {mixed} mixed, {tight} with a tight bound",
            worse.len()
        );
        assert!(worse.len() <= worse_max, "{worse:?}");
        assert!(mixed > cases / 10, "{mixed} of {cases} fleets have several classes");
    }
}
