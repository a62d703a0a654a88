//! Placement against exhaustive search, and the laws that it keeps.

use super::*;
use crate::advice::{ClassInputs, ClassVariant, SuggestedChange, advise, place_refused};
use crate::lower_bound::lower_bound;
use crate::problem::{PlanningClass, PlanningProblem, PlanningWorkload};
use crate::server::PlannedServer;
use crate::testing::{SLOS, any_class, any_workload, problem, problem_on};
use crate::{EnforcedClass, FitRefusal, IdleTerms, LimitMethod, SearchEffort};
use model::{PerStage, RateLimit};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

const METHODS: [LimitMethod; 6] = [
    LimitMethod::Exact,
    LimitMethod::Relaxed,
    LimitMethod::EffectiveEven,
    LimitMethod::EffectiveBest,
    LimitMethod::Knee,
    LimitMethod::Average(1.5),
];

fn given(problem: &PlanningProblem) -> Vec<usize> {
    (0..problem.workloads.len()).collect()
}

/// Every workload is placed once or refused once, and every server holds.
fn check_placement(problem: &PlanningProblem, placement: &Placement) -> Result<(), TestCaseError> {
    let placed = placement.servers.iter().flat_map(|s| s.members.iter().copied());
    let mut all: Vec<usize> = placed.chain(placement.refused.iter().map(|r| r.workload)).collect();
    all.sort_unstable();
    prop_assert_eq!(all, given(problem));
    for server in &placement.servers {
        prop_assert_eq!(server.verify(problem), Ok(()));
    }
    for (class, spec) in problem.classes.iter().enumerate() {
        prop_assert!(placement.servers.iter().filter(|s| s.class == class).count() <= spec.count);
    }
    Ok(())
}

/// Returns the minimum number of servers over all partitions of the workloads; `None` if a workload fits
/// nowhere.
fn fewest_servers(problem: &PlanningProblem, method: LimitMethod) -> Option<usize> {
    fn extend(
        problem: &PlanningProblem,
        method: LimitMethod,
        next: usize,
        groups: &mut Vec<Vec<usize>>,
        best: &mut Option<usize>,
    ) {
        if best.is_some_and(|b| groups.len() >= b) {
            return;
        }
        if next == problem.workloads.len() {
            let fits = groups.iter().all(|g| method.fit(problem, 0, g.clone()).is_ok());
            *best = if fits { Some(groups.len()) } else { *best };
            return;
        }
        for group in 0..groups.len() {
            groups[group].push(next);
            extend(problem, method, next + 1, groups, best);
            groups[group].pop();
        }
        groups.push(vec![next]);
        extend(problem, method, next + 1, groups, best);
        groups.pop();
    }
    let mut best = None;
    extend(problem, method, 0, &mut Vec::new(), &mut best);
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_lower_bound_and_the_search_enclose_the_optimum(workloads in prop::collection::vec(any_workload(), 1..6)) {
        let problem = problem(workloads);
        for method in METHODS {
            let placement = place(&problem, method, PlacementOrder::Best, SearchEffort::for_workloads(6), lower_bound(&problem, method).servers, &mut |_| true);
            check_placement(&problem, &placement)?;
            let admitted = problem.subset(&placement.servers.iter().flat_map(|s| s.members.clone()).collect::<Vec<_>>());
            prop_assert!(placement.refused.iter().all(|r| r.alone.is_some()), "servers are plenty");
            let fewest = fewest_servers(&admitted, method).expect("who was admitted fits");
            prop_assert!(lower_bound(&problem, method).servers <= fewest, "{method:?}: bound above {fewest}");
            // The search is a heuristic; on five workloads it finds the optimum.
            prop_assert_eq!(placement.servers.len(), fewest, "{:?}", method);
        }
    }

    #[test]
    fn arrivals_and_departures_keep_every_promise(
        workloads in prop::collection::vec(any_workload(), 4..10), leaving in prop::collection::vec(any::<bool>(), 10)
    ) {
        let problem = problem(workloads);
        for (method, fast) in [(LimitMethod::Exact, false), (LimitMethod::Relaxed, true), (LimitMethod::Knee, false)] {
            let mut fleet = Fleet::new(&problem, method).skipping_full(fast);
            let admitted: Vec<usize> = given(&problem).into_iter().filter(|&w| fleet.arrive(w).is_ok()).collect();
            let (gone, stay): (Vec<usize>, Vec<usize>) = admitted.iter().partition(|&&w| leaving[w]);
            for &w in &gone {
                prop_assert!(fleet.depart(w).is_some());
                prop_assert_eq!(fleet.depart(w), None);
            }
            let mut left: Vec<usize> = fleet.clone().into_servers().into_iter().flat_map(|s| s.members).collect();
            left.sort_unstable();
            prop_assert_eq!(left, stay);
            for &w in &gone {
                prop_assert!(fleet.arrive(w).is_ok(), "who was admitted once finds a place again");
            }
            for server in fleet.into_servers() {
                prop_assert_eq!(server.verify(&problem), Ok(()));
            }
        }
    }

    /// A controller takes workloads from a server without checking the promises to the others.
    #[test]
    fn without_a_workload_no_bound_grows_while_limits_stay(
        workloads in prop::collection::vec(any_workload(), 2..8),
        class in any_class(),
        limits in prop::collection::vec((0.0..0.12f64, 1.0..3.0f64), 24),
        absent in any::<prop::sample::Index>(),
    ) {
        // As priorities stay, levels are not merged again.
        let class = class.map(|class| EnforcedClass { levels_max: SLOS.len(), ..class });
        let problem = problem_on(workloads, class);
        let all = given(&problem);
        let limits = all.iter().map(|&w| PerStage::from_fn(|stage| {
            let (rate, factor) = limits[3 * w + stage as usize];
            RateLimit { rate, burst: factor * problem.workloads[w].on_class[0].curves[stage].burst(rate) }
        })).collect();
        let before = PlannedServer::with_limits(&problem, 0, all, limits);
        let mut after = before.clone();
        let absent = absent.index(before.members.len());
        after.members.remove(absent);
        after.limits.remove(absent);
        let is_kept = |server: &PlannedServer, w| server.verify_promises(&problem, |member| member == w).is_ok();
        let bounds = before.guarantees(&problem);
        for guarantee in after.guarantees(&problem) {
            let w = guarantee.workload;
            prop_assert!(is_kept(&after, w) || !is_kept(&before, w));
            if is_kept(&before, w) {
                let bound = bounds.iter().find(|bound| bound.workload == w).expect("a member").total;
                prop_assert!(guarantee.total <= bound * (1.0 + 1e-12), "{bound}, then {}", guarantee.total);
            }
        }
    }

    #[test]
    fn advice_is_enough_and_not_much_more(workloads in prop::collection::vec(any_workload(), 3..9)) {
        let mut problem = problem(workloads);
        problem.classes[0].count = 1;
        let placement = place_first_fit(&problem, LimitMethod::Exact, &given(&problem), false);
        for refusal in &placement.refused {
            let fits = |changed: &PlanningProblem, server: Option<usize>| {
                let mut members = server.map_or(vec![], |s| placement.servers[s].members.clone());
                members.push(refusal.workload);
                LimitMethod::Exact.fit(changed, 0, members).is_ok()
            };
            for change in advise(&problem, LimitMethod::Exact, &placement, refusal, &[]) {
                match change {
                    SuggestedChange::Inputs { .. } => prop_assert!(false, "there are no variants"),
                    SuggestedChange::Rule { .. } | SuggestedChange::Size { .. } => {
                        prop_assert!(false, "there are no rules");
                    }
                    SuggestedChange::MoreServers { class, count, price } => {
                        prop_assert_eq!((class.as_str(), price), ("c", None));
                        let mut larger = problem.clone();
                        larger.classes[0].count += count;
                        let placed = place_first_fit(&larger, LimitMethod::Exact, &given(&problem), false);
                        prop_assert!(placed.refused.iter().all(|other| other.workload != refusal.workload));
                    }
                    SuggestedChange::Latency { slo, server, .. } => {
                        prop_assert!(fits(&problem.with_slo(refusal.workload, slo), server));
                        prop_assert!(slo > problem.workloads[refusal.workload].slo.latency.0);
                    }
                    SuggestedChange::Load { factor, server } => {
                        prop_assert!(fits(&problem.with_load(refusal.workload, factor), server));
                        prop_assert!(factor > 0.99 || !fits(&problem.with_load(refusal.workload, factor + 0.01), server));
                    }
                }
            }
        }
    }
}

/// Prices bound a convex model, and Eq. 5.5 of several stages is none: of 13,701 random changes that they ruled out, 24
/// would have fitted. That may cost a place, and breaks no promise.
#[test]
fn predictions_hardly_ever_rule_out_what_would_fit() {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(any_workload(), 2..9);
    let mut ruled_out = 0;
    let mut wrongly = 0;
    for _ in 0..15_000 {
        let problem = problem(strategy.new_tree(&mut runner).unwrap().current());
        let last = problem.workloads.len() - 1;
        let members = given(&problem)[..last].to_vec();
        let Ok(mut slot) = server::PlacementServer::new(&problem, LimitMethod::Exact, 0, members) else {
            continue;
        };
        let change = server::MembershipChange { joins: &[last], leave: &[] };
        if slot.is_hopeless(&problem, change) {
            ruled_out += 1;
            wrongly += u32::from(slot.try_change(&problem, LimitMethod::Exact, change));
        }
    }
    assert!(ruled_out > 500, "{ruled_out}");
    assert!(wrongly * 100 <= ruled_out, "{wrongly} of {ruled_out}");
}

#[test]
fn classes_are_used_in_order_and_only_as_far_as_they_go() {
    // The second class is twice as fast; its servers come after the first class is used up.
    let steady = calculus::ArrivalCurve::new(
        vec![
            calculus::CurveVertex { duration: 0.0, work: 0.2 },
            calculus::CurveVertex { duration: 10.0, work: 1.0 },
        ],
        0.0,
    )
    .unwrap();
    let workloads = vec![(3, [steady.clone(), steady.clone(), steady]); 5];
    let mut two = problem(workloads);
    let fast = |w: &PlanningWorkload| {
        let mut w = w.clone();
        let mut on = w.on_class[0].clone();
        on.curves = on.curves.map(|c| c.scaled(0.5));
        w.on_class.push(on);
        w
    };
    let classes = vec![
        PlanningClass { name: "slow".into(), count: 1, enforced: None },
        PlanningClass { name: "fast".into(), count: 1, enforced: None },
    ];
    two = PlanningProblem::new(classes, two.workloads.iter().map(fast).collect(), 0.999, 0.999).unwrap();
    let placement = place_first_fit(&two, LimitMethod::Exact, &given(&two), false);
    let members: Vec<(usize, usize)> = placement.servers.iter().map(|s| (s.class, s.members.len())).collect();
    // 0.6 s of bursts each on the slow server: one; 0.3 s on the fast one: three.
    assert_eq!(members, [(0, 1), (1, 3)]);
    assert_eq!(placement.refused, [PlacementRefusal { workload: 4, alone: None }]);
    assert_eq!(lower_bound(&two, LimitMethod::Exact).servers, 2);
}

#[test]
fn a_base_latency_above_the_slo_is_said() {
    let mut slow = problem(vec![(0, std::array::from_fn(|_| calculus::ArrivalCurve::zero()))]);
    slow.workloads[0].on_class[0].base_latency = 0.2;
    let placement = place_first_fit(&slow, LimitMethod::Exact, &[0], false);
    let terms = IdleTerms { storage: 0.2, links: 0.0, own: 0.0, begun: PerStage::default() };
    assert_eq!(placement.refused[0].alone, Some(FitRefusal::BaseLatency { slo: 0.1, terms }));
    assert!((terms.total() - 0.2).abs() < 1e-12);
}

/// Variants of the class 0, each with best-effort requests or packets that take this many seconds.
fn variants(requests: &[f64], packets: &[f64]) -> Vec<ClassVariant> {
    let class = EnforcedClass {
        channels: 1,
        best_effort_request: 0.02,
        packet: 0.001,
        link_burst: 0.001,
        proxy: 0.0,
        densest_answer: 0.0,
        levels_max: 7,
    };
    let variant = |inputs: ClassInputs| {
        let mut enforced = class;
        let chosen = |of: &[f64], number: Option<u64>| {
            number.and_then(|number| of.get(usize::try_from(number).ok()?)).copied()
        };
        enforced.best_effort_request =
            chosen(requests, inputs.best_effort_request).unwrap_or(class.best_effort_request);
        enforced.packet = chosen(packets, inputs.packet).unwrap_or(class.packet);
        ClassVariant { class: 0, inputs, enforced }
    };
    let numbers = |of: &[f64]| (0..of.len() as u64).map(Some).collect::<Vec<_>>();
    let mut all = Vec::new();
    for best_effort_request in numbers(requests) {
        all.push(variant(ClassInputs { best_effort_request, packet: None }));
    }
    for packet in numbers(packets) {
        all.push(variant(ClassInputs { best_effort_request: None, packet }));
    }
    for best_effort_request in numbers(requests) {
        all.push(variant(ClassInputs { best_effort_request, packet: Some(0) }));
    }
    all
}

/// The largest best-effort request that suffices is named, or the pair where neither input suffices alone; and the
/// place of a refused workload has the least SLO that is named.
#[test]
fn inputs_that_would_admit_are_named() {
    let none = std::array::from_fn(|_| calculus::ArrivalCurve::zero());
    for (slo, packets, expected) in [
        // A request at the device and, on two links, twice four packets and the burst: 40 ms.
        (0.022, &[0.0001][..], vec![(Some(3), None)]),
        (0.027, &[0.0001][..], vec![(Some(2), None), (None, Some(0))]),
        (0.007, &[0.0001][..], vec![(Some(3), Some(0))]),
    ] {
        let mut tight = problem(vec![(0, none.clone())]);
        tight.workloads[0].slo.latency.0 = slo;
        let all = variants(&[0.02, 0.015, 0.005, 0.0005], packets);
        tight.classes[0].enforced =
            Some(EnforcedClass { best_effort_request: 0.02, packet: 0.001, ..all[0].enforced });
        let placement = place_first_fit(&tight, LimitMethod::Exact, &[0], false);
        let changes = advise(&tight, LimitMethod::Exact, &placement, &placement.refused[0], &all);
        let mut named = Vec::new();
        for change in &changes {
            let SuggestedChange::Inputs { inputs, class, server } = change else { continue };
            assert_eq!((class.as_str(), *server), ("c", None));
            let variant = all.iter().find(|variant| variant.inputs == *inputs).expect("one of them");
            let changed = tight.with_enforced(0, variant.enforced);
            assert!(LimitMethod::Exact.fit(&changed, 0, vec![0]).is_ok(), "{inputs:?}");
            named.push((inputs.best_effort_request, inputs.packet));
        }
        assert_eq!(named, expected, "{slo}: {changes:?}");
        let place = place_refused(&tight, LimitMethod::Exact, &placement, 0).expect("a looser SLO admits it");
        let least = changes.iter().find_map(|change| match change {
            SuggestedChange::Latency { slo, .. } => Some(*slo),
            _ => None,
        });
        assert_eq!(Some(place.problem.workloads[0].slo.latency.0), least);
        assert!(place.server.verify(&place.problem).is_ok() && place.number.is_none());
    }
}

#[test]
fn the_search_stops_when_told() {
    let burst =
        calculus::ArrivalCurve::new(vec![calculus::CurveVertex { duration: 0.0, work: 0.1 }], 0.0).unwrap();
    let full = problem(vec![(3, std::array::from_fn(|_| burst.clone())); 8]);
    let mut calls = 0;
    let placement = place(
        &full,
        LimitMethod::Exact,
        PlacementOrder::Best,
        SearchEffort::Evaluations(1000),
        1,
        &mut |_| {
            calls += 1;
            false
        },
    );
    assert!(calls <= 1);
    assert_eq!(placement.servers.iter().map(|s| s.members.len()).sum::<usize>(), 8);
}

/// A bucket of this rate and burst at the storage, and nothing elsewhere.
fn bucket_at_storage(rate: f64, burst: f64) -> [calculus::ArrivalCurve; 3] {
    let vertices = vec![
        calculus::CurveVertex { duration: 0.0, work: burst },
        calculus::CurveVertex { duration: 1e3, work: burst + rate * 1e3 },
    ];
    let nothing = calculus::ArrivalCurve::zero;
    [nothing(), calculus::ArrivalCurve::new(vertices, rate).unwrap(), nothing()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Sustained rates count only where a workload waits for them.
    #[test]
    fn no_placement_of_buckets_needs_fewer_servers_than_the_lower_bound(
        buckets in prop::collection::vec((0usize..4, 0.01..0.9f64, 0.001..0.5f64), 1..7), class in any_class()
    ) {
        let workload = |(slo, rate, burst): (usize, f64, f64)| (slo, bucket_at_storage(rate, burst * SLOS[slo]));
        let problem = problem_on(buckets.into_iter().map(workload).collect(), class);
        let fits = |w: &usize| LimitMethod::Exact.fit(&problem, 0, vec![*w]).is_ok();
        let admitted = problem.subset(&given(&problem).into_iter().filter(fits).collect::<Vec<_>>());
        for method in [LimitMethod::Exact, LimitMethod::Knee] {
            let fewest = fewest_servers(&admitted, method);
            let least = lower_bound(&admitted, method).servers;
            prop_assert!(fewest.is_none_or(|fewest| least <= fewest), "{method:?}: {least} above {fewest:?}");
        }
    }
}

/// Rates of the others are before a workload on its own server alone.
#[test]
fn the_lower_bound_counts_no_rates_before_who_is_elsewhere() {
    let mut workloads = vec![(2, bucket_at_storage(0.9, 0.2)); 40];
    workloads.push((3, bucket_at_storage(0.001, 0.001)));
    let problem = problem(workloads);
    let placement = place_first_fit(&problem, LimitMethod::Exact, &given(&problem), false);
    assert_eq!(placement.servers.len(), 41);
    let bound = lower_bound(&problem, LimitMethod::Exact);
    assert!((37..=41).contains(&bound.servers), "{bound:?}");
}

/// Many tiny workloads with a loose SLO add to the work begun on their servers, for which no workload with
/// the tight SLO on another server waits.
#[test]
fn the_lower_bound_counts_nothing_that_is_begun_elsewhere() {
    for (loose, tight, packet) in
        [(120, 1, 1e-3), (200, 1, 1e-3), (300, 2, 1e-3), (60, 1, 5e-3), (250, 3, 2e-3)]
    {
        let tiny = |slo: usize| (slo, bucket_at_storage(1e-5, 1e-5));
        let workloads = [vec![tiny(3); loose], vec![tiny(0); tight]].concat();
        let class = EnforcedClass {
            channels: 1,
            best_effort_request: 0.0,
            packet,
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: 0.0,
            levels_max: 7,
        };
        let problem = problem_on(workloads, Some(class));
        let mut tight_last = given(&problem);
        for order in [tight_last.clone(), {
            tight_last.reverse();
            tight_last
        }] {
            let placement = place_first_fit(&problem, LimitMethod::Exact, &order, false);
            assert_eq!(
                placement.servers.iter().map(|server| server.members.len()).sum::<usize>(),
                loose + tight
            );
            for method in [LimitMethod::Exact, LimitMethod::Relaxed, LimitMethod::Knee] {
                let bound = lower_bound(&problem, method).servers;
                let used = placement.servers.len();
                assert!(bound <= used, "{loose} {tight} {packet} {method:?}: at least {bound} in {used}");
            }
        }
    }
}

/// A server has so many levels and no more: it serves these two as one, so that the rate of the tighter SLO does not come
/// before the burst of the other.
#[test]
fn the_lower_bound_knows_that_levels_become_one() {
    let class = |levels_max| EnforcedClass {
        channels: 1,
        best_effort_request: 0.0,
        packet: 0.0,
        link_burst: 0.0,
        proxy: 0.0,
        densest_answer: 0.0,
        levels_max,
    };
    for (levels_max, servers) in [(1, 1), (2, 2)] {
        let workloads = vec![(2, bucket_at_storage(0.9, 0.001)), (3, bucket_at_storage(0.01, 0.4))];
        let problem = problem_on(workloads, Some(class(levels_max)));
        let placement = place_first_fit(&problem, LimitMethod::Exact, &given(&problem), false);
        assert_eq!(placement.servers.len(), servers);
        assert!(lower_bound(&problem, LimitMethod::Exact).servers <= servers);
    }
}

/// Whatever chose the limits: comparisons with what is not a number are false, and a promise is not made by them.
#[test]
fn limits_that_are_no_numbers_promise_nothing() {
    let problem = problem(vec![(0, bucket_at_storage(0.1, 0.01))]);
    let server = LimitMethod::Exact.fit(&problem, 0, vec![0]).unwrap();
    for wrong in model::Stage::ALL {
        for (rate, burst) in [(f64::NAN, 0.0), (0.0, f64::NAN), (-f64::NAN, 0.0)] {
            let mut spoilt = server.clone();
            let limit =
                |stage| if stage == wrong { RateLimit { rate, burst } } else { server.limits[0][stage] };
            spoilt.limits[0] = PerStage::from_fn(limit);
            assert!(spoilt.verify(&problem).is_err(), "{wrong:?}: {rate}, {burst}");
        }
    }
}
