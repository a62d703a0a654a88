//! Service within limits when claims are wrong, refused, withdrawn or moved.

use super::{
    ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer, FlowRules, OverLimit, arrival,
    arrive_all, complete_all, flow, ids, limit, rules, sent,
};
use crate::Limit;
use crate::enforce::{BEST_EFFORT, OutstandingBounds, TokenCharge, WaitingRequest};
use proptest::prelude::*;

/// Gap, flow, claimed cost, deviation of the served cost, time at the device, time until settlement,
/// fate.
type Claim = (u64, u32, u64, u8, u64, u64, u8);

/// Returns the served cost of a claim: often none, often all, sometimes more.
fn served(claim: &Claim) -> u64 {
    match claim.3 {
        0..=2 => 0,
        3 => claim.2,
        4 => claim.2 / 2,
        _ => claim.2 + 3,
    }
}

/// A claim that was dispatched or not, and when its charge was settled.
struct Fate {
    waiting: Option<WaitingRequest>,
    came: u64,
    sent: Option<(u64, u32)>,
    settled: Option<u64>,
}

/// A player of claims, which withdraws every fourth that waits for long and moves every other fourth.
struct Player<'a> {
    enforcer: Enforcer,
    claims: &'a [Claim],
    fates: Vec<Fate>,
    ends: Vec<(u64, DispatchedRequest)>,
    charges: Vec<(u64, usize, TokenCharge)>,
}

impl Player<'_> {
    fn arrive(&mut self, now: u64) {
        let (_, flow, cost, ..) = self.claims[self.fates.len()];
        let id = u32::try_from(self.fates.len()).unwrap();
        let waiting = Some(self.enforcer.arrive(now, arrival(id, flow, cost)));
        self.fates.push(Fate { waiting, came: now, sent: None, settled: None });
    }

    fn change_fates(&mut self, now: u64) {
        for (fate, (_, flow, .., kind)) in self.fates.iter_mut().zip(self.claims) {
            let Some(waiting) = fate.waiting.filter(|_| now == fate.came + 5) else { continue };
            if kind % 4 == 0 {
                self.enforcer.withdraw(now, waiting);
                (fate.waiting, fate.settled) = (None, Some(now));
            } else if kind % 4 == 1 {
                self.enforcer.move_to_flow(now, waiting, 1 - flow);
                fate.came = now;
            }
        }
    }

    fn end(&mut self, now: u64) {
        while let Some(over) = self.ends.iter().position(|(end, _)| *end == now) {
            let (_, dispatch) = self.ends.swap_remove(over);
            let id = dispatch.id as usize;
            self.charges.push((now + self.claims[id].5, id, self.enforcer.complete(dispatch)));
        }
        while let Some(over) = self.charges.iter().position(|(at, ..)| *at == now) {
            let (_, id, charge) = self.charges.swap_remove(over);
            self.enforcer.settle(now, charge, served(&self.claims[id]));
            self.fates[id].settled = Some(now);
        }
    }

    fn dispatch(&mut self, now: u64) {
        for dispatch in sent(&mut self.enforcer, now) {
            let id = dispatch.id as usize;
            (self.fates[id].sent, self.fates[id].waiting) = (Some((now, dispatch.level)), None);
            self.ends.push((now + 1 + self.claims[id].4, dispatch));
        }
        self.enforcer.check_invariants();
    }

    /// Returns the maximum excess of served over claimed cost among requests present together.
    fn excess(&self) -> u64 {
        let ends = |fate: &Fate| fate.settled.unwrap_or(u64::MAX);
        let at = |now| {
            let there =
                self.fates.iter().zip(self.claims).filter(|(fate, _)| fate.came <= now && now <= ends(fate));
            there.map(|(_, claim)| served(claim).saturating_sub(claim.2)).sum()
        };
        self.fates.iter().map(|fate| at(fate.came)).max().unwrap_or(0)
    }

    /// Returns true if arrivals from any instant on, served at their level until any later one, keep the
    /// limit.
    fn keeps(&self, limit: &Limit) -> bool {
        let largest = self.claims.iter().map(|claim| claim.2).max().unwrap_or(0);
        let burst = limit.burst + largest.saturating_sub(limit.burst) + self.excess();
        let within = self.fates.iter().zip(self.claims).filter_map(|(fate, claim)| {
            let (at, level) = fate.sent?;
            (level != BEST_EFFORT).then_some((fate.came, at, served(claim)))
        });
        let within: Vec<(u64, u64, u64)> = within.collect();
        within.iter().all(|(start, ..)| {
            within.iter().filter(|(_, end, _)| end >= start).all(|(_, end, _)| {
                let inside = within.iter().filter(|(came, at, _)| came >= start && at <= end);
                let sum: u64 = inside.map(|(.., served)| *served).sum();
                10 * sum <= (end - start) * (limit.rate / 100_000_000) + 10 * burst
            })
        })
    }
}

fn play<'a>(rules: &EnforcementRules, claims: &'a [Claim]) -> Player<'a> {
    let enforcer = Enforcer::new(0, rules).unwrap();
    let mut player = Player { enforcer, claims, fates: vec![], ends: vec![], charges: vec![] };
    let mut at = claims[0].0;
    for now in 0..600 {
        player.end(now);
        while player.fates.len() < claims.len() && at == now {
            player.arrive(now);
            at += claims.get(player.fates.len()).map_or(0, |claim| claim.0);
        }
        player.change_fates(now);
        player.dispatch(now);
    }
    player
}

fn some_claims() -> impl Strategy<Value = Vec<Claim>> {
    prop::collection::vec((0u64..5, 0u32..2, 1u64..16, 0u8..7, 0u64..30, 0u64..20, any::<u8>()), 1..50)
}

fn bounded(rules: EnforcementRules, requests: u32) -> EnforcementRules {
    EnforcementRules { bounds: OutstandingBounds { requests, bytes: u64::MAX }, ..rules }
}

fn sharing(level: u32, over: OverLimit, owner: u32) -> FlowRules {
    FlowRules { shares_limits_of: Some(owner), ..flow(level, over, &[]) }
}

proptest! {
    /// The promise of settlement: for any claims, service, refunds, withdrawals and moves, two flows that
    /// share limits are together served at their levels no more than each limit allows.
    #[test]
    fn what_is_served_keeps_the_limits_whatever_is_claimed(
        claims in some_claims(), limits in prop::collection::vec((1u64..12, 1u64..25), 1..3), places in 1u32..12,
        over in prop::sample::select(vec![OverLimit::Demote, OverLimit::Queue]),
    ) {
        let limits: Vec<Limit> = limits.into_iter().map(|(rate, burst)| limit(rate, burst)).collect();
        let rules = bounded(rules(&[(0, flow(1, over, &limits)), (1, sharing(0, over, 0))]), places);
        let player = play(&rules, &claims);
        for limit in &limits {
            prop_assert!(player.keeps(limit), "{limit:?}");
        }
    }

    /// The largest request bounds what claims take: nothing above it has the level, however it is claimed.
    #[test]
    fn no_claim_above_the_largest_has_a_level(claims in some_claims(), largest in 1u64..16, places in 1u32..12) {
        let limits = [limit(3, 20)];
        let capped = |level| FlowRules { largest: Some(largest), ..flow(level, OverLimit::Queue, &limits) };
        let player = play(&bounded(rules(&[(0, capped(0)), (1, capped(1))]), places), &claims);
        for (fate, claim) in player.fates.iter().zip(&claims) {
            let Some((_, level)) = fate.sent else { continue };
            prop_assert_eq!(level == BEST_EFFORT, claim.2 > largest);
        }
    }
}

/// Ten claims of the whole burst, none of them served, are settled together when the bucket is full
/// again: one burst is left to spend, not eleven.
#[test]
fn unused_claims_do_not_keep_bursts_in_store() {
    let rules = rules(&[(0, flow(0, OverLimit::Demote, &[limit(10, 10)]))]);
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    let mut charges = Vec::new();
    for round in 0..10u32 {
        let now = u64::from(round) * 10;
        enforcer.arrive(now, arrival(round, 0, 10));
        let dispatch = enforcer.dispatch_next(now).unwrap();
        assert_eq!(dispatch.level, 0);
        charges.push(enforcer.complete(dispatch));
    }
    for charge in charges {
        enforcer.settle(100, charge, 0);
    }
    arrive_all(&mut enforcer, 100, (10..30).map(|id| arrival(id, 0, 10)));
    let levels: Vec<u32> = sent(&mut enforcer, 100).iter().map(|dispatch| dispatch.level).collect();
    assert_eq!(levels.iter().filter(|level| **level == 0).count(), 1);
}

/// A refused claim of the whole burst costs what time has filled again, and what was served too much is a debt.
#[test]
fn a_refused_claim_gives_its_tokens_back() {
    let rules = rules(&[(0, flow(0, OverLimit::Queue, &[limit(1, 100)]))]);
    let mut enforcer = Enforcer::new(0, &rules).unwrap();
    enforcer.arrive(0, arrival(0, 0, 100));
    let refused = enforcer.dispatch_next(0).unwrap();
    enforcer.arrive(0, arrival(1, 0, 100));
    assert_eq!(enforcer.wake_at(), Some(1000));
    let charge = enforcer.complete(refused);
    assert_eq!(charge.tokens(), 100);
    enforcer.settle(20, charge, 0);
    // Of the 100 tokens two would have overflowed, and as many have come since.
    let mut next = sent(&mut enforcer, 20);
    assert_eq!((ids(&next), enforcer.wake_at()), (vec![1], None));
    let charge = enforcer.complete(next.remove(0));
    enforcer.settle(20, charge, 150);
    enforcer.arrive(20, arrival(2, 0, 1));
    assert_eq!(enforcer.wake_at(), Some(20 + 510));
    enforcer.check_invariants();
}

/// A withdrawn request gives its tokens back, and requests behind it get them at once.
#[test]
fn a_withdrawn_request_gives_its_tokens_back() {
    let known = [(0, flow(0, OverLimit::Queue, &[])), (1, flow(1, OverLimit::Queue, &[limit(1, 10)]))];
    let mut enforcer = Enforcer::new(0, &bounded(rules(&known), 1)).unwrap();
    enforcer.arrive(0, arrival(0, 0, 1));
    let busy = sent(&mut enforcer, 0);
    let passed = enforcer.arrive(0, arrival(1, 1, 10));
    enforcer.arrive(0, arrival(2, 1, 10));
    enforcer.withdraw(0, passed);
    complete_all(&mut enforcer, busy);
    assert_eq!(ids(&sent(&mut enforcer, 0)), [2]);
}

/// Requests that are moved in their order keep it, behind those that are there, and their handles.
#[test]
fn moved_requests_keep_their_order_and_handles() {
    let known = [(0, flow(0, OverLimit::Queue, &[])), (1, flow(1, OverLimit::Queue, &[limit(1, 3)]))];
    let mut enforcer = Enforcer::new(0, &rules(&known)).unwrap();
    let handles: Vec<WaitingRequest> = (0..4).map(|id| enforcer.arrive(0, arrival(id, 1, 3))).collect();
    enforcer.arrive(1, arrival(4, 0, 1));
    for handle in &handles[1..] {
        enforcer.move_to_flow(1, *handle, 0);
    }
    enforcer.withdraw(1, handles[2]);
    let order: Vec<(u32, u32)> =
        sent(&mut enforcer, 1).iter().map(|dispatch| (dispatch.id, dispatch.flow)).collect();
    assert_eq!(order, [(4, 0), (1, 0), (3, 0), (0, 1)]);
    enforcer.check_invariants();
}

/// A request that costs more than the largest is served in its place in the line, last of all and without
/// tokens, even while others wait for theirs; later requests lose nothing by it.
#[test]
fn a_claim_above_the_largest_waits_in_line_as_best_effort() {
    let capped = FlowRules { largest: Some(10), ..flow(0, OverLimit::Queue, &[limit(1, 10)]) };
    let known = rules(&[(0, capped), (1, flow(5, OverLimit::Queue, &[]))]);
    let mut enforcer = Enforcer::new(0, &bounded(known, 1)).unwrap();
    for (id, flow, cost) in [(0, 0, 4), (1, 0, 1_000_000), (2, 0, 6), (3, 1, 1), (4, 77, 1)] {
        enforcer.arrive(0, arrival(id, flow, cost));
    }
    let order: Vec<(u32, u32, u64)> = std::iter::from_fn(|| {
        let dispatch = enforcer.dispatch_next(0)?;
        let id = dispatch.id;
        let level = dispatch.level;
        Some((id, level, enforcer.complete(dispatch).tokens()))
    })
    .collect();
    assert_eq!(order, [(0, 0, 4), (3, 5, 1), (1, BEST_EFFORT, 0), (2, 0, 6), (4, BEST_EFFORT, 0)]);
}

/// Two flows with one limit: the head that is due first passes first, of two that are due at once the earlier one, and a
/// queue of its own spares it the wait behind the other.
#[test]
fn shared_limits_hold_for_both_flows_together() {
    let known =
        rules(&[(0, flow(1, OverLimit::Queue, &[limit(1, 10)])), (1, sharing(0, OverLimit::Queue, 0))]);
    let mut enforcer = Enforcer::new(0, &known).unwrap();
    for (id, flow, cost) in [(0, 0, 10), (1, 0, 10), (2, 1, 1), (3, 1, 1)] {
        enforcer.arrive(0, arrival(id, flow, cost));
    }
    let mut order = Vec::new();
    let mut wake = Some(0);
    while let Some(now) = wake {
        order.extend(sent(&mut enforcer, now).iter().map(|dispatch| (now, dispatch.id, dispatch.level)));
        enforcer.check_invariants();
        wake = enforcer.wake_at();
    }
    assert_eq!(order, [(0, 0, 1), (10, 2, 0), (20, 3, 0), (120, 1, 1)]);
}

#[test]
fn limits_are_shared_with_a_known_flow_that_has_its_own() {
    let own = flow(0, OverLimit::Queue, &[limit(1, 1)]);
    let both = FlowRules { shares_limits_of: Some(0), ..own.clone() };
    let cases = [
        (vec![(0, own.clone()), (1, both)], "none of its own"),
        (vec![(0, own.clone()), (1, sharing(0, OverLimit::Queue, 7))], "unknown"),
        (vec![(1, sharing(0, OverLimit::Queue, 1))], "no limits of its own"),
        (
            vec![(0, own), (1, sharing(0, OverLimit::Queue, 0)), (2, sharing(0, OverLimit::Queue, 1))],
            "no limits of its own",
        ),
    ];
    for (flows, part) in cases {
        let fault = rules(&flows).check().unwrap_err();
        assert!(fault.contains(part), "{fault}");
    }
}

/// Ten thousand times as much is served as was guessed: what passes before that is known is what may be outstanding.
#[test]
fn a_wrong_guess_is_made_at_most_as_often_as_requests_may_be_outstanding() {
    const OUTSTANDING: u32 = 4;
    const SERVED: u64 = 10_000;
    let limits = [limit(10, 100)];
    for over in [OverLimit::Queue, OverLimit::Demote] {
        let mut rules = rules(&[(0, flow(0, over, &limits))]);
        rules.bounds.requests = OUTSTANDING;
        let mut enforcer = Enforcer::new(0, &rules).expect("rules");
        for id in 0..1000 {
            enforcer.arrive(0, ArrivingRequest { is_estimate: true, ..arrival(id, 0, 1) });
        }
        let mut now = 0;
        let mut within = 0;
        for _ in 0..500 {
            now += 100;
            let dispatched = sent(&mut enforcer, now);
            for dispatch in dispatched {
                within += u64::from(dispatch.level == 0) * SERVED;
                let charge = enforcer.complete(dispatch);
                enforcer.settle(now, charge, SERVED);
                enforcer.check_invariants();
            }
            // One unit a nanosecond.
            let excess = u64::from(OUTSTANDING) * SERVED;
            assert!(within <= now + 100 + excess, "{within} within the limits after {now} ns");
        }
        assert!(within >= u64::from(OUTSTANDING) * SERVED, "{within}");
    }
}
