//! Many threads on one CPU: the oldest never ends, and the others must get slices before the kernel's
//! watchdog ends the scheduler.

use crate::play::{keep_to, now, spend};
use crate::request;
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, own_thread, set_scheduling};
use sched_ext::{AttachRequest, KernelScheduler, OldestFirstSettings, QueueLayout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use testkit::guest::report_figure;

const WATCHDOG: Duration = Duration::from_secs(2);
/// With one slice of 4 ms per 20 ms out of turn, the last of this many threads would wait for longer than
/// the watchdog's timeout.
const TAGGED: u64 = 150;
const ONE_CPU: &[usize] = &[1];
/// Number of threads that each interrupt the next one before it has finished a piece of work.
const NAPPING: usize = 40;
const YIELDING: usize = 4;

/// Action of an endless thread between two pieces of work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Between {
    Nothing,
    Nap,
    Yield,
}

impl Between {
    const NAP: Duration = Duration::from_micros(5);

    /// Performs the action. Returns its intended duration.
    fn take(self) -> Duration {
        match self {
            Self::Nothing => Duration::ZERO,
            Self::Nap => {
                thread::sleep(Self::NAP);
                Self::NAP
            }
            Self::Yield => {
                thread::yield_now();
                Duration::ZERO
            }
        }
    }
}

/// An endless thread.
pub(crate) struct EndlessThread {
    /// Its TID once it has begun, 0 before.
    number: Arc<AtomicU32>,
    longest_ns: Arc<AtomicU64>,
    thread: thread::JoinHandle<()>,
}

impl EndlessThread {
    /// Ends the thread. Returns its longest wait between two pieces of work.
    pub(crate) fn longest_wait(self) -> Duration {
        self.thread.join().expect("it does not fail");
        Duration::from_nanos(self.longest_ns.load(Relaxed))
    }

    /// Switches the thread between SCHED_BATCH and SCHED_OTHER, 20 times a second for this time: at each
    /// change the kernel removes it from its queue and adds it again.
    pub(crate) fn change_again_and_again(&self, nice: i32, time: Duration) {
        let begun = now();
        for round in 0.. {
            if now() - begun >= nanos(time) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
            let policy = [SchedulingPolicy::Batch, SchedulingPolicy::Other][round % 2];
            let number = self.number.load(Relaxed);
            if number > 0 {
                set_scheduling(number, &ThreadScheduling { policy, ..ThreadScheduling::ordinary(nice) })
                    .expect("it is root's");
            }
        }
    }
}

/// Starts an endless thread, with or without a key.
pub(crate) fn endless(
    key: u64,
    nice: i32,
    between: Between,
    cpus: &[usize],
    is_over: &Arc<AtomicBool>,
) -> EndlessThread {
    let longest = Arc::new(AtomicU64::new(0));
    let number = Arc::new(AtomicU32::new(0));
    let noted = Arc::clone(&longest);
    let is_over = Arc::clone(is_over);
    let cpus = cpus.to_vec();
    let number_of_own = Arc::clone(&number);
    let run = move || {
        keep_to(&cpus);
        let own = own_thread();
        number_of_own.store(own, Relaxed);
        set_scheduling(own, &ThreadScheduling::ordinary(nice)).expect("it is root's");
        sched_hint::tag_current(key);
        let mut last = now();
        while !is_over.load(Relaxed) {
            spend(100_000);
            let time = now();
            noted.fetch_max(time - last, Relaxed);
            last = time + nanos(between.take());
        }
        noted.fetch_max(now().saturating_sub(last), Relaxed);
    };
    EndlessThread { number, longest_ns: longest, thread: thread::spawn(run) }
}

/// A waiting thread is changed more often than the patience lasts, which users may do to their own
/// threads.
pub(crate) fn a_change_ends_no_wait() {
    let patience = Duration::from_millis(200);
    let settings = OldestFirstSettings { oldest: 1, patience, ..OldestFirstSettings::default() };
    let watchdog = Duration::from_secs(1);
    let request = AttachRequest { settings, watchdog, log_entries: 0, ..request(QueueLayout::PerCpu, 1) };
    let scheduler = KernelScheduler::attach(&request).expect("it can be attached");
    let is_over = Arc::new(AtomicBool::new(false));
    let threads = [1, 2].map(|key| endless(key, 0, Between::Nothing, ONE_CPU, &is_over));
    threads[1].change_again_and_again(0, watchdog * 2);
    let end = scheduler.end();
    is_over.store(true, Relaxed);
    let [_, changed] = threads.map(EndlessThread::longest_wait);
    report_figure("changed_wait_ms", changed.as_millis());
    assert_eq!(end, None, "the kernel has ended it");
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
    assert!(changed > patience && changed < watchdog, "{changed:?}");
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
    let others = [[Between::Nap; NAPPING].as_slice(), &[Between::Yield; YIELDING]].concat();
    nobody_waits_too_long("", &request, &tagged, (ONE_CPU, &others), WATCHDOG * 2);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than centuries")
}

/// Runs endless threads with keys and CPUs, four without a request, and others without, for this time.
/// The names of its results have this prefix.
pub(crate) fn nobody_waits_too_long(
    name: &str,
    request: &AttachRequest,
    tagged: &[(u64, &[usize])],
    (untagged_cpus, others): (&[usize], &[Between]),
    time: Duration,
) {
    let scheduler = KernelScheduler::attach(request).expect("it can be attached");
    let is_over = Arc::new(AtomicBool::new(false));
    // Threads without a request never come first: the last of them has the least weight.
    let begin = |key, nice, between, cpus| endless(key, nice, between, cpus, &is_over);
    let patient = [0, 0, 0, 19].map(|nice| begin(0, nice, Between::Nothing, untagged_cpus));
    let restless = others.iter().map(|between| begin(0, 0, *between, untagged_cpus));
    let untagged: Vec<_> = patient.into_iter().chain(restless).collect();
    let tagged: Vec<_> = tagged.iter().map(|(key, cpus)| begin(*key, 0, Between::Nothing, cpus)).collect();
    thread::sleep(time);
    let end = scheduler.end();
    is_over.store(true, Relaxed);
    let mut longest = [Duration::ZERO; 2];
    for (kind, threads) in [untagged, tagged].into_iter().enumerate() {
        for thread in threads {
            longest[kind] = longest[kind].max(thread.longest_wait());
        }
    }
    report_figure(&format!("{name}longest_wait_untagged_ms"), longest[0].as_millis());
    report_figure(&format!("{name}longest_wait_tagged_ms"), longest[1].as_millis());
    report_figure(&format!("{name}out_of_turn"), scheduler.control().statistics().rescues);
    assert_eq!(end, None, "the kernel has ended it");
    scheduler.wait(&AtomicBool::new(true), || ());
    assert_eq!(scheduler.detach().expect("it is there").check(), Ok(()));
    assert!(longest.iter().all(|longest| *longest < request.watchdog), "{longest:?}");
}
