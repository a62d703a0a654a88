//! How rules change while requests wait and are outstanding.

use super::flow_queue::{FlowQueue, QueuedRequest};
use super::outstanding::DeviceBounds;
use super::rules::{BEST_EFFORT, EnforcementRules, FlowRules, OverLimit};
use super::{Enforcer, Tournament};
use crate::TokenBuckets;

impl Enforcer {
    /// Replaces the rules of all flows at `now`. No request is lost, and every flow stays first in, first out.
    ///
    /// - A request that has come within the limits of a flow stays so while the flow is known, at its new level.
    /// - Buckets carry over missing tokens ([`TokenBuckets::change_limits`]), so that no change grants a burst twice. A flow
    ///   that is removed and returns while its buckets would not be full yet finds them as they would be.
    /// - Waiting requests of a flow that is removed become best effort, in order of arrival. Those of a flow that is added
    ///   move to its queue and limiter.
    /// - Outstanding requests count at the level at which they were dispatched, also under new bounds.
    ///
    /// # Errors
    /// What is wrong with the rules. Nothing has changed then.
    pub fn reconfigure(&mut self, now: u64, rules: &EnforcementRules) -> Result<(), String> {
        rules.check()?;
        let waiting = self.remove_waiting(now);
        let mut known = std::mem::take(&mut self.former);
        let flows = std::mem::take(&mut self.flows).into_iter().map(|flow| flow.buckets);
        known.extend(std::mem::take(&mut self.names).into_iter().zip(flows));
        for (name, rules) in &rules.flows {
            let old = known.remove(name);
            self.names.push(*name);
            self.flows.push(FlowQueue::new(rules, limiter(now, old, rules)));
        }
        known.retain(|_, buckets| !buckets.is_full(now));
        self.former = known;
        let others = FlowRules { level: BEST_EFFORT, limits: Vec::new(), over_limit: OverLimit::Demote };
        self.flows.push(FlowQueue::new(&others, TokenBuckets::new(now, &[])));
        self.bounds = DeviceBounds::new(rules);
        self.outstanding.change_levels(rules.flows.values().map(|flow| flow.level));
        self.add_waiting(now, waiting);
        Ok(())
    }

    /// Removes all waiting requests and returns them in order of arrival, with whether each has passed its limiter.
    fn remove_waiting(&mut self, now: u64) -> Vec<(QueuedRequest, bool)> {
        let known = self.names.len();
        let mut waiting = Vec::with_capacity(self.waiting);
        for (place, flow) in self.flows.iter_mut().enumerate() {
            flow.advance_limiter(now);
            let passed = if place < known { flow.passed } else { 0 };
            let items = flow.queue.drain(..).enumerate();
            waiting.extend(items.map(|(position, item)| (item, position < passed)));
        }
        waiting.sort_unstable_by_key(|(item, _)| item.number);
        waiting
    }

    /// Adds requests in order of arrival to the queues of their flows.
    fn add_waiting(&mut self, now: u64, waiting: Vec<(QueuedRequest, bool)>) {
        self.heads = Tournament::new(self.flows.len());
        self.due = Tournament::new(self.flows.len());
        for (mut item, passed) in waiting {
            let place = self.place_of(item.flow);
            let is_best_effort = place == self.names.len();
            if is_best_effort {
                item.since = item.arrived;
            }
            let flow = &mut self.flows[place];
            flow.passed += usize::from(passed || is_best_effort);
            flow.queue.push_back(item);
        }
        for place in 0..self.flows.len() {
            self.flows[place].update_due(now);
            self.update_head(now, place);
        }
    }
}

/// The limiter that a flow had with new limits, or a full one.
fn limiter(now: u64, old: Option<TokenBuckets>, rules: &FlowRules) -> TokenBuckets {
    match old {
        Some(mut buckets) => {
            buckets.change_limits(now, &rules.limits);
            buckets
        }
        None => TokenBuckets::new(now, &rules.limits),
    }
}
