//! The gate for tasks as its users see it: futures polled by hand, its own clock, wakers that call it
//! again.

use schedule::{AsyncGate, AsyncGateSettings, ConcurrencyLimit, EntryFuture, EntryRefusal, RequestKey};
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Longer than any finite wait.
const LONG: Duration = Duration::from_secs(120);

fn gate(limit: ConcurrencyLimit, patience: Option<Duration>) -> AsyncGate {
    AsyncGate::new(AsyncGateSettings { limit, patience, ..AsyncGateSettings::default() })
}

fn one_at_once() -> ConcurrencyLimit {
    ConcurrencyLimit::Fixed(NonZeroU32::MIN)
}

/// A waker that notifies a channel.
struct Telling(mpsc::Sender<()>);

impl Wake for Telling {
    fn wake(self: Arc<Self>) {
        // The test may be over.
        let _ = self.0.send(());
    }
}

fn poll(entry: &mut EntryFuture, waker: &Waker) -> Poll<<EntryFuture as Future>::Output> {
    pin!(entry).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_turn_that_nobody_takes_goes_to_the_next() {
    let gate = gate(one_at_once(), None);
    let (tell, told) = mpsc::channel();
    let waker = Waker::from(Arc::new(Telling(tell)));
    let mut entries = [0, 1, 2].map(|key| gate.enter(RequestKey(key)));
    let Poll::Ready(Ok(held)) = poll(&mut entries[0], &waker) else { panic!("the gate is free") };
    assert!(poll(&mut entries[1], &waker).is_pending() && poll(&mut entries[2], &waker).is_pending());
    drop(held);
    told.recv_timeout(LONG).expect("the next one is woken");
    let [_, second, mut third] = entries;
    drop(second);
    told.recv_timeout(LONG).expect("the one after it is woken");
    assert!(matches!(poll(&mut third, &waker), Poll::Ready(Ok(_))));
    let now = gate.statistics();
    assert_eq!((now.serving, now.waiting, now.entered, now.left), (0, 0, 3, 3));
}

/// Time advances without a runtime.
#[test]
fn waiting_ends_by_time_and_by_patience() {
    let patient = gate(one_at_once(), None);
    let (tell, told) = mpsc::channel();
    let waker = Waker::from(Arc::new(Telling(tell)));
    let Poll::Ready(Ok(held)) = poll(&mut patient.enter(RequestKey(0)), &waker) else { panic!("it is free") };
    let mut timed = patient.enter_within(RequestKey(1), Duration::from_millis(1));
    assert!(poll(&mut timed, &waker).is_pending());
    told.recv_timeout(LONG).expect("it is woken when its time is over");
    assert!(matches!(poll(&mut timed, &waker), Poll::Ready(Err(EntryRefusal::TimedOut))));
    assert_eq!(patient.statistics().given_up, 1);
    drop(held);

    let hasty = gate(one_at_once(), Some(Duration::from_millis(1)));
    let endless: Vec<_> = (0..4)
        .map(|key| {
            let mut entry = hasty.enter(RequestKey(key));
            loop {
                match poll(&mut entry, &waker) {
                    Poll::Ready(permit) => break permit.expect("nothing refuses it"),
                    Poll::Pending => told.recv_timeout(LONG).expect("nobody waits for ever"),
                }
            }
        })
        .collect();
    assert_eq!((hasty.statistics().serving, hasty.statistics().overdue), (1, 3));
    drop(endless);
    assert_eq!(hasty.statistics().left, 4);
}

/// A waker that calls the gate when dropped, like one that drops the task of another request.
struct LooksWhenDropped(AsyncGate, Arc<AtomicUsize>);

impl Wake for LooksWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for LooksWhenDropped {
    fn drop(&mut self) {
        self.1.fetch_add(self.0.statistics().serving, Ordering::Relaxed);
    }
}

#[test]
fn wakers_are_dropped_without_the_lock() {
    let gate = gate(one_at_once(), None);
    let seen = Arc::new(AtomicUsize::new(0));
    let new = || Waker::from(Arc::new(LooksWhenDropped(gate.clone(), Arc::clone(&seen))));
    let held = poll(&mut gate.enter(RequestKey(0)), &new());
    let mut entry = gate.enter(RequestKey(1));
    for _ in 0..3 {
        assert!(poll(&mut entry, &new()).is_pending(), "another waker takes the place of the last");
    }
    drop(entry);
    assert_eq!(seen.load(Ordering::Relaxed), 4);
    drop(held);
}

#[test]
fn the_limit_is_chosen_from_measured_polls() {
    let gate = gate(ConcurrencyLimit::Auto, None);
    let waker = Waker::noop();
    for count in 0..1100u64 {
        let Poll::Ready(Ok(mut permit)) = poll(&mut gate.enter(RequestKey(count)), waker) else {
            panic!("nothing limits it")
        };
        if count >= 300 {
            // One of a hundred takes a thousand times as long.
            let steps = if count % 100 == 0 { 2_000_000u64 } else { 2000 };
            permit.measure(|| {
                std::hint::black_box((0..steps).fold(0u64, |sum, step| sum ^ step.wrapping_mul(sum | 1)))
            });
        }
        if count == 299 {
            assert_eq!(gate.statistics().service_variation, None, "nothing was measured");
        }
    }
    assert!(gate.statistics().service_variation.is_some_and(|c2| c2 > 10.0), "{:?}", gate.statistics());
    assert_eq!(gate.statistics().limit, None);
}

/// A waker that calls the gate when it wakes, like one whose executor polls at once.
struct LooksWhenWoken(AsyncGate, mpsc::Sender<usize>);

impl Wake for LooksWhenWoken {
    fn wake(self: Arc<Self>) {
        // The test may be over.
        let _ = self.1.send(self.0.statistics().serving);
    }
}

#[test]
fn wakers_are_woken_without_the_lock_of_the_measured_limit() {
    let (tell, told) = mpsc::channel();
    let held = std::thread::spawn(move || {
        let gate = gate(one_at_once(), None);
        let held = poll(&mut gate.enter(RequestKey(0)), Waker::noop());
        let waker = Waker::from(Arc::new(LooksWhenWoken(gate.clone(), tell)));
        let mut waits = gate.enter(RequestKey(1));
        assert!(poll(&mut waits, &waker).is_pending());
        gate.set_limit(ConcurrencyLimit::Auto);
        drop((held, waits));
    });
    assert_eq!(
        told.recv_timeout(LONG),
        Ok(2),
        "the waker reads statistics of the limit that has just changed"
    );
    held.join().expect("nothing panics");
}

/// A waker of an executor that has shut down.
struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("on purpose: the executor has gone");
    }
}

/// It affects neither the requests woken after it, nor the request whose end wakes it, nor the gate's
/// timer thread.
#[test]
fn a_waker_that_panics_harms_nobody_else() {
    let gate = gate(one_at_once(), None);
    let (tell, told) = mpsc::channel();
    let telling = Waker::from(Arc::new(Telling(tell)));
    let panicking = Waker::from(Arc::new(Panicking));
    let held = poll(&mut gate.enter(RequestKey(0)), &telling);
    let [mut first, mut second] = [1, 2].map(|key| gate.enter(RequestKey(key)));
    assert!(poll(&mut first, &panicking).is_pending() && poll(&mut second, &telling).is_pending());
    gate.set_limit(ConcurrencyLimit::Unlimited);
    told.recv_timeout(LONG).expect("the one after it is woken");
    let second = poll(&mut second, &telling);
    assert!(matches!(second, Poll::Ready(Ok(_))), "it is its turn");
    drop((held, first, second));
    assert_eq!((gate.statistics().serving, gate.statistics().left), (0, 3), "every place came back");

    gate.set_limit(one_at_once());
    let held = poll(&mut gate.enter(RequestKey(3)), &telling);
    for waker in [&panicking, &telling] {
        let mut timed = gate.enter_within(RequestKey(4), Duration::from_millis(1));
        assert!(poll(&mut timed, waker).is_pending());
        if waker.will_wake(&telling) {
            told.recv_timeout(LONG).expect("time passes after the panic as well");
        } else {
            while gate.statistics().given_up == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    drop(held);
}
