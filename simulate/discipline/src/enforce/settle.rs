//! Requests that leave without service or change their flow, and charges that are corrected afterwards.

use super::Enforcer;
use super::limiter::TokenCharge;
use super::waiting_list::WaitingRequest;

impl Enforcer {
    /// Removes a waiting request that will not be served. Tokens that it took are given back.
    ///
    /// # Panics
    /// When no such request waits.
    pub fn withdraw(&mut self, now: u64, waiting: WaitingRequest) {
        self.leave_line(now, waiting);
        self.queues.slab.remove(waiting);
    }

    /// Takes a waiting request out of its flow, as [`withdraw`](Self::withdraw) does, and puts it at the end of the line of
    /// another one, as if it arrived now. It keeps its name.
    ///
    /// # Panics
    /// When no such request waits.
    pub fn move_to_flow(&mut self, now: u64, waiting: WaitingRequest, flow: u32) {
        self.leave_line(now, waiting);
        let request = self.queues.slab.get_mut(waiting);
        (request.flow, request.arrived, request.since, request.taken) = (flow, now, now, None);
        self.join(now, waiting);
    }

    /// Corrects what a request was charged that was done: it was worth `served_cost`. What it took too much comes back, but
    /// for what would have overflowed meanwhile ([`TokenBuckets::settle`](crate::TokenBuckets::settle)); what it took too
    /// little is taken now, and may leave a debt. A charge is settled at most once. Of a flow that is not known any more
    /// the limiter is corrected if it is remembered; tokens that were taken under other limits do not come back.
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

    /// Takes a request out of the line of its flow and gives back what it took.
    fn leave_line(&mut self, now: u64, waiting: WaitingRequest) {
        let place = self.queues.place_of(self.queues.slab.get(waiting).flow);
        self.queues.advance(now, self.queues.flows[place].limiter);
        self.queues.take_out(now, place, waiting);
        self.update_heads(place);
        let charge = self.queues.charge_of(place, self.queues.slab.get(waiting));
        self.settle(now, charge, 0);
    }
}
