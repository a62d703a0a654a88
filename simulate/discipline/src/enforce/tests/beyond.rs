//! Requests that the limits of their flow did not cover.

use super::{EnforcementRules, Enforcer, FlowRules, OverLimit, arrival, flow, limit, rules, sent};
use crate::enforce::{ArrivingRequest, OutstandingBounds};

/// Identifiers of the requests that may be sent now, with true for those beyond the limits.
fn beyond(enforcer: &mut Enforcer, now: u64) -> Vec<(u32, bool)> {
    sent(enforcer, now).iter().map(|dispatch| (dispatch.id, dispatch.is_beyond_limits)).collect()
}

#[test]
fn what_finds_tokens_is_within_its_limits() {
    for over in [OverLimit::Demote, OverLimit::Queue] {
        let mut enforcer = Enforcer::new(0, &rules(&[(0, flow(0, over, &[limit(1, 5)]))])).unwrap();
        enforcer.arrive(0, arrival(1, 0, 5));
        assert_eq!(beyond(&mut enforcer, 0), [(1, false)]);
        // Half of the tokens are back.
        enforcer.arrive(25, arrival(2, 0, 5));
        let is_demoted = over == OverLimit::Demote;
        assert_eq!(beyond(&mut enforcer, 25), if is_demoted { vec![(2, true)] } else { Vec::new() });
        // A demoted request takes none.
        let later = if is_demoted { Vec::new() } else { vec![(2, true)] };
        assert_eq!(beyond(&mut enforcer, 50), later);
        enforcer.arrive(200, arrival(3, 0, 5));
        // Of a flow without rules nothing is limited.
        enforcer.arrive(200, arrival(4, 9, 500));
        assert_eq!(beyond(&mut enforcer, 200), [(3, false), (4, false)]);
    }
}

#[test]
fn what_is_larger_than_the_largest_is_beyond() {
    let small = FlowRules { largest: Some(4), ..flow(0, OverLimit::Queue, &[limit(1, 10)]) };
    let mut enforcer = Enforcer::new(0, &rules(&[(0, small)])).unwrap();
    enforcer.arrive(0, arrival(1, 0, 5));
    enforcer.arrive(0, arrival(2, 0, 4));
    assert_eq!(beyond(&mut enforcer, 0), [(1, true), (2, false)]);
}

#[test]
fn a_wait_for_other_requests_is_not_beyond() {
    // One estimate at a time may pass.
    let rules = EnforcementRules {
        bounds: OutstandingBounds { requests: 1, ..EnforcementRules::none().bounds },
        ..rules(&[(0, flow(0, OverLimit::Queue, &[limit(1, 50)]))])
    };
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    for id in 1..=2 {
        enforcer.arrive(0, ArrivingRequest { is_estimate: true, ..arrival(id, 0, 5) });
    }
    let first = enforcer.dispatch_next(0).expect("tokens are there");
    assert!(!first.is_beyond_limits && enforcer.dispatch_next(0).is_none());
    let charge = enforcer.complete(first);
    enforcer.settle(30, charge, 5);
    assert_eq!(beyond(&mut enforcer, 30), [(2, false)]);
}
