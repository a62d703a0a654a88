//! The gate of a process without rights: proof before any demotion, in children that give up what this process may do.

use super::{assert_empty, own_number, policy, settings};
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, scheduling, set_scheduling};
use machine::user::become_user;
use rustix::process::{Resource, Rlimit, geteuid, setrlimit};
use schedule::{Gate, GatePreemption, PreemptionReport, RequestKey};
use std::process::Command;
use std::thread;

/// Tells a child which test it runs.
const ROLE: &str = "TAILWRIGHT_GATE_TEST_ROLE";

/// True if this process is the child that runs the test; otherwise the child has run.
fn is_child(test: &str) -> bool {
    if std::env::var(ROLE).is_ok_and(|role| role == test) {
        return true;
    }
    if !geteuid().is_root() {
        testkit::skip("only root can become somebody else");
        return false;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let child = Command::new(program)
        .args(["--exact", &format!("rights::{test}"), "--nocapture", "--test-threads=1"])
        .env(ROLE, test)
        .output()
        .expect("this program starts");
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    if let Some(skipped) = said.lines().find(|line| line.starts_with("SKIPPED")) {
        testkit::skip(skipped);
    }
    false
}

/// Becomes the user `nobody` with this limit of nice values: 20 − the least nice value. False, with a
/// loud skip, where root may not raise limits.
fn become_nobody(nice_limit: u64) -> bool {
    let limit = Rlimit { current: Some(nice_limit), maximum: Some(nice_limit) };
    if let Err(error) = setrlimit(Resource::Nice, limit) {
        testkit::skip(&format!("RLIMIT_NICE cannot be set to {nice_limit}: {error}"));
        return false;
    }
    become_user(&"65534:65534".parse().expect("two numbers")).expect("root may become nobody");
    true
}

/// Returns the scheduling policy of a younger request inside while an older one passes.
fn policy_beside_an_older_one(gate: &Gate) -> SchedulingPolicy {
    let permit = gate.enter(RequestKey(9));
    let number = own_number();
    let seen = thread::scope(|scope| {
        let older = scope.spawn(|| {
            let _permit = gate.enter(RequestKey(1));
            policy(number)
        });
        if matches!(gate.admission_report().preemption, PreemptionReport::AdmissionOnly { .. }) {
            testkit::wait_until(super::LONG, "the older one to wait", || gate.statistics().waiting == 1);
            assert_eq!(policy(number), SchedulingPolicy::Other);
            drop(permit);
        }
        older.join().expect("the older one goes through")
    });
    assert_eq!(policy(number), SchedulingPolicy::Other, "promoted when the older one left");
    seen
}

#[test]
fn nobody_is_demoted_who_could_not_be_promoted() {
    if !is_child("nobody_is_demoted_who_could_not_be_promoted") {
        return;
    }
    if !become_nobody(0) {
        return;
    }
    let gate = Gate::new(settings(1, GatePreemption::WhereProven));
    let PreemptionReport::AdmissionOnly { reason } = gate.admission_report().preemption else {
        panic!("expected admission only")
    };
    assert!(reason.contains("promoted again") && reason.contains("RLIMIT_NICE"), "{reason}");
    assert_eq!(policy_beside_an_older_one(&gate), SchedulingPolicy::Other);
    assert_eq!(gate.statistics().demotions, 0);
    assert_empty(&gate);
}

#[test]
fn a_limit_of_nice_values_is_right_enough() {
    if !is_child("a_limit_of_nice_values_is_right_enough") {
        return;
    }
    if !become_nobody(20) {
        return;
    }
    let gate = Gate::new(settings(1, GatePreemption::WhereProven));
    assert_eq!(gate.admission_report().preemption, PreemptionReport::Preemptive);
    assert_eq!(policy_beside_an_older_one(&gate), SchedulingPolicy::Idle);
    assert_empty(&gate);
}

/// Checks that a thread with this nice value is demoted, and gets it back.
fn assert_demoted_at(nice: i32) {
    let gate = Gate::new(settings(1, GatePreemption::WhereProven));
    if let Err(error) = set_scheduling(own_number(), &ThreadScheduling::ordinary(nice)) {
        testkit::skip(&format!("nice {nice} cannot be given: {error}"));
        return;
    }
    assert_eq!(policy_beside_an_older_one(&gate), SchedulingPolicy::Idle);
    assert_eq!(scheduling(own_number()).expect("the thread is there").nice, nice);
    assert_eq!(gate.statistics().refused_changes, 0);
    assert_empty(&gate);
}

#[test]
fn threads_of_the_least_nice_value_that_is_allowed_are_demoted() {
    if is_child("threads_of_the_least_nice_value_that_is_allowed_are_demoted") && become_nobody(25) {
        assert_demoted_at(-5);
    }
}

#[test]
fn threads_of_any_nice_value_are_demoted_by_root() {
    if is_child("threads_of_any_nice_value_are_demoted_by_root") {
        assert_demoted_at(-20);
    }
}

#[test]
fn rights_that_are_given_up_later_end_demotions() {
    if !is_child("rights_that_are_given_up_later_end_demotions") {
        return;
    }
    let gate = Gate::new(settings(1, GatePreemption::WhereProven));
    assert_eq!(gate.admission_report().preemption, PreemptionReport::Preemptive);
    if !become_nobody(0) {
        return;
    }
    let permit = gate.enter(RequestKey(9));
    thread::scope(|scope| {
        scope.spawn(|| drop(gate.enter(RequestKey(1)))).join().expect("an older one is admitted beside it");
    });
    assert_eq!(policy(own_number()), SchedulingPolicy::Other, "not demoted, because nobody could promote it");
    assert!(matches!(gate.admission_report().preemption, PreemptionReport::AdmissionOnly { .. }));
    drop(permit);
    assert_eq!(gate.statistics().demotions, 0);
    // Admission only from now on.
    assert_eq!(policy_beside_an_older_one(&gate), SchedulingPolicy::Other);
}
