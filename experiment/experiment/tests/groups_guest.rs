//! Knobs of control groups of version 2 on a real hierarchy: in a guest with Debian's kernel, set, read back by other means, and
//! undone; and what they do to programs in the groups. Only the order of times and shares is asserted.

mod shared_journal;

use experiment::{KnobTarget, PlannedChange, ProcessIdentity, UndoOutcome, identity, knob, missing_right};
use shared_journal::SharedJournal;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::guest::{
    Guest, GuestCheck, GuestKernel, be_first_program, mount_in_guest, report_figure, run_checks,
};

const HIERARCHY: &str = "/sys/fs/cgroup";
const DISK: &str = "nullb0";
/// A disk that serves each request in ten microseconds and keeps nothing.
const MODULES: [&str; 2] = [
    "fs/configfs/configfs",
    "drivers/block/null_blk/null_blk nr_devices=1 gb=1 bs=4096 queue_mode=2 submit_queues=1 irqmode=2 \
     completion_nsec=10000",
];

/// Checks in the guest, in this order.
const CHECKS: [GuestCheck; 5] = [
    ("what_is_missing_is_said", what_is_missing_is_said),
    ("weights_divide_the_cpu", weights_divide_the_cpu),
    ("limits_hold_writes_back", limits_hold_writes_back),
    ("latency_targets", latency_targets_are_set_or_said_to_be_missing),
    ("a_group_that_is_gone", a_group_that_is_gone_has_nothing_to_undo),
];

#[test]
fn knobs_of_control_groups_in_a_guest() {
    if be_first_program(|| run_checks(&CHECKS)) {
        return;
    }
    let Some(spinning) = testkit::program("yes") else { return };
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel: &GuestKernel::DEBIAN_13,
        cpus: 1,
        program: &program,
        arguments: &["--exact", "knobs_of_control_groups_in_a_guest", "--nocapture"],
        others: &[spinning],
        modules: &MODULES,
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let Some(figures) = guest.play() else { return };
    println!("{figures}");
    figures.expect_passed(&CHECKS);
}

/// A program that never sleeps, in a group of its own below the root.
struct Spinning {
    child: Child,
    group: PathBuf,
}

impl Spinning {
    fn in_group(name: &str) -> Self {
        let group = group(name);
        let child = Command::new("yes").stdout(Stdio::null()).spawn().expect("there is a yes");
        fs::write(group.join("cgroup.procs"), child.id().to_string()).expect("root may");
        Self { child, group }
    }

    fn target(&self) -> KnobTarget {
        about(identity(self.child.id()).expect("it runs"))
    }

    /// CPU time of its group in microseconds.
    fn used_us(&self) -> f64 {
        let text = fs::read_to_string(self.group.join("cpu.stat")).expect("the group is there");
        let used = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
        used.and_then(|used| used.parse().ok()).expect("a number")
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn group(name: &str) -> PathBuf {
    let group = Path::new(HIERARCHY).join(name);
    fs::create_dir_all(&group).expect("root may");
    group
}

fn about(process: ProcessIdentity) -> KnobTarget {
    KnobTarget { processes: vec![process], disk: Some(DISK.to_owned()), ..KnobTarget::default() }
}

/// This process.
fn own() -> KnobTarget {
    about(identity(std::process::id()).expect("it runs"))
}

fn planned(name: &str, target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, String> {
    let planned = knob(name).expect("a knob").plan(target, Some(value));
    planned.map_err(|error| error.to_string())
}

/// The changes of a knob that this machine has.
#[track_caller]
fn changes(name: &str, target: &KnobTarget, value: &str) -> Vec<PlannedChange> {
    let changes = planned(name, target, value).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(missing_right(&changes), None);
    changes
}

/// Makes changes, does something while they are made, and undoes them as the next program does after a kill.
fn while_on(changes: &[PlannedChange], act: impl FnOnce()) {
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    assert_eq!(switch.on(changes), Ok(Vec::new()), "all is as asked");
    assert_eq!(switch.is_set(changes), Ok(true));
    act();
    journal.kill(switch);
    let undone = journal.switch().off();
    assert!(undone.iter().all(|undone| undone.outcome == UndoOutcome::Restored), "{undone:?}");
    assert!(journal.is_empty());
}

fn what_is_missing_is_said() {
    let expect = |name: &str, target: &KnobTarget, value: &str, part: &str| {
        let said = planned(name, target, value).expect_err(part);
        assert!(said.contains(part), "{name}: {said}");
    };
    expect("group-weight", &own(), "200", "no cgroup2 is mounted");
    mount_in_guest("cgroup2", HIERARCHY);
    expect("group-weight", &own(), "200", "expected --pid of a server in a control group");
    let server = Spinning::in_group("missing");
    for (name, value, controller) in
        [("group-weight", "200", "cpu"), ("group-io-max", "wiops=9", "io"), ("group-io-latency", "9ms", "io")]
    {
        let part = format!("controller {controller} is not enabled for control group /missing");
        expect(name, &server.target(), value, &part);
    }
    fs::write(Path::new(HIERARCHY).join("cgroup.subtree_control"), "+cpu +io").expect("root may");
    assert!(planned("group-weight", &server.target(), "200").is_ok());
    expect("group-io-max", &server.target(), "wiops=0", "a number or max");
    let elsewhere = KnobTarget { disk: Some("nodisk".into()), ..server.target() };
    expect("group-io-max", &elsewhere, "wiops=9", "no disk 'nodisk'");
}

/// The share of the CPU of the first of two programs, in a time that is long to the scheduler.
fn share(first: &Spinning, second: &Spinning) -> f64 {
    let before = [first.used_us(), second.used_us()];
    std::thread::sleep(Duration::from_millis(400));
    let used = [first.used_us() - before[0], second.used_us() - before[1]];
    used[0] / (used[0] + used[1])
}

fn weights_divide_the_cpu() {
    let heavy = Spinning::in_group("heavy");
    let light = Spinning::in_group("light");
    let weight = || fs::read_to_string(heavy.group.join("cpu.weight")).expect("it is there");
    let alike = share(&heavy, &light);
    report_figure("share_alike", alike);
    assert!((0.3..0.7).contains(&alike), "{alike}");
    while_on(&changes("group-weight", &heavy.target(), "1000"), || {
        assert_eq!(weight(), "1000\n");
        let more = share(&heavy, &light);
        report_figure("share_heavy", more);
        assert!(more > 0.75, "{more}");
    });
    assert_eq!(weight(), "100\n");
    let again = share(&heavy, &light);
    report_figure("share_again", again);
    assert!((0.3..0.7).contains(&again), "{again}");
}

/// Returns the time of writing some blocks to the disk in sequence, bypassing the cache.
fn writing() -> Duration {
    const BLOCK: usize = 4096;
    const O_DIRECT: i32 = 0o40_000;
    let mut options = OpenOptions::new();
    let disk = options.write(true).custom_flags(O_DIRECT).open(Path::new("/dev").join(DISK));
    let disk = disk.expect("there is a disk");
    let buffer = vec![7; 2 * BLOCK];
    let offset = buffer.as_ptr().align_offset(BLOCK);
    let begun = Instant::now();
    for number in 0..20 {
        disk.write_all_at(&buffer[offset..offset + BLOCK], number * BLOCK as u64).expect("it takes all");
    }
    begun.elapsed()
}

fn limits_hold_writes_back() {
    let group = group("server");
    fs::write(group.join("cgroup.procs"), std::process::id().to_string()).expect("root may");
    let device = fs::read_to_string(format!("/sys/block/{DISK}/dev")).expect("it is there");
    let device = device.trim();
    let limits = || fs::read_to_string(group.join("io.max")).expect("it is there");
    assert_eq!(limits(), "");
    let free = writing();
    while_on(&changes("group-io-max", &own(), "wiops=20+rbps=1048576"), || {
        assert_eq!(limits(), format!("{device} rbps=1048576 wbps=max riops=max wiops=20\n"));
        let limited = writing();
        report_figure("write_free_us", free.as_micros());
        report_figure("write_limited_us", limited.as_micros());
        assert!(limited > 5 * free, "{free:?} {limited:?}");
    });
    assert_eq!(limits(), "", "the line is gone");
    // A limit set by another program stays, and is restored.
    fs::write(group.join("io.max"), format!("{device} riops=77")).expect("root may");
    let others = format!("{device} rbps=max wbps=max riops=77 wiops=max\n");
    assert_eq!(limits(), others);
    while_on(&changes("group-io-max", &own(), "wbps=2097152"), || {
        assert_eq!(limits(), format!("{device} rbps=max wbps=2097152 riops=77 wiops=max\n"));
    });
    assert_eq!(limits(), others);
    let freed = writing();
    report_figure("write_freed_us", freed.as_micros());
    assert!(freed < Duration::from_millis(200), "{freed:?}");
}

/// The kernel may be built without it (CONFIG_BLK_CGROUP_IOLATENCY).
fn latency_targets_are_set_or_said_to_be_missing() {
    let file = group("server").join("io.latency");
    report_figure("has_io_latency", file.exists());
    if !file.exists() {
        let said = planned("group-io-latency", &own(), "5ms").expect_err("there is no such file");
        assert!(said.contains("the kernel has no io.latency for control groups of version 2"), "{said}");
        return;
    }
    let targets = || fs::read_to_string(&file).expect("it is there");
    let before = targets();
    while_on(&changes("group-io-latency", &own(), "5ms"), || {
        assert!(targets().ends_with(" target=5000\n"), "{}", targets());
    });
    assert_eq!(targets(), before);
}

fn a_group_that_is_gone_has_nothing_to_undo() {
    let server = Spinning::in_group("ending");
    let both = ["group-weight", "group-io-max"].map(|name| {
        let value = if name == "group-weight" { "300" } else { "wiops=30" };
        changes(name, &server.target(), value)
    });
    let journal = SharedJournal::default();
    let mut switch = journal.switch();
    assert_eq!(switch.on(&both.concat()), Ok(Vec::new()));
    journal.kill(switch);
    let group = server.group.clone();
    drop(server);
    // The kernel lets a group go soon after its last process.
    testkit::wait_until(Duration::from_secs(20), "the group can be removed", || {
        fs::remove_dir(&group).is_ok()
    });
    let undone = journal.switch().off();
    assert_eq!(undone.len(), 2);
    assert!(undone.iter().all(|undone| undone.outcome == UndoOutcome::Gone), "{undone:?}");
    assert!(journal.is_empty());
}
