//! Runs whose settings refuse, and what they say at their end.

use super::*;
use crate::journal::Journal;
use crate::setting::{FileForm, ON, ThreadAspect};
use std::io;

/// A value that no setting takes.
const IMPOSSIBLE: &str = "impossible";

/// A machine whose settings refuse to become what they were, as often as it says.
#[derive(Debug)]
struct Refusing {
    value: String,
    refusals: usize,
    /// What others have given to threads.
    others: Option<String>,
}

impl SettingStore for Refusing {
    fn read(&mut self, _: &Setting) -> Result<Option<String>, OperationError> {
        Ok(Some(self.value.clone()))
    }

    fn write(&mut self, _: &Setting, value: &str) -> Result<(), OperationError> {
        if value == IMPOSSIBLE {
            return Err(OperationError::machine("impossible"));
        }
        if value != ON && self.refusals > 0 {
            self.refusals -= 1;
            return Err(OperationError::machine("refused"));
        }
        self.value = value.to_owned();
        Ok(())
    }

    fn changed_by_others(&mut self, _: &Setting) -> Result<Option<String>, OperationError> {
        Ok(self.others.clone())
    }
}

struct NoFile;

impl JournalFile for NoFile {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Steady;

impl ExperimentHost for Steady {
    fn has_load(&mut self) -> bool {
        true
    }

    fn round_done(&mut self, _: ExperimentProgress) {}
}

fn setting() -> Setting {
    Setting::KernelFile { path: "/knob".into(), form: FileForm::Text, process: None }
}

/// One period with these values of the knob on, and the end, where undoing is refused so many times.
fn played(values: &[&str], refusals: usize) -> Result<ExperimentReport, OperationError> {
    let change = |value: &&str| PlannedChange { setting: setting(), value: (*value).to_owned() };
    let changes: Vec<PlannedChange> = values.iter().map(change).collect();
    let store = Refusing { value: "before".into(), refusals, others: None };
    played_on(store, &changes, Duration::from_millis(1))
}

/// One period with these changes made, and the end.
fn played_on(
    store: Refusing,
    changes: &[PlannedChange],
    period: Duration,
) -> Result<ExperimentReport, OperationError> {
    let settings = ExperimentSettings {
        ports: BTreeSet::new(),
        processes: Vec::new(),
        percent: 99.0,
        period,
        guard: Duration::ZERO,
        confidence: 0.95,
        rounds_max: 1,
        seed: 1,
        ring_bytes: 0,
    };
    let arm = KnobArm { label: "knob".into(), plan: Box::new(|| Ok(changes.to_vec())) };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let (arms, mut host, never) = ([arm], Steady, AtomicBool::new(false));
    let window = Mutex::new(LatencyWindow::default());
    let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &window);
    let end = play.period(1, &mut Vec::new()).map(|end| end.unwrap_or(ExperimentEnd::RoundsUsed));
    let unfinished = play.switch.off();
    play.keep(unfinished);
    play.report(end)
}

/// The period is longer than any test.
#[test]
fn a_thread_that_others_change_ends_the_experiment_and_is_named() {
    let setting = Setting::LaterThreads {
        process: ProcessIdentity { id: 1, start: 1 },
        known: Vec::new(),
        aspect: ThreadAspect::Cpus,
        before: "0-1".into(),
        after: vec!["0".into()],
        inheritable: vec!["0".into(), "0-1".into()],
    };
    let others = "1 (thread 7)".to_owned();
    let store = Refusing { value: "off".into(), refusals: 0, others: Some(others.clone()) };
    let change = PlannedChange { setting, value: ON.into() };
    let report = played_on(store, &[change], Duration::from_secs(3600));
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.end, ExperimentEnd::ChangedByOthers);
    let outcomes: Vec<&UndoOutcome> = report.not_undone.iter().map(|undone| &undone.outcome).collect();
    assert_eq!(outcomes, [&UndoOutcome::LeftAlone(others)]);
}

#[test]
fn the_last_attempt_to_undo_counts() {
    for (refusals, end, not_undone) in [
        (0, ExperimentEnd::RoundsUsed, 0),
        (1, ExperimentEnd::UndoFailed, 0),
        (2, ExperimentEnd::UndoFailed, 1),
    ] {
        let report = played(&[ON], refusals).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((report.end, report.not_undone.len()), (end, not_undone), "{refusals} refusals");
    }
}

#[test]
fn what_is_undone_after_a_value_that_cannot_be_set_is_not_named() {
    for (refusals, message) in [(0, "impossible"), (1, "impossible; /knob was not undone: refused")] {
        let error = played(&[ON, IMPOSSIBLE], refusals).expect_err("the second value is impossible");
        assert_eq!(error.message, message);
    }
}

#[test]
fn an_observer_that_fails_does_not_hide_what_is_still_set() {
    let failed = || Err(OperationError::machine("no probes"));
    let error = joined(failed(), Some(played(&[ON], 2))).expect_err("observing failed");
    assert_eq!(error.message, "no probes; /knob was not undone: refused");
    let error = joined(failed(), Some(Err(OperationError::machine("no load; /knob was not undone"))));
    assert_eq!(error.expect_err("both").message, "no probes; and no load; /knob was not undone");
    let report = joined(Ok((2, 3)), Some(played(&[ON], 0))).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.unanswered, report.lost_events), (2, 3));
}

#[test]
fn whoever_waits_for_the_end_is_told_of_a_panic() {
    let ended = AtomicBool::new(false);
    let caught = std::panic::catch_unwind(|| {
        let _ended = SetOnDrop(&ended);
        panic!("in the middle of a period");
    });
    assert!(caught.is_err() && ended.load(Ordering::Relaxed));
}
