//! Levels of token buckets that pass from one enforcer to the next, so that a restart grants no burst twice.

use super::Enforcer;
use super::limiter::FlowLimiter;
use crate::{Limit, TokenBuckets};

impl Enforcer {
    /// Returns the limiters that lack tokens at `now`: the flow, and for each bucket its limit and the missing work,
    /// rounded up. Waiting requests that have taken tokens count as served.
    pub fn missing_tokens(&mut self, now: u64) -> Vec<(u32, Vec<(Limit, u64)>)> {
        let known = self.queues.limiters.iter_mut().chain(self.former.values_mut());
        let lacking = known.filter_map(|limiter| {
            let is_full = limiter.buckets.is_full(now);
            (!is_full).then(|| (limiter.name, limiter.buckets.missing()))
        });
        lacking.collect()
    }

    /// Takes over the missing tokens of a flow from an enforcer that has ended. Under other limits now, they carry
    /// over as by [`reconfigure`](Self::reconfigure). No request of the flow may have passed before.
    ///
    /// # Panics
    /// When a burst is 0.
    pub fn inherit(&mut self, now: u64, flow: u32, missing: &[(Limit, u64)]) {
        let mut buckets = TokenBuckets::lacking(now, missing);
        let Some(limiter) = self.queues.limiter_of(flow) else {
            self.generations += 1;
            let generation = self.generations;
            let former = FlowLimiter { name: flow, buckets, generation, unsettled: 0, members: Vec::new() };
            self.former.insert(flow, former);
            return;
        };
        let own = &mut self.queues.limiters[limiter].buckets;
        let limits: Vec<Limit> = own.missing().into_iter().map(|(limit, _)| limit).collect();
        buckets.change_limits(now, &limits);
        *own = buckets;
        self.update_heads_behind(limiter);
    }
}
