//! The journal on a machine that fails: crashes between any two steps, records that are cut off, full
//! disks, settings that refuse, processes that end, and other programs that change the same settings. In
//! every case, nothing stays set without a record of it, and undo restores everything from the record.

use experiment::{
    FileForm, Journal, JournalFile, KnobSwitch, NetworkNamespace, OFF, ON, PlannedChange, ServerSockets,
    Setting, SettingStore, SocketOption, SocketsTakenBack, UndoOutcome, UndoneChange,
};
use model::OperationError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// Those that have a value of their own, and one of open sockets.
const SETTINGS: usize = 5;
const ALL_SETTINGS: usize = SETTINGS + 1;

/// State that survives a crash, and the time of the crash.
#[derive(Debug)]
struct Machine {
    values: BTreeMap<Setting, String>,
    disk: Vec<u8>,
    /// Steps until the crash.
    steps_left: usize,
    /// A part of a record stands at the end of the file and could not be removed.
    is_torn: bool,
    refuses: f64,
    /// Probability that a setting takes another value than the one written.
    distorts: f64,
    is_full: f64,
    /// Probability that the file cannot be emptied.
    keeps: f64,
    /// Probability that the file is emptied, and a crash before the next record brings its records back.
    unsynced: f64,
    /// Records that a crash brings back.
    before_clear: Option<Vec<u8>>,
    random: StdRng,
}

#[derive(Debug, Clone)]
struct Shared(Rc<RefCell<Machine>>);

fn setting(index: usize) -> Setting {
    if index == 0 {
        return Setting::Command { apply: "on".into(), undo: "off".into() };
    }
    if index == SETTINGS - 1 {
        return Setting::IoScheduler { queue: PathBuf::from("/queue") };
    }
    Setting::KernelFile { path: PathBuf::from(format!("/{index}")), form: FileForm::Text, process: None }
}

/// Open sockets, whose old values are kept with them; reduced here to a flag: unchanged or not.
fn sockets() -> Setting {
    let namespace = NetworkNamespace { device: 4, inode: 5 };
    let folder = PathBuf::from("/records");
    let sockets =
        ServerSockets { option: SocketOption::NoDelay, ports: vec![80], namespace, folder, device: None };
    Setting::Sockets { sockets, value: "on".into() }
}

fn original() -> BTreeMap<Setting, String> {
    let value = |index: usize| if index == 0 { OFF.to_owned() } else { format!("before {index}") };
    let readable = (0..SETTINGS).map(|index| (setting(index), value(index)));
    readable.chain([(sockets(), OFF.to_owned())]).collect()
}

fn changes() -> Vec<PlannedChange> {
    let value = |index: usize| if index == 0 { ON.to_owned() } else { format!("after {index}") };
    let others = (0..SETTINGS).map(|index| PlannedChange { setting: setting(index), value: value(index) });
    others.chain([PlannedChange { setting: sockets(), value: ON.to_owned() }]).collect()
}

impl Machine {
    /// Takes a step. Returns true if the machine still runs.
    fn step(&mut self) -> bool {
        let runs = self.steps_left > 0;
        self.steps_left = self.steps_left.saturating_sub(1);
        runs
    }

    /// The last step before the crash may be done in part.
    fn is_last_step(&self) -> bool {
        self.steps_left == 0
    }
}

impl SettingStore for Shared {
    fn read(&mut self, setting: &Setting) -> Result<Option<String>, OperationError> {
        let mut machine = self.0.borrow_mut();
        if machine.step() {
            Ok(machine.values.get(setting).cloned())
        } else {
            Err(OperationError::machine("crashed"))
        }
    }

    fn write(&mut self, setting: &Setting, value: &str) -> Result<(), OperationError> {
        let mut machine = self.0.borrow_mut();
        if !machine.step() {
            return Err(OperationError::machine("crashed"));
        }
        let refuses = machine.refuses;
        let is_refused = machine.random.random_bool(refuses);
        let is_lost = machine.is_last_step() && machine.random.random_bool(0.5);
        if is_refused {
            return Err(OperationError::machine("refused"));
        }
        // It is written in several steps. Without room for the record that says so, a crash between them is not noticed.
        let is_half =
            matches!(setting, Setting::IoScheduler { .. }) && machine.is_last_step() && !machine.is_torn;
        let distorts = machine.distorts;
        // A wrong value of an unreadable setting cannot be detected.
        let is_distorted = machine.random.random_bool(distorts) && setting.is_readable() || is_half;
        if let (false, Some(now)) = (is_lost, machine.values.get_mut(setting)) {
            *now = if is_distorted { format!("nearly {value}") } else { value.to_owned() };
        }
        Ok(())
    }

    fn take_back_from_sockets(&mut self, taken: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        let mut machine = self.0.borrow_mut();
        let refuses = machine.refuses;
        if !machine.step() || machine.random.random_bool(refuses) {
            return Err(OperationError::machine("crashed or refused"));
        }
        // A crash during the undo leaves some sockets as they are, with their records.
        if machine.is_last_step() && machine.random.random_bool(0.5) {
            return Err(OperationError::machine("crashed"));
        }
        let value = machine.values.get_mut(&sockets());
        let value =
            value.filter(|_| Setting::Sockets { sockets: taken.clone(), value: "on".into() } == sockets());
        let before = value.map(|value| std::mem::replace(value, OFF.to_owned()));
        let connected = u64::from(before.is_some_and(|before| before == ON));
        Ok(SocketsTakenBack { connected, ..SocketsTakenBack::default() })
    }
}

impl JournalFile for Shared {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut machine = self.0.borrow_mut();
        if !machine.step() || machine.is_torn {
            return Err(io::ErrorKind::Other.into());
        }
        let is_full = machine.is_full;
        let is_full = machine.random.random_bool(is_full);
        if is_full || machine.is_last_step() {
            let written = machine.random.random_range(0..bytes.len());
            machine.disk.extend_from_slice(&bytes[..written]);
            machine.is_torn = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        machine.disk.extend_from_slice(bytes);
        // Syncing the record has synced the length that the file had before.
        machine.before_clear = None;
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        let mut machine = self.0.borrow_mut();
        if !machine.step() {
            return Err(io::ErrorKind::Other.into());
        }
        let keeps = machine.keeps;
        let unsynced = machine.unsynced;
        if machine.random.random_bool(keeps) {
            return Err(io::ErrorKind::Other.into());
        }
        let records = std::mem::take(&mut machine.disk);
        machine.before_clear = machine.random.random_bool(unsynced).then_some(records);
        machine.is_torn = false;
        Ok(())
    }
}

fn machine(seed: u64, steps: usize) -> Shared {
    Shared(Rc::new(RefCell::new(Machine {
        values: original(),
        disk: Vec::new(),
        steps_left: steps,
        is_torn: false,
        refuses: 0.0,
        distorts: 0.0,
        is_full: 0.0,
        keeps: 0.0,
        unsynced: 0.0,
        before_clear: None,
        random: StdRng::seed_from_u64(seed),
    })))
}

/// Starts a program from the journal on disk; like the real one, it removes an incomplete last line.
fn program(machine: &Shared) -> KnobSwitch<Shared, Shared> {
    let mut about = machine.0.borrow_mut();
    let complete = about.disk.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    about.disk.truncate(complete);
    about.is_torn = false;
    let journal = Journal::parse(&about.disk).expect("what is complete is a journal");
    drop(about);
    KnobSwitch::new(machine.clone(), machine.clone(), journal, "boot")
}

/// Periods on and off, until the end or the crash; the number of steps that they take.
fn play(machine: &Shared, periods: usize) {
    let mut switch = program(machine);
    for _ in 0..periods {
        let _ = switch.on(&changes());
        switch.off();
    }
}

/// Everything that is not as it was has a record.
fn check_records(machine: &Shared, what: &str) {
    let about = machine.0.borrow();
    let complete = about.disk.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let journal = Journal::parse(&about.disk[..complete]).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (setting, value) in original() {
        let is_recorded = journal.changes().iter().any(|change| change.setting == setting);
        assert!(is_recorded || about.values[&setting] == value, "{what}: {setting} has no record");
    }
}

/// Undoes as often as it takes when undoing itself crashes after a few steps.
fn recover(machine: &Shared, what: &str) {
    for steps in 0.. {
        machine.0.borrow_mut().steps_left = steps;
        program(machine).off();
        check_records(machine, what);
        if machine.0.borrow().steps_left > 0 {
            break;
        }
    }
    machine.0.borrow_mut().steps_left = usize::MAX;
    program(machine).off();
    let about = machine.0.borrow();
    assert_eq!(about.values, original(), "{what}");
    assert!(about.disk.is_empty(), "{what}");
}

#[test]
fn a_crash_at_any_step_leaves_nothing_behind() {
    let whole = machine(0, usize::MAX);
    play(&whole, 2);
    let steps = usize::MAX - whole.0.borrow().steps_left;
    assert!(steps > 40 && whole.0.borrow().values == original(), "{steps}");
    for seed in 0..20 {
        for crash in 0..=steps {
            let machine = machine(seed, crash);
            play(&machine, 2);
            let what = format!("seed {seed}, crash after {crash} steps");
            check_records(&machine, &what);
            recover(&machine, &what);
        }
    }
}

#[test]
fn full_disks_and_settings_that_refuse_leave_nothing_behind() {
    for seed in 0..2000 {
        let machine = machine(seed, usize::MAX);
        machine.0.borrow_mut().is_full = 0.1;
        machine.0.borrow_mut().refuses = 0.1;
        machine.0.borrow_mut().keeps = 0.1;
        machine.0.borrow_mut().unsynced = 0.3;
        let crash = machine.0.borrow_mut().random.random_range(1..120);
        machine.0.borrow_mut().steps_left = crash;
        play(&machine, 3);
        let what = format!("seed {seed}");
        let before_clear = machine.0.borrow_mut().before_clear.take();
        if let Some(records) = before_clear.filter(|_| seed % 2 == 0) {
            machine.0.borrow_mut().disk = records;
        }
        check_records(&machine, &what);
        machine.0.borrow_mut().is_full = 0.0;
        machine.0.borrow_mut().refuses = 0.0;
        machine.0.borrow_mut().keeps = 0.0;
        machine.0.borrow_mut().unsynced = 0.0;
        recover(&machine, &what);
    }
}

#[test]
fn settings_that_become_something_else_leave_nothing_behind() {
    for seed in 0..2000 {
        let machine = machine(seed, usize::MAX);
        machine.0.borrow_mut().distorts = 0.2;
        let crash = machine.0.borrow_mut().random.random_range(1..160);
        machine.0.borrow_mut().steps_left = crash;
        play(&machine, 3);
        let what = format!("seed {seed}");
        check_records(&machine, &what);
        machine.0.borrow_mut().distorts = 0.0;
        recover(&machine, &what);
    }
}

#[test]
fn what_a_failed_attempt_to_restore_has_left_is_not_somebody_elses() {
    let machine = machine(5, usize::MAX);
    let mut switch = program(&machine);
    switch.on(&changes()).unwrap_or_else(|error| panic!("{error}"));
    machine.0.borrow_mut().distorts = 1.0;
    for _ in 0..2 {
        for undone in switch.off().iter().filter(|undone| undone.change.setting.is_readable()) {
            assert!(matches!(undone.outcome, UndoOutcome::Failed(_)), "{undone:?}");
        }
    }
    machine.0.borrow_mut().values.insert(setting(1), "somebody else's".into());
    let undone = switch.off();
    let is_first = |undone: &&UndoneChange| undone.change.setting == setting(1);
    let first = undone.iter().find(is_first).map(|undone| &undone.outcome);
    assert_eq!(first, Some(&UndoOutcome::LeftAlone("somebody else's".into())));
    machine.0.borrow_mut().values.insert(setting(1), "before 1".into());
    drop(switch);
    machine.0.borrow_mut().distorts = 0.0;
    recover(&machine, "after both attempts");
}

#[test]
fn without_room_for_a_record_nothing_is_changed() {
    let machine = machine(1, usize::MAX);
    machine.0.borrow_mut().is_full = 1.0;
    let error = program(&machine).on(&changes()).expect_err("there is no room");
    assert!(error.message.contains("the journal cannot be written"), "{error}");
    assert_eq!(machine.0.borrow().values, original());
}

#[test]
fn what_others_change_or_end_is_left_alone() {
    for changed in 1..SETTINGS {
        let machine = machine(2, usize::MAX);
        let mut switch = program(&machine);
        switch.on(&changes()).unwrap_or_else(|error| panic!("{error}"));
        machine.0.borrow_mut().values.insert(setting(changed), "somebody else's".into());
        let gone = changed % (SETTINGS - 1) + 1;
        machine.0.borrow_mut().values.remove(&setting(gone));
        for undone in switch.off() {
            let expected = match undone.change.setting {
                one if one == setting(changed) => UndoOutcome::LeftAlone("somebody else's".into()),
                one if one == setting(gone) => UndoOutcome::Gone,
                Setting::Sockets { .. } => UndoOutcome::SocketsTakenBack(SocketsTakenBack {
                    connected: 1,
                    ..SocketsTakenBack::default()
                }),
                _ => UndoOutcome::Restored,
            };
            assert_eq!(undone.outcome, expected);
        }
        let mut expected = original();
        expected.insert(setting(changed), "somebody else's".into());
        expected.remove(&setting(gone));
        assert_eq!(machine.0.borrow().values, expected);
        assert!(switch.is_off() && machine.0.borrow().disk.is_empty());
    }
}

#[test]
fn another_boot_has_nothing_to_undo() {
    let machine = machine(3, usize::MAX);
    let mut switch = program(&machine);
    switch.on(&changes()).unwrap_or_else(|error| panic!("{error}"));
    machine.0.borrow_mut().steps_left = 0;
    drop(switch);
    machine.0.borrow_mut().steps_left = usize::MAX;
    let journal = Journal::parse(&machine.0.borrow().disk).unwrap_or_else(|error| panic!("{error}"));
    let before = machine.0.borrow().values.clone();
    let undone = KnobSwitch::new(machine.clone(), machine.clone(), journal, "another boot").off();
    assert!(undone.len() == ALL_SETTINGS && undone.iter().all(|undone| undone.outcome == UndoOutcome::Gone));
    assert!(machine.0.borrow().values == before && machine.0.borrow().disk.is_empty());
}

#[test]
fn undoing_twice_changes_nothing() {
    let machine = machine(4, usize::MAX);
    let mut switch = program(&machine);
    switch.on(&changes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(switch.is_set(&changes()[1..]), Ok(true));
    assert_eq!(switch.off().len(), ALL_SETTINGS);
    assert!(switch.off().is_empty());
    assert_eq!((switch.is_set(&changes()[1..]), machine.0.borrow().values.clone()), (Ok(false), original()));
}
