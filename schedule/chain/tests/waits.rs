//! Claims of docs/explanation/age.md about requests that block, judged by the simulator on
//! examples/scenarios/schedule-blocking.toml.

use chain::{
    ChainWorkload, PlayMeasures, ScheduleMode, WaitTreatment, draw_workload, predicted_play,
    predicted_waiting_play,
};
use scenario::ScenarioDocument;
use std::path::Path;
use units::Nanos;

const SEEDS: u64 = 4;
const DURATION: Nanos = Nanos(10_000_000_000);
const PATIENCE: Nanos = Nanos(1_000_000_000);
const EVERY: Nanos = Nanos(1_000_000);

fn workloads() -> Vec<ChainWorkload> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios/schedule-blocking.toml");
    let text = std::fs::read_to_string(&path).expect("the example is there");
    let case =
        ScenarioDocument::parse(&path, &text).and_then(|document| document.case()).expect("a scenario");
    (0..SEEDS).map(|seed| draw_workload(&case, seed, DURATION).expect("requests")).collect()
}

/// The mean and the 99th percentile, seconds.
fn latencies(workloads: &[ChainWorkload], c: u32, waits: WaitTreatment) -> (f64, f64) {
    let played: Vec<_> = workloads
        .iter()
        .map(|workload| predicted_waiting_play(workload, &[Some(c)], PATIENCE, waits))
        .collect();
    let plays: Vec<_> =
        workloads.iter().zip(&played).map(|(workload, played)| (workload, &played[..])).collect();
    let measures = PlayMeasures::of(&plays).expect("answers");
    assert_eq!(measures.answered, measures.requests);
    (measures.mean_s, measures.p99_s)
}

#[test]
fn a_limit_of_one_saturates_where_nobody_notices_waits_and_a_sentinel_repairs_it() {
    let workloads = workloads();
    let [reported, silent, sentinel] =
        [WaitTreatment::Reported, WaitTreatment::Silent, WaitTreatment::Sentinel(EVERY)]
            .map(|waits| latencies(&workloads, 1, waits));
    assert!(silent.0 > 20.0 * reported.0 && silent.0 > 10.0 * sentinel.0, "{silent:?} {reported:?}");
    assert!(sentinel.0 < 3.0 * reported.0 && sentinel.1 < 3.0 * reported.1, "{sentinel:?} {reported:?}");
}

#[test]
fn with_three_waits_need_notice_and_with_five_they_do_not() {
    let workloads = workloads();
    let mean = |c, waits| latencies(&workloads, c, waits).0;
    assert!(mean(3, WaitTreatment::Silent) > 1.5 * mean(3, WaitTreatment::Sentinel(EVERY)));
    assert!(mean(5, WaitTreatment::Silent) < 1.2 * mean(5, WaitTreatment::Reported));
}

#[test]
fn the_engine_of_simulate_has_the_same_latencies_with_reports() {
    let workloads = workloads();
    for c in [1, 3] {
        let discipline = ScheduleMode::OldestFirst.discipline(Some(c), 100_000, &[]);
        let plays: Vec<_> = workloads
            .iter()
            .map(|workload| {
                predicted_play(workload, std::slice::from_ref(&discipline)).expect("a simulation")
            })
            .collect();
        let plays: Vec<_> =
            workloads.iter().zip(&plays).map(|(workload, played)| (workload, &played[..])).collect();
        let engine = PlayMeasures::of(&plays).expect("answers");
        let own = latencies(&workloads, c, WaitTreatment::Reported);
        for (own, engine) in [(own.0, engine.mean_s), (own.1, engine.p99_s)] {
            assert!((own / engine - 1.0).abs() < 0.03, "c = {c}: {own} {engine}");
        }
    }
}
