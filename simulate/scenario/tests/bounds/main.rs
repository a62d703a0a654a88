//! No request of a workload that keeps its limits exceeds its bound: coinciding greedy bursts, and a
//! search for worse ones. `cargo bench -p scenario --bench bounds` searches longer and prints how close
//! it came.

mod adversary;
mod aligned;
mod brute;
mod interrupting;
mod planned;
mod played;
mod predicted;

use adversary::{Attack, AttackedPath, SearchSpace};
use aligned::{Promise, TraceSpace, search_traces};
use planned::{PlanSpace, PlannedAttack, search_plans};
use played::{BoundAttack as _, Spending};
use predicted::{PredictedAttack, search_predictions};

fn space(route: AttackedPath, channels: u32) -> SearchSpace {
    SearchSpace {
        route,
        channels,
        levels: 7,
        shares_levels: true,
        spares_overtakers: true,
        keeps_tokens: true,
    }
}

#[test]
fn no_bound_of_a_device_is_broken() {
    for channels in [1, 2, 4, 16] {
        let (found, attack) = space(AttackedPath::Device, channels).search(3, 60);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        // A bound that nothing comes near would say nothing about the search.
        assert!(found.ratio > 0.5, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

#[test]
fn no_bound_of_a_link_is_broken() {
    let (found, attack) = space(AttackedPath::Link, 1).search(4, 100);
    assert!(!found.is_broken() && found.ratio > 0.5, "{found:?}\n{attack:#?}");
}

#[test]
fn no_bound_of_a_path_is_broken() {
    for channels in [1, 2, 4] {
        let (found, attack) = space(AttackedPath::Path, channels).search(3, 80);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
    }
}

/// HTB fills a bucket up to its burst while its workload waits for others, and no further.
#[test]
fn a_link_breaks_bounds_where_tokens_are_lost_again_and_again() {
    let found = Attack::held_up(3, 0.00042).play();
    assert!(found.is_broken(), "{found:?}");
}

#[test]
fn a_workload_may_be_held_up_twice() {
    let found = Attack::held_up(2, 0.0021).play();
    assert!(!found.is_broken(), "{found:?}");
    assert!(found.ratio > 0.8, "{found:?}");
}

/// The bounds are those that the planner computes, the limits those that any method chose, as a reader of the policy sees them.
#[test]
fn no_bound_of_a_plan_is_broken() {
    for channels in [1, 2, 4, 16, 64] {
        let (found, attack) = search_plans(PlanSpace::of_channels(channels), 6, 40);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        assert!(found.ratio > 0.2, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

/// Bounds and limits as in `admit` and `plan --model worst-case`.
#[test]
fn no_bound_of_a_prediction_is_broken() {
    for channels in [1, 2, 4, 16, 64] {
        let (found, attack) = search_predictions(channels, Spending::Limits, 8, 40);
        assert!(!found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
        assert!(found.ratio > 0.2, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

/// The bounds of `--preemptive`, under its limits and for traces as they are.
#[test]
fn no_bound_of_a_server_that_interrupts_is_broken() {
    let (found, attack) = search_plans(PlanSpace { interrupts: true, ..PlanSpace::of_channels(1) }, 12, 60);
    assert!(!found.is_broken() && found.ratio > 0.5, "{found:?}\n{attack:#?}");
    let space = TraceSpace { promise: Promise::AllRequests, channels: 1, interrupts: true };
    let (found, attack) = search_traces(space, 8, 60);
    assert!(!found.is_broken() && found.ratio > 0.5, "{found:?}\n{attack:#?}");
}

/// The bounds of `--model probabilistic`: the share of requests over independent alignments that are later.
#[test]
fn no_share_of_requests_is_later_than_promised() {
    for (channels, interrupts) in [(1, true), (1, false), (4, false), (64, false)] {
        let space = TraceSpace { promise: Promise::ShareOfRequests, channels, interrupts };
        let (_, attack) = search_traces(space, 3, 6);
        let judged = attack.late_share(200, 2);
        assert!(judged.least_over_allowed <= 1.0, "{channels} channels: {judged:?}\n{attack:#?}");
        assert!(judged.approach.ratio > 0.1, "{channels} channels: {judged:?}\n{attack:#?}");
    }
}

/// A search that finds nothing proves nothing, so it must find a violation where one exists. It breaks
/// the bounds of policies whose limits include the enforcers' allowance, as in documents of version 1.
#[test]
fn workloads_that_spend_allowances_break_their_bounds() {
    for channels in [2, 4, 16] {
        let found = PlannedAttack::overtaken(channels, Spending::Allowances).play();
        assert!(channels == 16 || found.ratio > 1.1, "{channels} channels: {found:?}");
        let found = PlannedAttack::overtaken(channels, Spending::Limits).play();
        assert!(!found.is_broken(), "{channels} channels: {found:?}");
    }
    let (found, attack) =
        search_plans(PlanSpace { spending: Spending::Allowances, ..PlanSpace::of_channels(4) }, 4, 10);
    assert!(found.is_broken(), "{found:?}\n{attack:#?}");
}

/// The same for limits of `--model`, where a workload of higher priority keeps the device from one that is then overtaken.
#[test]
fn workloads_that_spend_allowances_break_their_predictions() {
    for channels in [2, 4] {
        let (found, attack) = search_predictions(channels, Spending::Allowances, 24, 10);
        assert!(found.is_broken(), "{channels} channels: {found:?}\n{attack:#?}");
    }
    let found = PredictedAttack::blocked(4, Spending::Allowances).play();
    assert!(found.ratio > 1.1, "{found:?}");
    for channels in [1, 2, 4, 16, 64] {
        let found = PredictedAttack::blocked(channels, Spending::Limits).play();
        assert!(!found.is_broken(), "{channels} channels: {found:?}");
        let found = PlannedAttack::overtaken(channels, Spending::Limits).play();
        assert!(!found.is_broken(), "{channels} channels: {found:?}");
    }
}

/// Two simulators that share no code compute the same latency for every request. Where two events
/// coincide, as on a device whose channels run in step, either may come first, so an answer may be behind
/// one packet more or less.
#[test]
fn the_simulator_agrees_with_one_in_plain_code() {
    for channels in [1, 2, 4, 16] {
        let (_, plan) = search_plans(PlanSpace::of_channels(channels), 3, 10);
        let (_, prediction) = search_predictions(channels, Spending::Limits, 3, 10);
        let mut cases = vec![(plan.traffic(), true), (prediction.traffic(), true)];
        if channels > 1 {
            cases.push((PredictedAttack::blocked(channels, Spending::Allowances).traffic(), false));
            cases.push((PlannedAttack::overtaken(channels, Spending::Limits).traffic(), true));
            cases.push((PlannedAttack::overtaken(channels, Spending::Allowances).traffic(), false));
        }
        for (number, ((traffic, bounds), keeps_limits)) in cases.into_iter().enumerate() {
            let traffic = traffic.apart();
            let packet = traffic.packet();
            let [simulated, plain] = traffic.latencies_by_both();
            for (workload, bound) in bounds.iter().enumerate() {
                assert_eq!(simulated[workload].len(), plain[workload].len());
                for (request, (ours, plain)) in simulated[workload].iter().zip(&plain[workload]).enumerate() {
                    let said = format!(
                        "{channels} channels, case {number}, w{workload}, request {request}: {ours} s, {plain} s apart, \
                         bound {bound} s"
                    );
                    assert!(!keeps_limits || *plain <= bound + 1e-6, "{said}");
                    assert!((plain - ours).abs() <= packet + 1e-6, "{said}");
                }
            }
        }
    }
}
