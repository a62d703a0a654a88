//! Everything recomputed in every nanosecond from lists that are searched from end to end.

use super::{ArrivingRequest, EnforcementRules, OverLimit, flow, limit};
use crate::Limit;
use crate::enforce::{BEST_EFFORT, DeviceOperation, OutstandingBounds};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingItem {
    pub(super) arrival: ArrivingRequest,
    came: u64,
    number: usize,
    /// Time since when it is within the limits, and the tokens it took.
    within: Option<(u64, TakenByTwin)>,
}

/// Limiter that let an item pass, index of its limits, and its overflow by then.
type TakenByTwin = (u32, usize, i64);

/// A charge, and the cost that was claimed.
pub(super) type TwinCharge = Option<(TakenByTwin, u64)>;

/// The limits of a flow, with the levels of buckets in tenths, filled nanosecond by nanosecond.
#[derive(Debug, Clone)]
struct TwinLimiter {
    limits: Vec<Limit>,
    tokens: Vec<i64>,
    /// Tokens if everything open turned out to cost nothing, and the nanoseconds for which some bucket
    /// overflowed by them.
    unsettled: Vec<i64>,
    overflowed: i64,
    generation: usize,
}

impl TwinLimiter {
    fn new(limits: &[Limit], generation: usize) -> Self {
        let mut limits = limits.to_vec();
        limits.sort_by_key(|limit| (limit.rate, limit.burst));
        let tokens: Vec<i64> = limits.iter().map(full).collect();
        Self { limits, unsettled: tokens.clone(), tokens, overflowed: 0, generation }
    }

    fn tick(&mut self) {
        let mut overflows = false;
        for (bucket, limit) in self.limits.iter().enumerate() {
            self.tokens[bucket] = (self.tokens[bucket] + tenths(limit)).min(full(limit));
            self.unsettled[bucket] += tenths(limit);
            overflows |= self.unsettled[bucket] > full(limit);
            self.unsettled[bucket] = self.unsettled[bucket].min(full(limit));
        }
        self.overflowed += i64::from(overflows);
    }

    fn allows(&self, cost: u64) -> bool {
        let mut buckets = self.limits.iter().zip(&self.tokens);
        buckets.all(|(limit, tokens)| *tokens >= 10 * int(cost.min(limit.burst)))
    }

    /// The words of [`crate::TokenBuckets::settle`].
    fn settle(&mut self, ((_, generation, overflowed), claimed): (TakenByTwin, u64), served: u64) {
        for bucket in 0..self.limits.len() {
            let lost = (self.overflowed - overflowed) * tenths(&self.limits[bucket]);
            if generation == self.generation {
                self.tokens[bucket] += (10 * int(claimed.saturating_sub(served)) - lost).max(0);
                self.unsettled[bucket] -= (10 * int(served.min(claimed)) - lost).max(0);
            }
            self.tokens[bucket] -= 10 * int(served.saturating_sub(claimed));
            self.unsettled[bucket] -= 10 * int(served.saturating_sub(claimed));
            assert!(self.tokens[bucket] <= self.unsettled[bucket], "nobody gets more than he would have had");
        }
    }

    /// The words of [`crate::TokenBuckets::change_limits`].
    fn change(&mut self, limits: &[Limit], generation: usize) {
        let mut new = Self::new(limits, generation);
        if new.limits == self.limits {
            return;
        }
        for (bucket, limit) in new.limits.iter().enumerate() {
            let not_faster = self.limits.iter().filter(|old| old.rate <= limit.rate).count();
            let same_count = self.limits.len() == new.limits.len();
            let from = if same_count { bucket } else { not_faster.max(1) - 1 };
            let missing = self.limits.get(from).map_or(0, |old| full(old) - self.tokens[from]);
            new.tokens[bucket] -= if same_count { missing } else { missing.min(full(limit)) };
            new.unsettled[bucket] = new.tokens[bucket];
        }
        *self = new;
    }
}

fn full(limit: &Limit) -> i64 {
    10 * int(limit.burst)
}

fn tenths(limit: &Limit) -> i64 {
    int(limit.rate / 100_000_000)
}

/// The words of the module header.
pub(super) struct Twin {
    rules: EnforcementRules,
    /// Limiters by flow, including flows that are no longer known.
    limiters: BTreeMap<u32, TwinLimiter>,
    pub(super) waiting: Vec<WaitingItem>,
    pub(super) outstanding: Vec<TwinOutstanding>,
    arrivals: usize,
    changes: usize,
}

/// Name, level, bytes, operation, charge.
pub(super) type TwinOutstanding = (u32, u32, u64, DeviceOperation, TwinCharge);

impl Twin {
    pub(super) fn new(rules: &EnforcementRules) -> Self {
        let limiters = BTreeMap::new();
        let waiting = Vec::new();
        let outstanding = Vec::new();
        let mut twin =
            Self { rules: EnforcementRules::none(), limiters, waiting, outstanding, arrivals: 0, changes: 0 };
        twin.reconfigure(0, rules);
        twin
    }

    /// One nanosecond later.
    pub(super) fn tick(&mut self) {
        self.limiters.values_mut().for_each(TwinLimiter::tick);
    }

    pub(super) fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        self.pass(now);
        self.waiting.push(WaitingItem { arrival, came: now, number: self.arrivals, within: None });
        self.arrivals += 1;
        self.pass(now);
    }

    /// The limiters let pass what they may, in order.
    pub(super) fn pass(&mut self, now: u64) {
        while let Some((item, owner)) = self.may_pass() {
            let limiter = self.limiters.get_mut(&owner).unwrap();
            let taken = (owner, limiter.generation, limiter.overflowed);
            let item = &mut self.waiting[item];
            item.within = Some((now, taken));
            limiter.tokens.iter_mut().for_each(|tokens| *tokens -= 10 * int(item.arrival.cost));
        }
    }

    /// The earliest of the items that are the first of their flows not within the limits, and could be.
    fn may_pass(&self) -> Option<(usize, u32)> {
        let mut seen = Vec::new();
        for (position, item) in self.waiting.iter().enumerate() {
            let name = item.arrival.flow;
            let Some(rules) = self.rules.flows.get(&name) else { continue };
            if item.within.is_some() || seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let owner = rules.shares_limits_of.unwrap_or(name);
            let has_level = rules.largest.is_none_or(|largest| item.arrival.cost <= largest);
            if has_level && self.limiters[&owner].allows(item.arrival.cost) {
                return Some((position, owner));
            }
        }
        None
    }

    pub(super) fn withdraw(&mut self, now: u64, id: u32) -> ArrivingRequest {
        self.pass(now);
        let position = self.waiting.iter().position(|item| item.arrival.id == id).unwrap();
        let item = self.waiting.remove(position);
        // The limiter turns to the next before it has the tokens back.
        self.pass(now);
        self.settle(now, item.within.map(|(_, taken)| (taken, item.arrival.cost)), 0);
        item.arrival
    }

    pub(super) fn move_to(&mut self, now: u64, id: u32, flow: u32) {
        let arrival = self.withdraw(now, id);
        self.arrive(now, ArrivingRequest { flow, ..arrival });
    }

    pub(super) fn settle(&mut self, now: u64, charge: TwinCharge, served: u64) {
        self.pass(now);
        let Some(charge) = charge else { return };
        if let Some(limiter) = self.limiters.get_mut(&charge.0.0) {
            limiter.settle(charge, served);
        }
        self.pass(now);
    }

    pub(super) fn reconfigure(&mut self, now: u64, rules: &EnforcementRules) {
        self.pass(now);
        for item in &mut self.waiting {
            let is_known = rules.flows.contains_key(&item.arrival.flow);
            if let Some((_, taken)) = item.within.take_if(|_| !is_known)
                && let Some(limiter) = self.limiters.get_mut(&taken.0)
            {
                limiter.settle((taken, item.arrival.cost), 0);
            }
        }
        let owners = rules.flows.iter().filter(|(_, rules)| rules.shares_limits_of.is_none());
        self.changes += 1;
        for (name, rules) in owners.clone() {
            let fresh = TwinLimiter::new(&rules.limits, self.changes);
            let limiter = self.limiters.entry(*name).or_insert(fresh);
            limiter.change(&rules.limits, self.changes);
        }
        let owners: Vec<u32> = owners.map(|(name, _)| *name).collect();
        self.limiters.retain(|name, limiter| {
            let mut buckets = limiter.limits.iter().zip(&limiter.tokens);
            owners.contains(name) || !buckets.all(|(limit, tokens)| *tokens == full(limit))
        });
        self.rules = rules.clone();
        self.pass(now);
    }

    pub(super) fn next(&mut self, now: u64) -> Option<(u32, u32)> {
        self.pass(now);
        let mut heads: Vec<(u32, u64, usize)> = Vec::new();
        for (position, item) in self.waiting.iter().enumerate() {
            let behind = self.waiting[..position].iter().any(|other| other.arrival.flow == item.arrival.flow);
            let known = self.rules.flows.get(&item.arrival.flow);
            match (known, item.within) {
                _ if behind => {}
                (None, _) => heads.push((BEST_EFFORT, item.came, item.number)),
                (Some(rules), Some((since, _))) => heads.push((rules.level, since, item.number)),
                (Some(rules), None) => {
                    let has_level = rules.largest.is_none_or(|largest| item.arrival.cost <= largest);
                    if rules.over_limit == OverLimit::Demote || !has_level {
                        heads.push((BEST_EFFORT, item.came, item.number));
                    }
                }
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
            let there =
                self.outstanding.iter().filter(|(_, level, _, operation, _)| wanted(*level, *operation));
            there.map(|(_, _, bytes, ..)| *bytes).collect::<Vec<_>>()
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
        let WaitingItem { arrival, within, .. } = self.waiting.remove(position);
        let charge = within.map(|(_, taken)| (taken, arrival.cost));
        self.outstanding.push((id, level, bytes, operation, charge));
        self.pass(now);
        Some((id, level))
    }

    /// An item is done, which was charged this.
    pub(super) fn done(&mut self, id: u32) -> TwinCharge {
        let position = self.outstanding.iter().position(|(other, ..)| *other == id).unwrap();
        self.outstanding.remove(position).4
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
        EnforcementRules { flows, bounds, reads, writes, lower_levels, reserve, largest_best_effort: None }
    })
}

/// Rules with flows that share limits, and with largest requests.
pub(super) fn some_rules_with_shares() -> impl Strategy<Value = EnforcementRules> {
    let more = (prop::option::of(0u32..5), prop::option::weighted(0.3, 1u64..12));
    (some_rules(), prop::collection::vec(more, 5)).prop_map(|(mut rules, more)| {
        for (name, (shares, largest)) in (0..).zip(more) {
            let owner = shares.filter(|owner| {
                let other = rules.flows.get(owner);
                *owner != name && other.is_some_and(|other| other.shares_limits_of.is_none())
            });
            let is_owner = rules.flows.values().any(|other| other.shares_limits_of == Some(name));
            let Some(flow) = rules.flows.get_mut(&name) else { continue };
            flow.largest = largest;
            if owner.is_some() && !is_owner {
                (flow.shares_limits_of, flow.limits) = (owner, Vec::new());
            }
        }
        rules
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
