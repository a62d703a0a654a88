//! The order in which requests are dispatched: that of the enforcer, or of a baseline to compare it with.

use super::flows::{CONTROL_FLOW, UNKNOWN_FLOW, data_flow};
use discipline::Limit;
use discipline::enforce::{
    ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer, TokenCharge, WaitingRequest,
};
use std::fmt::Debug;

/// A queue that replaces the enforcer, to compare its order with. Bounds on bytes, limits and levels of the policy do
/// not apply. Requests are numbered by the proxy, workers by the queue.
pub trait BaselineQueue: Debug + Send + Sync {
    /// Returns a queue of the same discipline without requests.
    fn emptied(&self) -> Box<dyn BaselineQueue>;

    /// Adds a request.
    fn arrive(&mut self, now: u64, request: BaselineRequest);

    /// Returns the next request to dispatch and the worker that serves it, if a worker is free.
    fn next(&mut self) -> Option<(u32, u32)>;

    /// The worker has served its request.
    fn done(&mut self, now: u64, worker: u32);

    /// Time at which [`Self::wake`] may free a worker although no request arrives or is done.
    fn wake_at(&self) -> Option<u64>;

    /// The time of [`Self::wake_at`] has come.
    fn wake(&mut self, now: u64);

    /// Number of requests that wait.
    fn waiting(&self) -> usize;

    /// Number of requests that have a worker and were dispatched or are about to be.
    fn outstanding(&self) -> u32;
}

/// A request as a [`BaselineQueue`] sees it.
#[derive(Debug, Clone, Copy)]
pub struct BaselineRequest {
    pub id: u32,
    /// Position of the workload in the policy; none for unknown clients.
    pub workload: Option<u32>,
    /// Device time, nanoseconds.
    pub cost: u64,
}

/// Token to return to the queue when a request is no longer outstanding.
#[derive(Debug)]
pub(super) enum DispatchTicket {
    Enforcer(DispatchedRequest),
    /// Worker of the baseline that serves the request.
    Worker(u32),
}

impl DispatchTicket {
    /// Returns true if bounds do not cover the request: it is best effort and larger than the policy
    /// assumes.
    pub(super) fn is_unexpected(&self) -> bool {
        matches!(self, Self::Enforcer(dispatch) if dispatch.is_unexpected)
    }

    /// Returns true if the limits of its workload did not cover the request.
    pub(super) fn is_beyond_limits(&self) -> bool {
        matches!(self, Self::Enforcer(dispatch) if dispatch.is_beyond_limits)
    }
}

/// Waiting requests, and the order in which they are dispatched.
#[derive(Debug)]
pub(super) enum RequestQueue {
    Enforcer(Box<Enforcer>),
    Baseline(Box<dyn BaselineQueue>),
}

impl RequestQueue {
    /// Creates a queue for the rules of a policy, or of the baseline if there is one.
    ///
    /// # Errors
    /// Says which number of the rules is out of its range.
    pub(super) fn new(
        now: u64,
        rules: &EnforcementRules,
        baseline: Option<&dyn BaselineQueue>,
    ) -> Result<Self, String> {
        Ok(match baseline {
            Some(baseline) => Self::Baseline(baseline.emptied()),
            None => Self::Enforcer(Box::new(Enforcer::new(now, rules)?)),
        })
    }

    /// Replaces the rules; a baseline has none.
    pub(super) fn reconfigure(&mut self, now: u64, rules: &EnforcementRules) -> Result<(), String> {
        match self {
            Self::Enforcer(enforcer) => enforcer.reconfigure(now, rules),
            Self::Baseline(_) => Ok(()),
        }
    }

    /// Adds a request; returns the handle for withdrawing it, which a baseline does not have.
    pub(super) fn arrive(&mut self, now: u64, arrival: ArrivingRequest) -> Option<WaitingRequest> {
        match self {
            Self::Enforcer(enforcer) => Some(enforcer.arrive(now, arrival)),
            Self::Baseline(baseline) => {
                let flow = data_flow(arrival.flow);
                let workload = (flow != UNKNOWN_FLOW).then_some(flow);
                baseline.arrive(now, BaselineRequest { id: arrival.id, workload, cost: arrival.cost });
                None
            }
        }
    }

    /// Returns the request to dispatch now, if there is one.
    pub(super) fn next(&mut self, now: u64) -> Option<(u32, DispatchTicket)> {
        match self {
            Self::Enforcer(enforcer) => {
                enforcer.dispatch_next(now).map(|dispatch| (dispatch.id, DispatchTicket::Enforcer(dispatch)))
            }
            Self::Baseline(baseline) => {
                baseline.next().map(|(request, worker)| (request, DispatchTicket::Worker(worker)))
            }
        }
    }

    /// Returns the request to dispatch together with that of `ticket`, if `continues` accepts it.
    pub(super) fn follow(
        &mut self,
        now: u64,
        ticket: &DispatchTicket,
        continues: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, DispatchTicket)> {
        match (self, ticket) {
            (Self::Enforcer(enforcer), DispatchTicket::Enforcer(dispatch)) => {
                let next = enforcer.dispatch_continuation(now, dispatch, continues)?;
                Some((next.id, DispatchTicket::Enforcer(next)))
            }
            _ => None,
        }
    }

    /// Notes that the request of this ticket is no longer outstanding. Returns its tokens.
    pub(super) fn done(&mut self, now: u64, ticket: DispatchTicket) -> Option<TokenCharge> {
        match (self, ticket) {
            (Self::Enforcer(enforcer), DispatchTicket::Enforcer(dispatch)) => {
                Some(enforcer.complete(dispatch))
            }
            (Self::Baseline(baseline), DispatchTicket::Worker(worker)) => {
                baseline.done(now, worker);
                None
            }
            _ => unreachable!("a ticket comes from this queue"),
        }
    }

    /// Lets a request at the device count for its own workload only. Returns false for a baseline, which counts
    /// workers.
    pub(super) fn detach(&mut self, ticket: &mut DispatchTicket) -> bool {
        match (self, ticket) {
            (Self::Enforcer(enforcer), DispatchTicket::Enforcer(dispatch)) => {
                enforcer.detach(dispatch);
                true
            }
            _ => false,
        }
    }

    /// Stops dispatching requests of a workload, or allows it again.
    pub(super) fn bar(&mut self, workload: u32, is_barred: bool) {
        if let Self::Enforcer(enforcer) = self {
            for flow in [workload, workload | CONTROL_FLOW] {
                enforcer.bar(flow, is_barred);
            }
        }
    }

    /// Corrects the charge of a request to its served cost.
    pub(super) fn settle(&mut self, now: u64, charge: TokenCharge, served: u64) {
        if let Self::Enforcer(enforcer) = self {
            enforcer.settle(now, charge, served);
        }
    }

    /// Removes a waiting request from the queue.
    pub(super) fn withdraw(&mut self, now: u64, waiting: WaitingRequest) {
        if let Self::Enforcer(enforcer) = self {
            enforcer.withdraw(now, waiting);
        }
    }

    /// Moves a waiting request to the end of the line of another flow.
    pub(super) fn move_to_flow(&mut self, now: u64, waiting: WaitingRequest, flow: u32) {
        if let Self::Enforcer(enforcer) = self {
            enforcer.move_to_flow(now, waiting, flow);
        }
    }

    /// Returns the time at which [`Self::next`] may return a request without an earlier arrival or
    /// completion.
    pub(super) fn wake_at(&self) -> Option<u64> {
        match self {
            Self::Enforcer(enforcer) => enforcer.wake_at(),
            Self::Baseline(baseline) => baseline.wake_at(),
        }
    }

    /// Returns the buckets that lack tokens, by flow: their limits and the missing work.
    pub(super) fn missing_tokens(&mut self, now: u64) -> Vec<(u32, Vec<(Limit, u64)>)> {
        match self {
            Self::Enforcer(enforcer) => enforcer.missing_tokens(now),
            Self::Baseline(_) => Vec::new(),
        }
    }

    /// Takes over the missing tokens of a flow from another proxy.
    pub(super) fn inherit(&mut self, now: u64, flow: u32, missing: &[(Limit, u64)]) {
        if let Self::Enforcer(enforcer) = self {
            enforcer.inherit(now, flow, missing);
        }
    }

    /// Advances the queue's clock, in case [`Self::wake_at`] has come.
    pub(super) fn wake(&mut self, now: u64) {
        if let Self::Baseline(baseline) = self
            && baseline.wake_at().is_some_and(|at| at <= now)
        {
            baseline.wake(now);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Enforcer(enforcer) => enforcer.waiting(),
            Self::Baseline(baseline) => baseline.waiting(),
        }
    }

    pub(super) fn outstanding(&self) -> u32 {
        match self {
            Self::Enforcer(enforcer) => enforcer.outstanding(),
            Self::Baseline(baseline) => baseline.outstanding(),
        }
    }

    /// Checks the enforcer's invariants.
    pub(super) fn check_invariants(&self) {
        if let Self::Enforcer(enforcer) = self {
            enforcer.check_invariants();
        }
    }
}
