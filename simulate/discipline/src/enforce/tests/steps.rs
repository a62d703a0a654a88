//! Everything that a caller can do, at any time, beside the twin.

use super::reference::{Twin, TwinCharge, operation, some_arrivals, some_rules_with_shares};
use super::{ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer};
use crate::enforce::{TokenCharge, WaitingRequest};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// An action of the caller beside arrivals and completions; the number selects its object.
#[derive(Debug, Clone)]
enum Step {
    /// One request, or every second of its flow, as when a client hangs up.
    Withdraw(usize, bool),
    Move(usize, u32),
    Reconfigure(EnforcementRules),
}

fn some_steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let which = 0usize..25;
    let step = prop_oneof![
        2 => (which.clone(), any::<bool>()).prop_map(|(which, all)| Step::Withdraw(which, all)),
        2 => (which, 0u32..6).prop_map(|(which, flow)| Step::Move(which, flow)),
        1 => some_rules_with_shares().prop_map(Step::Reconfigure),
    ];
    prop::collection::vec((0u64..70, step), 0..8)
}

/// An enforcer and its twin, to which everything is done alike.
struct Pair {
    enforcer: Enforcer,
    twin: Twin,
    handles: BTreeMap<u32, WaitingRequest>,
    /// Completion times of outstanding requests.
    ends: Vec<(u64, DispatchedRequest)>,
    /// Settlement times of completed requests, if they are settled.
    charges: Vec<(u64, TokenCharge, TwinCharge, u64)>,
}

impl Pair {
    fn new(rules: &EnforcementRules) -> Self {
        let enforcer = Enforcer::new(0, rules).unwrap();
        let twin = Twin::new(rules);
        Self { enforcer, twin, handles: BTreeMap::new(), ends: vec![], charges: vec![] }
    }

    fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        self.handles.insert(arrival.id, self.enforcer.arrive(now, arrival));
        self.twin.arrive(now, arrival);
    }

    /// Applies one step to waiting requests. Returns false if there was no request to apply it to.
    fn step(&mut self, now: u64, step: &Step) -> bool {
        match step {
            Step::Reconfigure(rules) => {
                self.enforcer.reconfigure(now, rules).unwrap();
                self.twin.reconfigure(now, rules);
            }
            Step::Withdraw(which, all) => {
                let Some(chosen) = self.chosen(*which) else { return false };
                let ids = self.twin.waiting.iter().filter(|item| item.arrival.flow == chosen.flow);
                let ids: Vec<u32> = ids.map(|item| item.arrival.id).collect();
                for id in ids.into_iter().filter(|id| if *all { id % 2 == 0 } else { *id == chosen.id }) {
                    self.enforcer.withdraw(now, self.handles.remove(&id).unwrap());
                    self.twin.withdraw(now, id);
                    self.enforcer.check_invariants();
                }
            }
            Step::Move(which, flow) => {
                let Some(chosen) = self.chosen(*which) else { return false };
                self.enforcer.move_to_flow(now, self.handles[&chosen.id], *flow);
                self.twin.move_to(now, chosen.id, *flow);
            }
        }
        self.enforcer.check_invariants();
        true
    }

    fn chosen(&self, which: usize) -> Option<ArrivingRequest> {
        let count = self.twin.waiting.len();
        (count > 0).then(|| self.twin.waiting[which % count].arrival)
    }

    /// Completes the requests that end now, to be settled after `after` unless that is 9, with the cost
    /// that `served` returns.
    fn complete(&mut self, now: u64, served: impl Fn(u32) -> (u64, u64)) -> bool {
        let before = self.ends.len();
        while let Some(over) = self.ends.iter().position(|(end, _)| *end == now) {
            let (_, dispatch) = self.ends.swap_remove(over);
            let id = dispatch.id;
            let (after, cost) = served(id);
            let charge = self.enforcer.complete(dispatch);
            let judge = self.twin.done(id);
            assert_eq!(charge.tokens(), judge.map_or(0, |(_, tokens)| tokens));
            if after < 9 {
                self.charges.push((now + after, charge, judge, cost));
            }
        }
        self.ends.len() < before
    }

    fn settle(&mut self, now: u64) -> bool {
        let before = self.charges.len();
        while let Some(due) = self.charges.iter().position(|(at, ..)| *at == now) {
            let (_, charge, judge, served) = self.charges.swap_remove(due);
            self.enforcer.settle(now, charge, served);
            self.twin.settle(now, judge, served);
            self.enforcer.check_invariants();
        }
        self.charges.len() < before
    }
}

proptest! {
    #[test]
    fn agrees_with_the_twin(
        rules in some_rules_with_shares(), drawn in some_arrivals(), steps in some_steps(),
        served in prop::collection::vec((0u64..10, 0u64..15), 25),
    ) {
        let mut pair = Pair::new(&rules);
        let mut next = 0;
        let mut at = drawn[0].0;
        let mut expected_wake = None;
        for now in 0..4000u64 {
            if now > 0 {
                pair.twin.tick();
                pair.twin.pass(now);
            }
            // Called only at events and at the announced wake time: calls in between must not matter.
            let mut asked = pair.enforcer.wake_at() == Some(now);
            asked |= pair.complete(now, |id| served[id as usize]);
            asked |= pair.settle(now);
            while next < drawn.len() && at == now {
                let (_, flow, cost, bytes, _) = drawn[next];
                let id = u32::try_from(next).unwrap();
                pair.arrive(now, ArrivingRequest { id, flow, operation: operation(id), cost, bytes, is_estimate: false });
                asked = true;
                next += 1;
                at += drawn.get(next).map_or(0, |drawn| drawn.0);
            }
            for (_, step) in steps.iter().filter(|(at, _)| *at == now) {
                asked |= pair.step(now, step);
            }
            loop {
                let judge = pair.twin.next(now);
                let got = if asked { pair.enforcer.dispatch_next(now) } else { None };
                prop_assert_eq!(got.as_ref().map(|got| (got.id, got.level)), judge, "at {}", now);
                pair.enforcer.check_invariants();
                let Some(dispatch) = got else { break };
                pair.ends.push((now + 1 + drawn[dispatch.id as usize].4, dispatch));
            }
            prop_assert_eq!(pair.enforcer.waiting(), pair.twin.waiting.len());
            prop_assert_eq!(pair.enforcer.outstanding() as usize, pair.twin.outstanding.len());
            // It says when it wakes up once, not again and again later.
            let wake = pair.enforcer.wake_at();
            prop_assert!(wake.is_none_or(|wake| wake > now));
            if !asked {
                prop_assert_eq!(wake, expected_wake);
            }
            expected_wake = wake;
            if now > 70 && next == drawn.len() && pair.twin.waiting.is_empty() && pair.ends.is_empty() {
                return Ok(());
            }
        }
        prop_assert!(false, "something waits for ever");
    }
}
