//! EnforcementRules that change while requests wait.

use super::reference::{some_arrivals, some_rules};
use super::{
    DispatchedRequest, EnforcementRules, Enforcer, FlowRules, OverLimit, arrival, arrive_all, complete_all,
    flow, ids, limit, rules, sent,
};
use crate::enforce::{BEST_EFFORT, OutstandingBounds};
use proptest::prelude::*;

proptest! {
    /// For any changes at any time, every arrival is dispatched once, in order within its flow, and
    /// unknown flows get best effort.
    #[test]
    fn nothing_is_lost_and_order_is_kept(
        changes in prop::collection::vec(some_rules(), 1..8), drawn in some_arrivals(),
    ) {
        let mut enforcer = Enforcer::new(0, &changes[0]).unwrap();
        let mut ends: Vec<(u64, DispatchedRequest)> = Vec::new();
        let mut order: Vec<(u32, u32)> = Vec::new();
        let mut next = 0;
        let mut at = drawn[0].0;
        for now in 0..3000u64 {
            let change = usize::try_from(now / 7).unwrap();
            // Later there are no limits, so that everything ends.
            let rules = if now < 210 { &changes[change % changes.len()] } else { &EnforcementRules::none() };
            if now % 7 == 0 && now <= 210 {
                enforcer.reconfigure(now, rules).unwrap();
            }
            while let Some(over) = ends.iter().position(|(end, _)| *end <= now) {
                enforcer.complete(ends.swap_remove(over).1);
            }
            while next < drawn.len() && at == now {
                enforcer.arrive(now, arrival(u32::try_from(next).unwrap(), drawn[next].1, drawn[next].2));
                next += 1;
                at += drawn.get(next).map_or(0, |drawn| drawn.0);
            }
            for dispatch in sent(&mut enforcer, now) {
                let own = rules.flows.get(&dispatch.flow).map(|flow| flow.level);
                prop_assert!(dispatch.level == BEST_EFFORT || Some(dispatch.level) == own);
                order.push((dispatch.flow, dispatch.id));
                ends.push((now + 1 + drawn[dispatch.id as usize].4, dispatch));
            }
            prop_assert_eq!(enforcer.outstanding() as usize, ends.len());
            prop_assert_eq!(enforcer.waiting(), next - order.len());
        }
        prop_assert_eq!(order.len(), drawn.len());
        for name in 0..6 {
            let of: Vec<u32> = order.iter().filter(|(flow, _)| *flow == name).map(|(_, id)| *id).collect();
            prop_assert!(of.is_sorted());
        }
    }

    /// The same rules again, at any time, change nothing.
    #[test]
    fn the_same_rules_again_change_nothing(rules in some_rules(), drawn in some_arrivals(), every in 1u64..9) {
        let mut one = Enforcer::new(0, &rules).unwrap();
        let mut other = Enforcer::new(0, &rules).unwrap();
        let mut next = 0;
        let mut at = drawn[0].0;
        for now in 0..400u64 {
            if now % every == 0 {
                other.reconfigure(now, &rules).unwrap();
            }
            while next < drawn.len() && at == now {
                let arrival = arrival(u32::try_from(next).unwrap(), drawn[next].1, drawn[next].2);
                one.arrive(now, arrival);
                other.arrive(now, arrival);
                next += 1;
                at += drawn.get(next).map_or(0, |drawn| drawn.0);
            }
            let first = sent(&mut one, now);
            let second = sent(&mut other, now);
            prop_assert_eq!(&first, &second);
            complete_all(&mut one, first);
            complete_all(&mut other, second);
        }
    }
}

/// A limit that changes every time hands out its burst once.
#[test]
fn a_changed_limit_hands_out_no_burst_again() {
    let limited = |burst| rules(&[(3, flow(0, OverLimit::Queue, &[limit(1, burst)]))]);
    let mut enforcer = Enforcer::new(0, &limited(10)).unwrap();
    arrive_all(&mut enforcer, 0, (0..1000).map(|id| arrival(id, 3, 1)));
    let mut passed = 0;
    for now in 0..1000 {
        // Removed in between, too: it finds its bucket again.
        let removed = now % 50 == 25;
        if !removed {
            enforcer.reconfigure(now, &limited(5 + now % 6)).unwrap();
            passed +=
                sent(&mut enforcer, now).into_iter().map(|dispatch| enforcer.complete(dispatch)).count();
        } else {
            let held = EnforcementRules {
                bounds: OutstandingBounds { requests: 1, bytes: 1 },
                ..EnforcementRules::none()
            };
            enforcer.reconfigure(now, &held).unwrap();
        }
    }
    // The burst of 10 and one in 10 ns.
    assert!((105..=110).contains(&passed), "{passed}");
}

#[test]
fn what_is_removed_is_best_effort_and_what_comes_back_keeps_its_order() {
    let high = || rules(&[(1, flow(0, OverLimit::Queue, &[])), (2, flow(1, OverLimit::Queue, &[]))]);
    let bounded = |rules: EnforcementRules| EnforcementRules {
        bounds: OutstandingBounds { requests: 1, bytes: u64::MAX },
        ..rules
    };
    let mut enforcer = Enforcer::new(0, &bounded(high())).unwrap();
    enforcer.arrive(0, arrival(0, 2, 1));
    let busy = enforcer.dispatch_next(0).unwrap();
    for (id, flow) in [(1, 1), (2, 2), (3, 1), (4, 9)] {
        enforcer.arrive(1, arrival(id, flow, 1));
    }
    let without = bounded(rules(&[(2, flow(1, OverLimit::Queue, &[]))]));
    enforcer.reconfigure(2, &without).unwrap();
    // At its old level 1 it is still outstanding, and counts.
    assert_eq!((enforcer.dispatch_next(2), enforcer.outstanding()), (None, 1));
    let mut removed = enforcer.clone();
    removed.complete(busy.clone());
    let mut order = Vec::new();
    while let Some(dispatch) = removed.dispatch_next(3) {
        order.push((dispatch.id, dispatch.level));
        removed.complete(dispatch);
    }
    assert_eq!(order, [(2, 1), (1, BEST_EFFORT), (3, BEST_EFFORT), (4, BEST_EFFORT)]);
    // Known again before it was served: 5 does not overtake 1 and 3.
    enforcer.reconfigure(4, &high()).unwrap();
    enforcer.arrive(4, arrival(5, 1, 1));
    enforcer.complete(busy);
    assert_eq!(ids(&sent(&mut enforcer, 4)), [1, 3, 5, 2, 4]);
}

#[test]
fn rules_that_are_wrong_change_nothing() {
    let good = rules(&[(1, flow(0, OverLimit::Queue, &[limit(1, 1)]))]);
    let mut enforcer = Enforcer::new(0, &good).unwrap();
    enforcer.arrive(0, arrival(0, 1, 1));
    let level = rules(&[(1, flow(BEST_EFFORT, OverLimit::Queue, &[]))]);
    let rate = rules(&[(1, FlowRules { limits: vec![limit(0, 1)], ..flow(0, OverLimit::Demote, &[]) })]);
    let items =
        EnforcementRules { bounds: OutstandingBounds { requests: 0, bytes: 1 }, ..EnforcementRules::none() };
    for (bad, part) in [(level, "level"), (rate, "rate"), (items, "outstanding")] {
        let fault = enforcer.reconfigure(0, &bad).unwrap_err();
        assert!(fault.contains(part), "{fault}");
    }
    assert_eq!(ids(&sent(&mut enforcer, 0)), [0]);
}
