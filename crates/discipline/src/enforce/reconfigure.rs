//! Other rules while requests wait and are outstanding.

use super::flow::{Flow, Queued};
use super::outstanding::Room;
use super::rules::{BEST_EFFORT, FlowRules, Over, Rules};
use super::{Enforcer, Tournament};
use crate::TokenBuckets;

impl Enforcer {
    /// From `now` on these rules hold; at once, for all flows. Nothing that waits is lost, and every flow stays
    /// first in, first out.
    ///
    /// - What has come within the limits of a flow stays so while the flow is known, at its new level.
    /// - Buckets carry over what has been used ([`TokenBuckets::change`]): no change hands out a burst again. A flow
    ///   that is removed and comes back while its buckets would not be full yet finds them as they would be.
    /// - What waits of a flow that is removed becomes best effort, in order of arrival; of a flow that is added, it
    ///   goes to that flow's queue and limiter.
    /// - What is outstanding counts at the level at which it was dispatched, also against new bounds.
    ///
    /// # Errors
    /// What is wrong with the rules; then nothing has changed.
    pub fn reconfigure(&mut self, now: u64, rules: &Rules) -> Result<(), String> {
        rules.check()?;
        let waiting = self.drain(now);
        let mut known = std::mem::take(&mut self.former);
        let flows = std::mem::take(&mut self.flows).into_iter().map(|flow| flow.buckets);
        known.extend(std::mem::take(&mut self.names).into_iter().zip(flows));
        for (name, rules) in &rules.flows {
            let old = known.remove(name);
            self.names.push(*name);
            self.flows.push(Flow::new(rules, limiter(now, old, rules)));
        }
        known.retain(|_, buckets| !buckets.is_full(now));
        self.former = known;
        let others = FlowRules { level: BEST_EFFORT, limits: Vec::new(), over: Over::Demote };
        self.flows.push(Flow::new(&others, TokenBuckets::new(now, &[])));
        self.room = Room::of(rules);
        self.outstanding.change_levels(rules.flows.values().map(|flow| flow.level));
        self.refill(now, waiting);
        Ok(())
    }

    /// Takes out all that waits, in order of arrival, with whether it has passed the limiter of its flow.
    fn drain(&mut self, now: u64) -> Vec<(Queued, bool)> {
        let known = self.names.len();
        let mut waiting = Vec::with_capacity(self.waiting);
        for (place, flow) in self.flows.iter_mut().enumerate() {
            flow.settle(now);
            let passed = if place < known { flow.within } else { 0 };
            let items = flow.queue.drain(..).enumerate();
            waiting.extend(items.map(|(position, item)| (item, position < passed)));
        }
        waiting.sort_unstable_by_key(|(item, _)| item.number);
        waiting
    }

    fn refill(&mut self, now: u64, waiting: Vec<(Queued, bool)>) {
        self.heads = Tournament::new(self.flows.len());
        self.due = Tournament::new(self.flows.len());
        for (mut item, passed) in waiting {
            let place = self.place(item.flow);
            let best_effort = place == self.names.len();
            if best_effort {
                item.since = item.arrived;
            }
            let flow = &mut self.flows[place];
            flow.within += usize::from(passed || best_effort);
            flow.queue.push_back(item);
        }
        for place in 0..self.flows.len() {
            self.flows[place].look(now);
            self.rank(now, place);
        }
    }
}

/// The limiter that the flow had, under new limits, or a new one that is full.
fn limiter(now: u64, old: Option<TokenBuckets>, rules: &FlowRules) -> TokenBuckets {
    match old {
        Some(mut buckets) => {
            buckets.change(now, &rules.limits);
            buckets
        }
        None => TokenBuckets::new(now, &rules.limits),
    }
}
