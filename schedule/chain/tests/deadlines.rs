//! Claims of docs/explanation/age.md about deadlines in place of age, judged by the simulator on the example with two
//! classes.

use chain::{ClassMeasures, PlayMeasures, ScheduleMode, draw_workload, no_deadlines, predicted_play};
use model::OperationError;
use scenario::ScenarioDocument;
use std::path::Path;
use units::Nanos;

const EXAMPLE: &str = include_str!("../../../examples/scenarios/schedule-deadlines.toml");
const SEEDS: u64 = 8;
const DURATION: Nanos = Nanos(600_000_000_000);
const SLICE_NS: u64 = 1_400_000;

fn example(settings: &[(&str, &str)]) -> Result<ScenarioDocument, OperationError> {
    let mut document = ScenarioDocument::parse(Path::new("schedule-deadlines.toml"), EXAMPLE)?;
    settings.iter().try_for_each(|(path, value)| document.set(path, value))?;
    Ok(document)
}

/// Returns the figures of a mode with this c, for the same requests in all modes.
fn measures(mode: ScheduleMode, c: Option<u32>, settings: &[(&str, &str)]) -> PlayMeasures {
    let case = example(settings).and_then(|document| document.case()).expect("a scenario");
    let limit = if mode == ScheduleMode::Fair { None } else { c };
    let plays: Vec<_> = (0..SEEDS)
        .map(|seed| {
            let workload = draw_workload(&case, seed, DURATION).expect("requests");
            let discipline = mode.discipline(limit, SLICE_NS, &workload.allowed_ns());
            let played = predicted_play(&workload, &[discipline.clone(), discipline]).expect("a simulation");
            (workload, played)
        })
        .collect();
    let pairs: Vec<_> = plays.iter().map(|(workload, played)| (workload, played.as_slice())).collect();
    PlayMeasures::of(&pairs).expect("answers")
}

/// Returns the shares of late requests of the classes with the shorter and with the longer SLO, percent.
fn late(measures: &PlayMeasures) -> [f64; 2] {
    let [interactive, batch] = measures.classes.as_slice() else { panic!("two classes: {measures:?}") };
    [interactive, batch].map(|class: &ClassMeasures| class.late_pct.expect("it has requests"))
}

#[test]
fn with_two_slos_far_fewer_urgent_requests_are_late_by_deadline() {
    let of = |mode| late(&measures(mode, Some(3), &[]));
    let [fair, oldest, admission, deadline] = [
        ScheduleMode::Fair,
        ScheduleMode::OldestFirst,
        ScheduleMode::DeadlineAdmission,
        ScheduleMode::DeadlineFirst,
    ]
    .map(of);
    // By age the short requests wait behind the long ones.
    assert!((50.0..65.0).contains(&oldest[0]) && oldest[1] < 1.5, "{oldest:?}");
    assert!((25.0..40.0).contains(&fair[0]) && (2.0..6.0).contains(&fair[1]), "{fair:?}");
    assert!((2.0..6.0).contains(&deadline[0]) && (1.0..4.0).contains(&deadline[1]), "{deadline:?}");
    let easy = |mode| late(&measures(mode, Some(3), &[("run.load", "0.7")]));
    let by_age = easy(ScheduleMode::OldestFirst);
    let by_deadline = easy(ScheduleMode::DeadlineFirst);
    assert!(by_age[0] > 20.0 && by_deadline[0] < 2.0 && by_deadline[1] < 0.1, "{by_age:?} {by_deadline:?}");
    // Requests in service stay there: an urgent request waits for one of the c.
    assert!((14.0..25.0).contains(&admission[0]) && (1.0..4.0).contains(&admission[1]), "{admission:?}");
}

#[test]
fn what_deadlines_give_to_one_class_they_take_from_the_other() {
    let p99 = |mode| measures(mode, Some(3), &[]).classes[1].p99_s.expect("answers");
    let ratio = p99(ScheduleMode::DeadlineFirst) / p99(ScheduleMode::OldestFirst);
    assert!((1.3..1.6).contains(&ratio), "{ratio}");
    // Near saturation no mode keeps the short SLO for all, and far more of the long ones are late than by
    // age.
    let near = |mode| late(&measures(mode, Some(3), &[("run.load", "0.95")]));
    let oldest = near(ScheduleMode::OldestFirst);
    let deadline = near(ScheduleMode::DeadlineFirst);
    assert!(deadline[0] > 20.0 && deadline[1] > 2.0 * oldest[1], "{oldest:?} {deadline:?}");
}

#[test]
fn with_one_slo_or_without_a_limit_deadlines_change_nothing() {
    let one = [("class.*.slo", "75ms")];
    let [oldest, deadline] =
        [ScheduleMode::OldestFirst, ScheduleMode::DeadlineFirst].map(|mode| measures(mode, Some(3), &one));
    assert_eq!(oldest, deadline);
    let [oldest, deadline] =
        [ScheduleMode::OldestFirst, ScheduleMode::DeadlineFirst].map(|mode| measures(mode, None, &[]));
    assert_eq!(oldest, deadline);
}

#[test]
fn a_scenario_without_slos_has_no_deadlines() {
    let case = |document: ScenarioDocument| document.case().expect("a scenario");
    assert_eq!(no_deadlines(&case(example(&[]).expect("a scenario"))), None);
    let by_age = EXAMPLE.replace("edf-limited", "orf");
    let one = by_age.replace("slo = \"750ms\"\n", "");
    let none = one.replace("slo = \"75ms\"\n", "");
    for (text, why) in
        [(one, "class 'batch' has no slo"), (none, "the scenario has no [[class]] with an slo")]
    {
        let document = ScenarioDocument::parse(Path::new("without.toml"), &text).expect("a scenario");
        assert_eq!(no_deadlines(&case(document)), Some(format!("no deadlines: {why}")));
    }
}
