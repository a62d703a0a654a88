//! The chain solver against a general LP solver, brute force and its own promises.

use super::*;
use crate::chain::{ChainSolution, LatencyConstraint, Precision, minimise};
use crate::levels::{levels_by_budget, priority_levels};
use crate::limits::exact::chain_of;
use crate::lower_bound::bounding_chain;
use crate::testing::{SLOS, any_class, any_curve, any_workload, problem_on};
use calculus::ArrivalCurve;
use good_lp::{Expression, Solution, SolverModel, constraint, microlp, variable, variables};
use model::Stage;
use proptest::prelude::*;

/// The least `t` of the relaxed or outer model by a general LP solver, workload by workload.
fn least_t_by_lp(problem: &PlanningProblem, model: LatencyConstraint) -> f64 {
    let members: Vec<usize> = (0..problem.workloads.len()).collect();
    let levels = priority_levels(problem, 0, &members);
    let blocking = problem.least_blocking(0, &members);
    variables! { vars: t >= 0.0; }
    let buckets: Vec<Vec<_>> = members
        .iter()
        .map(|_| Stage::ALL.map(|_| (vars.add(variable().min(0.0)), vars.add(variable().min(0.0)))).to_vec())
        .collect();
    let mut program = vars.minimise(t).using(microlp);
    for &w in &members {
        for stage in Stage::ALL {
            let (r, b) = buckets[w][stage as usize];
            program.add_constraint(constraint!(r >= problem.relevant_curves(w, 0)[stage].sustained_rate()));
            for v in problem.relevant_curves(w, 0)[stage].vertices() {
                program.add_constraint(constraint!(b + v.duration * r >= v.work));
            }
        }
    }
    let rate_of = |ws: &[usize], s: usize| -> Expression { ws.iter().map(|&w| buckets[w][s].0).sum() };
    let burst_of = |ws: &[usize], s: usize| -> Expression { ws.iter().map(|&w| buckets[w][s].1).sum() };
    let (mut above, mut tighter): (Vec<usize>, f64) = (Vec::new(), 0.0);
    for level in &levels {
        let mut here = above.clone();
        here.extend(&level.members);
        let all: Expression = (0..3).map(|s| burst_of(&here, s)).sum();
        let whole: f64 = blocking.iter().map(|(_, work)| work).sum();
        program.add_constraint(constraint!(all.clone() <= (level.budget - whole) * t));
        for stage in Stage::ALL {
            let s = stage as usize;
            let (bursts, begun) = match model {
                LatencyConstraint::Relaxed | LatencyConstraint::OuterRelaxed => (all.clone(), whole),
                _ => (burst_of(&here, s), blocking[stage]),
            };
            let by_rate = level.budget - if model == LatencyConstraint::Relaxed { 0.0 } else { tighter };
            let rates = by_rate * rate_of(&above, s);
            program.add_constraint(constraint!(bursts + rates <= (level.budget - begun) * t));
        }
        (above, tighter) = (here, level.budget);
    }
    for s in 0..3 {
        program.add_constraint(constraint!(rate_of(&above, s) <= problem.max_rate * t));
    }
    program.solve().unwrap().value(t)
}

fn least_t(problem: &PlanningProblem, model: LatencyConstraint) -> f64 {
    let members: Vec<usize> = (0..problem.workloads.len()).collect();
    let chain = chain_of(
        problem,
        0,
        &priority_levels(problem, 0, &members),
        model,
        &problem.least_blocking(0, &members),
    );
    match minimise(&chain, Precision::Within(1e-7)) {
        ChainSolution::Solved { point, .. } => point.t,
        ChainSolution::Overloaded(_) => f64::INFINITY,
    }
}

/// Least largest bound ÷ budget of two levels, over a grid of the upper level's rates: the lower level
/// takes the rest of each stage, as it lowers its own burst and no level waits for its rate.
fn least_ratio_by_grid(problem: &PlanningProblem, steps: usize) -> f64 {
    let begun = problem.least_blocking(0, &[0, 1]);
    let curves = |w: usize, s: Stage| &problem.workloads[w].on_class[0].curves[s];
    let terms = |s: Stage| -> Vec<(f64, f64)> {
        (0..=steps)
            .map(|i| {
                let rate = problem.max_rate * i as f64 / steps as f64;
                let upper = curves(0, s).burst(rate);
                let lower = curves(1, s).burst(problem.max_rate - rate);
                (begun[s] + upper, (begun[s] + upper + lower) / (1.0 - rate))
            })
            .collect()
    };
    let [a, b, c] = Stage::ALL.map(terms);
    let slo0 = problem.budget(0, 0);
    let slo1 = problem.budget(1, 0);
    let mut best = f64::INFINITY;
    for x in &a {
        for y in &b {
            for z in &c {
                best = best.min(((x.0 + y.0 + z.0) / slo0).max((x.1 + y.1 + z.1) / slo1));
            }
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn linear_models_agree_with_a_general_solver(
        workloads in prop::collection::vec(any_workload(), 1..7),
        class in any_class()
    ) {
        let problem = problem_on(workloads, class);
        // A batch above the budget rules a workload out before any program is solved.
        let hopeless = |w| problem.relevant_curves(w, 0).iter().any(|(_, c)| !c.sustained_rate().is_finite());
        prop_assume!(!(0..problem.workloads.len()).any(hopeless));
        // So does a server that may have begun more than the budget.
        let members: Vec<usize> = (0..problem.workloads.len()).collect();
        let begun: f64 = problem.least_blocking(0, &members).iter().map(|(_, work)| work).sum();
        prop_assume!(members.iter().all(|&w| problem.budget(w, 0) > begun));
        for model in
            [LatencyConstraint::Relaxed, LatencyConstraint::OuterRelaxed, LatencyConstraint::Outer]
        {
            let ours = least_t(&problem, model);
            let theirs = least_t_by_lp(&problem, model);
            prop_assert!((ours / theirs - 1.0).abs() < 1e-5, "{model:?}: {ours} {theirs}");
        }
    }

    #[test]
    fn two_levels_are_as_good_as_a_grid_search(
        a in any_workload(), b in any_workload(), class in any_class()
    ) {
        let mut a = a;
        let mut b = b;
        (a.0, b.0) = (0, 2);
        let problem = problem_on(vec![a, b], class);
        let ours = least_t(&problem, LatencyConstraint::Exact);
        let grid = least_ratio_by_grid(&problem, 60);
        prop_assert!(ours <= grid * (1.0 + 1e-5), "ours {ours}, grid {grid}");
    }

    #[test]
    fn decisions_agree_with_the_precise_optimum(
        workloads in prop::collection::vec(any_workload(), 1..9),
        class in any_class()
    ) {
        let problem = problem_on(workloads, class);
        let members: Vec<usize> = (0..problem.workloads.len()).collect();
        let t = |problem: &PlanningProblem, precision| {
            let levels = priority_levels(problem, 0, &members);
            let blocking = problem.least_blocking(0, &members);
            let chain = chain_of(problem, 0, &levels, LatencyConstraint::Exact, &blocking);
            match minimise(&chain, precision) {
                ChainSolution::Solved { point, .. } => point.t,
                ChainSolution::Overloaded(_) => f64::INFINITY,
            }
        };
        let load = t(&problem, Precision::Within(1e-5));
        prop_assume!(load.is_finite());
        // As drawn, and scaled to either side of the limit.
        for factor in [1.0, 0.97 / load, 1.0 / load, 1.05 / load] {
            let scaled = members.iter().fold(problem.clone(), |i, &w| i.with_load(w, factor));
            let decided = t(&scaled, Precision::Decide);
            let precise = t(&scaled, Precision::Within(1e-5));
            let close = (precise - 1.0).abs() < 2e-3;
            prop_assert!(close || (decided < 1.0) == (precise < 1.0), "{decided} {precise}");
        }
    }

    #[test]
    fn what_fits_verifies_and_the_exact_method_accepts_whatever_the_linear_program_accepts(
        workloads in prop::collection::vec(any_workload(), 1..7),
        class in any_class()
    ) {
        let problem = problem_on(workloads, class);
        let members: Vec<usize> = (0..problem.workloads.len()).collect();
        let mut accepted = Vec::new();
        for method in [LimitMethod::Exact, LimitMethod::Relaxed, LimitMethod::EffectiveEven, LimitMethod::EffectiveBest, LimitMethod::Knee, LimitMethod::Average(1.5)] {
            if let Ok(server) = method.fit(&problem, 0, members.clone()) {
                prop_assert_eq!(server.verify(&problem), Ok(()));
                accepted.push(method);
            }
        }
        // Neither method models the links' demands on limits, so either may succeed where the other fails.
        let relaxed_alone = accepted.contains(&LimitMethod::Relaxed) && !accepted.contains(&LimitMethod::Exact);
        prop_assert!(class.is_some() || !relaxed_alone);
        // The outer model admits every server that the exact one admits.
        if accepted.contains(&LimitMethod::Exact) {
            let levels = levels_by_budget(&problem, 0, &members);
            let chain = bounding_chain(&problem, 0, &levels, LatencyConstraint::Outer);
            let ChainSolution::Solved { point, .. } = minimise(&chain, Precision::Within(1e-7)) else {
                unreachable!("the server carries the rates")
            };
            prop_assert!(point.t <= 1.0 + 1e-6, "{}", point.t);
        }
    }
}

/// Largest product of slacks of two levels with work at the storage alone, over a grid of both rates.
fn largest_product_by_grid(problem: &PlanningProblem, steps: u32) -> f64 {
    let curve = |w: usize| &problem.workloads[w].on_class[0].curves[Stage::Storage];
    let [tight, loose] = [0, 1].map(|w| problem.budget(w, 0));
    let mut largest = 0.0f64;
    for i in 0..=steps {
        let upper = problem.max_rate * f64::from(i) / f64::from(steps);
        let slack = tight - curve(0).burst(upper);
        for k in 0..=steps - i {
            let lower = problem.max_rate * f64::from(k) / f64::from(steps);
            let bound = (curve(0).burst(upper) + curve(1).burst(lower)) / (1.0 - upper);
            if slack > 0.0 && bound < loose {
                largest = largest.max(slack * (loose - bound));
            }
        }
    }
    largest
}

/// A problem of preemptive servers and workloads with these SLOs, positions in [`SLOS`], and curves at the storage.
fn problem_of_storage(workloads: [(usize, ArrivalCurve); 2]) -> PlanningProblem {
    let nothing = || ArrivalCurve::from_limits(&[(0.0, 0.0)]);
    problem_on(workloads.map(|(slo, curve)| (slo, [nothing(), curve, nothing()])).to_vec(), None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn limits_have_the_largest_product_of_slacks(first in any_curve(), second in any_curve()) {
        let problem = problem_of_storage([(0, first), (3, second)]);
        let grid = largest_product_by_grid(&problem, 1_000);
        let fitted = LimitMethod::Exact.fit(&problem, 0, vec![0, 1]);
        prop_assert!(grid == 0.0 || fitted.is_ok());
        let Ok(server) = fitted else { return Ok(()) };
        let mut product = 1.0;
        for guarantee in server.guarantees(&problem) {
            product *= problem.budget(guarantee.workload, 0) - guarantee.queueing.total;
        }
        prop_assert!(product > grid * 0.995, "{product} against {grid}");
    }
}

#[test]
fn a_tight_workload_does_not_take_what_others_need_more() {
    let curve = |burst: f64, rate: f64| ArrivalCurve::from_limits(&[(1.0, burst), (rate, 4.0 * burst)]);
    // The tight workload's bound can fall from 49 % to 36 % of its SLO, if it takes the whole server.
    let problem = problem_of_storage([(0, curve(0.036, 0.01)), (3, curve(0.01, 0.01))]);
    let server = LimitMethod::Exact.fit(&problem, 0, vec![0, 1]).unwrap();
    let guarantees = server.guarantees(&problem);
    assert!(guarantees[1].total < 0.5 * SLOS[3], "{guarantees:?}");
}
