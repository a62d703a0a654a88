//! Admission: order, limits, timeouts, cancellations, blocks, panics, threads that end, requests that do
//! not.

use super::{LONG, assert_empty, fixed, settings};
use schedule::{
    ConcurrencyLimit, EntryCancellation, EntryRefusal, Gate, GatePreemption, GateSettings, Permit, RequestKey,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn admission_only(limit: u32) -> Gate {
    Gate::new(settings(limit, GatePreemption::Never))
}

/// Waits until this many requests wait.
fn until_waiting(gate: &Gate, count: usize) {
    testkit::wait_until(LONG, "requests that wait", || gate.statistics().waiting == count);
}

/// Returns the keys of requests that arrive one after the other during another's service, in the order of
/// their own service.
fn served(keys: impl IntoIterator<Item = RequestKey>) -> Vec<u64> {
    let gate = admission_only(1);
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let held = gate.enter(RequestKey(0));
        for (count, key) in keys.into_iter().enumerate() {
            let gate = &gate;
            let order = &order;
            scope.spawn(move || {
                let _permit = gate.enter(key);
                order.lock().unwrap().push(key.0);
            });
            until_waiting(gate, count + 1);
        }
        drop(held);
    });
    assert_empty(&gate);
    order.into_inner().unwrap()
}

#[test]
fn the_oldest_of_those_waiting_goes_first() {
    assert_eq!(served([50, 10, 40, 10, 20].map(RequestKey)), [10, 10, 20, 40, 50]);
}

/// Pairs of entry time and SLO.
#[test]
fn the_earliest_deadline_of_those_waiting_goes_first() {
    let requests = [(1, 400), (2, 100), (3, 47), (4, 100), (5, 400), (6, u64::MAX)];
    assert_eq!(
        served(requests.map(|(entered, slo)| RequestKey::due(entered, slo))),
        [50, 102, 104, 401, 405, u64::MAX]
    );
    // With one SLO the earliest deadline is the oldest request.
    let one = [(5, 100), (3, 100), (4, 100)].map(|(entered, slo)| RequestKey::due(entered, slo));
    assert_eq!(served(one), [103, 104, 105]);
}

#[test]
fn without_a_limit_all_run_at_once() {
    let settings = GateSettings { limit: ConcurrencyLimit::Unlimited, ..settings(1, GatePreemption::Never) };
    let gate = Gate::new(settings);
    let barrier = std::sync::Barrier::new(8);
    thread::scope(|scope| {
        for key in 0..8 {
            let gate = &gate;
            let barrier = &barrier;
            scope.spawn(move || {
                let _permit = gate.enter(RequestKey(key));
                barrier.wait();
            });
        }
    });
    assert_empty(&gate);
}

#[test]
fn waiting_ends_by_time_and_by_cancellation() {
    let gate = admission_only(1);
    let cancellation = EntryCancellation::new();
    thread::scope(|scope| {
        let held = gate.enter(RequestKey(9));
        let timed = scope.spawn(|| gate.enter_within(RequestKey(1), Duration::from_millis(1)).map(drop));
        assert_eq!(timed.join().unwrap(), Err(EntryRefusal::TimedOut));
        let cancelled =
            scope.spawn(|| gate.enter_unless(RequestKey(1), Some(LONG), Some(&cancellation)).map(drop));
        until_waiting(&gate, 1);
        cancellation.cancel();
        assert_eq!(cancelled.join().unwrap(), Err(EntryRefusal::Cancelled));
        let late = scope.spawn(|| gate.enter_unless(RequestKey(1), None, Some(&cancellation)).map(drop));
        assert_eq!(late.join().unwrap(), Err(EntryRefusal::Cancelled), "cancelled for good");
        drop(held);
    });
    assert_eq!(gate.statistics().given_up, 2, "the late one did not wait");
    assert_empty(&gate);
}

#[test]
fn while_one_blocks_another_runs() {
    let gate = admission_only(1);
    let permit = gate.enter(RequestKey(1));
    let inside = permit.while_blocked(|| {
        thread::scope(|scope| scope.spawn(|| drop(gate.enter(RequestKey(2)))).join().is_ok())
    });
    assert!(inside);
    assert_eq!(gate.statistics().serving, 1);
    drop(permit);
    assert_empty(&gate);
}

#[test]
fn a_thread_that_is_inside_does_not_wait_for_itself() {
    let gate = admission_only(1);
    let outer = gate.enter(RequestKey(1));
    drop(gate.enter(RequestKey(2)));
    assert_eq!(gate.statistics().serving, 1, "the outer permit is still there");
    drop(outer);
    assert_empty(&gate);
}

/// Returns true if another request is admitted now, without waiting.
fn is_free(gate: &Gate) -> bool {
    thread::scope(|scope| {
        let another = scope.spawn(|| gate.enter_within(RequestKey(9), Duration::ZERO).is_ok());
        another.join().unwrap()
    })
}

#[test]
fn the_last_permit_of_a_request_leaves() {
    let gate = admission_only(1);
    let outer = gate.enter(RequestKey(1));
    let inner = gate.enter(RequestKey(1));
    drop(outer);
    assert!(!is_free(&gate), "the inner permit is still there");
    assert!(inner.while_blocked(|| is_free(&gate)), "the inner permit blocks the request");
    drop(inner);
    assert!(is_free(&gate));
    assert_empty(&gate);
}

/// A permit taken while the request is blocked is another permit of the same request: it neither waits
/// nor counts, and its end does not end the block.
#[test]
fn a_permit_taken_while_blocked_is_of_the_blocked_request() {
    let gate = admission_only(1);
    let permit = gate.enter(RequestKey(1));
    permit.while_blocked(|| {
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _permit = gate.enter(RequestKey(2));
                gate.statistics().serving
            });
            assert_eq!(other.join().unwrap(), 1);
        });
        let nested = gate.enter(RequestKey(9));
        assert!(is_free(&gate), "the nested permit does not count");
        assert_eq!((gate.statistics().blocked, gate.statistics().serving), (1, 0));
        // It counts again once its block is over, and so does the request.
        nested.block_end();
        assert!(!is_free(&gate));
        drop(nested);
        assert!(!is_free(&gate), "the outer permit is still there");
    });
    assert_eq!(gate.statistics().serving, 1);
    drop(permit);
    assert_empty(&gate);
}

#[test]
fn a_cancelled_request_is_not_admitted() {
    let gate = admission_only(1);
    let cancellation = EntryCancellation::new();
    cancellation.cancel();
    let refused = || gate.enter_unless(RequestKey(1), None, Some(&cancellation)).map(drop);
    assert_eq!(refused(), Err(EntryRefusal::Cancelled), "although the gate is free");
    let _permit = gate.enter(RequestKey(1));
    assert_eq!(refused(), Err(EntryRefusal::Cancelled), "although it is inside");
}

#[test]
fn panics_and_ends_of_threads_give_permits_back() {
    let gate = admission_only(1);
    thread::scope(|scope| {
        let panics = || {
            let permit = gate.enter(RequestKey(1));
            permit.while_blocked(|| panic!("a request that fails while it is blocked"));
        };
        scope.spawn(move || assert!(catch_unwind(AssertUnwindSafe(panics)).is_err()));
        scope.spawn(|| std::mem::forget(gate.enter(RequestKey(2))));
        scope.spawn(|| {
            let permit = gate.enter(RequestKey(3));
            permit.block_begin();
            std::mem::forget(permit);
        });
    });
    testkit::wait_until(LONG, "all that have left", || gate.statistics().left == 3);
    drop(gate.enter_within(RequestKey(4), LONG).expect("the place is free"));
    assert_empty(&gate);
}

#[test]
fn a_larger_limit_admits_those_waiting() {
    let gate = admission_only(1);
    thread::scope(|scope| {
        let held = gate.enter(RequestKey(0));
        let (done, is_done) = mpsc::channel();
        for key in 1..4 {
            let gate = &gate;
            let done = done.clone();
            scope.spawn(move || {
                drop(gate.enter(RequestKey(key)));
                done.send(key).unwrap();
            });
        }
        until_waiting(&gate, 3);
        gate.set_limit(fixed(2));
        for _ in 0..3 {
            is_done.recv_timeout(LONG).expect("the others go through the second place");
        }
        drop(held);
    });
    assert_empty(&gate);
}

/// c requests that never end: each waiting one continues after at most ⌈k/c⌉ patiences.
#[test]
fn requests_that_do_not_end_keep_nobody_waiting_for_ever() {
    let patience = Some(Duration::from_millis(30));
    let gate = Gate::new(GateSettings { patience, ..settings(2, GatePreemption::Never) });
    let (end, ends) = mpsc::channel::<()>();
    let ends = Mutex::new(ends);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let _permit = gate.enter(RequestKey(1));
                let _ended = ends.lock().unwrap().recv();
            });
        }
        testkit::wait_until(LONG, "all to be admitted", || {
            let now = gate.statistics();
            now.entered == 6 && now.waiting == 0
        });
        assert!(gate.statistics().overdue >= 4, "{:?}", gate.statistics());
        drop(end);
    });
    assert_empty(&gate);
}

/// All actions on requests at once, by as many threads as services have.
#[test]
fn nothing_is_leaked() {
    let patience = Some(Duration::from_millis(5));
    let gate = Gate::new(GateSettings { patience, ..settings(2, GatePreemption::WhereProven) });
    thread::scope(|scope| {
        for number in 0..16u64 {
            let gate = &gate;
            scope.spawn(move || {
                for round in 0..40u64 {
                    one_request(gate, number, round);
                }
                assert_ne!(super::policy(super::own_number()), machine::scheduling::SchedulingPolicy::Idle);
            });
        }
        for limit in [1, 3, 2] {
            gate.set_limit(fixed(limit));
            thread::yield_now();
        }
    });
    assert_eq!(gate.statistics().entered, 16 * 40);
    assert_empty(&gate);
}

/// A thread-local value that outlives the thread's permits.
struct KeptLong {
    gate: Gate,
    permit: Option<Permit>,
    end: mpsc::Sender<bool>,
}

impl Drop for KeptLong {
    fn drop(&mut self) {
        if let Some(permit) = &self.permit {
            // The request has left, and another one may now run under its index.
            let blocks_another = permit.while_blocked(|| self.gate.statistics().blocked > 0);
            self.end.send(!blocks_another).unwrap();
        } else {
            let permit = self.gate.enter(RequestKey(1));
            let is_admitted = self.gate.statistics().serving == 1;
            // The list by which a thread recognises its own request is gone, so this is another request.
            let nested = self.gate.enter_within(RequestKey(1), Duration::from_millis(1)).map(drop);
            self.end.send(is_admitted && nested == Err(EntryRefusal::TimedOut)).unwrap();
            drop(permit);
        }
    }
}

thread_local! {
    static KEPT_LONG: std::cell::RefCell<Option<KeptLong>> = const { std::cell::RefCell::new(None) };
}

/// Returns the behaviour of a thread in the destructor of a value that it used before its first permit,
/// and that is dropped after the permits.
fn at_the_end_of_a_thread(gate: &Gate, keeps_permit: bool) -> bool {
    let (end, ends) = mpsc::channel();
    let gate = gate.clone();
    let thread = thread::spawn(move || {
        KEPT_LONG.with(|kept| assert!(kept.borrow().is_none()));
        let permit = gate.enter(RequestKey(1));
        let permit = keeps_permit.then_some(permit);
        KEPT_LONG.set(Some(KeptLong { gate, permit, end }));
    });
    let said = ends.recv_timeout(LONG).expect("the destructor ran");
    thread.join().unwrap();
    said
}

#[test]
fn a_permit_that_outlives_its_request_does_nothing_to_others() {
    let gate = admission_only(1);
    thread::scope(|scope| {
        let (end, ends) = mpsc::channel::<()>();
        let others = at_the_end_beside_another(scope, &gate, ends);
        assert!(others, "nobody else is blocked");
        assert_eq!(gate.statistics().serving, 1);
        drop(end);
    });
    assert_empty(&gate);
}

/// Starts another request that waits, is admitted when the thread that keeps its permit ends, and holds
/// until released.
fn at_the_end_beside_another<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    gate: &Gate,
    ends: mpsc::Receiver<()>,
) -> bool {
    let held = gate.enter(RequestKey(0));
    let waiting = gate.clone();
    scope.spawn(move || {
        let _permit = waiting.enter(RequestKey(2));
        let _ended = ends.recv();
    });
    until_waiting(gate, 1);
    let kept = {
        let gate = gate.clone();
        scope.spawn(move || at_the_end_of_a_thread(&gate, true))
    };
    until_waiting(gate, 2);
    drop(held);
    kept.join().unwrap()
}

#[test]
fn a_destructor_at_the_end_of_a_thread_can_enter() {
    let gate = admission_only(1);
    assert!(at_the_end_of_a_thread(&gate, false));
    assert_empty(&gate);
}

fn one_request(gate: &Gate, number: u64, round: u64) {
    let key = RequestKey(round * 10 + number * 7 % 13);
    let entered = match (number + round) % 4 {
        0 => gate.enter_within(key, Duration::from_micros(200 * round)),
        _ => Ok(gate.enter(key)),
    };
    let Ok(permit) = entered else { return };
    match (number * 3 + round) % 5 {
        0 => permit.while_blocked(thread::yield_now),
        1 => {
            let failed = catch_unwind(AssertUnwindSafe(|| {
                let _permit = permit;
                std::panic::resume_unwind(Box::new("a request that fails"));
            }));
            assert!(failed.is_err());
        }
        2 => (0..2000u64).for_each(|step| {
            std::hint::black_box(step);
        }),
        _ => {}
    }
}

/// The limit follows the measurement: requests of equal work get a limit, and a manual change persists.
#[test]
fn the_limit_is_chosen_by_measurement() {
    let workers = std::num::NonZeroU32::new(3).unwrap();
    let settings =
        GateSettings { limit: ConcurrencyLimit::Auto, workers, ..settings(1, GatePreemption::Never) };
    let gate = Gate::new(settings);
    let work = |steps: u64| {
        let _permit = gate.enter(RequestKey(1));
        std::hint::black_box((0..steps).fold(0u64, |sum, step| sum ^ step.wrapping_mul(sum | 1)));
    };
    (0..200).for_each(|_| work(1));
    assert_eq!((gate.statistics().limit, gate.statistics().service_variation), (None, None));
    // One of a hundred takes a thousand times as long: a heavy tail on any noisy machine.
    (0..2500).for_each(|count| work(if count % 100 == 0 { 2_000_000 } else { 2000 }));
    assert_eq!(gate.statistics().limit, None);
    assert!(gate.statistics().service_variation.is_some_and(|c2| c2 > 10.0), "{:?}", gate.statistics());
    gate.set_limit(fixed(1));
    (0..300).for_each(|_| work(1));
    assert_eq!(gate.statistics().limit, std::num::NonZeroU32::new(1));
    assert_empty(&gate);
}
