//! Older requests take the CPU from younger ones, and give it back.

use super::{LONG, assert_empty, fixed, own_number, policy, settings};
use machine::scheduling::SchedulingPolicy::{self, Idle, Other};
use machine::scheduling::scheduling;
use schedule::{ConcurrencyLimit, Gate, GatePreemption, GateSettings, Permit, PreemptionReport, RequestKey};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A preemptive gate; `None`, with a loud skip, where this process may not promote threads.
fn preemptive(limit: u32, patience: Option<Duration>) -> Option<Gate> {
    let gate = Gate::new(GateSettings { patience, ..settings(limit, GatePreemption::WhereProven) });
    match gate.admission_report().preemption {
        PreemptionReport::Preemptive => Some(gate),
        PreemptionReport::AdmissionOnly { reason } => {
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

/// Runs this in a thread that is demoted at the gate.
fn while_demoted<T: Send>(gate: &Gate, run: impl FnOnce(&Permit) -> T + Send) -> T {
    thread::scope(|scope| {
        let (inside, is_inside) = mpsc::channel();
        let young = scope.spawn(move || {
            let permit = gate.enter(RequestKey(9));
            inside.send(()).unwrap();
            testkit::wait_until(LONG, "its demotion", || policy(own_number()) == Idle);
            run(&permit)
        });
        is_inside.recv_timeout(LONG).expect("it is admitted");
        let _old = gate.enter(RequestKey(1));
        young.join().unwrap()
    })
}

/// Returns the scheduling policy of a new thread of the calling one.
fn policy_of_a_new_thread() -> SchedulingPolicy {
    thread::spawn(|| policy(own_number())).join().unwrap()
}

#[test]
fn threads_that_are_started_while_blocked_are_ordinary() {
    let Some(gate) = preemptive(1, None) else { return };
    let new = while_demoted(&gate, |permit| {
        // Without the end of the block, which would wait for the older request.
        permit.block_begin();
        policy_of_a_new_thread()
    });
    assert_eq!(new, Other);
    assert_empty(&gate);
}

#[test]
fn a_demoted_thread_takes_locks_as_an_ordinary_one() {
    let Some(gate) = preemptive(1, None) else { return };
    for act in [
        |gate: &Gate| assert_eq!(gate.statistics().serving, 1),
        |gate: &Gate| gate.set_limit(fixed(1)),
        |_: &Gate| drop(Gate::new(settings(1, GatePreemption::Never)).enter(RequestKey(1))),
    ] {
        let demoted = gate.clone();
        assert_eq!(while_demoted(&gate, move |_| (act(&demoted), policy(own_number())).1), Other);
    }
    assert_empty(&gate);
}

/// The clock of a gate would otherwise not run beside busy threads. It starts with the first wait, here
/// in a demoted thread, and has run once that thread is admitted beside a request that does not end.
#[test]
fn the_clock_of_a_gate_is_ordinary() {
    let Some(gate) = preemptive(1, None) else { return };
    let Some(inner) = preemptive(1, Some(Duration::from_millis(20))) else { return };
    thread::scope(|scope| {
        let other = holder(scope, &inner, 1);
        while_demoted(&gate, |_| {
            assert_eq!(policy(own_number()), Idle);
            drop(inner.enter(RequestKey(2)));
        });
        assert_eq!(policies_of_clocks(), [Other]);
        drop(other.1);
    });
    assert_empty(&inner);
}

/// Returns the distinct scheduling policies of the clocks of all gates in this process.
fn policies_of_clocks() -> Vec<SchedulingPolicy> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this process has threads");
    let mut policies = Vec::new();
    for task in tasks {
        let task = task.expect("a thread").path();
        let is_clock =
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "gate-clock");
        let number = task.file_name().and_then(|name| name.to_str()?.parse().ok());
        let found = number.filter(|_| is_clock).and_then(|number| scheduling(number).ok());
        policies.extend(found.map(|found| found.policy).filter(|policy| !policies.contains(policy)));
    }
    policies
}

#[test]
fn a_gate_that_a_demoted_thread_makes_is_preemptive() {
    let Some(gate) = preemptive(1, None) else { return };
    let made = while_demoted(&gate, |_| Gate::new(settings(1, GatePreemption::WhereProven)));
    assert_eq!(made.admission_report().preemption, PreemptionReport::Preemptive);
}

/// A request that ran alone has not delayed another one.
#[test]
fn a_request_that_ran_alone_is_demoted() {
    let patience = Duration::from_millis(1);
    let Some(gate) = preemptive(1, Some(patience)) else { return };
    thread::scope(|scope| {
        let young = holder(scope, &gate, 9);
        thread::sleep(3 * patience);
        let old = holder(scope, &gate, 1);
        assert_eq!(gate.statistics().demotions, 1);
        drop((young.1, old.1));
    });
}

/// The handle of the gate is dropped while a thread is demoted. The thread may hold a lock that others
/// need, so it is promoted within the patience.
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
