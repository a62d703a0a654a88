//! Several SLOs of a workload.

use super::*;
use crate::advice::{SuggestedChange, advise};
use crate::limits::{FitRefusal, IdleTerms, LimitMethod};
use crate::placement::place_first_fit;
use crate::testing::{SLOS, any_class, any_workload, problem, problem_on};
use proptest::prelude::*;

fn objective(text: &str) -> Objective {
    text.parse().unwrap()
}

/// A workload whose requests take up to 0.1 s at an idle storage stack, on one server, with this burst there.
fn one(slo: f64, burst: f64) -> PlanningProblem {
    let curve = |burst| ArrivalCurve::from_limits(&[(0.0, burst)]);
    let mut one = problem(vec![(0, [curve(0.0), curve(burst), curve(0.0)])]);
    one.workloads[0].slo.latency.0 = slo;
    one.workloads[0].on_class[0].base_latency = 0.1;
    one.cut_all_curves();
    one
}

#[test]
fn the_tightest_of_all_slos_is_asked() {
    let one = one(0.5, 0.0);
    assert_eq!(one.latency_asked(0, 0).to_bits(), 0.5f64.to_bits());
    for (further, shorter_by, asked) in [
        ("99% < 300ms", 0.0, 0.3),
        ("99% < 700ms", 0.0, 0.5),
        ("99% of reads < 300ms", 0.09, 0.3 + 0.09 / 0.999),
        ("99% of reads < 450ms", 0.09, 0.5),
    ] {
        let further = FurtherSlo { slo: objective(further), shorter_by: vec![shorter_by] };
        let several = one.clone().with_further_slos(vec![vec![further]]);
        assert!((several.latency_asked(0, 0) - asked).abs() < 1e-12, "{asked}");
        assert_eq!(several.least_latency_asked(0), several.latency_asked(0, 0));
    }
}

/// All requests wait for 50 ms; reads take 10 ms at the idle storage, writes 100 ms.
#[test]
fn reads_have_a_tighter_slo_because_the_idle_storage_answers_them_sooner() {
    let with_reads = |shorter_by: f64| {
        let further = FurtherSlo { slo: objective("99.9% of reads < 65ms"), shorter_by: vec![shorter_by] };
        one(0.2, 0.05).with_further_slos(vec![vec![further]])
    };
    let fit = |shorter_by: f64| {
        let several = with_reads(shorter_by);
        let fitted = LimitMethod::Exact.fit(&several, 0, vec![0]);
        fitted.map(|server| {
            let total = server.guarantees(&several)[0].total;
            (total, several.further_slos(0)[0].bound(0, total), several.share_of_slos(0, 0, total))
        })
    };
    let (total, of_reads, share) = fit(0.09).unwrap();
    assert!((total - 0.15).abs() < 1e-9 && (of_reads - 0.06).abs() < 1e-9, "{total} {of_reads}");
    assert!((share - 0.06 / 0.065).abs() < 1e-6, "{share}");
    let terms = IdleTerms { storage: 0.1, links: 0.0, own: 0.0, begun: PerStage::default() };
    assert_eq!(fit(0.0), Err(FitRefusal::BaseLatency { slo: 0.065, terms }));
    // Reads of 20 ms leave 45 ms less the thousandth that is not used.
    assert!(fit(0.08).is_err());
    let server = LimitMethod::Exact.fit(&one(0.2, 0.05), 0, vec![0]).unwrap();
    let Err(FitRefusal::Latency { slo, ratio, .. }) = server.verify(&with_reads(0.08)) else {
        panic!("it does not fit")
    };
    assert!((slo - 0.065).abs() < 1e-12 && (ratio * 0.999 - 0.07 / 0.065).abs() < 1e-3, "{slo} {ratio}");
}

/// 0.1 s of idle storage leave nothing of 50 ms for all, nor of 10 ms for reads that are 60 ms sooner: these need
/// 40 ms and a bit.
#[test]
fn advice_is_a_factor_on_all_slos() {
    let further = FurtherSlo { slo: objective("99% of reads < 10ms"), shorter_by: vec![0.06] };
    let several = one(0.05, 0.0).with_further_slos(vec![vec![further]]);
    let placement = place_first_fit(&several, LimitMethod::Exact, &[0], false);
    let changes = advise(&several, LimitMethod::Exact, &placement, &placement.refused[0], &[]);
    let Some(SuggestedChange::Latency { slo, factor: Some(factor), .. }) = changes.first() else {
        panic!("{changes:?}")
    };
    assert_eq!(*factor, 4.01, "{changes:?}");
    assert!((slo - 0.05 * factor).abs() < 1e-12);
    let looser = several.with_slo(0, *slo);
    assert!((looser.further_slos(0)[0].latency() - 0.01 * factor).abs() < 1e-12);
    assert!(LimitMethod::Exact.fit(&looser, 0, vec![0]).is_ok());
}

proptest! {
    /// The judge: the same problem with one SLO, the tightest.
    #[test]
    fn several_slos_plan_as_the_tightest_of_them(
        enforced in any_class(),
        workloads in prop::collection::vec((any_workload(), 0.05..2.0f64, 0.0..0.05f64), 1..6),
    ) {
        let plain = problem_on(workloads.iter().map(|(workload, ..)| workload.clone()).collect(), enforced);
        let mut tightest = plain.clone();
        let mut further = Vec::new();
        for (w, ((slo, _), latency, shorter_by)) in workloads.iter().enumerate() {
            let asked = latency + shorter_by / PlanningProblem::SLO_FACTOR;
            tightest.workloads[w].slo.latency.0 = SLOS[*slo].min(asked);
            let mut reads = objective("99% of reads < 1s");
            reads.slo.latency.0 = *latency;
            further.push(vec![FurtherSlo { slo: reads, shorter_by: vec![*shorter_by] }]);
        }
        tightest.cut_all_curves();
        let several = plain.clone().with_further_slos(further);
        let order: Vec<usize> = (0..workloads.len()).collect();
        let place = |problem| place_first_fit(problem, LimitMethod::Exact, &order, false);
        prop_assert_eq!(place(&several).servers, place(&tightest).servers);
        let of_last = several.subset(&[workloads.len() - 1]);
        prop_assert_eq!(of_last.further_slos(0), several.further_slos(workloads.len() - 1));
        // Lists without any SLO change nothing.
        prop_assert_eq!(plain.clone().with_further_slos(vec![Vec::new(); workloads.len()]), plain);
    }
}
