//! Claims of docs/explanation/age.md about the limit and age, judged by the simulator on the systems of the demo.

use arrivals::TimeDistribution;
use chain::{
    DemoTopology, GainSplit, GainVerdict, PlayMeasures, ScheduleMode, draw_workload, predicted_play,
};
use units::Nanos;

/// Repetitions of so long a play.
const SEEDS: u64 = 8;
const DURATION: Nanos = Nanos(100_000_000_000);
const SLICE_NS: u64 = 1_400_000;

/// The split of the 99th percentile, with c = 3.
fn split(topology: DemoTopology, work: &str, load: f64) -> GainSplit {
    let work: TimeDistribution = work.parse().expect("a law");
    let case = topology.scenario(&work, load).and_then(|document| document.case()).expect("a scenario");
    let p99 = |mode: ScheduleMode| -> Vec<f64> {
        let limit = if mode == ScheduleMode::Fair { None } else { Some(3) };
        let disciplines = [mode.discipline(limit, SLICE_NS, &[]), mode.discipline(limit, SLICE_NS, &[])];
        (0..SEEDS)
            .map(|seed| {
                let workload = draw_workload(&case, seed, DURATION).expect("requests");
                let played = predicted_play(&workload, &disciplines).expect("a simulation");
                PlayMeasures::of(&[(&workload, &played)]).expect("answers").p99_s
            })
            .collect()
    };
    let [fair, limited, oldest] =
        [ScheduleMode::Fair, ScheduleMode::Limited, ScheduleMode::OldestFirst].map(p99);
    GainSplit::of(&fair, &limited, &oldest, 0.95).expect("repetitions")
}

#[test]
fn in_a_chain_the_limit_does_nearly_all() {
    let split = split(DemoTopology::Chain, "exp(5ms)", 0.85);
    assert_eq!(split.cap.verdict, GainVerdict::Shorter);
    assert!((0.55..0.75).contains(&split.cap.ratio) && (0.97..1.01).contains(&split.age.ratio), "{split:?}");
    assert!(split.age_share.is_some_and(|share| share < 0.1), "{split:?}");
}

#[test]
fn where_paths_join_age_does_its_part() {
    let split = split(DemoTopology::FanIn, "exp(5ms)", 0.85);
    assert_eq!((split.cap.verdict, split.age.verdict), (GainVerdict::Shorter, GainVerdict::Shorter));
    assert!((0.6..0.85).contains(&split.cap.ratio) && (0.85..0.95).contains(&split.age.ratio), "{split:?}");
}

#[test]
fn for_work_of_very_large_variation_a_limit_is_harmful() {
    let split = split(DemoTopology::Chain, "lognormal(mean=5ms, c2=100)", 0.7);
    assert_eq!(split.total.verdict, GainVerdict::Longer, "{split:?}");
    assert!(split.cap.ratio > 1.5 && split.age_share.is_none(), "{split:?}");
}
