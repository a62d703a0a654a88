//! The scheduler in a real kernel: a QEMU guest boots Debian's kernel and plays requests under its
//! scheduler and under ours.
//!
//! Only the order of figures is asserted, never a time. This program is also the guest's init.

mod c_program;
mod checks;
mod control_group;
mod ending;
mod hinting;
mod partition;
mod play;
mod promises;
mod starvation;

use model::Blame;
use sched_ext::{
    AttachRequest, ControlGroup, CpuPartition, DEFAULT_WATCHDOG, KernelScheduler, OldestFirstSettings,
    QueueLayout, ScheduledThreads,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testkit::guest::{Guest, GuestFigures, GuestKernel, be_first_program, report_figure};

#[test]
fn the_oldest_first_in_a_guest() {
    if be_first_program(checks::all) {
        return;
    }
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel: &GuestKernel::DEBIAN_13_BACKPORTS,
        cpus: 3,
        program: &program,
        arguments: &["--exact", "the_oldest_first_in_a_guest", "--nocapture"],
        others: &[],
        modules: &[],
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let Some(figures) = guest.play() else { return };
    println!("{figures}");
    the_rule_is_kept(&figures);
    tails_are_shorter(&figures);
    shares_are_kept(&figures);
    the_kernel_takes_over(&figures);
}

/// A documented promise, with the test that tries to break it in the guest.
type Check = (&'static str, fn());

const PROMISES: [Check; 21] = [
    ("a_stuck_scheduler", promises::a_stuck_scheduler_is_ended_and_said),
    ("several", promises::one_of_several_schedules),
    ("killed_programs", promises::killed_programs_leave_no_slots),
    ("a_group", promises::members_of_the_group_tag_and_others_do_not),
    ("tags_from_c", hinting::starts_order_programs_in_c),
    ("deadlines_from_c", hinting::deadlines_order_programs_in_c),
    ("a_fork", hinting::a_child_has_a_request_of_its_own),
    ("least_share", hinting::untagged_threads_have_the_share_that_is_set),
    ("cost", hinting::a_tag_costs_less_than_a_system_call),
    ("starvation", starvation::nobody_waits_until_the_watchdog),
    ("a_change", starvation::a_change_ends_no_wait),
    ("a_partition", partition::only_threads_of_the_partition_are_scheduled),
    ("a_partition_left", partition::what_a_killed_program_leaves_is_taken_over),
    ("a_control_group", control_group::the_group_is_ordered_and_others_have_their_share),
    ("who_joins_and_leaves", control_group::threads_that_join_are_ordered_until_they_leave),
    ("cpus_of_a_group", control_group::the_group_has_all_cpus),
    ("a_control_group_left", control_group::its_end_leaves_all_threads_to_the_kernel),
    ("others_above", control_group::a_scheduler_above_decides_who_has_a_group),
    ("under_another", control_group::it_goes_under_a_scheduler_that_lets_it),
    ("a_cpu_goes", control_group::a_cpu_that_goes_ends_it_and_is_named),
    ("weights_outside", control_group::no_thread_outside_waits_until_the_watchdog),
];

/// Each promise is asserted in the guest, whose console shows the findings.
#[test]
fn the_promises_in_a_guest() {
    let run = || {
        play::keep_to(&[0]);
        for (name, check) in PROMISES {
            let begun = play::now();
            let outcome = std::panic::catch_unwind(check);
            report_figure(name, if outcome.is_ok() { "kept" } else { "broken" });
            report_figure(&format!("{name}_ms"), (play::now() - begun) / 1_000_000);
        }
    };
    if be_first_program(run) {
        return;
    }
    let Some(others) = c_program::compiled() else { return };
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel: &GuestKernel::DEBIAN_13_BACKPORTS,
        cpus: 3,
        program: &program,
        arguments: &["--exact", "the_promises_in_a_guest", "--nocapture"],
        others: &others,
        modules: &[],
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let Some(figures) = guest.play() else { return };
    println!("{figures}");
    for (name, _) in PROMISES {
        assert_eq!(figures.text(name), "kept", "{name}: {figures}");
    }
}

/// The rule for more CPUs than a small machine has.
#[test]
fn the_rule_on_ten_cpus() {
    if be_first_program(checks::ten_cpus) {
        return;
    }
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel: &GuestKernel::DEBIAN_13_BACKPORTS,
        cpus: 10,
        program: &program,
        arguments: &["--exact", "the_rule_on_ten_cpus", "--nocapture"],
        others: &[],
        modules: &[],
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let Some(figures) = guest.play() else { return };
    println!("{figures}");
    for play in ["ten_per_cpu", "ten_shared"] {
        let of = |name: &str| figures.number(&format!("{play}_{name}"));
        assert!(of("choices") > 300.0, "{play}: {figures}");
        assert_eq!(of("rescued"), 0.0, "{play}: {figures}");
        assert_eq!(figures.text(&format!("{play}_end")), UNREGISTERED, "{play}: {figures}");
        assert!(of("not_among_oldest") < 0.02, "{play}: {figures}");
    }
    assert_eq!(figures.number("ten_per_cpu_wrong"), 0.0, "{figures}");
    // A thread is logged shortly before it is in the queue of all.
    assert!(figures.number("ten_shared_wrong") < 0.01 * figures.number("ten_shared_choices"), "{figures}");
}

/// Every logged choice agrees with the pure rule, and running threads are among the c oldest.
fn the_rule_is_kept(figures: &GuestFigures) {
    for play in ["c1_0", "c3_0", "c1_1", "c3_1", "changed"] {
        let of = |name: &str| figures.number(&format!("{play}_{name}"));
        assert!(of("choices") > 100.0, "{play}: {figures}");
        assert_eq!((of("wrong"), of("rescued")), (0.0, 0.0), "{play}: {figures}");
        assert!(of("not_among_oldest") < 0.02, "{play}: {figures}");
        assert_eq!(figures.text(&format!("{play}_end")), UNREGISTERED, "{play}: {figures}");
    }
    assert_eq!(
        figures.text("changed_oldest"),
        "2-4",
        "c is another one from one choice to the next: {figures}"
    );
}

/// The kernel's exit reason when a scheduler is detached on request, SCX_EXIT_UNREG.
const UNREGISTERED: &str = "64";

/// The reference is the kernel's own scheduler with the same requests.
fn tails_are_shorter(figures: &GuestFigures) {
    for repetition in ["0", "1"] {
        let fair = figures.number(&format!("fair{repetition}_p99_ms"));
        assert!(figures.number(&format!("c3_{repetition}_p99_ms")) < fair, "{figures}");
        assert!(figures.number(&format!("c1_{repetition}_p99_ms")) < fair, "{figures}");
        let reordered = |name: &str| figures.number(&format!("{name}{repetition}_reordered"));
        assert!(reordered("c1_") < reordered("fair"), "{figures}");
    }
    for layout in ["shared_two", "per_cpu_two"] {
        let p99 = figures.number(&format!("{layout}_p99_ms"));
        let fair = figures.number("fair_two_p99_ms");
        assert!(p99 < fair, "{layout}: {figures}");
        assert_eq!(figures.text(&format!("{layout}_end")), UNREGISTERED, "{layout}: {figures}");
    }
}

/// A tenth for threads without a request, the rest for the three oldest; a slice for each when the
/// patience is over.
fn shares_are_kept(figures: &GuestFigures) {
    let share = figures.number("untagged_share");
    assert!((0.09..0.2).contains(&share), "{share}: {figures}");
    assert!(figures.number("oldest_three_share") > 0.75, "{figures}");
    assert!(figures.number("patience_least_ms") >= 8.0, "{figures}");
    assert!(figures.number("patience_oldest_ms") > 2_000.0, "{figures}");
    assert!(figures.number("patience_rescued") > 0.0, "{figures}");
    let slots = (figures.text("slots_registered"), figures.text("slots_kept"));
    assert_eq!(slots, ("200", "0"), "slots are free again when threads end: {figures}");
    assert_eq!(figures.text("slots_after"), "false", "{figures}");
}

/// After SIGINT and after a crash all threads run, and the next scheduler can be attached.
fn the_kernel_takes_over(figures: &GuestFigures) {
    for (name, exit) in [("interrupted", "0"), ("killed", "-1")] {
        assert_eq!(figures.text(&format!("{name}_state")), "disabled", "{figures}");
        assert_eq!(figures.text(&format!("{name}_exit")), exit, "{figures}");
        assert_eq!(figures.text(&format!("{name}_is_scheduled")), "false", "{figures}");
        assert!(
            figures.number(&format!("{name}_least_share")) > 0.08,
            "six threads have the CPU alike: {figures}"
        );
    }
    assert_eq!(figures.text("second_refused"), "true", "{figures}");
    assert_eq!(figures.text("second_leaves_first"), "enabled", "{figures}");
    assert_eq!(figures.text("second_state"), "disabled", "{figures}");
}

/// Set in a guest's process whose scheduler runs until SIGINT: the folder of its slots.
const FOLDER: &str = "SCHEDULER_FOLDER";
/// Settings of it, if not the defaults.
const WATCHDOG_MS: &str = "SCHEDULER_WATCHDOG_MS";
const OLDEST: &str = "SCHEDULER_OLDEST";
/// CPUs of a partition whose threads alone are scheduled.
const PARTITION: &str = "SCHEDULER_PARTITION";

/// Folder of the control group whose threads alone are scheduled.
const CONTROL_GROUP: &str = "SCHEDULER_CONTROL_GROUP";

/// Does nothing except in a guest, where the other test runs this program again.
#[test]
fn a_scheduler_until_interrupted() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&stop))
        .expect("SIGINT can be handled");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let oldest = number(OLDEST).map_or(3, |oldest| u32::try_from(oldest).expect("small"));
    let watchdog = number(WATCHDOG_MS).map_or(DEFAULT_WATCHDOG, Duration::from_millis);
    let mut request = AttachRequest {
        folder: PathBuf::from(folder),
        log_entries: 0,
        watchdog,
        ..request(QueueLayout::PerCpu, oldest)
    };
    request.settings.patience = request.settings.patience.min(watchdog / 2);
    let partition = std::env::var(PARTITION).ok().map(|cpus| cpus.parse().expect("a list of CPUs"));
    if partition.is_some() {
        request.threads = ScheduledThreads::Extensible;
    }
    if let Some(group) = std::env::var_os(CONTROL_GROUP) {
        let group = ControlGroup::open(group.as_ref(), 500).expect("the test has made it");
        request.threads = ScheduledThreads::Group(group);
    }
    let schedule = || {
        let mut partition = partition.map(|cpus| CpuPartition::take(&cpus)).transpose()?;
        let scheduler = KernelScheduler::attach(&request)?;
        scheduler.wait(&stop, || partition.iter_mut().for_each(CpuPartition::switch_threads));
        scheduler.detach()?.check()?;
        partition.map(CpuPartition::give_back).transpose().map(drop)
    };
    if let Err(error) = schedule() {
        // Printed like the program does, without a panic.
        eprintln!("error: {error:?}");
        std::process::exit(if error.blame == Blame::Machine { 3 } else { 2 });
    }
}

fn request(layout: QueueLayout, oldest: u32) -> AttachRequest {
    AttachRequest {
        settings: OldestFirstSettings { oldest, ..OldestFirstSettings::default() },
        layout,
        threads: ScheduledThreads::All,
        folder: PathBuf::from(sched_hint::DEFAULT_FOLDER),
        group: None,
        watchdog: DEFAULT_WATCHDOG,
        log_entries: 200_000,
    }
}
