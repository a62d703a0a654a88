//! Response times agree with closed forms within the engine's own intervals.

use crate::forms::{all, memoryless};
use crate::support::{SERVICE, entry, single};
use discipline::serve::DisciplineSpec;
use sim::engine::{
    LatencyStatistic, MeasurementWindow, PrecisionGoal, ReplicationVerdict, SimulationPlan, replicate,
};
use units::Percentile;

#[test]
fn every_form_is_within_its_interval() {
    let mut missed = Vec::new();
    for form in all() {
        // At 99.9 % one of the forms would miss in about 30 draws of all; these seeds are one draw.
        let plan = SimulationPlan { confidence: 0.999, ..SimulationPlan::of_requests(16_000, 11) };
        let report = replicate(&form.network, &form.load, &plan).unwrap();
        assert_eq!(report.verdict, ReplicationVerdict::Done, "{}", form.name);
        let estimate = report.estimate(&form.figure).unwrap();
        // Wide intervals would hold anything.
        let precise = estimate.half_width < 0.15 * form.exact;
        if !estimate.contains(form.exact) || !precise {
            missed.push(format!("{}: {} instead of {estimate:?}", form.name, form.exact));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_percentile_is_run_until_it_is_precise_or_not() {
    let network = single(1, DisciplineSpec::Fifo);
    let of = LatencyStatistic::Percentile(Percentile::new(99.0).unwrap());
    let load = |seed| vec![entry(seed, 0.6, memoryless)];
    let plan = |relative, replications_max| {
        let window = MeasurementWindow::of_requests(4000);
        SimulationPlan {
            goal: Some(PrecisionGoal { statistic: of, relative }),
            replications: 4,
            replications_max,
            window,
            ..SimulationPlan::of_requests(1, 3)
        }
    };
    let report = replicate(&network, load, &plan(0.05, 256)).unwrap();
    assert_eq!(report.verdict, ReplicationVerdict::Done);
    let estimate = report.percentile(Percentile::new(99.0).unwrap()).unwrap();
    assert!(estimate.relative() <= 0.05 && report.runs.len() > 4, "{estimate:?}");
    assert!((estimate.value / SERVICE * 0.4 / 100f64.ln() - 1.0).abs() < 0.08, "{estimate:?}");
    // The predicted number of replications is the actual one, up to chance.
    let took = report.runs.len() as f64 * (estimate.relative() / 0.05).powi(2);
    let few = replicate(&network, load, &plan(0.05, 16)).unwrap();
    match few.verdict {
        ReplicationVerdict::Imprecise { relative, needed: Some(needed) } => {
            assert!(relative > 0.05 && few.runs.len() == 16);
            assert!((0.25..4.0).contains(&(needed as f64 / took)), "{needed} instead of {took}");
        }
        other => panic!("{other:?}"),
    }
}
