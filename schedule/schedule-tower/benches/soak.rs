//! Services under cancellations, timeouts, panics and streams for any length of time: no permit is lost,
//! and no thread stays demoted.
//!
//! `cargo bench -p tailwright-schedule-tower --bench soak -- --seconds 600`; the default is 10 seconds.

#[path = "../tests/services/server.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod server;
#[path = "../tests/services/storm.rs"]
mod storm;

use machine::scheduling::{SchedulingPolicy, scheduling};
use schedule::{ConcurrencyLimit, EntryCancellation, Gate, GateSettings, GateStatistics, RequestKey};
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Threads with requests at the gate for threads.
const THREADS: u64 = 12;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--seconds").skip(1);
    let seconds = arguments.next().map_or(10, |text| text.parse().expect("--seconds: a whole number"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let threads = thread::spawn(move || threads(end));
    let tasks = server::run(storm::storm(end));
    report("tasks, HTTP/1.1 and HTTP/2", tasks);
    let (threads, panics) = threads.join().expect("no thread fails");
    report("threads", threads);
    println!("threads: {panics} requests panicked; no thread is demoted");
}

fn report(kind: &str, now: GateStatistics) {
    let present = now.waiting + now.serving + now.demoted + now.blocked + now.overdue;
    assert_eq!((present, now.entered, now.refused_changes), (0, now.left, 0), "{now:?}");
    assert_eq!(now.demotions, now.promotions, "{now:?}");
    println!(
        "{kind}: {} entered, {} left, {} of them given up while they waited, {} demotions and as many promotions; nobody is inside",
        now.entered, now.left, now.given_up, now.demotions
    );
}

/// Runs the gate for threads.
fn threads(end: Instant) -> (GateStatistics, u64) {
    let gate = Gate::new(GateSettings {
        limit: ConcurrencyLimit::Fixed(NonZeroU32::new(2).expect("2")),
        patience: Some(Duration::from_millis(5)),
        ..GateSettings::default()
    });
    let panics = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let gate = &gate;
            let panics = &panics;
            scope.spawn(move || {
                let mut count = 0u64;
                while Instant::now() < end {
                    count += 1;
                    let chance = (number * 1_000_003 + count).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                    let failed = catch_unwind(AssertUnwindSafe(|| one_request(gate, chance)));
                    panics.fetch_add(u64::from(failed.is_err()), Ordering::Relaxed);
                }
                assert_ne!(own_policy(), SchedulingPolicy::Idle, "nobody stays demoted");
            });
        }
    });
    (gate.statistics(), panics.into_inner())
}

fn own_policy() -> SchedulingPolicy {
    let own = std::fs::read_link("/proc/thread-self").expect("procfs is mounted");
    let number = own.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
    scheduling(number).expect("the thread is there").policy
}

fn one_request(gate: &Gate, chance: u64) {
    let key = RequestKey(chance / 32 % 1000);
    let cancellation = EntryCancellation::new();
    let entered = match chance % 4 {
        0 => gate.enter_within(key, Duration::from_micros(chance / 8 % 500)),
        1 => thread::scope(|scope| {
            scope.spawn(|| cancellation.cancel());
            gate.enter_unless(key, None, Some(&cancellation))
        }),
        _ => Ok(gate.enter(key)),
    };
    let Ok(permit) = entered else { return };
    match chance / 4 % 8 {
        0 => permit.while_blocked(thread::yield_now),
        1 => resume_unwind(Box::new("a request that fails")),
        2 => permit.while_blocked(|| resume_unwind(Box::new("a request that fails while it is blocked"))),
        3 => drop(gate.enter(key)),
        4 => (0..50_000u64).for_each(|step| {
            std::hint::black_box(step);
        }),
        _ => {}
    }
}
