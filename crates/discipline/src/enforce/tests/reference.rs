//! Everything recomputed in every nanosecond from lists that are searched from end to end.

use super::{ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer, OverLimit, flow, limit};
use crate::enforce::{BEST_EFFORT, DeviceOperation, OutstandingBounds};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    arrival: ArrivingRequest,
    came: u64,
    number: usize,
    /// Since when it is within the limits.
    within: Option<u64>,
}

/// The words of the module header, with a bucket's level in tenths, filled nanosecond by nanosecond.
struct Twin {
    rules: EnforcementRules,
    /// By flow.
    tokens: BTreeMap<u32, Vec<i64>>,
    waiting: Vec<Waiting>,
    /// Name, level, bytes, operation.
    outstanding: Vec<(u32, u32, u64, DeviceOperation)>,
    arrivals: usize,
}

impl Twin {
    fn new(rules: &EnforcementRules) -> Self {
        let full = |limits: &[crate::Limit]| limits.iter().map(|limit| 10 * int(limit.burst)).collect();
        let tokens = rules.flows.iter().map(|(name, rules)| (*name, full(&rules.limits))).collect();
        Self { rules: rules.clone(), tokens, waiting: vec![], outstanding: vec![], arrivals: 0 }
    }

    /// One nanosecond later.
    fn tick(&mut self) {
        for (name, tokens) in &mut self.tokens {
            for (tokens, limit) in tokens.iter_mut().zip(&self.rules.flows[name].limits) {
                *tokens = (*tokens + int(limit.rate / 100_000_000)).min(10 * int(limit.burst));
            }
        }
    }

    fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        self.waiting.push(Waiting { arrival, came: now, number: self.arrivals, within: None });
        self.arrivals += 1;
        self.pass(now);
    }

    /// The limiters let pass what they may, in order.
    fn pass(&mut self, now: u64) {
        for (name, tokens) in &mut self.tokens {
            let limits = &self.rules.flows[name].limits;
            for item in
                self.waiting.iter_mut().filter(|item| item.arrival.flow == *name && item.within.is_none())
            {
                let needs = |limit: &crate::Limit| 10 * int(item.arrival.cost.min(limit.burst));
                if limits.iter().zip(&*tokens).any(|(limit, tokens)| *tokens < needs(limit)) {
                    break;
                }
                tokens.iter_mut().for_each(|tokens| *tokens -= 10 * int(item.arrival.cost));
                item.within = Some(now);
            }
        }
    }

    fn next(&mut self, now: u64) -> Option<(u32, u32)> {
        self.pass(now);
        let mut heads: Vec<(u32, u64, usize)> = Vec::new();
        for (position, item) in self.waiting.iter().enumerate() {
            let behind = self.waiting[..position].iter().any(|other| other.arrival.flow == item.arrival.flow);
            let known = self.rules.flows.get(&item.arrival.flow);
            match (known, item.within) {
                _ if behind => {}
                (None, _) => heads.push((BEST_EFFORT, item.came, item.number)),
                (Some(rules), Some(since)) => heads.push((rules.level, since, item.number)),
                (Some(rules), None) if rules.over_limit == OverLimit::Demote => {
                    heads.push((BEST_EFFORT, item.came, item.number));
                }
                (Some(_), None) => {}
            }
        }
        let (level, _, number) = heads.into_iter().min()?;
        let position = self.waiting.iter().position(|item| item.number == number).unwrap();
        let ArrivingRequest { id, bytes, operation, .. } = self.waiting[position].arrival;
        let top = self.outstanding.iter().map(|(_, level, ..)| *level).min();
        let fits = |load: Vec<u64>, bounds: OutstandingBounds| {
            let room = load.is_empty() || load.iter().sum::<u64>() + bytes <= bounds.bytes;
            load.len() < bounds.requests as usize && room
        };
        let of = |wanted: &dyn Fn(u32, DeviceOperation) -> bool| {
            let there = self.outstanding.iter().filter(|(_, level, _, operation)| wanted(*level, *operation));
            there.map(|(_, _, bytes, _)| *bytes).collect::<Vec<_>>()
        };
        let below = |top: u32| of(&|other, _| other > top);
        let lower_levels = top.is_none_or(|top| top >= level || fits(below(top), self.rules.lower_levels));
        let alike = if operation == DeviceOperation::Read { self.rules.reads } else { self.rules.writes };
        let loads = [(of(&|_, _| true), self.rules.bounds), (of(&|_, other| other == operation), alike)];
        // Best effort finds fewer places, but one of its operation in any case.
        let reserve = if level == BEST_EFFORT { self.rules.reserve as usize } else { 0 };
        let left = |load: &[u64], bounds: OutstandingBounds| {
            load.is_empty() || load.len() + reserve < bounds.requests as usize
        };
        if !lower_levels || !loads.into_iter().all(|(load, bounds)| left(&load, bounds) && fits(load, bounds))
        {
            return None;
        }
        self.waiting.remove(position);
        self.outstanding.push((id, level, bytes, operation));
        Some((id, level))
    }

    fn withdraw(&mut self, now: u64, gone: impl Fn(u32) -> bool) {
        self.pass(now);
        self.waiting.retain(|item| !gone(item.arrival.id));
    }

    fn done(&mut self, id: u32) {
        self.outstanding.retain(|(other, ..)| *other != id);
    }
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap()
}

pub(super) fn some_rules() -> impl Strategy<Value = EnforcementRules> {
    let over = prop::sample::select(vec![OverLimit::Demote, OverLimit::Queue]);
    let limits =
        prop::collection::vec((2u64..15, 1u64..25).prop_map(|(rate, burst)| limit(rate, burst)), 0..3);
    let rules = (0u32..3, over, limits).prop_map(|(level, over, limits)| flow(level * 7, over, &limits));
    let bounds = |least: u32| {
        let items = prop_oneof![2 => least..4u32, 1 => Just(u32::MAX)];
        let bytes = prop_oneof![1 => 1u64..20, 1 => Just(u64::MAX)];
        (items, bytes).prop_map(|(requests, bytes)| OutstandingBounds { requests, bytes })
    };
    let flows = prop::collection::btree_map(0u32..5, rules, 0..5);
    let of_device = (bounds(1), bounds(1), bounds(1), bounds(0), 0u32..3);
    (flows, of_device).prop_map(|(flows, (bounds, reads, writes, lower_levels, reserve))| {
        let reserve = reserve.min(bounds.requests - 1);
        EnforcementRules { flows, bounds, reads, writes, lower_levels, reserve }
    })
}

/// Every third is a write.
pub(super) fn operation(id: u32) -> DeviceOperation {
    if id % 3 == 2 { DeviceOperation::Write } else { DeviceOperation::Read }
}

/// Gap, flow, cost, bytes, time at the device.
pub(super) type Drawn = (u64, u32, u64, u64, u64);

pub(super) fn some_arrivals() -> impl Strategy<Value = Vec<Drawn>> {
    prop::collection::vec((0u64..6, 0u32..6, 1u64..12, 0u64..12, 0u64..12), 1..25)
}

proptest! {
    #[test]
    fn agrees_with_the_twin(
        rules in some_rules(), drawn in some_arrivals(), withdrawn in prop::collection::vec((0u64..60, 0u32..6), 0..4),
    ) {
        let (mut enforcer, mut twin) = (Enforcer::new(0, &rules).unwrap(), Twin::new(&rules));
        let mut ends: Vec<(u64, DispatchedRequest)> = Vec::new();
        let mut handles = Vec::new();
        let (mut next, mut at, mut expected_wake) = (0, drawn[0].0, None);
        for now in 0..4000u64 {
            if now > 0 {
                twin.tick();
            }
            // Asked only when something happens or it said so: what is in between must not matter.
            let mut asked = enforcer.wake_at() == Some(now);
            let (over, still): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(end, _)| *end == now);
            ends = still;
            for (_, dispatch) in over {
                twin.done(dispatch.id);
                enforcer.complete(dispatch);
                asked = true;
            }
            while next < drawn.len() && at == now {
                let (_, flow, cost, bytes, _) = drawn[next];
                let id = u32::try_from(next).unwrap();
                let arrival = ArrivingRequest { id, flow, operation: operation(id), cost, bytes };
                handles.push(enforcer.arrive(now, arrival));
                twin.arrive(now, arrival);
                asked = true;
                next += 1;
                at += drawn.get(next).map_or(0, |drawn| drawn.0);
            }
            for (_, flow) in withdrawn.iter().filter(|(at, _)| *at == now) {
                let gone = |id: u32| drawn[id as usize].1 == *flow && id.is_multiple_of(2);
                for item in twin.waiting.iter().filter(|item| gone(item.arrival.id)) {
                    enforcer.withdraw(now, handles[item.arrival.id as usize]);
                }
                twin.withdraw(now, gone);
                asked = true;
            }
            loop {
                let judge = twin.next(now);
                let got = if asked { enforcer.dispatch_next(now) } else { None };
                prop_assert_eq!(got.as_ref().map(|got| (got.id, got.level)), judge, "at {}", now);
                let Some(dispatch) = got else { break };
                ends.push((now + 1 + drawn[dispatch.id as usize].4, dispatch));
            }
            enforcer.check_invariants();
            prop_assert_eq!(enforcer.waiting(), twin.waiting.len());
            prop_assert_eq!(enforcer.outstanding() as usize, twin.outstanding.len());
            // It says when it wakes up once, not again and again later.
            let wake = enforcer.wake_at();
            prop_assert!(wake.is_none_or(|wake| wake > now));
            if !asked {
                prop_assert_eq!(wake, expected_wake);
            }
            expected_wake = wake;
            if next == drawn.len() && twin.waiting.is_empty() && ends.is_empty() {
                return Ok(());
            }
        }
        prop_assert!(false, "something waits for ever");
    }
}
