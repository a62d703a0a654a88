//! Knobs on this machine: each that it has is set, read back by other means, and undone. Takes root.

mod shared_journal;

use experiment::{
    KNOBS, Knob, KnobTarget, PlannedChange, Setting, UndoOutcome, UndoneChange, identity, knob, missing_right,
};
use machine::scheduling::{
    SchedulingPolicy, ThreadScheduling, cpus, own_thread, scheduling, set_cpus, set_scheduling,
};
use shared_journal::SharedJournal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

/// The longest that a program needs to start.
const LIMIT: Duration = Duration::from_secs(20);

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
        let load = Some(("true {}".to_owned(), "off".to_owned()));
        let device = Some("lo".into());
        let disk = Some("loop0".into());
        KnobTarget { processes, ports: BTreeSet::new(), device, disk, commands, load }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a value that differs from the current one.
fn value(knob: &Knob, other: u32) -> Option<String> {
    match knob.name {
        "demote" => Some(other.to_string()),
        "load" => Some("on".into()),
        // Each group of tasks takes one value in 100 ms, and more from root only.
        "autogroup-nice" => Some("3".into()),
        "io-scheduler" => Some("mq-deadline".into()),
        "queue-depth" => Some("17".into()),
        "pin" => Some("0".into()),
        "rps" | "interrupt-core" if Path::new("/sys/devices/system/cpu/cpu1").exists() => Some("1".into()),
        _ => knob.default.map(str::to_owned),
    }
}

#[test]
fn every_knob_that_there_is_here_is_set_and_undone() {
    let server = Waiting::new();
    let other = Waiting::new();
    let target = server.target();
    let mut set = Vec::new();
    let mut absent = BTreeMap::new();
    // Those of open sockets have tests of their own.
    let is_of_sockets = |knob: &&Knob| ["nodelay", "socket-congestion-control"].contains(&knob.name);
    for knob in KNOBS.iter().filter(|knob| !is_of_sockets(knob)) {
        let value = value(knob, other.0.id());
        if let Some(obstacle) = knob.obstacle(&target, None) {
            absent.insert(knob.name, obstacle.to_string());
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
        // Such a setting is restored only at exit or by a drop.
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
        assert!(journal.is_empty(), "{}", knob.name);
        set.push(knob.name);
    }
    for (knob, obstacle) in absent {
        testkit::skip(&format!("{knob}: {obstacle}"));
    }
    assert!(set.contains(&"nothing") && set.contains(&"command"), "{set:?}");
}

/// The number of the session that a process belongs to: the fourth field after its name.
fn session(process: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
    fields.split(' ').nth(3).unwrap_or_default().to_owned()
}

#[test]
fn processes_of_one_session_have_one_value() {
    let shell = Waiting::start(&["sh", "-c", "cat; :"]);
    let children = format!("/proc/{0}/task/{0}/children", shell.0.id());
    let child = || fs::read_to_string(&children).ok()?.trim().parse().ok();
    testkit::wait_until(LIMIT, "the child of the shell", || child().is_some());
    let processes = [Some(shell.0.id()), child()];
    let processes = processes.map(|id| id.and_then(identity).expect("it runs")).to_vec();
    let target = KnobTarget { processes, ..KnobTarget::default() };
    let autogroup = knob("autogroup-nice").expect("a knob");
    if let Some(obstacle) = autogroup.obstacle(&target, None) {
        return testkit::skip(&obstacle.to_string());
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
    assert!(journal.is_empty());
}

/// Slices are inherited, so this program may have the very slice chosen for the server.
#[test]
fn a_slice_that_this_program_has_too_is_restored() {
    let chooses = || {
        let own = own_thread();
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
        let id = own_thread();
        tell.send(id).expect("somebody waits for it");
        let _ = wait.recv();
    });
    (number.recv().expect("the thread runs"), end)
}

/// Held by tests that change the CPUs of this process: one at a time.
static CPUS_OF_THIS_PROCESS: Mutex<()> = Mutex::new(());

/// Returns the changes that pin this process to CPU 0; `None` if it has only one CPU.
fn pinned_to_the_first() -> Option<Vec<PlannedChange>> {
    let process = identity(std::process::id()).expect("this process runs");
    let target = KnobTarget { processes: vec![process], ..KnobTarget::default() };
    if !cpus(process.id).expect("it runs").is_superset(&BTreeSet::from([0, 1])) {
        testkit::skip("this process does not have CPUs 0 and 1");
        return None;
    }
    knob("pin").and_then(|knob| knob.plan(&target, Some("0")).ok())
}

/// Later threads inherit the setting, so there is no record for each of them.
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
    let (inherits, _end_first) = thread();
    let (differs, _end_second) = thread();
    set_cpus(differs, &before).expect("it is ours");
    assert_eq!([known, inherits].map(|thread| cpus(thread).expect("it runs")), [one.clone(), one.clone()]);
    switch.keep_on().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cpus(differs).expect("it runs"), one);
    journal.kill(switch);
    journal.switch().off();
    for thread in [known, inherits, differs] {
        assert_eq!(cpus(thread).expect("it runs"), before, "thread {thread}");
    }
}

/// A value that no known thread has was set by another program.
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
    switch.keep_on().unwrap_or_else(|error| panic!("{error}"));
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

/// An unused disk, restored afterwards.
struct UnusedDisk {
    name: String,
    scheduler: String,
    requests: String,
}

impl UnusedDisk {
    /// A loop device without a file, with settings that differ from what the kernel would choose.
    fn new() -> io::Result<Self> {
        let is_unused = |name: &String| {
            let disk = format!("/sys/block/{name}");
            Path::new(&disk).exists() && !Path::new(&format!("{disk}/loop")).exists()
        };
        let name = (1..8).rev().map(|number| format!("loop{number}")).find(is_unused);
        let name = name.ok_or_else(|| io::Error::other("there is no unused loop device"))?;
        let queue = |file: &str| fs::read_to_string(format!("/sys/block/{name}/queue/{file}"));
        let chosen = queue("scheduler")?;
        let chosen = chosen.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let scheduler = chosen.map_or("none", |(chosen, _)| chosen).to_owned();
        let requests = queue("nr_requests")?;
        let disk = Self { name, scheduler, requests };
        disk.write("scheduler", "mq-deadline")?;
        disk.write("nr_requests", "32")?;
        disk.write("iosched/fifo_batch", "7")?;
        Ok(disk)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(format!("/sys/block/{}/queue/{file}", self.name)).unwrap_or_default()
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(format!("/sys/block/{}/queue/{file}", self.name), value)
    }

    fn tuned(&self) -> [String; 3] {
        ["scheduler", "nr_requests", "iosched/fifo_batch"].map(|file| self.read(file).trim().to_owned())
    }
}

impl Drop for UnusedDisk {
    fn drop(&mut self) {
        let _ = self.write("scheduler", &self.scheduler);
        let _ = self.write("nr_requests", self.requests.trim());
    }
}

/// Returns an unused disk and the changes that switch off its scheduler; `None` without such a disk.
fn without_scheduler() -> Option<(UnusedDisk, Vec<PlannedChange>)> {
    let disk = match UnusedDisk::new() {
        Ok(disk) => disk,
        Err(error) => {
            testkit::skip(&format!("I/O schedulers: {error}"));
            return None;
        }
    };
    let target = KnobTarget { disk: Some(disk.name.clone()), ..KnobTarget::default() };
    let changes = knob("io-scheduler").and_then(|knob| knob.plan(&target, Some("none")).ok());
    Some((disk, changes.expect("a knob")))
}

/// Held by tests that switch the scheduler of the unused disk: one at a time.
static UNUSED_DISK: Mutex<()> = Mutex::new(());

/// The kernel resets them when the scheduler is switched.
#[test]
fn settings_of_an_io_scheduler_are_restored_with_it() {
    let _alone = UNUSED_DISK.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((disk, changes)) = without_scheduler() else { return };
    let before = disk.tuned();
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    assert_eq!(switch.on(&changes), Ok(Vec::new()), "all is as asked");
    assert!(disk.read("scheduler").contains("[none]"), "{}", disk.read("scheduler"));
    assert_eq!(switch.is_set(&changes), Ok(true));
    journal.kill(switch);
    let undone = journal.switch().off();
    assert!(undone.iter().all(|undone| undone.outcome == UndoOutcome::Restored), "{undone:?}");
    assert_eq!(disk.tuned(), before);
}

#[test]
fn settings_of_an_io_scheduler_that_others_change_are_left_alone() {
    let _alone = UNUSED_DISK.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((disk, changes)) = without_scheduler() else { return };
    let mut switch = SharedJournal::default().switch();
    switch.on(&changes).unwrap_or_else(|error| panic!("{error}"));
    disk.write("nr_requests", "21").expect("it is ours");
    let undone = switch.off();
    let is_named = |undone: &UndoneChange| match &undone.outcome {
        UndoOutcome::LeftAlone(now) => now.contains("none") && now.contains("nr_requests 21"),
        _ => false,
    };
    assert!(undone.iter().any(is_named), "{undone:?}");
    assert_eq!(disk.read("nr_requests").trim(), "21");
}
