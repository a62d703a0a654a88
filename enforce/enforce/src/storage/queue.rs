//! Order of requests: decided by the enforcer, or, for comparison, by another discipline with as many
//! workers as requests may be outstanding. Both are the code that the simulator runs.

use super::flows::{UNKNOWN_FLOW, data_flow};
use discipline::enforce::{
    ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer, TokenCharge, WaitingRequest,
};
use discipline::serve::{AnyDiscipline, Assignment, BuiltDiscipline, Discipline, DisciplineSpec, QueueItem};
use std::collections::VecDeque;

/// A discipline for comparison. Its classes are the positions of workloads in the policy; unknown clients
/// form another class. Bounds on bytes, limits and levels of the policy do not apply.
#[derive(Debug, Clone)]
pub struct BaselineDiscipline {
    /// The discipline: not preemptive, and one that shares a worker only by slices.
    pub kind: DisciplineSpec,
    /// Maximum number of outstanding requests.
    pub outstanding: u32,
    /// Number of workloads with a class; unknown clients get the class behind them.
    pub workloads: u32,
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
}

/// Waiting requests, and the order in which they are dispatched.
#[derive(Debug)]
pub(super) enum RequestQueue {
    Enforcer(Box<Enforcer>),
    Baseline(Box<BaselineQueue>),
}

/// The queue of a discipline for comparison.
#[derive(Debug)]
pub(super) struct BaselineQueue {
    discipline: AnyDiscipline,
    workloads: u32,
    /// Assignments that the discipline has just made; empty between calls.
    begun: Vec<Assignment>,
    /// Requests with a worker, not yet dispatched.
    ready: VecDeque<(u32, DispatchTicket)>,
    outstanding: u32,
}

impl RequestQueue {
    /// Creates a queue for the rules of a policy, or for the baseline if there is one.
    ///
    /// # Errors
    /// With the rule that is out of its range, or the reason why a proxy cannot use the baseline.
    pub(super) fn new(
        now: u64,
        rules: &EnforcementRules,
        baseline: Option<&BaselineDiscipline>,
    ) -> Result<Self, String> {
        let Some(BaselineDiscipline { kind, outstanding, workloads }) = baseline else {
            return Ok(Self::Enforcer(Box::new(Enforcer::new(now, rules)?)));
        };
        kind.check()?;
        let BuiltDiscipline::Workers(discipline) = kind.build(*outstanding, 0) else {
            return Err("a proxy serves requests whole: no sharing without slices".to_owned());
        };
        Ok(Self::Baseline(Box::new(BaselineQueue {
            discipline,
            workloads: *workloads,
            begun: Vec::new(),
            ready: VecDeque::new(),
            outstanding: 0,
        })))
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
                baseline.arrive(now, arrival);
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
            Self::Baseline(baseline) => baseline.ready.pop_front(),
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
            Self::Baseline(baseline) => baseline.discipline.wake_at(),
        }
    }

    /// Advances the queue's clock, in case [`Self::wake_at`] has come.
    pub(super) fn wake(&mut self, now: u64) {
        if let Self::Baseline(baseline) = self
            && baseline.discipline.wake_at().is_some_and(|at| at <= now)
        {
            baseline.discipline.wake(now, &mut baseline.begun);
            baseline.collect_begun();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Enforcer(enforcer) => enforcer.waiting(),
            Self::Baseline(baseline) => baseline.discipline.waiting() + baseline.ready.len(),
        }
    }

    pub(super) fn outstanding(&self) -> u32 {
        match self {
            Self::Enforcer(enforcer) => enforcer.outstanding(),
            Self::Baseline(baseline) => baseline.outstanding,
        }
    }

    /// Checks the enforcer's invariants.
    pub(super) fn check_invariants(&self) {
        if let Self::Enforcer(enforcer) = self {
            enforcer.check_invariants();
        }
    }
}

impl BaselineQueue {
    fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        let flow = data_flow(arrival.flow);
        let class = if flow == UNKNOWN_FLOW { self.workloads } else { flow.min(self.workloads) };
        let item = QueueItem { id: arrival.id, class, age: now, size: arrival.cost, access: None };
        self.discipline.arrive(now, item, &mut self.begun);
        self.collect_begun();
    }

    fn done(&mut self, now: u64, worker: u32) {
        self.outstanding -= 1;
        self.discipline.depart(now, worker, &mut self.begun);
        self.collect_begun();
    }

    /// Makes requests that have just got a worker ready for dispatch.
    fn collect_begun(&mut self) {
        for run in self.begun.drain(..) {
            self.outstanding += 1;
            self.ready.push_back((run.item, DispatchTicket::Worker(run.worker)));
        }
    }
}
