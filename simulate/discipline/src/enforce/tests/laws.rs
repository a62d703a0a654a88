//! Laws that hold for all rules and loads.

use super::reference::{Drawn, operation, some_arrivals, some_rules};
use super::{
    ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer, FlowRules, OverLimit, arrival,
    arrive_all, complete_all, flow, ids, limit, rules, sent,
};
use crate::Limit;
use crate::enforce::{BEST_EFFORT, DeviceOperation, OutstandingBounds};
use proptest::prelude::*;

/// A dispatched item, with its times.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    id: u32,
    flow: u32,
    level: u32,
    cost: u64,
    arrived: u64,
    at: u64,
    end: u64,
}

/// Everything in the order in which it was dispatched. Bytes are as drawn, a device time of 0 ends at once.
fn play(rules: &EnforcementRules, drawn: &[Drawn], check: impl Fn(&Enforcer)) -> Vec<Sent> {
    let mut enforcer = Enforcer::new(0, rules).unwrap();
    let arrivals: Vec<u64> = drawn
        .iter()
        .scan(0, |now, drawn| {
            *now += drawn.0;
            Some(*now)
        })
        .collect();
    let mut history = Vec::new();
    let mut ends = Vec::<(u64, DispatchedRequest)>::new();
    let mut next = 0;
    loop {
        let end = ends.iter().map(|(end, _)| *end).min();
        let coming = arrivals.get(next).copied();
        let Some(now) = [end, coming, enforcer.wake_at()].into_iter().flatten().min() else { break };
        while let Some(over) = ends.iter().position(|(end, _)| *end == now) {
            enforcer.complete(ends.swap_remove(over).1);
        }
        while let Some(drawn) = drawn.get(next).filter(|_| arrivals[next] == now) {
            let id = u32::try_from(next).unwrap();
            let arrival =
                ArrivingRequest { bytes: drawn.3, operation: operation(id), ..arrival(id, drawn.1, drawn.2) };
            enforcer.arrive(now, arrival);
            next += 1;
        }
        while let Some(dispatch) = enforcer.dispatch_next(now) {
            let id = dispatch.id;
            let flow = dispatch.flow;
            let level = dispatch.level;
            let (_, _, cost, _, time) = drawn[id as usize];
            let arrived = arrivals[id as usize];
            history.push(Sent { id, flow, level, cost, arrived, at: now, end: now + time });
            if time == 0 {
                enforcer.complete(dispatch);
            } else {
                ends.push((now + time, dispatch));
            }
        }
        check(&enforcer);
    }
    assert_eq!(history.len(), drawn.len(), "something is lost or waits for ever");
    history
}

/// Returns the work that may pass in a time.
fn allowed(limit: &Limit, time: u64, history: &[Sent]) -> f64 {
    let largest = history.iter().map(|sent| sent.cost).max().unwrap_or(0);
    let excess = largest.saturating_sub(limit.burst);
    time as f64 * limit.rate as f64 / 1e9 + (limit.burst + excess) as f64 + 1e-6
}

/// Returns true if the sum of costs over any interval stays within the allowance.
fn keeps(limit: &Limit, history: &[Sent], flow: u32, from: impl Fn(&Sent) -> u64) -> bool {
    let own: Vec<&Sent> =
        history.iter().filter(|sent| sent.flow == flow && sent.level != BEST_EFFORT).collect();
    own.iter().all(|first| {
        own.iter().all(|last| {
            let start = from(first);
            let inside = own.iter().filter(|sent| from(sent) >= start && sent.at <= last.at);
            last.at < start
                || inside.map(|sent| sent.cost).sum::<u64>() as f64
                    <= allowed(limit, last.at - start, history)
        })
    })
}

/// Returns the least burst with which these arrivals keep a limit of `rate` tenths per nanosecond.
fn burst_of(drawn: &[Drawn], flow: u32, rate: u64) -> u64 {
    let mut now = 0u64;
    let mut level = 0u64;
    let mut most = 0;
    for (gap, of, cost, _, _) in drawn {
        now += gap;
        level = level.saturating_sub(gap * rate);
        if *of == flow {
            level += 10 * cost;
            most = most.max(level);
        }
    }
    most.div_ceil(10).max(1)
}

proptest! {
    /// The limiter's law where it is observable: the arrivals from any instant on that are served at the
    /// flow's own level until any later one keep the limit. In queue mode all service is at the own
    /// level.
    #[test]
    fn own_levels_keep_their_limits(rules in some_rules(), drawn in some_arrivals()) {
        let history = play(&rules, &drawn, |_| ());
        for (flow, rules) in &rules.flows {
            for limit in &rules.limits {
                prop_assert!(keeps(limit, &history, *flow, |sent| sent.arrived));
            }
            let demoted = history.iter().any(|sent| sent.flow == *flow && sent.level == BEST_EFFORT);
            prop_assert!(rules.over_limit == OverLimit::Demote || !demoted);
        }
    }

    /// Before a device that is always free, dispatched work keeps the limit in every interval. A demoted
    /// request would have broken a limit, counting only service within limits: demoted service costs no
    /// tokens.
    #[test]
    fn before_a_free_device_limits_are_exact(rules in some_rules(), drawn in some_arrivals()) {
        let rules = EnforcementRules { flows: rules.flows, ..EnforcementRules::none() };
        let drawn: Vec<Drawn> = drawn.into_iter().map(|drawn| (drawn.0, drawn.1, drawn.2, drawn.3, 0)).collect();
        let history = play(&rules, &drawn, |_| ());
        for (flow, rules) in &rules.flows {
            prop_assert!(rules.limits.iter().all(|limit| keeps(limit, &history, *flow, |sent| sent.at)));
            for (position, sent) in history.iter().enumerate() {
                if sent.flow != *flow || sent.level != BEST_EFFORT {
                    continue;
                }
                prop_assert_eq!(sent.at, sent.arrived);
                let breaks = |limit: &Limit| {
                    let used = |from: u64| {
                        let own = |other: &&Sent| other.flow == *flow && other.level != BEST_EFFORT && other.at >= from;
                        history[..position].iter().filter(own).map(|other| other.cost).sum::<u64>() as f64
                    };
                    let needs = sent.cost.min(limit.burst) as f64;
                    history[..position].iter().any(|other| {
                        let leaked = (sent.at - other.at) as f64 * limit.rate as f64 / 1e9;
                        used(other.at) + needs > limit.burst as f64 + leaked - 1e-6
                    })
                };
                prop_assert!(rules.limits.iter().any(breaks));
            }
        }
    }

    /// Limits that arrivals keep change nothing, however others delay the flow: same instants, same
    /// levels.
    #[test]
    fn limits_that_are_kept_are_not_there(
        mut rules in some_rules(), drawn in some_arrivals(), rates in prop::collection::vec(1u64..30, 0..3),
        over in prop::sample::select(vec![OverLimit::Demote, OverLimit::Queue]),
    ) {
        let Some(kept) = rules.flows.keys().next().copied() else { return Ok(()) };
        let flow = |limits| FlowRules { over_limit: over, limits, ..rules.flows[&kept].clone() };
        let limited = flow(rates.iter().map(|rate| limit(*rate, burst_of(&drawn, kept, *rate))).collect());
        let free = flow(Vec::new());
        rules.flows.insert(kept, limited);
        let got = play(&rules, &drawn, |_| ());
        rules.flows.insert(kept, free);
        prop_assert_eq!(got, play(&rules, &drawn, |_| ()));
    }

    #[test]
    fn flows_are_first_in_first_out(rules in some_rules(), drawn in some_arrivals()) {
        let history = play(&rules, &drawn, |_| ());
        for name in 0..6 {
            prop_assert!(history.iter().filter(|sent| sent.flow == name).is_sorted_by_key(|sent| sent.id));
        }
    }

    /// With demotion and only bounds on items, the device is as busy as they allow, apart from the
    /// reserve.
    #[test]
    fn demotion_conserves_work(mut rules in some_rules(), drawn in some_arrivals(), items in 1u32..4) {
        rules.flows.values_mut().for_each(|flow| flow.over_limit = OverLimit::Demote);
        rules.bounds = OutstandingBounds { requests: items, bytes: u64::MAX };
        (rules.reads, rules.writes, rules.lower_levels) = (OutstandingBounds::NONE, OutstandingBounds::NONE, OutstandingBounds::NONE);
        rules.reserve = rules.reserve.min(items - 1);
        let least = items - rules.reserve;
        play(&rules, &drawn, |enforcer| {
            assert!(enforcer.waiting() == 0 || enforcer.outstanding() >= least);
        });
    }

    /// One item at a time: a flow within its limits on the highest level is delayed by lower levels by at
    /// most their largest item.
    #[test]
    fn nobody_below_delays_by_more_than_one_item(
        mut rules in some_rules(), drawn in some_arrivals(), rate in 1u64..30,
    ) {
        (rules.bounds.requests, rules.reserve) = (1, 0);
        rules.flows.values_mut().for_each(|flow| flow.level += 1);
        rules.flows.insert(0, flow(0, OverLimit::Demote, &[limit(rate, burst_of(&drawn, 0, rate))]));
        let history = play(&rules, &drawn, |_| ());
        let below = history.iter().filter(|sent| sent.flow != 0).map(|sent| sent.end - sent.at).max();
        let mut free = 0;
        for sent in history.iter().filter(|sent| sent.flow == 0) {
            free = free.max(sent.arrived) + (sent.end - sent.at);
            prop_assert!(sent.end <= free + below.unwrap_or(0), "{sent:?} instead of {free}");
        }
    }
}

/// The reason for the limiter's place: tokens taken at dispatch would demote this flow, although its
/// arrivals keep its limit, because others held it up.
#[test]
fn who_was_held_up_may_catch_up() {
    let rules = EnforcementRules {
        bounds: OutstandingBounds { requests: 1, bytes: u64::MAX },
        ..rules(&[(0, flow(0, OverLimit::Queue, &[])), (1, flow(1, OverLimit::Demote, &[limit(1, 1)]))])
    };
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    enforcer.arrive(0, arrival(9, 0, 100));
    let long = enforcer.dispatch_next(0).unwrap();
    for (id, now) in [(0, 0), (1, 10), (2, 20), (3, 30)] {
        enforcer.arrive(now, arrival(id, 1, 1));
    }
    enforcer.complete(long);
    for id in 0..4 {
        let dispatch = enforcer.dispatch_next(35).unwrap();
        assert_eq!((dispatch.id, dispatch.level), (id, 1));
        enforcer.complete(dispatch);
    }
}

#[test]
fn demoted_heads_yield_to_all_levels_and_come_back() {
    let rules =
        rules(&[(0, flow(0, OverLimit::Demote, &[limit(1, 1)])), (1, flow(5, OverLimit::Queue, &[]))]);
    let bounded = EnforcementRules { bounds: OutstandingBounds { requests: 1, bytes: u64::MAX }, ..rules };
    let mut enforcer = Enforcer::new(0, &bounded).unwrap();
    for id in 0..3 {
        enforcer.arrive(0, arrival(id, 0, 1));
    }
    enforcer.arrive(0, arrival(3, 1, 1));
    enforcer.arrive(0, arrival(4, 77, 1));
    let mut at = |now| {
        let dispatch = enforcer.dispatch_next(now).unwrap();
        let served = (dispatch.id, dispatch.level);
        enforcer.complete(dispatch);
        served
    };
    assert_eq!([at(0), at(0)], [(0, 0), (3, 5)]);
    // Beyond its limit it is the older of two best efforts, and takes no tokens: the next has them at 10.
    assert_eq!([at(9), at(10), at(10)], [(1, BEST_EFFORT), (2, 0), (4, BEST_EFFORT)]);
}

#[test]
fn low_levels_are_bounded_beside_high_ones() {
    let rules = EnforcementRules {
        bounds: OutstandingBounds { requests: 4, bytes: 100 },
        lower_levels: OutstandingBounds { requests: 2, bytes: 10 },
        ..rules(&[(0, flow(0, OverLimit::Queue, &[])), (1, flow(1, OverLimit::Queue, &[]))])
    };
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    enforcer.arrive(0, arrival(0, 0, 1));
    for (id, bytes) in [(1, 40), (2, 1), (3, 1)] {
        enforcer.arrive(0, arrival(id, 1, bytes));
    }
    // A large one passes alone, and holds up those behind it.
    let mut first = sent(&mut enforcer, 0);
    assert_eq!(ids(&first), [0, 1]);
    enforcer.complete(first.remove(0));
    assert_eq!(ids(&sent(&mut enforcer, 0)), [2, 3]);
    // Larger than the bound on outstanding work: dispatched when it is alone, and no request overtakes
    // it.
    enforcer.arrive(1, arrival(4, 0, 500));
    enforcer.arrive(1, arrival(5, 1, 1));
    assert_eq!(enforcer.dispatch_next(1), None);
    assert_eq!(enforcer.waiting(), 2);
}

/// Best effort never takes the last place, whatever occupies the others; nor do demoted requests.
#[test]
fn best_effort_leaves_the_reserve_free() {
    let over = [limit(1, 10)];
    let rules = EnforcementRules {
        bounds: OutstandingBounds { requests: 3, bytes: u64::MAX },
        reserve: 1,
        ..rules(&[(0, flow(0, OverLimit::Demote, &over)), (1, flow(7, OverLimit::Queue, &[]))])
    };
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    arrive_all(&mut enforcer, 0, (0..3).map(|id| arrival(id, 77, 1)));
    let mut first = sent(&mut enforcer, 0);
    assert_eq!(ids(&first), [0, 1]);
    // Of two at once the second is beyond the limit, and so best effort.
    arrive_all(&mut enforcer, 1, (3..5).map(|id| arrival(id, 0, 10)));
    let high = sent(&mut enforcer, 1);
    assert_eq!(ids(&high), [3]);
    enforcer.complete(first.remove(0));
    assert_eq!(ids(&sent(&mut enforcer, 2)), [0_u32; 0]);
    enforcer.arrive(2, arrival(5, 1, 1));
    assert_eq!(ids(&sent(&mut enforcer, 2)), [5]);
    complete_all(&mut enforcer, high);
    enforcer.complete(first.remove(0));
    assert_eq!(ids(&sent(&mut enforcer, 3)), [2]);
    let all = EnforcementRules { reserve: 3, ..rules };
    assert!(Enforcer::new(0, &all).is_err_and(|fault| fault.contains("reserve")));
}

/// A best-effort request that is larger than others expect goes when nothing is outstanding, so that there is one at most.
#[test]
fn an_unexpected_best_effort_request_goes_alone() {
    let rules = EnforcementRules {
        bounds: OutstandingBounds { requests: 3, bytes: u64::MAX },
        largest_best_effort: Some(10),
        ..rules(&[(0, flow(0, OverLimit::Demote, &[Limit { rate: 1, burst: 1000 }]))])
    };
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    arrive_all(&mut enforcer, 0, (0..4).map(|id| arrival(id, 77, [10, 11, 12, 1][id as usize])));
    let mut there = sent(&mut enforcer, 0);
    assert_eq!(ids(&there), [0], "the next one waits until nothing is there");
    enforcer.arrive(1, arrival(4, 0, 50));
    there.append(&mut sent(&mut enforcer, 1));
    assert_eq!(ids(&there), [0, 4], "a level is not concerned, whatever it costs");
    assert!(there.iter().all(|dispatched| !dispatched.is_unexpected));
    complete_all(&mut enforcer, there);
    let mut there = sent(&mut enforcer, 2);
    assert_eq!(ids(&there), [1], "two at a time would be more than one");
    assert!(there[0].is_unexpected);
    enforcer.arrive(3, arrival(5, 0, 50));
    there.append(&mut sent(&mut enforcer, 3));
    assert_eq!(ids(&there), [1, 5]);
    complete_all(&mut enforcer, there);
    let there = sent(&mut enforcer, 4);
    assert_eq!(ids(&there), [2, 3], "what is expected may be beside it");
}

/// Reads and writes have places of their own; a request that does not fit keeps its turn.
#[test]
fn each_operation_has_bounds_of_its_own() {
    let few = |requests| OutstandingBounds { requests, bytes: u64::MAX };
    let known = [(0, flow(0, OverLimit::Queue, &[])), (1, flow(1, OverLimit::Queue, &[]))];
    let rules = EnforcementRules { bounds: few(3), reads: few(2), writes: few(1), ..rules(&known) };
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    let write = |id, flow| ArrivingRequest { operation: DeviceOperation::Write, ..arrival(id, flow, 1) };
    enforcer.arrive(0, write(0, 1));
    arrive_all(&mut enforcer, 0, (1..4).map(|id| arrival(id, 1, 1)));
    let mut there = sent(&mut enforcer, 0);
    assert_eq!(ids(&there), [0, 1, 2]);
    enforcer.complete(there.remove(1));
    // A write of the higher level waits for the write, and the read below it for its turn.
    enforcer.arrive(1, write(4, 0));
    assert_eq!(ids(&sent(&mut enforcer, 1)), [0_u32; 0]);
    enforcer.complete(there.remove(0));
    assert_eq!(ids(&sent(&mut enforcer, 2)), [4, 3]);
    let none = EnforcementRules { writes: few(0), ..rules };
    assert!(Enforcer::new(0, &none).is_err_and(|fault| fault.contains("each operation")));
}

/// Four sequential writes go together although two items at most are outstanding; a fifth does not belong to
/// them, a limit ends them, and so do bytes.
#[test]
fn what_follows_is_sent_along() {
    let batch = |limits: &[Limit], bytes: u64| {
        let bounds = OutstandingBounds { requests: 2, bytes };
        let rules = EnforcementRules {
            bounds,
            ..rules(&[(0, flow(1, OverLimit::Queue, limits)), (1, flow(2, OverLimit::Queue, &[]))])
        };
        let mut enforcer = Enforcer::new(0, &rules).unwrap();
        enforcer.arrive(0, arrival(9, 1, 1));
        arrive_all(&mut enforcer, 0, (0..5).map(|id| arrival(id, 0, 3)));
        let first = enforcer.dispatch_next(0).unwrap();
        let mut all = vec![first.clone()];
        while let Some(next) = enforcer.dispatch_continuation(0, &first, |id| id < 4) {
            all.push(next);
        }
        let others = sent(&mut enforcer, 0);
        complete_all(&mut enforcer, all.clone());
        (ids(&all), ids(&others), ids(&sent(&mut enforcer, 0)))
    };
    assert_eq!(batch(&[], u64::MAX), (vec![0, 1, 2, 3], vec![], vec![4, 9]));
    assert_eq!(batch(&[limit(1, 7)], u64::MAX), (vec![0, 1], vec![], vec![9]));
    assert_eq!(batch(&[], 10), (vec![0, 1, 2], vec![], vec![3, 4]));
}

/// A detached request leaves its place to others. With the rest of its workload it never exceeds all places.
#[test]
fn a_detached_request_counts_for_its_own_workload() {
    let mut known = rules(&[(1, flow(0, OverLimit::Demote, &[])), (2, flow(1, OverLimit::Demote, &[]))]);
    known.bounds.requests = 2;
    let mut enforcer = Enforcer::new(0, &known).expect("right rules");
    arrive_all(&mut enforcer, 0, (0..6).map(|id| arrival(id, 2, 1)));
    let mut held = sent(&mut enforcer, 0);
    assert_eq!(ids(&held), [0, 1]);
    for dispatch in &mut held {
        enforcer.detach(dispatch);
        enforcer.detach(dispatch);
        enforcer.check_invariants();
    }
    assert_eq!(enforcer.outstanding(), 0);
    assert_eq!(ids(&sent(&mut enforcer, 1)), [0; 0], "its workload has all places already");
    arrive_all(&mut enforcer, 1, (10..13).map(|id| arrival(id, 1, 1)));
    let others = sent(&mut enforcer, 1);
    assert_eq!(ids(&others), [10, 11]);
    enforcer.reconfigure(2, &known).expect("right rules");
    enforcer.check_invariants();
    complete_all(&mut enforcer, others);
    assert_eq!(ids(&sent(&mut enforcer, 2)), [12], "also after a change of the policy");
    enforcer.complete(held.swap_remove(0));
    enforcer.check_invariants();
    assert_eq!(ids(&sent(&mut enforcer, 3)), [2]);
    enforcer.bar(2, true);
    enforcer.complete(held.swap_remove(0));
    assert_eq!(ids(&sent(&mut enforcer, 3)), [0; 0], "nothing is dispatched of a flow that is barred");
    enforcer.bar(2, false);
    assert_eq!(enforcer.outstanding(), 2);
    enforcer.check_invariants();
}
