//! Only the threads of one control group: which are switched, which are not, and what stays when it ends.

use crate::ending;
use crate::play::{keep_to, spend};
use crate::{CGROUP, OLDEST, request};
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, cpus, scheduling, set_cpus, set_scheduling};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tailwright_sched_ext::{AttachRequest, KernelScheduler, QueueLayout};

const GROUPS: &str = "/sys/fs/cgroup";
const OWN_CPU: usize = 2;

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap_or_else(|error| panic!("{} {text}: {error}", file.display()));
}

fn mounted() -> PathBuf {
    fs::create_dir_all(GROUPS).ok();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("cgroup2", GROUPS, "cgroup2", flags, None).expect("the kernel has control groups");
    write(&Path::new(GROUPS).join("cgroup.subtree_control"), "+cpuset");
    let group = Path::new(GROUPS).join("service");
    fs::create_dir(&group).expect("it is root's");
    group
}

fn refused(group: &Path) -> String {
    let request = AttachRequest { cgroup: Some(group.to_owned()), ..request(QueueLayout::PerCpu, 1) };
    let refused = KernelScheduler::attach(&request).expect_err("it has no CPUs of its own").to_string();
    assert_eq!(tailwright_sched_ext::state().as_deref(), Some("disabled"));
    refused
}

fn scheduler(group: &Path) -> Child {
    let mut command = ending::again();
    command.env(CGROUP, group).env(OLDEST, "1");
    ending::enabled(command)
}

/// A process that works for this request on any CPU that it may use.
fn worker(key: u64) -> Child {
    let mut command = Command::new("/init");
    command.args(["--exact", "members::a_worker_until_killed", "--nocapture"]).stdin(Stdio::null());
    command.env(KEY, key.to_string()).stdout(Stdio::null()).spawn().expect("it starts")
}

/// How a thread may have been scheduled before.
const BATCH: ThreadScheduling = ThreadScheduling {
    policy: SchedulingPolicy::Batch,
    nice: 5,
    priority: 0,
    slice_ns: 0,
    resets_on_fork: false,
};

const KEY: &str = "WORKER_KEY";

/// Nothing but in a guest, where the other test begins this program once more.
#[test]
fn a_worker_until_killed() {
    let Some(key) = std::env::var(KEY).ok().and_then(|key| key.parse().ok()) else { return };
    loop {
        sched_hint::tag_current(key);
        spend(200_000);
    }
}

/// The threads of a process and how each is scheduled.
fn policies(process: &Child) -> BTreeSet<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).expect("it runs");
    let numbers = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .map(|thread| scheduling(thread).expect("it runs").policy)
        .map(|policy| format!("{policy:?}"))
        .collect()
}

fn expect_policies(process: &Child, expected: &str) {
    let begun = Instant::now();
    while policies(process) != BTreeSet::from([expected.to_owned()]) {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}, expected {expected}", policies(process));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn expect_all(processes: [&Child; 2], expected: &str) {
    processes.into_iter().for_each(|process| expect_policies(process, expected));
}

/// CPU time of processes, as the kernel counts it, in this time, as shares of all.
fn shares(processes: &[&Child]) -> Vec<f64> {
    let spent = || -> Vec<f64> {
        let of = |process: &&Child| {
            let threads = fs::read_dir(format!("/proc/{}/task", process.id())).expect("it runs");
            let text =
                threads.filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("schedstat")).ok());
            text.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum()
        };
        processes.iter().map(of).collect()
    };
    let before = spent();
    std::thread::sleep(Duration::from_millis(700));
    let gained: Vec<f64> = before.iter().zip(spent()).map(|(before, after)| after - before).collect();
    let all = gained.iter().sum::<f64>().max(1.0);
    gained.iter().map(|gained| gained / all).collect()
}

fn join(group: &Path, process: &Child) {
    write(&group.join("cgroup.procs"), &process.id().to_string());
}

fn end(mut process: Child) {
    process.kill().expect("it is ours");
    process.wait().expect("it ends");
}

/// Every thread of other groups, this process included, may not run on the group's CPU, whoever asks for it.
fn expect_own_cpu(outside: &Child) {
    let only: BTreeSet<usize> = [OWN_CPU].into();
    assert!(set_cpus(outside.id(), &only).is_err(), "the CPU is the group's own");
    assert!(!cpus(outside.id()).expect("it runs").contains(&OWN_CPU));
}

pub(crate) fn only_threads_of_a_control_group() {
    let group = mounted();
    assert!(refused(&group).contains("has no CPUs of its own"));
    assert!(refused(Path::new(GROUPS)).contains("no control group with a cpuset"));
    assert!(refused(Path::new("/tmp")).contains("no control group with a cpuset"));
    write(&group.join("cpuset.cpus"), &OWN_CPU.to_string());
    write(&group.join("cpuset.cpus.partition"), "root");
    keep_to(&[0]);
    let [first, second, outside] = [1, 2, 3].map(worker);
    join(&group, &first);
    let mut program = scheduler(&group);
    expect_policies(&first, "Ext");
    // One that comes later is taken, too; one outside is left alone, and what it asks for is undone.
    join(&group, &second);
    expect_policies(&second, "Ext");
    expect_own_cpu(&outside);
    let ext = ThreadScheduling { policy: SchedulingPolicy::Ext, ..ThreadScheduling::ordinary(0) };
    set_scheduling(outside.id(), &ext).expect("any thread may ask for it");
    expect_policies(&outside, "Other");
    set_scheduling(std::process::id(), &ThreadScheduling::ordinary(0)).expect("it is ours");
    let begun = Instant::now();
    while shares(&[&first, &second])[0] < 0.8 {
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", shares(&[&first, &second]));
    }
    killed_and_begun_again(&group, &mut program, [&first, &second]);
    left_and_lost(&group, program, [&first, &second]);
    for process in [first, second, outside] {
        end(process);
    }
}

/// After a kill the kernel schedules all as ordinary threads; after SIGINT they are what they were.
fn killed_and_begun_again(group: &Path, program: &mut Child, members: [&Child; 2]) {
    program.kill().expect("it is ours");
    program.wait().expect("it ends");
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
    let alike = shares(&members);
    assert!(alike.iter().all(|share| *share > 0.2), "{alike:?}");
    *program = scheduler(group);
    let number = rustix::process::Pid::from_child(program);
    rustix::process::kill_process(number, rustix::process::Signal::INT).expect("it is ours");
    assert_eq!(program.wait().expect("it ends").code(), Some(0));
    expect_all(members, "Other");
    set_scheduling(members[1].id(), &BATCH).expect("it is ours");
    *program = scheduler(group);
    expect_all(members, "Ext");
}

/// A thread that leaves the group is an ordinary one. A group without CPUs of its own is not scheduled any longer.
fn left_and_lost(group: &Path, program: Child, members: [&Child; 2]) {
    join(Path::new(GROUPS), members[1]);
    let begun = Instant::now();
    while scheduling(members[1].id()).expect("it runs") != BATCH {
        assert!(begun.elapsed() < Duration::from_secs(5), "a thread is again what it was");
    }
    write(&group.join("cpuset.cpus.partition"), "member");
    let output = program.wait_with_output().expect("it is ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("has no CPUs of its own"), "{said}");
    assert_eq!(tailwright_sched_ext::state().as_deref(), Some("disabled"));
    expect_policies(members[0], "Other");
}
