//! Places at the device by workload. An overdue request keeps the place of its workload and leaves those of
//! the others.

use super::outstanding::FlowHold;
use super::{DispatchedRequest, Enforcer};

impl Enforcer {
    /// Lets a dispatched request count for its own workload only: the others may use its place. The flows behind
    /// one limiter together never have more requests at the device, detached ones included, than may be
    /// outstanding. Does nothing for a request that is detached already.
    pub fn detach(&mut self, dispatch: &mut DispatchedRequest) {
        if std::mem::replace(&mut dispatch.is_detached, true) {
            return;
        }
        self.outstanding.remove(dispatch.level, dispatch.operation, dispatch.bytes);
        self.holds.entry(dispatch.flow).or_default().detached += 1;
        self.detached += 1;
        self.update_hold(dispatch.flow);
    }

    /// Stops dispatching requests of a flow and of those behind its limiter, or allows it again.
    pub fn bar(&mut self, flow: u32, is_barred: bool) {
        self.holds.entry(flow).or_default().is_barred = is_barred;
        self.update_hold(flow);
    }

    /// Counts a request that is dispatched.
    #[inline]
    pub(super) fn hold(&mut self, flow: u32) {
        self.holds.entry(flow).or_default().requests += 1;
        if self.detached > 0 {
            self.update_hold(flow);
        }
    }

    /// Counts a request that is complete.
    #[inline]
    pub(super) fn let_go(&mut self, dispatch: &DispatchedRequest) {
        let hold = self.holds.entry(dispatch.flow).or_default();
        hold.requests -= 1;
        if dispatch.is_detached {
            hold.detached -= 1;
            self.detached -= 1;
        }
        if dispatch.is_detached || self.detached > 0 {
            self.update_hold(dispatch.flow);
        }
    }

    fn update_hold(&mut self, flow: u32) {
        self.update_hold_behind(self.queues.flows[self.queues.place_of(flow)].limiter);
    }

    /// Holds back the flows behind a limiter, or no longer.
    pub(super) fn update_hold_behind(&mut self, limiter: usize) {
        let is_held_back = self.is_held_back(limiter);
        for place in &self.queues.limiters[limiter].members {
            self.queues.flows[*place].is_held_back = is_held_back;
        }
        self.update_heads_behind(limiter);
    }

    /// Returns true if nothing more of the flows behind a limiter may be dispatched.
    pub(super) fn is_held_back(&self, limiter: usize) -> bool {
        let limiter_of = |flow: u32| self.queues.flows[self.queues.place_of(flow)].limiter;
        let mut sum = FlowHold::default();
        for (_, hold) in self.holds.iter().filter(|(flow, _)| limiter_of(**flow) == limiter) {
            sum.requests += hold.requests;
            sum.detached += hold.detached;
            sum.is_barred |= hold.is_barred;
        }
        sum.is_barred || (sum.detached > 0 && sum.requests >= self.bounds.requests())
    }
}
