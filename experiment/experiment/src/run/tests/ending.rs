//! Runs in which a process of the server ends or something fails: earlier measurements are reported.

use super::*;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicUsize;

/// A process of the server that ends when something has happened a number of times.
struct Ending {
    left: AtomicUsize,
    child: Mutex<Child>,
    process: ProcessIdentity,
}

impl Ending {
    fn after(steps: usize) -> Self {
        let child = waiting();
        let process = identity(child.id());
        Self { left: AtomicUsize::new(steps), child: Mutex::new(child), process }
    }

    /// Something happens.
    fn step(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            child.kill().and_then(|()| child.wait()).expect("it is our child");
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn waiting() -> Child {
    // The child must not hold this process's standard streams, whatever its fate.
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("there is a sleep")
}

fn identity(id: u32) -> ProcessIdentity {
    crate::linux::identity(id).expect("it runs")
}

/// Returns the settings of a process, by PID, with their old values.
fn setting_of(process: ProcessIdentity) -> Setting {
    let path = format!("/knob/{}", process.id).into();
    Setting::KernelFile { path, form: FileForm::Text, process: Some(process) }
}

/// Settings of processes, which go with them.
struct OfProcesses<'a> {
    ending: &'a Ending,
    values: BTreeMap<Setting, String>,
}

impl SettingStore for OfProcesses<'_> {
    fn read(&mut self, setting: &Setting) -> Result<Option<String>, OperationError> {
        self.ending.step();
        let Setting::KernelFile { process: Some(process), .. } = setting else { panic!("{setting}") };
        Ok(self.values.get(setting).cloned().filter(|_| is_alive(*process)))
    }

    fn write(&mut self, setting: &Setting, value: &str) -> Result<(), OperationError> {
        self.ending.step();
        self.values.insert(setting.clone(), value.to_owned());
        Ok(())
    }
}

/// A load that sends a request whenever it is polled.
struct Asking<'a> {
    ending: &'a Ending,
    seen: &'a Mutex<SeenRequests>,
    begun_periods: usize,
    rounds: usize,
}

impl ExperimentHost for Asking<'_> {
    fn has_load(&mut self) -> bool {
        self.ending.step();
        lock(self.seen).window.add(now(), 1_000);
        true
    }

    fn begin_period(&mut self, _: usize) -> Result<(), OperationError> {
        self.ending.step();
        self.begun_periods += 1;
        match is_alive(self.ending.process) {
            true => Ok(()),
            false => Err(OperationError::input("the load has ended by itself: connection reset")),
        }
    }

    fn round_done(&mut self, _: ExperimentProgress) {
        self.ending.step();
        self.rounds += 1;
    }
}

/// One of two processes of the server ends, each time one step later: when its settings are planned, made, undone, or while
/// requests are counted.
#[test]
fn whenever_one_of_several_processes_ends_what_was_measured_is_reported() {
    let other = Ending::after(usize::MAX);
    let mut tried = 0;
    for steps in 1.. {
        let ending = Ending::after(steps);
        let processes = vec![ending.process, other.process];
        let settings = ExperimentSettings {
            processes: processes.clone(),
            rounds_max: 2,
            ..settings(Duration::from_millis(1))
        };
        let plan = || {
            ending.step();
            let change = |process: &ProcessIdentity| match is_alive(*process) {
                true => Ok(PlannedChange { setting: setting_of(*process), value: "after".into() }),
                false => Err(OperationError::input(format_args!("there is no process {}", process.id))),
            };
            processes.iter().map(change).collect()
        };
        let arms = [KnobArm { label: "knob".into(), plan: Box::new(plan) }];
        let before = |process: &ProcessIdentity| (setting_of(*process), "before".to_owned());
        let store = OfProcesses { ending: &ending, values: processes.iter().map(before).collect() };
        let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
        let never = AtomicBool::new(false);
        let seen = Mutex::new(SeenRequests::default());
        let mut host = Asking { ending: &ending, seen: &seen, begun_periods: 0, rounds: 0 };
        let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
        let end = play.all();
        let unfinished = play.switch.off();
        play.keep(unfinished);
        let report = play.report(end).unwrap_or_else(|error| panic!("step {steps}: {error}"));
        assert!(report.not_undone.is_empty() && switch.is_off(), "step {steps}: {:?}", report.not_undone);
        let is_undone =
            switch.is_set(&[PlannedChange { setting: setting_of(other.process), value: "before".into() }]);
        assert_eq!(is_undone, Ok(true), "step {steps}");
        assert_eq!(report.tally.rounds().len(), host.rounds, "step {steps}");
        let measured = 2 * host.rounds + report.unfinished_round.iter().flatten().count();
        if host.rounds == settings.rounds_max {
            // It ends in the last step, or later.
            assert_eq!((report.end, measured), (ExperimentEnd::RoundsUsed, 4), "step {steps}");
            break;
        }
        tried += 1;
        assert_eq!(report.end, ExperimentEnd::ServerEnded, "step {steps}");
        assert_eq!(report.ended_processes, [ending.process], "step {steps}");
        // All but the one that was being played.
        assert!(
            (host.begun_periods.saturating_sub(1)..=host.begun_periods).contains(&measured),
            "step {steps}"
        );
    }
    assert!(tried > 40, "{tried}");
}

/// A late failure must not discard earlier measurements.
#[test]
fn an_error_after_a_round_has_the_round() {
    let settings = ExperimentSettings { rounds_max: 9, ..settings(Duration::from_millis(1)) };
    let plans = AtomicUsize::new(0);
    let plan = || match plans.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Ok(Vec::new()),
        _ => Err(OperationError::input("there is no process 7")),
    };
    let arms = [KnobArm { label: "demote=7".into(), plan: Box::new(plan) }];
    let store = Refusing { value: "off".into(), refusals: 0, others: None };
    let mut switch = KnobSwitch::new(store, NoFile, Journal::default(), "boot");
    let never = AtomicBool::new(false);
    let seen = Mutex::new(SeenRequests::default());
    let ending = Ending::after(usize::MAX);
    let mut host = Asking { ending: &ending, seen: &seen, begun_periods: 0, rounds: 0 };
    let mut play = RoundPlay::new(&settings, &arms, &mut switch, &mut host, [&never, &never], &seen);
    let end = play.all();
    let report = play.report(end).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.end, report.tally.rounds().len()), (ExperimentEnd::Failed, 2));
    assert_eq!(report.failure.map(|error| error.message).as_deref(), Some("there is no process 7"));
}
