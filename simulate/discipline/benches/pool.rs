//! The cost of a pool's transitions against the number of waiting requests. The baseline is a binary heap
//! behind a lock with a condition variable, as a service would write it itself, which can neither block,
//! cancel nor displace.
//!
//! `cargo bench -p discipline --bench pool`

use discipline::RequestKey;
use discipline::pool::{Displacement, PoolRules, PooledRequest, RequestPool};
use discipline::serve::PoolOrder;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

/// Rounds of one measurement.
const ROUNDS: u32 = 20_000;
/// Number of measurements; the least counts, because others use the machine.
const MEASUREMENTS: usize = 9;
/// Requests in service at once.
const LIMIT: u32 = 6;

fn main() {
    println!(
        "nanoseconds per transition, c = {LIMIT}; the baseline's are half of a push, a pop and notify_one"
    );
    print!("{:>8} {:>13} {:>13} {:>13}", "waiting", "enter, leave", "enter, cancel", "block, return");
    println!(" {:>13} {:>10} {:>6} {:>10} {:>6}", "displace", "baseline", "ratio", "heap, lock", "ratio");
    for waiting in [10, 100, 1000, 10_000, 100_000] {
        let passes = pool_ns(waiting, 2, Displacement::OfYoungest, pass);
        let cancels = pool_ns(waiting, 2, Displacement::OfYoungest, cancel);
        let blocks = pool_ns(waiting, 2, Displacement::Never, block);
        let displaces = pool_ns(waiting, 2, Displacement::OfYoungest, displace);
        let baseline = baseline_ns(waiting, Condvar::notify_one);
        let heap = baseline_ns(waiting, |_| ());
        print!("{waiting:>8} {passes:>13.0} {cancels:>13.0} {blocks:>13.0} {displaces:>13.0}");
        println!(" {baseline:>10.0} {:>6.2} {heap:>10.0} {:>6.2}", passes / baseline, passes / heap);
    }
}

/// A number that looks random and is the same in every run.
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24
}

/// A pool with requests that wait, and the keys that come next.
struct Loaded {
    pool: RequestPool,
    /// Those in service, in the order of their admission.
    serving: Vec<PooledRequest>,
    actions: Vec<discipline::pool::PoolAction>,
    next: u64,
}

impl Loaded {
    fn new(waiting: u64, displacement: Displacement) -> Self {
        let limit = NonZeroU32::new(LIMIT);
        let rules = PoolRules { limit, order: PoolOrder::Age, displacement, patience: Some(1 << 60) };
        let mut loaded =
            Self { pool: RequestPool::new(rules), serving: Vec::new(), actions: Vec::new(), next: 0 };
        for _ in 0..u64::from(LIMIT) {
            let request = loaded.pool.enter(0, RequestKey(1 << 40), &mut loaded.actions);
            loaded.serving.push(request);
        }
        (0..waiting).for_each(|_| {
            loaded.enter();
        });
        loaded.actions.clear();
        loaded
    }

    /// A request that comes a little later than the last one, or overtook some on its way.
    fn enter(&mut self) -> PooledRequest {
        self.next += 1;
        let key = (1 << 50) + self.next * 1000 + scattered(self.next) % 100_000;
        self.pool.enter(self.next, RequestKey(key), &mut self.actions)
    }

    /// Lets the admitted requests take the free places in service.
    fn follow(&mut self, left: usize) {
        use discipline::pool::PoolAction::Admit;
        for action in self.actions.drain(..) {
            if let Admit(request) = black_box(action) {
                self.serving[left] = request;
            }
        }
    }
}

fn pass(loaded: &mut Loaded, round: usize) {
    loaded.enter();
    let left = round % LIMIT as usize;
    loaded.pool.leave(loaded.next, loaded.serving[left], &mut loaded.actions);
    loaded.follow(left);
}

fn cancel(loaded: &mut Loaded, _round: usize) {
    let request = loaded.enter();
    loaded.pool.leave(loaded.next, request, &mut loaded.actions);
    loaded.actions.clear();
}

/// Blocks a serving request, so that another is admitted; that one leaves again, and the first returns.
fn block(loaded: &mut Loaded, round: usize) {
    let left = round % LIMIT as usize;
    let blocked = loaded.serving[left];
    loaded.pool.block(loaded.next, blocked, &mut loaded.actions);
    loaded.follow(left);
    loaded.pool.unblock(loaded.next, blocked, &mut loaded.actions);
}

fn displace(loaded: &mut Loaded, _round: usize) {
    let oldest = loaded.pool.enter(loaded.next, RequestKey(0), &mut loaded.actions);
    loaded.pool.leave(loaded.next, oldest, &mut loaded.actions);
    black_box(loaded.actions.len());
    loaded.actions.clear();
}

/// Returns the nanoseconds per transition of rounds with this many transitions.
fn pool_ns(waiting: u64, transitions: u32, displacement: Displacement, round: fn(&mut Loaded, usize)) -> f64 {
    let one = |_| {
        let mut loaded = Loaded::new(waiting, displacement);
        let begin = Instant::now();
        (0..ROUNDS as usize).for_each(|number| round(&mut loaded, number));
        begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS * transitions)
    };
    (0..MEASUREMENTS).map(one).fold(f64::INFINITY, f64::min)
}

/// Returns the nanoseconds per push or pop of a heap behind a lock, with a notification of the condition
/// variable.
fn baseline_ns(waiting: u64, tell: fn(&Condvar)) -> f64 {
    let one = |_| {
        let heap: BinaryHeap<_> = (0..waiting).map(|number| Reverse(number * 1000)).collect();
        let heap = Mutex::new(heap);
        let condition = Condvar::new();
        let begin = Instant::now();
        for number in waiting..waiting + u64::from(ROUNDS) {
            heap.lock().expect("no panic").push(Reverse(number * 1000 + scattered(number) % 100_000));
            black_box(heap.lock().expect("no panic").pop());
            tell(&condition);
        }
        begin.elapsed().as_nanos() as f64 / f64::from(2 * ROUNDS)
    };
    (0..MEASUREMENTS).map(one).fold(f64::INFINITY, f64::min)
}
