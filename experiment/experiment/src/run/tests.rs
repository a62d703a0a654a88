//! Runs whose settings refuse changes, and their reports.

mod blind;
mod ending;

use super::*;
use crate::journal::Journal;
use crate::setting::{FileForm, ON, ThreadAspect};
use std::io;
use std::path::PathBuf;

/// A value that no setting takes.
const IMPOSSIBLE: &str = "impossible";

/// A machine whose settings refuse to be restored, `refusals` times.
#[derive(Debug)]
struct Refusing {
    value: String,
    refusals: usize,
    /// Values that other programs have given to threads.
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

fn settings(period: Duration) -> ExperimentSettings {
    ExperimentSettings {
        ports: BTreeSet::new(),
        processes: Vec::new(),
        percent: 99.0,
        period,
        guard: Duration::ZERO,
        drain: Duration::ZERO,
        confidence: 0.95,
        rounds_max: 1,
        seed: 1,
        ring_bytes: 0,
    }
}

/// Plays one period with these values of the knob on, and the end, with so many refusals to undo.
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
    let settings = settings(period);
    let arm = KnobArm { label: "knob".into(), plan: Box::new(|| Ok(changes.to_vec())) };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let arms = [arm];
    let mut host = Steady;
    let never = AtomicBool::new(false);
    let seen = Mutex::new(SeenRequests::default());
    let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
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
    let ports = BTreeSet::from([80]);
    let error = joined(failed(), Some(played(&[ON], 2)), &ports).expect_err("observing failed");
    assert_eq!(error.message, "no probes; /knob was not undone: refused");
    let error = joined(failed(), Some(Err(OperationError::machine("no load; /knob was not undone"))), &ports);
    assert_eq!(error.expect_err("both").message, "no probes; and no load; /knob was not undone");
    let totals = ObservedTotals { unanswered: 2, lost_events: 3, ..ObservedTotals::default() };
    let report = joined(Ok(totals), Some(played(&[ON], 0)), &ports).unwrap_or_else(|error| panic!("{error}"));
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

/// A load that uses a microjoule each time it is polled, until the counter vanishes.
struct Spending {
    counter: PathBuf,
    spent: u64,
    is_gone: bool,
}

impl ExperimentHost for Spending {
    fn has_load(&mut self) -> bool {
        self.spent += 1;
        let changed = match self.is_gone {
            true => std::fs::remove_file(&self.counter).or(Ok(())),
            false => std::fs::write(&self.counter, self.spent.to_string()),
        };
        changed.is_ok()
    }

    fn round_done(&mut self, _: ExperimentProgress) {}
}

#[test]
fn a_period_has_the_energy_that_was_used_in_it() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let zone = folder.path().join("intel-rapl:0");
    std::fs::create_dir(&zone).expect("it is ours");
    for (file, text) in [("name", "package-0"), ("max_energy_range_uj", "1000"), ("energy_uj", "0")] {
        std::fs::write(zone.join(file), text).expect("it is ours");
    }
    for is_gone in [false, true] {
        let mut host = Spending { counter: zone.join("energy_uj"), spent: 0, is_gone };
        let settings = settings(Duration::from_millis(1));
        let mut switch = KnobSwitch::new(
            Refusing { value: "off".into(), refusals: 0, others: None },
            NoFile,
            Journal::default(),
            "boot",
        );
        let never = AtomicBool::new(false);
        let seen = Mutex::new(SeenRequests::default());
        let energy = EnergyMeter::open(folder.path(), now());
        let arms = [KnobArm { label: "nothing".into(), plan: Box::new(|| Ok(Vec::new())) }];
        let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
        play.energy = energy;
        let mut periods = Vec::new();
        assert_eq!(play.period(0, &mut periods), Ok(None));
        let used = periods[0].used;
        let result = PeriodResult::of(vec![1], 99.0, 1.0, used).expect("a request");
        play.tally.add(vec![result.clone(), result]);
        let report = play.report(Ok(ExperimentEnd::RoundsUsed)).unwrap_or_else(|error| panic!("{error}"));
        // The load is polled twice before the period and once after it.
        assert_eq!(used.energy_uj, if is_gone { None } else { Some(host.spent - 3) });
        assert_eq!(report.periods_without_energy, if is_gone { 2 } else { 0 });
        assert_eq!(report.energy_unknown.is_some_and(|why| why.contains("energy_uj")), is_gone);
    }
}

/// Records the beginnings of periods, and their arms.
#[derive(Default)]
struct Restarted(Vec<(usize, u64)>);

impl ExperimentHost for Restarted {
    fn has_load(&mut self) -> bool {
        true
    }

    fn begin_period(&mut self, arm: usize) -> Result<(), OperationError> {
        self.0.push((arm, now()));
        if arm < 2 { Ok(()) } else { Err(OperationError::input("no such load")) }
    }

    fn round_done(&mut self, _: ExperimentProgress) {}
}

/// Requests that arrive long enough before a switch are answered, and those soon after it are not counted.
#[test]
fn a_load_is_switched_apart_from_what_counts() {
    let guard = Duration::from_millis(7);
    let drain = Duration::from_millis(5);
    let settings = ExperimentSettings { guard, drain, ..settings(Duration::from_millis(3)) };
    let nothing = || KnobArm { label: "load=other".into(), plan: Box::new(|| Ok(Vec::new())) };
    let arms = [nothing(), nothing()];
    let store = Refusing { value: "off".into(), refusals: 0, others: None };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let mut host = Restarted::default();
    let never = AtomicBool::new(false);
    let seen = Mutex::new(SeenRequests::default());
    let mut periods = Vec::new();
    let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
    for arm in [1, 0] {
        assert_eq!(play.period(arm, &mut periods), Ok(None));
    }
    let error = play.period(2, &mut periods).expect_err("there is no such load");
    assert_eq!(error.message, "no such load");
    let [(1, first), (0, second), (2, third)] = host.0[..] else { panic!("{:?}", host.0) };
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).expect("it is short");
    for (period, begun, next) in [(&periods[0], first, second), (&periods[1], second, third)] {
        assert!(period.begin - begun >= nanoseconds(guard));
        assert!(next - period.end >= nanoseconds(drain));
    }
}

#[test]
fn whoever_hears_nothing_is_told_with_which_value() {
    let settings = settings(Duration::from_secs(2));
    let arms = [KnobArm { label: "load=udp".into(), plan: Box::new(|| Ok(Vec::new())) }];
    let store = Refusing { value: "off".into(), refusals: 0, others: None };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let mut host = Steady;
    let never = AtomicBool::new(false);
    let seen = Mutex::new(SeenRequests::default());
    let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
    play.silent = vec![1];
    let error = play.nothing_arrives(settings.period);
    assert!(error.message.ends_with("in 2 s with load=udp"), "{error}");
}

/// A host that stops the experiment in the middle of a period.
struct Leaving(usize);

impl ExperimentHost for Leaving {
    fn has_load(&mut self) -> bool {
        true
    }

    fn is_wanted(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }

    fn round_done(&mut self, _: ExperimentProgress) {}
}

/// The period is longer than any test.
#[test]
fn what_nobody_wants_to_know_is_not_played() {
    for looks in [1, 3] {
        let settings = settings(Duration::from_secs(3600));
        let change = PlannedChange { setting: setting(), value: ON.into() };
        let arms = [KnobArm { label: "knob".into(), plan: Box::new(|| Ok(vec![change.clone()])) }];
        let store = Refusing { value: "off".into(), refusals: 0, others: None };
        let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
        let never = AtomicBool::new(false);
        let seen = Mutex::new(SeenRequests::default());
        let mut host = Leaving(looks);
        let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
        assert_eq!(play.period(1, &mut Vec::new()), Ok(Some(ExperimentEnd::Stopped)));
    }
}
