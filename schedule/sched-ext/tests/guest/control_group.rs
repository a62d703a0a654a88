//! The threads of a control group by age, and all others with fair shares.

use crate::play::{Spinners, now, play, requests};
use crate::starvation::{Between, EndlessThread, endless};
use crate::{CONTROL_GROUP, c_program, ending, partition, promises, request};
use sched_ext::replay::replay;
use sched_ext::{
    AttachRequest, ControlGroup, KernelScheduler, OldestFirstSettings, QueueLayout, ScheduledThreads,
};
use sched_hint::{DEFAULT_FOLDER, SlotArray};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use testkit::guest::report_figure;

const SERVICE: &str = "/sys/fs/cgroup/service";
const OTHER: &str = "/sys/fs/cgroup/other";
const EVERYBODY: &str = "/sys/fs/cgroup/cgroup.procs";

fn processes(group: &str) -> String {
    format!("{group}/cgroup.procs")
}

fn have(group: &str) {
    partition::have_groups();
    fs::create_dir_all(group).expect("groups can be made");
}

fn of_service() -> AttachRequest {
    have(SERVICE);
    let group = ControlGroup::open(Path::new(SERVICE), 500).expect("it is there");
    AttachRequest { threads: ScheduledThreads::Group(group), ..request(QueueLayout::PerCpu, 1) }
}

fn attached(request: &AttachRequest) -> KernelScheduler {
    KernelScheduler::attach(request)
        .unwrap_or_else(|error| panic!("{error:?}: {}", partition::said_by_kernel()))
}

fn detach(scheduler: KernelScheduler) {
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
}

/// Returns a command of this program that runs a scheduler of this group until SIGINT.
fn program_for(group: &str) -> Command {
    have(group);
    let mut command = ending::again();
    command.env(CONTROL_GROUP, group).stderr(Stdio::piped());
    command
}

/// Starts such a program, and waits until it schedules: the scheduler above the group is attached first.
fn scheduler_of(group: &str) -> Child {
    let program = ending::enabled(program_for(group));
    promises::expect_found(Instant::now());
    program
}

/// Returns the error message of such a program that cannot start.
fn refused(group: &str) -> String {
    let output = program_for(group).output().expect("it starts");
    assert_eq!(output.status.code(), Some(3));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a member of a group that works on a CPU for a request with this start.
fn member(group: &str, start: u64, until: u64) -> Child {
    c_program::started(&[&"joins", &processes(group), &"spin", &1, &start, &0, &0, &until])
}

fn in_seconds(seconds: f64) -> u64 {
    now() + u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).expect("it is short")
}

/// Waits actively: after a long sleep a guest with idle CPUs may wake late under any scheduler.
fn rest(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the CPU time of the older of two requests of the group, as a share of both.
fn share_of_older(group: &str, until: u64) -> f64 {
    let members = [member(group, 1000, until), member(group, 2000, until)];
    let [older, younger] = members.map(|child| c_program::printed(child)[0]);
    older / (older + younger)
}

pub(crate) fn the_group_is_ordered_and_others_have_their_share() {
    partition::have_groups();
    let all = ControlGroup::open(Path::new("/sys/fs/cgroup"), 500).expect_err("it is no group among others");
    assert!(all.to_string().contains("the group with all processes"), "{all}");
    let scheduler = attached(&of_service());
    // One of them claims a request older than any in the group, which has no effect.
    let outside = Spinners::start(1, &[0, 1]);
    let until = in_seconds(2.5);
    let measured = thread::spawn(move || share_of_older(SERVICE, until));
    rest(Duration::from_millis(700));
    let before = outside.spent();
    let begun = Instant::now();
    rest(Duration::from_nanos(until - now()));
    let gained: Vec<u64> = before.iter().zip(outside.spent()).map(|(before, after)| after - before).collect();
    let share = gained.iter().sum::<u64>() as f64 / begun.elapsed().as_nanos() as f64;
    let older = measured.join().expect("it measures");
    // Without the group's threads, others get all the time.
    let alone = outside.spent();
    rest(Duration::from_millis(500));
    let alone: u64 = alone.iter().zip(outside.spent()).map(|(before, after)| after - before).sum();
    outside.stop();
    let verdict = replay(&scheduler.events());
    let statistics = scheduler.control().statistics();
    let outside_time = scheduler.outside_time().expect("it has one above it");
    report_figure("group_older_share", older);
    report_figure("group_outside_share", share);
    report_figure("group_choices", verdict.choices);
    detach(scheduler);
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");

    assert!(older > 0.75, "{older}");
    assert!((0.4..0.6).contains(&share), "{share}");
    let least = *gained.iter().min().expect("two") as f64 / gained.iter().sum::<u64>() as f64;
    assert!(least > 0.4, "{gained:?}");
    assert!(alone > 400_000_000, "{alone}");
    assert!(verdict.choices > 100 && verdict.wrong.is_empty(), "{:?}", verdict.wrong);
    assert!(statistics.tagged_ns > 500_000_000, "{statistics:?}");
    assert!(outside_time > Duration::from_secs(1), "{outside_time:?}");
}

/// The younger of two requests gets next to nothing in the group, and half of the CPU while its program
/// is outside.
pub(crate) fn threads_that_join_are_ordered_until_they_leave() {
    let scheduler = attached(&of_service());
    let array = SlotArray::open(DEFAULT_FOLDER.as_ref()).expect("the folder is ours").expect("one schedules");
    let before = array.taken();
    let until = in_seconds(4.0);
    let older = member(SERVICE, 1000, until);
    let younger = member(SERVICE, 2000, until);
    let go_to = |place: &str| fs::write(place, younger.id().to_string()).expect("it is root's");
    rest(Duration::from_millis(1000));
    let left = now();
    go_to(EVERYBODY);
    rest(Duration::from_millis(1500));
    go_to(&processes(SERVICE));
    let outside = (now().min(until) - left) as f64 / 1e9;
    let [older, younger] = [older, younger].map(|child| c_program::printed(child)[0] / 1e9);
    report_figure("who_leaves_share", format_args!("{:.3} of {outside:.3} s", younger / outside));
    let taken = array.taken();
    detach(scheduler);

    // Half of the time outside, and the time before it had its tag and its program was loaded.
    assert!((0.3 * outside..0.6 * outside + 0.2).contains(&younger), "{younger} of {outside} beside {older}");
    assert_eq!(taken, before, "slots are free again when their programs end");
}

/// Two CPUs have work for 1.7, which would not be done if one stayed idle. The test's own threads are in
/// the group meanwhile.
pub(crate) fn the_group_has_all_cpus() {
    for layout in [QueueLayout::PerCpu, QueueLayout::Shared] {
        let scheduler = attached(&AttachRequest { layout, ..of_service() });
        fs::write(processes(SERVICE), "0").expect("it is root's");
        let begun = now();
        play(&requests(200, 5e6, 1.7), &[1, 2], true, || ());
        let elapsed = now() - begun;
        fs::write(EVERYBODY, "0").expect("it is root's");
        let cpus = scheduler.control().statistics().tagged_ns as f64 / elapsed as f64;
        detach(scheduler);
        report_figure(&format!("group_cpus_{layout}"), format_args!("{cpus:.2}"));
        assert!(cpus > 1.3, "{layout}: {cpus}");
    }
}

/// On request, by a crash of its program, and by removal of the group.
pub(crate) fn its_end_leaves_all_threads_to_the_kernel() {
    let end = |is_asked_for: bool| {
        let mut program = scheduler_of(SERVICE);
        let spinners = Spinners::start(1, &[0, 31, 32]);
        let number = rustix::process::Pid::from_child(&program);
        let signal = if is_asked_for { rustix::process::Signal::INT } else { rustix::process::Signal::KILL };
        rustix::process::kill_process(number, signal).expect("it is ours");
        assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
        assert_eq!(program.wait().expect("it ends").code(), is_asked_for.then_some(0));
        let shares = spinners.shares(Duration::from_millis(600));
        spinners.stop();
        assert!(shares.iter().all(|share| *share > 0.17), "{shares:?}");
    };
    end(true);
    end(false);
    let program = scheduler_of(SERVICE);
    fs::remove_dir(SERVICE).expect("nobody is in it");
    let output = program.wait_with_output().expect("it is ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("has ended the scheduler") && said.contains("going offline"), "{said}");
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
}

pub(crate) fn a_scheduler_above_decides_who_has_a_group() {
    let of_all = attached(&request(QueueLayout::PerCpu, 1));
    let said = refused(SERVICE);
    assert!(said.contains("'tailwright' does not accept schedulers of control groups"), "{said}");
    detach(of_all);
    let first = attached(&of_service());
    let said = refused(SERVICE);
    assert!(said.contains("has a scheduler already"), "{said}");
    let inner = format!("{SERVICE}/inner");
    let said = refused(&inner);
    assert!(said.contains("a parent control group has a scheduler"), "{said}");
    fs::remove_dir(inner).expect("nobody is in it");
    let said = refused(OTHER);
    assert!(said.contains("'tailwright_root' has refused the scheduler of the control group"), "{said}");
    assert!(said.contains("parent rejected (-16)"), "{said}");
    assert_eq!(first.end(), None);
    assert!(Path::new(DEFAULT_FOLDER).join("control").exists(), "programs find the first one");
    detach(first);
}

/// The first one's group is removed; the scheduler above stays as long as its program.
pub(crate) fn it_goes_under_a_scheduler_that_lets_it() {
    let first = attached(&of_service());
    fs::remove_dir(SERVICE).expect("nobody is in it");
    let begun = Instant::now();
    while first.end().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it has no group any more");
        thread::sleep(Duration::from_millis(10));
    }
    have(OTHER);
    let group = ControlGroup::open(Path::new(OTHER), 500).expect("it is there");
    let second = attached(&AttachRequest { threads: ScheduledThreads::Group(group), ..of_service() });
    assert_eq!(second.outside_time(), None, "it has none of its own above it");
    let older = share_of_older(OTHER, in_seconds(2.0));
    report_figure("under_another_older_share", older);
    detach(second);
    assert_eq!(sched_ext::state().as_deref(), Some("enabled"), "the first one stays");
    assert!(first.detach().expect("it is there").text.contains("going offline"));
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
    assert!(older > 0.75, "{older}");
}

/// The kernel ends schedulers when a CPU comes or goes; the one above the group reports the reason.
pub(crate) fn a_cpu_that_goes_ends_it_and_is_named() {
    let cpu = Path::new("/sys/devices/system/cpu/cpu2/online");
    let program = scheduler_of(SERVICE);
    fs::write(cpu, "0").expect("the last CPU can go");
    let output = program.wait_with_output().expect("it is ours");
    fs::write(cpu, "1").expect("it can come back");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("cpu 2 going offline"), "{said}");
    assert_eq!(ending::state_after(|state| state == "disabled"), "disabled");
}

/// By weights alone, a thread of nice value 19 would wait for 8,668 slices of one of -20. Its nice value
/// changes while it waits.
pub(crate) fn no_thread_outside_waits_until_the_watchdog() {
    let settings =
        OldestFirstSettings { patience: Duration::from_millis(500), ..OldestFirstSettings::default() };
    let watchdog = Duration::from_secs(2);
    let scheduler = attached(&AttachRequest { settings, watchdog, ..of_service() });
    let is_over = Arc::new(AtomicBool::new(false));
    let threads = [19, -20].map(|nice| endless(0, nice, Between::Nothing, &[1], &is_over));
    threads[0].change_again_and_again(19, watchdog * 2);
    is_over.store(true, Relaxed);
    let [patient, _] = threads.map(EndlessThread::longest_wait);
    report_figure("weights_outside_wait_ms", patient.as_millis());
    detach(scheduler);
    assert!(patient > settings.patience && patient < watchdog, "{patient:?}");
}
