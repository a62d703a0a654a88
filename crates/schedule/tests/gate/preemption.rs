//! Older requests take the CPU from younger ones, and give it back.

use super::{LONG, assert_empty, fixed, own_number, policy, settings};
use machine::scheduling::SchedulingPolicy::{Idle, Other};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tailwright_schedule::{
    AdmissionReport, ConcurrencyLimit, Gate, GatePreemption, GateSettings, RequestKey,
};

/// A preemptive gate; `None`, with a loud skip, where this process may not promote threads.
fn preemptive(limit: u32, patience: Option<Duration>) -> Option<Gate> {
    let gate = Gate::new(GateSettings { patience, ..settings(limit, GatePreemption::WhereProven) });
    match gate.admission_report() {
        AdmissionReport::Preemptive => Some(gate),
        AdmissionReport::AdmissionOnly { reason } => {
            testkit::skip(&reason);
            None
        }
    }
}

/// A thread that holds a permit until it is told to end, or as long as the channel is open.
fn holder<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    gate: &Gate,
    key: u64,
) -> (u32, mpsc::Sender<()>, thread::ScopedJoinHandle<'scope, ()>) {
    let (end, ends) = mpsc::channel();
    let (inside, is_inside) = mpsc::channel();
    let gate = gate.clone();
    let thread = scope.spawn(move || {
        let permit = gate.enter(RequestKey(key));
        inside.send(own_number()).unwrap();
        let _ended = ends.recv();
        drop(permit);
        drop(gate);
        assert_eq!(policy(own_number()), Other, "nobody stays demoted");
    });
    (is_inside.recv_timeout(LONG).expect("it is admitted"), end, thread)
}

#[test]
fn an_older_request_demotes_the_youngest_until_it_leaves() {
    let Some(gate) = preemptive(2, None) else { return };
    thread::scope(|scope| {
        let [young, middle] = [30, 20].map(|key| holder(scope, &gate, key));
        assert_eq!([policy(young.0), policy(middle.0)], [Other, Other]);
        let old = holder(scope, &gate, 10);
        assert_eq!([policy(young.0), policy(middle.0), policy(old.0)], [Idle, Other, Other]);
        let oldest = holder(scope, &gate, 5);
        assert_eq!([policy(young.0), policy(middle.0), policy(old.0)], [Idle, Idle, Other]);
        drop(oldest.1);
        oldest.2.join().unwrap();
        assert_eq!([policy(young.0), policy(middle.0), policy(old.0)], [Idle, Other, Other]);
        // A demoted thread that leaves is ordinary again before, as it asserts itself.
        drop(young.1);
        young.2.join().unwrap();
    });
    assert_eq!(gate.statistics().demotions, 2);
    assert_empty(&gate);
}

#[test]
fn a_changed_limit_demotes_and_promotes() {
    let Some(gate) = preemptive(3, None) else { return };
    thread::scope(|scope| {
        let held = [1, 2, 3].map(|key| holder(scope, &gate, key));
        let policies = || held.each_ref().map(|(number, ..)| policy(*number));
        gate.set_limit(fixed(1));
        assert_eq!(policies(), [Other, Idle, Idle]);
        gate.set_limit(ConcurrencyLimit::Unlimited);
        assert_eq!(policies(), [Other, Other, Other]);
    });
    assert_empty(&gate);
}

#[test]
fn a_demoted_thread_that_blocks_is_ordinary() {
    let Some(gate) = preemptive(1, None) else { return };
    thread::scope(|scope| {
        let permit = gate.enter(RequestKey(9));
        let old = holder(scope, &gate, 1);
        assert_eq!(policy(own_number()), Idle);
        permit.block_begin();
        assert_eq!(policy(own_number()), Other);
        drop(old.1);
        old.2.join().unwrap();
        permit.block_end();
        drop(permit);
    });
    assert_empty(&gate);
}

/// The gate's handle goes while somebody is demoted, who may hold a lock that others need: it is promoted within the patience.
#[test]
fn nobody_is_demoted_for_longer_than_the_patience() {
    let Some(gate) = preemptive(1, Some(Duration::from_millis(20))) else { return };
    thread::scope(|scope| {
        let young = holder(scope, &gate, 9);
        let old = holder(scope, &gate, 1);
        drop(gate);
        testkit::wait_until(LONG, "the promotion, while the older one stays", || policy(young.0) == Other);
        assert_eq!(policy(old.0), Other);
    });
}
