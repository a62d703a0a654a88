//! Requests that leave without service or change their flow, and correction of charges.

use super::Enforcer;
use super::limiter::TokenCharge;
use super::waiting_list::WaitingRequest;

impl Enforcer {
    /// Removes a waiting request that will not be served. Tokens that it took are returned.
    ///
    /// # Panics
    /// When no such request waits.
    pub fn withdraw(&mut self, now: u64, waiting: WaitingRequest) {
        self.leave_line(now, waiting);
        self.queues.slab.remove(waiting);
    }

    /// Removes a waiting request from its flow, as [`withdraw`](Self::withdraw) does, and appends it to the
    /// queue of another flow as if it arrived now. It keeps its handle.
    ///
    /// # Panics
    /// When no such request waits.
    pub fn move_to_flow(&mut self, now: u64, waiting: WaitingRequest, flow: u32) {
        self.leave_line(now, waiting);
        let request = self.queues.slab.get_mut(waiting);
        (request.flow, request.arrived, request.since, request.taken) = (flow, now, now, None);
        request.has_lacked_tokens = false;
        self.join(now, waiting);
    }

    /// Corrects the charge of a completed request, whose actual cost was `served_cost`. Excess tokens are
    /// returned, except those that would have overflowed meanwhile
    /// (`TokenBuckets::settle`). Missing tokens are taken now and may leave a
    /// debt. Each charge must be settled at most once. For a flow that is no longer known, the retained
    /// limiter, if any, is corrected; tokens that were taken under other limits do not come back.
    pub fn settle(&mut self, now: u64, charge: TokenCharge, served_cost: u64) {
        let TokenCharge { taken: Some(taken), tokens } = charge else { return };
        let Some(limiter) = self.queues.limiter_of(taken.limiter()) else {
            if let Some(former) = self.former.get_mut(&taken.limiter()) {
                former.settle(now, taken, tokens, served_cost);
            }
            return;
        };
        let has_passed = self.queues.advance(now, limiter);
        self.queues.settle(now, limiter, taken, tokens, served_cost);
        if has_passed || tokens != served_cost || taken.is_estimate() {
            self.update_heads_behind(limiter);
        }
    }

    /// Removes a request from the queue of its flow and returns its tokens.
    fn leave_line(&mut self, now: u64, waiting: WaitingRequest) {
        let place = self.queues.place_of(self.queues.slab.get(waiting).flow);
        self.queues.advance(now, self.queues.flows[place].limiter);
        self.queues.take_out(now, place, waiting);
        self.update_heads(place);
        let charge = self.queues.charge_of(place, self.queues.slab.get(waiting));
        self.settle(now, charge, 0);
    }
}
