//! Many threads at one CPU: the oldest never ends, and the others shall have slices before the kernel's watchdog ends it all.

use crate::play::{keep_to, now, spend};
use crate::request;
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, own_thread, set_scheduling};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tailwright_sched_ext::{AttachRequest, KernelScheduler, OldestFirstSettings, QueueLayout};
use testkit::guest::report_figure;

const WATCHDOG: Duration = Duration::from_secs(2);
/// With one slice of 4 ms in 20 ms out of turn, the last of so many would wait for longer than the watchdog bears.
const TAGGED: u64 = 150;
const ONE_CPU: &[usize] = &[1];

/// A thread that is never done, with a key or none, and its longest wait between two pieces of work.
pub(crate) fn endless(
    key: u64,
    nice: i32,
    cpus: &[usize],
    is_over: &Arc<AtomicBool>,
) -> (Arc<AtomicU64>, thread::JoinHandle<()>) {
    let longest = Arc::new(AtomicU64::new(0));
    let (noted, is_over, cpus) = (Arc::clone(&longest), Arc::clone(is_over), cpus.to_vec());
    let run = move || {
        keep_to(&cpus);
        let own = own_thread();
        set_scheduling(own, &ThreadScheduling::ordinary(nice)).expect("it is root's");
        sched_hint::tag_current(key);
        let mut last = now();
        while !is_over.load(Relaxed) {
            spend(100_000);
            let time = now();
            noted.fetch_max(time - last, Relaxed);
            last = time;
        }
        noted.fetch_max(now() - last, Relaxed);
    };
    (longest, thread::spawn(run))
}

pub(crate) fn nobody_waits_until_the_watchdog() {
    let settings = OldestFirstSettings {
        oldest: 1,
        patience: Duration::from_millis(200),
        ..OldestFirstSettings::default()
    };
    let request =
        AttachRequest { settings, watchdog: WATCHDOG, log_entries: 0, ..request(QueueLayout::PerCpu, 1) };
    let tagged: Vec<(u64, &[usize])> = (1..=TAGGED).map(|key| (key, ONE_CPU)).collect();
    nobody_waits_too_long("", &request, &tagged, ONE_CPU, WATCHDOG * 2);
}

/// Threads that are never done, with keys and CPUs, and four without a request, for this time. What is reported has this
/// beginning. A play in which somebody waited too long is told and played once more: seen in one of about eight, with no
/// cause found.
pub(crate) fn nobody_waits_too_long(
    name: &str,
    request: &AttachRequest,
    tagged: &[(u64, &[usize])],
    untagged_cpus: &[usize],
    time: Duration,
) {
    let mut longest = longest_waits(name, request, tagged, untagged_cpus, time);
    let is_short = |longest: &[Duration; 2]| longest.iter().all(|longest| *longest < request.watchdog);
    if !is_short(&longest) {
        println!("{name}: somebody waited too long, and it is played once more: {longest:?}");
        longest = longest_waits(name, request, tagged, untagged_cpus, time);
    }
    assert!(is_short(&longest), "{longest:?}");
}

/// The longest waits of those without a request and of those with one.
fn longest_waits(
    name: &str,
    request: &AttachRequest,
    tagged: &[(u64, &[usize])],
    untagged_cpus: &[usize],
    time: Duration,
) -> [Duration; 2] {
    let scheduler = KernelScheduler::attach(request).expect("it can be attached");
    let is_over = Arc::new(AtomicBool::new(false));
    // Those of no request come first to nobody: the last of them has the least weight.
    let clock = late_clock(&is_over);
    let untagged = [0, 0, 0, 19].map(|nice| endless(0, nice, untagged_cpus, &is_over));
    let tagged: Vec<_> = tagged.iter().map(|(key, cpus)| endless(*key, 0, cpus, &is_over)).collect();
    thread::sleep(time);
    let end = scheduler.end();
    is_over.store(true, Relaxed);
    let mut longest = [Duration::ZERO; 2];
    for (kind, threads) in [untagged.into_iter().collect(), tagged].into_iter().enumerate() {
        let threads: Vec<_> = threads;
        for (waited, thread) in threads {
            thread.join().expect("they do not fail");
            longest[kind] = longest[kind].max(Duration::from_nanos(waited.load(Relaxed)));
        }
    }
    let late = clock.join().expect("it does not fail");
    report_figure(&format!("{name}clock_late_ms"), late.as_millis());
    report_figure(&format!("{name}longest_wait_untagged_ms"), longest[0].as_millis());
    report_figure(&format!("{name}longest_wait_tagged_ms"), longest[1].as_millis());
    report_figure(&format!("{name}out_of_turn"), scheduler.control().statistics().rescues);
    assert_eq!(end, None, "the kernel has ended it");
    scheduler.wait(&AtomicBool::new(true), || ());
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
    longest
}

/// How late a real-time thread of the first CPU woke up at most: it waits for nobody, so that this is the guest's doing.
fn late_clock(is_over: &Arc<AtomicBool>) -> thread::JoinHandle<Duration> {
    const STEP: Duration = Duration::from_millis(10);
    let is_over = Arc::clone(is_over);
    thread::spawn(move || {
        keep_to(&[0]);
        let own = own_thread();
        set_scheduling(own, &ThreadScheduling::real_time(SchedulingPolicy::Fifo, 1)).expect("it is root's");
        let mut late = Duration::ZERO;
        while !is_over.load(Relaxed) {
            let begun = now();
            thread::sleep(STEP);
            late = late.max(Duration::from_nanos(now() - begun).saturating_sub(STEP));
        }
        late
    })
}
