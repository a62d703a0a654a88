//! Checks in the guest, and their output.

use crate::ending;
use crate::play::{PlayOutcome, Spinners, keep_to, play, play_on_one_each, requests};
use crate::request;
use crate::starvation::nobody_waits_too_long;
use sched_ext::replay::{ReplayVerdict, replay};
use sched_ext::shared_replay::replay_shared;
use sched_ext::{KernelScheduler, OldestFirstSettings, QueueLayout};
use sched_hint::{DEFAULT_FOLDER, SlotArray};
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use testkit::guest::report_figure;

/// Mean work of a request in nanoseconds, and the number of requests.
const WORK_NS: f64 = 5e6;
const REQUESTS: usize = 500;

/// Runs all checks in turn. CPU 0 is reserved for sending requests.
pub(crate) fn all() {
    keep_to(&[0]);
    report_figure("state", sched_ext::state().unwrap_or_default());
    ending::all();
    one_cpu();
    several_cpus();
    changed_while_running();
    untagged_share();
    patience();
    slots_come_back();
}

fn say(name: &str, outcome: &PlayOutcome) {
    report_figure(&format!("{name}_p50_ms"), format_args!("{:.3}", outcome.p50_ms));
    report_figure(&format!("{name}_p99_ms"), format_args!("{:.3}", outcome.p99_ms));
    report_figure(&format!("{name}_mean_ms"), format_args!("{:.3}", outcome.mean_ms));
    report_figure(&format!("{name}_reordered"), format_args!("{:.4}", outcome.reordered));
}

fn attach(layout: QueueLayout, oldest: u32) -> KernelScheduler {
    let begun = Instant::now();
    let scheduler =
        KernelScheduler::attach(&request(layout, oldest)).unwrap_or_else(|error| panic!("{error:?}"));
    report_figure("attach_ms", begun.elapsed().as_millis());
    scheduler
}

/// Prints the verdict on the log of a scheduler with a queue per CPU, and detaches it.
fn judge(name: &str, scheduler: KernelScheduler) {
    let verdict = replay(&scheduler.events());
    say_verdict(name, &verdict, scheduler);
}

fn say_verdict(name: &str, verdict: &ReplayVerdict, scheduler: KernelScheduler) {
    let events = scheduler.events();
    let statistics = scheduler.control().statistics();
    report_figure(&format!("{name}_events"), events.len());
    report_figure(&format!("{name}_choices"), verdict.choices);
    report_figure(&format!("{name}_wrong"), verdict.wrong.len());
    report_figure(&format!("{name}_rescued"), verdict.rescued);
    let share = verdict.not_among_oldest_ns as f64 / verdict.tagged_ns.max(1) as f64;
    report_figure(&format!("{name}_not_among_oldest"), format_args!("{share:.5}"));
    verdict.wrong.iter().take(3).for_each(|wrong| println!("WRONG {name}: {wrong}"));
    println!("{name}: {statistics:?}");
    let end = scheduler.detach().unwrap_or_else(|error| panic!("{error:?}"));
    report_figure(&format!("{name}_end"), end.kind);
    if end.is_error() {
        println!("{name}: {}", end.text);
    }
}

fn one_cpu() {
    let played = requests(REQUESTS, WORK_NS, 0.85);
    for repetition in 0..2 {
        say(&format!("fair{repetition}"), &play(&played, &[1], false, || ()));
        for oldest in [1, 3] {
            let scheduler = attach(QueueLayout::PerCpu, oldest);
            let name = format!("c{oldest}_{repetition}");
            say(&name, &play(&played, &[1], true, || ()));
            judge(&name, scheduler);
        }
    }
}

fn several_cpus() {
    let played = requests(REQUESTS, WORK_NS / 2.0, 1.7);
    say("fair_two", &play(&played, &[1, 2], false, || ()));
    for (name, layout) in [("shared_two", QueueLayout::Shared), ("per_cpu_two", QueueLayout::PerCpu)] {
        let scheduler = attach(layout, 4);
        say(name, &play(&played, &[1, 2], true, || ()));
        let statistics = scheduler.control().statistics();
        println!("{name}: {statistics:?}");
        let end = scheduler.detach().unwrap_or_else(|error| panic!("{error:?}"));
        report_figure(&format!("{name}_end"), end.kind);
    }
}

/// c changes for the second half.
fn changed_while_running() {
    let scheduler = attach(QueueLayout::PerCpu, 4);
    let change = || {
        let settings = OldestFirstSettings { oldest: 2, ..scheduler.control().settings() };
        scheduler.control().set(&settings).expect("the settings are good");
    };
    play(&requests(REQUESTS / 2, WORK_NS, 0.9), &[1], true, change);
    let seen: BTreeSet<u32> = scheduler.events().iter().map(|event| event.oldest).collect();
    report_figure("changed_oldest", seen.iter().map(u32::to_string).collect::<Vec<_>>().join("-"));
    judge("changed", scheduler);
}

/// One untagged thread against four tagged ones, for two seconds.
fn untagged_share() {
    let scheduler = attach(QueueLayout::PerCpu, 3);
    let spinners = Spinners::start(1, &[0, 11, 12, 13, 14]);
    thread::sleep(Duration::from_millis(300));
    let before = spinners.spent();
    thread::sleep(Duration::from_secs(2));
    let after = spinners.spent();
    spinners.stop();
    let spent: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
    let share = |place: usize| spent[place] as f64 / spent.iter().sum::<u64>().max(1) as f64;
    report_figure("untagged_share", format_args!("{:.4}", share(0)));
    report_figure("oldest_three_share", format_args!("{:.4}", share(1) + share(2) + share(3)));
    judge("untagged", scheduler);
}

/// The oldest never ends; the others get a slice when the patience is over.
fn patience() {
    let scheduler = attach(QueueLayout::PerCpu, 1);
    let settings =
        OldestFirstSettings { patience: Duration::from_millis(200), ..scheduler.control().settings() };
    scheduler.control().set(&settings).expect("the settings are good");
    let spinners = Spinners::start(1, &[21, 22, 23, 24, 25, 26]);
    thread::sleep(Duration::from_secs(4));
    let spent = spinners.spent();
    spinners.stop();
    report_figure("patience_least_ms", spent.iter().min().map_or(0, |least| least / 1_000_000));
    report_figure("patience_oldest_ms", spent[0] / 1_000_000);
    judge("patience", scheduler);
}

/// Threads that come and go, half of them while others run.
fn slots_come_back() {
    let scheduler = attach(QueueLayout::PerCpu, 3);
    let array = SlotArray::open(DEFAULT_FOLDER.as_ref()).expect("the folder is ours").expect("one schedules");
    let before = array.taken();
    let register = |key: u64| {
        thread::spawn(move || {
            sched_hint::tag_current(key);
            sched_hint::is_scheduled()
        })
    };
    let mut registered = 0;
    for _ in 0..10 {
        let threads: Vec<_> = (1..=20).map(register).collect();
        registered +=
            threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|is_read| *is_read).count();
    }
    report_figure("slots_registered", registered);
    let begun = Instant::now();
    // The kernel releases a thread shortly after it was joined.
    while array.taken() > before && begun.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(10));
    }
    report_figure("slots_kept", array.taken() - before);
    let end = scheduler.detach().unwrap_or_else(|error| panic!("{error:?}"));
    report_figure("slots_end", end.kind);
    report_figure("slots_after", sched_hint::is_scheduled());
}

/// More CPUs than in the other checks: CPU 0 sends, and nine serve.
static SERVING: [usize; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/// The guest's CPUs take turns, so that the kernel's own work counts ten times; hence longer requests.
const LONG_WORK_NS: f64 = 40e6;

/// More requests than nine CPUs can serve, so that many wait, with each queue layout, and then threads
/// that never finish.
pub(crate) fn ten_cpus() {
    keep_to(&[0]);
    let played = requests(REQUESTS / 2, LONG_WORK_NS, 1.2 * SERVING.len() as f64);
    let scheduler = attach(QueueLayout::PerCpu, 2);
    say("ten_per_cpu", &play_on_one_each(&played, &SERVING));
    judge("ten_per_cpu", scheduler);

    let scheduler = attach(QueueLayout::Shared, 12);
    say("ten_shared", &play(&played, &SERVING, true, || ()));
    let verdict = replay_shared(&scheduler.events());
    say_verdict("ten_shared", &verdict, scheduler);

    for (name, layout) in [("ten_per_cpu_", QueueLayout::PerCpu), ("ten_shared_", QueueLayout::Shared)] {
        let mut request = request(layout, 1);
        request.log_entries = 0;
        request.watchdog = Duration::from_secs(2);
        request.settings.patience = Duration::from_millis(200);
        let cpus_of = |key: usize| match layout {
            QueueLayout::PerCpu => std::slice::from_ref(&SERVING[key % SERVING.len()]),
            QueueLayout::Shared => &SERVING[..],
        };
        let tagged: Vec<(u64, &[usize])> = (0..60).map(|key| (key as u64 + 1, cpus_of(key))).collect();
        nobody_waits_too_long(name, &request, &tagged, (&SERVING, &[]), request.watchdog * 3 / 2);
    }
}
