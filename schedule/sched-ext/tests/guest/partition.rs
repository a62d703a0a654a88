//! Reserved CPUs for the scheduled threads, and for no others.

use crate::play::{Spinners, now};
use crate::{PARTITION, c_program, ending, request};
use machine::scheduling::{is_extensible, set_cpus};
use sched_ext::{AttachRequest, CpuList, CpuPartition, KernelScheduler, QueueLayout, ScheduledThreads};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};
use testkit::guest::{mount_in_guest, report_figure};

const ROOT: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/tailwright";
const PROCESSES: &str = "/sys/fs/cgroup/tailwright/cgroup.procs";

pub(crate) fn have_groups() {
    if !Path::new(ROOT).join("cgroup.procs").exists() {
        mount_in_guest("cgroup2", ROOT);
    }
}

fn cpus(text: &str) -> CpuList {
    text.parse().expect("a list of CPUs")
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Returns true if this thread, which is in no partition, may run on a CPU.
fn may_run_on(cpu: usize) -> bool {
    let may = set_cpus(own_thread(), &BTreeSet::from([cpu])).is_ok();
    crate::play::keep_to(&[0]);
    may
}

fn policy_is_extensible(child: &Child) -> bool {
    is_extensible(child.id()).expect("it runs")
}

/// Returns the latest messages of the kernel, to explain failures.
pub(crate) fn said_by_kernel() -> String {
    let mut text = String::new();
    let Ok(log) = rustix::fs::open(
        "/dev/kmsg",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK,
        rustix::fs::Mode::empty(),
    ) else {
        return text;
    };
    let mut line = [0; 8192];
    while let Ok(length) = rustix::io::read(&log, &mut line) {
        text.push_str(&String::from_utf8_lossy(&line[..length]));
    }
    text.lines()
        .filter(|line| line.contains("sched_ext") || line.contains("cpuset"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn attached() -> KernelScheduler {
    let request = AttachRequest { threads: ScheduledThreads::Extensible, ..request(QueueLayout::PerCpu, 1) };
    KernelScheduler::attach(&request).unwrap_or_else(|error| panic!("{error:?}: {}", said_by_kernel()))
}

/// Starts a program that joins the group and works for a request with this start.
fn member(start: u64, until: u64) -> Child {
    c_program::started(&[&"joins", &PROCESSES, &"spin", &1, &start, &0, &0, &until])
}

pub(crate) fn only_threads_of_the_partition_are_scheduled() {
    have_groups();
    assert!(may_run_on(1));
    let refused = CpuPartition::take(&cpus("0-2")).expect_err("somebody must have a CPU").to_string();
    assert!(refused.contains("does not give the CPUs"), "{refused}");
    assert!(!Path::new(GROUP).exists(), "nothing stays");
    let mut partition = CpuPartition::take(&cpus("1")).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(!may_run_on(1) && may_run_on(2));
    let scheduler = attached();
    let outside = Spinners::start(2, &[0, 0]);

    let until = now() + 2_000_000_000;
    let members = [member(1000, until), member(2000, until)];
    while now() < until - 1_000_000_000 {
        partition.switch_threads();
        thread::sleep(Duration::from_millis(20));
    }
    assert!(members.iter().all(policy_is_extensible));
    assert!(!is_extensible(own_thread()).expect("it runs"));
    let before = outside.spent();
    let begun = Instant::now();
    let [earlier, later] = members.map(|child| c_program::printed(child)[0]);
    let gained: u64 = before.iter().zip(outside.spent()).map(|(before, after)| after - before).sum();
    let elapsed = begun.elapsed();
    let statistics = scheduler.control().statistics();
    report_figure("partition_earlier_share", earlier / (earlier + later));
    report_figure("partition_outside_share", gained as f64 / 1e9 / elapsed.as_secs_f64());
    outside.stop();
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
    assert_eq!(partition.give_back(), Ok(0));

    assert!(earlier / (earlier + later) > 0.75, "{earlier} {later}");
    assert!(gained as f64 / 1e9 > 0.5 * elapsed.as_secs_f64(), "{gained} in {elapsed:?}");
    assert!(statistics.tagged_ns > 500_000_000, "{statistics:?}");
    assert!(!Path::new(GROUP).exists() && may_run_on(1));
    let controllers = std::fs::read_to_string(Path::new(ROOT).join("cgroup.subtree_control"));
    assert_eq!(controllers.expect("it is there").trim(), "", "as it was before");
}

/// The kernel takes the threads back; the CPUs stay with the group until the next program returns them.
pub(crate) fn what_a_killed_program_leaves_is_taken_over() {
    have_groups();
    let mut command = ending::again();
    command.env(PARTITION, "1");
    let mut program = ending::enabled(command);
    let until = now() + 4_000_000_000;
    let member = member(1000, until);
    let begun = Instant::now();
    while !policy_is_extensible(&member) {
        assert!(begun.elapsed() < Duration::from_secs(2), "what joins is scheduled");
        thread::sleep(Duration::from_millis(20));
    }
    program.kill().expect("it is ours");
    program.wait().expect("it ends");
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
    assert!(Path::new(GROUP).exists() && !may_run_on(1));

    let partition = CpuPartition::take(&cpus("1")).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(policy_is_extensible(&member), "by name: nobody schedules it");
    assert_eq!(partition.give_back(), Ok(1), "the member stays");
    assert!(!policy_is_extensible(&member) && may_run_on(1));
    let spent_ns = c_program::printed(member)[0];
    assert!(spent_ns > 1e9, "it had its CPU all the time: {spent_ns}");
    std::fs::remove_dir(GROUP).expect("it is empty");
}
