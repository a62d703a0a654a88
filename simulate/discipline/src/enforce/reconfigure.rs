//! Changes of the rules while requests wait and are outstanding.

use super::flow_queue::FlowQueue;
use super::limiter::{FlowLimiter, TokenCharge};
use super::outstanding::DeviceBounds;
use super::rules::{BEST_EFFORT, EnforcementRules, FlowRules};
use super::waiting_list::WaitingRequest;
use super::{Enforcer, Tournament};
use crate::TokenBuckets;

impl Enforcer {
    /// Replaces the rules of all flows at `now`. No request is lost, and every flow stays first in, first out.
    ///
    /// - A request that has come within the limits of a flow stays so while the flow is known, at its new level.
    /// - Buckets carry over missing tokens (`TokenBuckets::change_limits`), so that no change grants a
    ///   burst twice. The buckets of a removed flow, or of one that shares another's limits meanwhile,
    ///   refill at their old rates until they are full; if the flow returns before that, it finds them in
    ///   that state.
    /// - Waiting requests of a flow that is removed become best effort, in order of arrival, and give back the tokens that
    ///   they took. Those of a flow that is added move to its queue and limiter.
    /// - Outstanding requests count at the level at which they were dispatched, also under new bounds.
    ///
    /// # Errors
    /// Describes the defect of the rules; nothing has changed then.
    pub fn reconfigure(&mut self, now: u64, rules: &EnforcementRules) -> Result<(), String> {
        rules.check()?;
        let waiting = self.remove_waiting(now, rules);
        self.replace_limiters(now, rules);
        self.queues.names = rules.flows.keys().copied().collect();
        self.queues.flows.clear();
        for (place, (name, rules)) in rules.flows.iter().enumerate() {
            let owner = rules.shares_limits_of.unwrap_or(*name);
            let limiter = self.queues.limiter_of(owner).expect("the limits of a flow are known");
            self.queues.limiters[limiter].members.push(place);
            self.queues.flows.push(FlowQueue::new(rules, limiter));
        }
        let others = self.queues.limiters.len() - 1;
        self.queues.limiters[others].members.push(self.queues.flows.len());
        self.queues.flows.push(FlowQueue::new(&FlowRules::of_others(), others));
        self.bounds = DeviceBounds::new(rules);
        self.queues.unsettled_max = rules.bounds.requests;
        self.outstanding.change_levels(rules.flows.values().map(|flow| flow.level));
        self.add_waiting(now, waiting);
        Ok(())
    }

    /// Takes all waiting requests out of their queues and returns them in order of arrival. Requests whose
    /// flow was unknown, or is unknown to the new rules, lose the record of passing a limiter.
    fn remove_waiting(&mut self, now: u64, rules: &EnforcementRules) -> Vec<WaitingRequest> {
        for limiter in 0..self.queues.limiters.len() {
            self.queues.advance(now, limiter);
        }
        let mut waiting = Vec::with_capacity(self.waiting());
        for (place, flow) in self.queues.flows.iter().enumerate() {
            let name = self.queues.names.get(place);
            let stays = name.is_some_and(|name| rules.flows.contains_key(name));
            let requests = flow.list.iter(&self.queues.slab);
            waiting.extend(
                requests.map(|request| (self.queues.slab.get(request).number, request, place, stays)),
            );
        }
        waiting.sort_unstable();
        for (_, request, place, _) in waiting.iter().filter(|(.., stays)| !stays) {
            let request = self.queues.slab.get_mut(*request);
            request.since = request.arrived;
            request.has_lacked_tokens = false;
            let request = *request;
            self.give_back(now, self.queues.charge_of(*place, &request));
        }
        for (_, request, ..) in waiting.iter().filter(|(.., stays)| !stays) {
            self.queues.slab.get_mut(*request).taken = None;
        }
        waiting.into_iter().map(|(_, request, ..)| request).collect()
    }

    /// Returns tokens to the limiter that they were taken from, which must have been advanced to `now`.
    fn give_back(&mut self, now: u64, charge: TokenCharge) {
        let Some(taken) = charge.taken else { return };
        let known = self.queues.limiter_of(taken.limiter()).map(|limiter| &mut self.queues.limiters[limiter]);
        if let Some(limiter) = known.or_else(|| self.former.get_mut(&taken.limiter())) {
            limiter.settle(now, taken, charge.tokens, 0);
        }
    }

    /// Replaces the limiters, which serve no flows yet, and keeps those that are no longer used and lack
    /// tokens.
    fn replace_limiters(&mut self, now: u64, rules: &EnforcementRules) {
        let mut known = std::mem::take(&mut self.former);
        self.queues.limiters.pop();
        known.extend(self.queues.limiters.drain(..).map(|limiter| (limiter.name, limiter)));
        for (name, rules) in rules.flows.iter().filter(|(_, rules)| rules.shares_limits_of.is_none()) {
            let old = known.remove(name);
            let limiter = self.limiter(now, *name, old, rules);
            self.queues.limiters.push(limiter);
        }
        known.retain(|_, limiter| !limiter.buckets.is_full(now));
        self.former = known;
        let others = self.limiter(now, BEST_EFFORT, None, &FlowRules::of_others());
        self.queues.limiters.push(others);
    }

    /// Returns the former limiter of a flow with the new limits, or a full one.
    fn limiter(&mut self, now: u64, name: u32, old: Option<FlowLimiter>, rules: &FlowRules) -> FlowLimiter {
        self.generations += 1;
        let generation = self.generations;
        let members = Vec::new();
        let Some(mut old) = old else {
            let buckets = TokenBuckets::new(now, &rules.limits);
            return FlowLimiter { name, buckets, generation, unsettled: 0, members };
        };
        let is_changed = old.buckets.change_limits(now, &rules.limits);
        FlowLimiter { generation: if is_changed { generation } else { old.generation }, members, ..old }
    }

    /// Adds requests in order of arrival to the queues of their flows.
    fn add_waiting(&mut self, now: u64, waiting: Vec<WaitingRequest>) {
        self.heads = Tournament::new(self.queues.flows.len());
        self.due = Tournament::new(self.queues.flows.len());
        for request in waiting {
            self.queues.put_back(request);
        }
        for limiter in 0..self.queues.limiters.len() {
            self.queues.update_dues(now, limiter);
            self.queues.advance(now, limiter);
            self.update_hold_behind(limiter);
        }
    }
}
