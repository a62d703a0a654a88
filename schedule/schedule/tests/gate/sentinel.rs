//! The sentinel: requests that sleep without having said so do not hold up others, and those that work do.

use super::{LONG, assert_empty, policy, settings};
use machine::scheduling::SchedulingPolicy::{Idle, Other};
use schedule::{
    EntryRefusal, Gate, GatePreemption, GateSettings, PreemptionReport, RequestKey, SentinelReport,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const EVERY: Duration = Duration::from_micros(500);

/// A gate for one request on one CPU, with a sentinel and without patience.
fn watched_gate(preemption: GatePreemption) -> Gate {
    let one = settings(1, preemption);
    let gate = Gate::new(GateSettings { sentinel: Some(EVERY), workers: std::num::NonZeroU32::MIN, ..one });
    assert_eq!(gate.admission_report().sentinel, SentinelReport::Active { every: EVERY });
    gate
}

/// A chain of calls that each need the next one to go on, which takes all of them inside at once.
#[test]
fn sleepers_let_others_in_one_after_the_other() {
    let gate = watched_gate(GatePreemption::Never);
    thread::scope(|scope| {
        let mut ends: Option<mpsc::Sender<()>> = None;
        let (inside, is_inside) = mpsc::channel();
        for key in 0..5 {
            let (end, waits_for) = mpsc::channel::<()>();
            let gate = gate.clone();
            let inside = inside.clone();
            let before = ends.replace(end);
            scope.spawn(move || {
                let permit = gate.enter(RequestKey(key));
                drop(before);
                inside.send(()).unwrap();
                // Ends when the next one has entered: without a sentinel, never.
                let _ended = waits_for.recv();
                drop(permit);
            });
        }
        (0..5).for_each(|_| is_inside.recv_timeout(LONG).expect("it is admitted"));
        drop(ends);
    });
    assert!(gate.statistics().looks > 0);
    assert_empty(&gate);
}

/// A working request keeps its place, however often the sentinel checks it.
#[test]
fn nobody_is_admitted_beside_who_works() {
    let gate = watched_gate(GatePreemption::Never);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (inside, is_inside) = mpsc::channel();
        let working = gate.clone();
        let is_over = &is_over;
        scope.spawn(move || {
            let _permit = working.enter(RequestKey(1));
            inside.send(()).unwrap();
            while !is_over.load(Ordering::Relaxed) {}
        });
        is_inside.recv_timeout(LONG).expect("it is admitted");
        let other = gate.clone();
        let refused = scope.spawn(move || other.enter_within(RequestKey(2), 100 * EVERY).map(drop));
        testkit::wait_until(LONG, "looks of the sentinel", || {
            gate.statistics().looks >= 20 || refused.is_finished()
        });
        assert_eq!(refused.join().unwrap(), Err(EntryRefusal::TimedOut));
        is_over.store(true, Ordering::Relaxed);
    });
    assert_empty(&gate);
}

#[test]
fn who_wakes_up_counts_again_and_demotes_the_youngest() {
    let gate = watched_gate(GatePreemption::WhereProven);
    if let PreemptionReport::AdmissionOnly { reason } = gate.admission_report().preemption {
        return testkit::skip(&reason);
    }
    let is_over = AtomicBool::new(false);
    let work = || {
        while !is_over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        let (wake, wakes) = mpsc::channel::<()>();
        let (inside, is_inside) = mpsc::channel();
        let of_old = gate.clone();
        let of_young = gate.clone();
        let work = &work;
        scope.spawn(move || {
            let _permit = of_old.enter(RequestKey(1));
            inside.send(super::own_number()).unwrap();
            let _woken = wakes.recv();
            work();
        });
        let old = is_inside.recv_timeout(LONG).expect("it is admitted");
        let (inside, is_inside) = mpsc::channel();
        scope.spawn(move || {
            let _permit = of_young.enter(RequestKey(2));
            inside.send(super::own_number()).unwrap();
            work();
        });
        let young = is_inside.recv_timeout(LONG).expect("it is admitted while the older one sleeps");
        assert_eq!((gate.statistics().asleep, policy(young)), (1, Other));
        drop(wake);
        testkit::wait_until(LONG, "the demotion of the younger one", || policy(young) == Idle);
        assert_eq!((gate.statistics().asleep, policy(old)), (0, Other));
        is_over.store(true, Ordering::Relaxed);
    });
    assert_empty(&gate);
}

#[test]
fn it_is_off_unless_it_is_asked_for() {
    let gate = Gate::new(settings(1, GatePreemption::Never));
    assert_eq!(gate.admission_report().sentinel, SentinelReport::Off);
    let _permit = gate.enter(RequestKey(1));
    let other = gate.clone();
    let refused = thread::spawn(move || other.enter_within(RequestKey(2), 100 * EVERY).map(drop));
    assert_eq!(refused.join().unwrap(), Err(EntryRefusal::TimedOut));
    assert_eq!(gate.statistics().looks, 0);
}
