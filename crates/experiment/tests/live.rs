//! Knobs on this machine: each that it has is set, read back by other means, and undone. Takes root.

use machine::scheduling::{SchedulingPolicy, ThreadScheduling, cpus, scheduling, set_cpus, set_scheduling};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;
use tailwright_experiment::{
    Journal, JournalFile, KNOBS, Knob, KnobSwitch, KnobTarget, LinuxSettings, PlannedChange, Setting,
    UndoOutcome, UndoneChange, boot, identity, knob, missing_right,
};

/// The longest that a program needs to start.
const LIMIT: Duration = Duration::from_secs(20);

/// A journal that outlives the switch that writes it.
#[derive(Debug, Clone, Default)]
struct SharedJournal(Rc<RefCell<Vec<u8>>>);

impl JournalFile for SharedJournal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.borrow_mut().clear();
        Ok(())
    }
}

impl SharedJournal {
    /// A program that goes on from this journal.
    fn switch(&self) -> KnobSwitch<LinuxSettings, Self> {
        let journal = Journal::parse(&self.0.borrow()).unwrap_or_else(|error| panic!("{error}"));
        let boot = boot().unwrap_or_else(|error| panic!("{error}"));
        KnobSwitch::new(LinuxSettings::default(), self.clone(), journal, &boot)
    }

    /// As after SIGKILL: nothing is undone, and the journal says what is set.
    fn kill(&self, switch: KnobSwitch<LinuxSettings, Self>) {
        std::mem::forget(switch);
    }
}

/// A program that waits, in a session of its own.
struct Waiting(Child);

impl Waiting {
    fn new() -> Self {
        Self::start(&["cat"])
    }

    fn start(command: &[&str]) -> Self {
        let waiting = Command::new("setsid").args(command).stdin(Stdio::piped()).spawn();
        let waiting = Self(waiting.expect("there is a setsid"));
        let own = waiting.0.id().to_string();
        testkit::wait_until(LIMIT, "a session of its own", || session(waiting.0.id()) == own);
        waiting
    }

    fn target(&self) -> KnobTarget {
        let commands = Some(("true {}".to_owned(), "true {}".to_owned()));
        let processes = identity(self.0.id()).into_iter().collect();
        KnobTarget { processes, device: Some("lo".into()), disk: Some("loop0".into()), commands }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A value that differs from what is there.
fn value(knob: &Knob, other: u32) -> Option<String> {
    match knob.name {
        "demote" => Some(other.to_string()),
        // Each group of tasks takes one value in 100 ms, and more from root only.
        "autogroup-nice" => Some("3".into()),
        "io-scheduler" => Some("mq-deadline".into()),
        "queue-depth" => Some("17".into()),
        "pin" => Some("0".into()),
        "rps" | "interrupt-core" => Some("1".into()),
        _ => knob.default.map(str::to_owned),
    }
}

#[test]
fn every_knob_that_there_is_here_is_set_and_undone() {
    let (server, other) = (Waiting::new(), Waiting::new());
    let target = server.target();
    let (mut set, mut absent) = (Vec::new(), BTreeMap::new());
    for knob in &KNOBS {
        let value = value(knob, other.0.id());
        if let Some(obstacle) = knob.obstacle(&target) {
            absent.insert(knob.name, obstacle);
            continue;
        }
        let changes =
            knob.plan(&target, value.as_deref()).unwrap_or_else(|error| panic!("{}: {error}", knob.name));
        if let Some(error) = missing_right(&changes) {
            absent.insert(knob.name, error.message);
            continue;
        }
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        let was_set = switch.is_set(&changes) == Ok(true);
        switch.on(&changes).unwrap_or_else(|error| panic!("{}: {error}", knob.name));
        let is_set = switch.is_set(&changes);
        assert!(
            changes.iter().all(|change| !change.setting.is_readable()) || is_set == Ok(true),
            "{}",
            knob.name
        );
        // What ends with this program needs its end, or a drop.
        if changes.iter().any(|change| change.setting.ends_with_program()) {
            drop(switch);
        } else {
            journal.kill(switch);
        }
        let undone = journal.switch().off();
        let is_right =
            |outcome: &UndoOutcome| matches!(outcome, UndoOutcome::Restored | UndoOutcome::Unchanged);
        assert!(undone.iter().all(|undone| is_right(&undone.outcome)), "{}: {undone:?}", knob.name);
        assert!(was_set || journal.switch().is_set(&changes) != Ok(true), "{}", knob.name);
        assert!(journal.0.borrow().is_empty(), "{}", knob.name);
        set.push(knob.name);
    }
    for (knob, obstacle) in absent {
        testkit::skip(&format!("{knob}: {obstacle}"));
    }
    assert!(set.contains(&"nothing") && set.contains(&"command"), "{set:?}");
}

/// The number of the session that a process belongs to: the fourth field after its name.
fn session(process: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
    fields.split(' ').nth(3).unwrap_or_default().to_owned()
}

#[test]
fn processes_of_one_session_have_one_value() {
    let shell = Waiting::start(&["sh", "-c", "cat; :"]);
    let children = format!("/proc/{0}/task/{0}/children", shell.0.id());
    let child = || std::fs::read_to_string(&children).ok()?.trim().parse().ok();
    testkit::wait_until(LIMIT, "the child of the shell", || child().is_some());
    let processes = [Some(shell.0.id()), child()];
    let processes = processes.map(|id| id.and_then(identity).expect("it runs")).to_vec();
    let target = KnobTarget { processes, ..KnobTarget::default() };
    let autogroup = knob("autogroup-nice").expect("a knob");
    if let Some(obstacle) = autogroup.obstacle(&target) {
        return testkit::skip(&obstacle);
    }
    assert_eq!(autogroup.plan(&target, Some("3")).map(|changes| changes.len()), Ok(1));
}

#[test]
fn priority_is_as_the_kernel_has_it() {
    let server = Waiting::new();
    let changes = knob("fifo").and_then(|knob| knob.plan(&server.target(), Some("3")).ok()).expect("a knob");
    if let Some(error) = missing_right(&changes) {
        return testkit::skip(&error.message);
    }
    let before = scheduling(server.0.id()).expect("it runs");
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    let now = scheduling(server.0.id()).expect("it runs");
    assert_eq!((now.policy, now.priority), (SchedulingPolicy::Fifo, 3));
    drop(switch);
    assert_eq!(scheduling(server.0.id()).expect("it runs"), before);
    assert!(journal.0.borrow().is_empty());
}

/// Slices are inherited: this program may have the one that somebody has chosen for the server.
#[test]
fn a_slice_that_this_program_has_too_is_restored() {
    let chooses = || {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let chosen = ThreadScheduling { slice_ns: 5_000_000, ..scheduling(own).expect("it runs") };
        if set_scheduling(own, &chosen).is_err() || scheduling(own).ok() != Some(chosen) {
            return testkit::skip("threads have no slices of their own");
        }
        let server = Waiting::new();
        let before = scheduling(server.0.id()).expect("it runs");
        assert_eq!(before.slice_ns, chosen.slice_ns);
        let value = (before.nice + 1).to_string();
        let changes = knob("nice").and_then(|knob| knob.plan(&server.target(), Some(&value)).ok());
        let changes = changes.expect("a knob");
        if let Some(error) = missing_right(&changes) {
            return testkit::skip(&error.message);
        }
        let journal = SharedJournal::default();
        let mut switch = journal.switch();
        switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
        let raised = ThreadScheduling { nice: before.nice + 1, ..before };
        assert_eq!(scheduling(server.0.id()).expect("it runs"), raised);
        let undone = switch.off();
        assert!(undone.iter().all(|undone| undone.outcome == UndoOutcome::Restored), "{undone:?}");
        assert_eq!(scheduling(server.0.id()).expect("it runs"), before);
    };
    std::thread::spawn(chooses).join().expect("all is as promised");
}

/// A thread of this process that begins now and waits; its number, and what ends it.
fn thread() -> (u32, mpsc::Sender<()>) {
    let (end, wait) = mpsc::channel::<()>();
    let (tell, number) = mpsc::channel();
    std::thread::spawn(move || {
        let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        tell.send(id).expect("somebody waits for it");
        let _ = wait.recv();
    });
    (number.recv().expect("the thread runs"), end)
}

/// Held by tests that change the CPUs of this process: one at a time.
static CPUS_OF_THIS_PROCESS: Mutex<()> = Mutex::new(());

/// What keeps this process on CPU 0; none where it has no choice.
fn pinned_to_the_first() -> Option<Vec<PlannedChange>> {
    let process = identity(std::process::id()).expect("this process runs");
    let target = KnobTarget { processes: vec![process], ..KnobTarget::default() };
    if !cpus(process.id).expect("it runs").is_superset(&BTreeSet::from([0, 1])) {
        testkit::skip("this process does not have CPUs 0 and 1");
        return None;
    }
    knob("pin").and_then(|knob| knob.plan(&target, Some("0")).ok())
}

/// Threads inherit from the one that starts them, so that there is no record of their own.
#[test]
fn threads_that_begin_meanwhile_are_undone_too() {
    let _alone = CPUS_OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let (known, _end) = thread();
    let before = cpus(known).expect("it runs");
    let one = BTreeSet::from([0]);
    let Some(changes) = pinned_to_the_first() else { return };
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    let ((inherits, _end_first), (differs, _end_second)) = (thread(), thread());
    set_cpus(differs, &before).expect("it is ours");
    assert_eq!([known, inherits].map(|thread| cpus(thread).expect("it runs")), [one.clone(), one.clone()]);
    assert_eq!(switch.keep_on(), Ok(false), "nobody else has changed them");
    assert_eq!(cpus(differs).expect("it runs"), one);
    journal.kill(switch);
    journal.switch().off();
    for thread in [known, inherits, differs] {
        assert_eq!(cpus(thread).expect("it runs"), before, "thread {thread}");
    }
}

/// Nobody inherits what nobody had: somebody else has given it to the thread.
#[test]
fn threads_that_begin_meanwhile_and_are_changed_by_others_are_left_alone() {
    let _alone = CPUS_OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(changes) = pinned_to_the_first() else { return };
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    let (foreign, _end) = thread();
    let others = BTreeSet::from([1]);
    set_cpus(foreign, &others).expect("it is ours");
    assert_eq!(switch.keep_on(), Ok(true), "somebody else has changed one");
    assert_eq!(cpus(foreign).expect("it runs"), others);
    journal.kill(switch);
    let undone = journal.switch().off();
    assert_eq!(cpus(foreign).expect("it runs"), others);
    let is_named = |undone: &UndoneChange| matches!(undone.outcome, UndoOutcome::LeftAlone(_));
    let named: Vec<UndoneChange> = undone.into_iter().filter(is_named).collect();
    let [named] = &named[..] else { panic!("{named:?}") };
    assert!(matches!(named.change.setting, Setting::LaterThreads { .. }), "{named:?}");
    assert_eq!(named.outcome, UndoOutcome::LeftAlone(format!("1 (thread {foreign})")));
}
