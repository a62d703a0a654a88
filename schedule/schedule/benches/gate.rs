//! The cost of a request at the gate: alone, and with waiting threads. The baseline is a binary heap
//! behind a lock whose condition variable wakes all waiting threads, because each must check whether it
//! is the oldest.
//!
//! `cargo bench -p tailwright-schedule --bench gate`

use schedule::{ConcurrencyLimit, Gate, GatePreemption, GateSettings, RequestKey};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::sync::{Barrier, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::Instant;

/// Number of requests of one measurement, of all threads together.
const REQUESTS: u32 = 20_000;
/// Number of measurements; the least counts, because others use the machine.
const MEASUREMENTS: usize = 5;

fn main() {
    let alone = |limit, preemption| {
        let gate = gate(limit, preemption);
        fewest_ns(|| {
            let begin = Instant::now();
            (0..u64::from(REQUESTS)).for_each(|key| drop(gate.enter(RequestKey(key))));
            begin.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
        })
    };
    let fixed = ConcurrencyLimit::Fixed(NonZeroU32::MIN);
    println!("enter and leave without others: {:.0} ns", alone(fixed, GatePreemption::WhereProven));
    println!(
        "with the CPU time measured (limit by measurement): {:.0} ns",
        alone(ConcurrencyLimit::Auto, GatePreemption::WhereProven)
    );
    println!(
        "\n{:>8} {:>12} {:>12} {:>7}   (c = 1, microseconds per request)",
        "threads", "gate", "baseline", "ratio"
    );
    for threads in [2, 10, 100, 1000] {
        let gate = gate(fixed, GatePreemption::Never);
        let ours = fewest_ns(|| contended_ns(threads, |key| drop(gate.enter(RequestKey(key)))));
        let line = Baseline::default();
        let baseline = fewest_ns(|| contended_ns(threads, |key| line.pass(key)));
        println!("{threads:>8} {:>12.2} {:>12.2} {:>7.2}", ours / 1e3, baseline / 1e3, ours / baseline);
    }
}

fn gate(limit: ConcurrencyLimit, preemption: GatePreemption) -> Gate {
    Gate::new(GateSettings { limit, preemption, ..GateSettings::default() })
}

fn fewest_ns(measure: impl Fn() -> f64) -> f64 {
    (0..MEASUREMENTS).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

/// Returns the nanoseconds per request when this many threads make requests one after the other.
fn contended_ns(threads: u32, request: impl Fn(u64) + Sync) -> f64 {
    let barrier = Barrier::new(threads as usize);
    let rounds = REQUESTS / threads;
    let begin = OnceLock::new();
    thread::scope(|scope| {
        for number in 0..threads {
            let barrier = &barrier;
            let begin = &begin;
            let request = &request;
            scope.spawn(move || {
                barrier.wait();
                begin.get_or_init(Instant::now);
                (0..rounds).for_each(|round| request(u64::from(round * 1000 + number * 7919 % 5000)));
            });
        }
    });
    let begin = begin.get().expect("at least one thread ran");
    begin.elapsed().as_nanos() as f64 / f64::from(threads * rounds)
}

/// Waiting requests, by key and arrival.
#[derive(Default)]
struct Line {
    is_taken: bool,
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    arrivals: u64,
}

/// A place in service, for the oldest waiting request.
#[derive(Default)]
struct Baseline {
    line: Mutex<Line>,
    changed: Condvar,
}

impl Baseline {
    fn pass(&self, key: u64) {
        let mut line = self.line.lock().expect("no panic");
        line.arrivals += 1;
        let own = Reverse((key, line.arrivals));
        line.waiting.push(own);
        while line.is_taken || line.waiting.peek() != Some(&own) {
            line = self.changed.wait(line).expect("no panic");
        }
        line.waiting.pop();
        line.is_taken = true;
        drop(line);
        self.line.lock().expect("no panic").is_taken = false;
        self.changed.notify_all();
    }
}
