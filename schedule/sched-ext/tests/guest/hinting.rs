//! Tags by the C library, the share of threads without one, and the cost of a tag.

use crate::play::{Spinners, now};
use crate::{c_program, request};
use sched_ext::{KernelScheduler, OldestFirstSettings, QueueLayout};
use sched_hint::{DEFAULT_FOLDER, SlotArray};
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};
use testkit::guest::report_figure;

fn attached(oldest: u32) -> KernelScheduler {
    KernelScheduler::attach(&request(QueueLayout::PerCpu, oldest)).expect("it can be attached")
}

fn detach(scheduler: KernelScheduler) {
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
}

/// Working time of the programs, of which the first part passes before they have started.
const WORK: Duration = Duration::from_millis(1500);

fn until() -> u64 {
    now() + u64::try_from(WORK.as_nanos()).expect("it is short")
}

/// Returns the CPU time of the request with the earlier start, as a share of both. It has the later
/// deadline.
fn share_of_started_earlier(default_slo_ns: u64) -> f64 {
    let until = until();
    let earlier = c_program::started(&[&"spin", &1, &1000, &900_000, &default_slo_ns, &until]);
    let later = c_program::started(&[&"spin", &1, &2000, &500_000, &default_slo_ns, &until]);
    let [earlier, later] = [earlier, later].map(|child| c_program::printed(child)[0]);
    earlier / (earlier + later)
}

pub(crate) fn starts_order_programs_in_c() {
    let scheduler = attached(1);
    let share = share_of_started_earlier(0);
    detach(scheduler);
    assert!(share > 0.75, "{share}");
}

pub(crate) fn deadlines_order_programs_in_c() {
    let scheduler = attached(1);
    let share = share_of_started_earlier(1_000_000);
    // A request without a deadline of its own is due by the default: the later one, now.
    let until = until();
    let due_by_default = c_program::started(&[&"spin", &1, &1000, &0, &1_000_000, &until]);
    let due_sooner = c_program::started(&[&"spin", &1, &2000, &500_000, &1_000_000, &until]);
    let [by_default, sooner] = [due_by_default, due_sooner].map(|child| c_program::printed(child)[0]);
    detach(scheduler);
    assert!(share < 0.25, "{share}");
    assert!(by_default < sooner / 3.0, "{by_default} {sooner}");
}

/// If the child wrote its parent's slot, both would have the child's key and share the CPU equally.
pub(crate) fn a_child_has_a_request_of_its_own() {
    let scheduler = attached(1);
    let array = SlotArray::open(DEFAULT_FOLDER.as_ref()).expect("the folder is ours").expect("one schedules");
    let before = array.taken();
    for (own, of_child, parent_is_first) in [(1000, 2000, true), (2000, 1000, false)] {
        let both = c_program::printed(c_program::started(&[&"forks", &1, &own, &of_child, &until()]));
        let [one, other] = both[..] else { panic!("both print what they got: {both:?}") };
        // The first request prints first, because the other one only runs after its end.
        assert!(one > 3.0 * other, "{parent_is_first}: {both:?}");
    }
    let begun = Instant::now();
    while array.taken() > before {
        assert!(begun.elapsed() < Duration::from_secs(5), "the slots of the programs are not free");
        std::thread::sleep(Duration::from_millis(10));
    }
    detach(scheduler);
}

/// Untagged threads get the share of the settings, and after a change that of the new settings.
pub(crate) fn untagged_threads_have_the_share_that_is_set() {
    let scheduler = attached(3);
    let spinners = Spinners::start(1, &[0, 11, 12, 13, 14]);
    std::thread::sleep(Duration::from_millis(200));
    let mut shares = Vec::new();
    for permille in [100, 400] {
        let settings = OldestFirstSettings { untagged_permille: permille, ..scheduler.control().settings() };
        scheduler.control().set(&settings).expect("the settings are good");
        shares.push(spinners.shares(Duration::from_secs(1))[0]);
    }
    spinners.stop();
    report_figure("untagged_shares", format_args!("{shares:.3?}"));
    detach(scheduler);
    assert!((0.09..0.2).contains(&shares[0]) && (0.38..0.5).contains(&shares[1]), "{shares:?}");
}

/// Returns the time of one of many, nanoseconds.
fn each(times: u64, what: impl Fn(u64)) -> f64 {
    let begun = now();
    (1..=times).for_each(what);
    (now() - begun) as f64 / times as f64
}

/// Returns time and runs of the scheduler's programs that this process holds, by the kernel's counters.
fn program_runs() -> (f64, f64) {
    let mut time = 0.0;
    let mut runs = 0.0;
    for entry in fs::read_dir("/proc/self/fdinfo").expect("it is mounted").filter_map(Result::ok) {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let of = |name: &str| -> Option<f64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        time += of("run_time_ns:").unwrap_or(0.0);
        runs += of("run_cnt:").unwrap_or(0.0);
    }
    (time, runs)
}

pub(crate) fn a_tag_costs_less_than_a_system_call() {
    const COUNTED: &str = "/proc/sys/kernel/bpf_stats_enabled";
    fs::write(COUNTED, "1").expect("it is root's");
    let scheduler = attached(3);
    let array = SlotArray::open(DEFAULT_FOLDER.as_ref()).expect("the folder is ours").expect("one schedules");
    let slot = array.register().expect("a slot is free");
    let call = each(100_000, |_| {
        black_box(rustix::process::getppid());
    });
    let current = each(100_000, |key| sched_hint::tag_current(black_box(key)));
    let store = each(100_000, |key| slot.tag(black_box(key)));
    slot.untag();
    let spinners = Spinners::start(1, &[11, 12, 13, 14]);
    let (time, _) = program_runs();
    let choices = scheduler.control().statistics().choices;
    std::thread::sleep(Duration::from_secs(1));
    let time = program_runs().0 - time;
    let choices = (scheduler.control().statistics().choices - choices) as f64;
    spinners.stop();
    fs::write(COUNTED, "0").expect("it is root's");
    detach(scheduler);
    report_figure("cost_of_tag_by_calls", format_args!("{:.3}", current / call));
    report_figure("cost_of_store_by_calls", format_args!("{:.3}", store / call));
    report_figure("cost_of_decision_by_calls", format_args!("{:.3}", time / choices / call));
    report_figure("cost_of_call_ns", format_args!("{call:.1}"));
    assert!(choices > 50.0 && time > 0.0, "{choices} {time}");
    assert!(store <= current && current < call, "{store} {current} {call}");
}
