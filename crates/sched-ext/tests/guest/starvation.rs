//! Many threads at one CPU: the oldest never ends, and the others shall have slices before the kernel's watchdog ends it all.

use crate::play::{keep_to, now, spend};
use crate::request;
use machine::scheduling::{ThreadScheduling, own_thread, set_scheduling};
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
/// Each interrupts whoever runs next, before that one is done with a piece of work.
const NAPPING: usize = 40;
const YIELDING: usize = 4;

/// What a thread that is never done does between two pieces of work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Between {
    Nothing,
    Nap,
    Yield,
}

impl Between {
    const NAP: Duration = Duration::from_micros(5);

    /// How long it was meant to take.
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

/// A thread that is never done, with a key or none, and its longest wait between two pieces of work.
pub(crate) fn endless(
    key: u64,
    nice: i32,
    between: Between,
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
            last = time + nanos(between.take());
        }
        noted.fetch_max(now().saturating_sub(last), Relaxed);
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
    let others = [[Between::Nap; NAPPING].as_slice(), &[Between::Yield; YIELDING]].concat();
    nobody_waits_too_long("", &request, &tagged, (ONE_CPU, &others), WATCHDOG * 2);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than centuries")
}

/// Threads that are never done, with keys and CPUs, four without a request, and others without, for this time. What is
/// reported has this beginning.
pub(crate) fn nobody_waits_too_long(
    name: &str,
    request: &AttachRequest,
    tagged: &[(u64, &[usize])],
    (untagged_cpus, others): (&[usize], &[Between]),
    time: Duration,
) {
    let scheduler = KernelScheduler::attach(request).expect("it can be attached");
    let is_over = Arc::new(AtomicBool::new(false));
    // Those of no request come first to nobody: the last of them has the least weight.
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
        for (waited, thread) in threads {
            thread.join().expect("they do not fail");
            longest[kind] = longest[kind].max(Duration::from_nanos(waited.load(Relaxed)));
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
