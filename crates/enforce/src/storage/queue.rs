//! Which request is next: decided by the enforcer, or, to compare with, by another discipline before as many workers as
//! requests may be outstanding. Both are the code that the simulator runs.

use super::flows::{UNKNOWN_FLOW, data_flow};
use discipline::enforce::{ArrivingRequest, DispatchedRequest, EnforcementRules, Enforcer, WaitingRequest};
use discipline::serve::{AnyDiscipline, Assignment, BuiltDiscipline, Discipline, DisciplineSpec, QueueItem};
use std::collections::{BTreeMap, VecDeque};

/// A discipline to compare with. Its classes are the positions of workloads in the policy; unknown clients are one
/// class more. Bounds on bytes, limits and levels of the policy do not apply.
#[derive(Debug, Clone)]
pub struct BaselineDiscipline {
    /// The discipline: any that is not preemptive and does not share a worker without slices.
    pub kind: DisciplineSpec,
    /// The most requests outstanding.
    pub outstanding: u32,
    /// The number of workloads that have a class; unknown clients get the class behind them.
    pub workloads: u32,
}

/// What the queue needs back when a request is no longer outstanding.
#[derive(Debug)]
pub(super) enum DispatchTicket {
    Enforcer(DispatchedRequest),
    /// The worker of the baseline that serves the request.
    Worker(u32),
}

/// The requests that wait, and the order in which they are dispatched.
#[derive(Debug)]
pub(super) enum RequestQueue {
    Enforcer(Box<EnforcerQueue>),
    Baseline(Box<BaselineQueue>),
}

/// The queue of an enforcer.
#[derive(Debug)]
pub(super) struct EnforcerQueue {
    enforcer: Enforcer,
    /// The flows of the waiting requests and what the enforcer calls them, by number.
    waiting: BTreeMap<u32, (u32, WaitingRequest)>,
}

/// The queue of a discipline to compare with.
#[derive(Debug)]
pub(super) struct BaselineQueue {
    discipline: AnyDiscipline,
    workloads: u32,
    /// What the discipline has just begun to serve; empty between two calls.
    begun: Vec<Assignment>,
    /// Requests that have a worker and were not taken yet.
    ready: VecDeque<(u32, DispatchTicket)>,
    outstanding: u32,
}

impl RequestQueue {
    /// A queue for the rules of a policy, or for the baseline if there is one.
    ///
    /// # Errors
    /// Says which number of the rules is out of its range, or why a proxy cannot serve by the baseline.
    pub(super) fn new(
        now: u64,
        rules: &EnforcementRules,
        baseline: Option<&BaselineDiscipline>,
    ) -> Result<Self, String> {
        let Some(BaselineDiscipline { kind, outstanding, workloads }) = baseline else {
            let enforcer = Enforcer::new(now, rules)?;
            return Ok(Self::Enforcer(Box::new(EnforcerQueue { enforcer, waiting: BTreeMap::new() })));
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
            Self::Enforcer(queue) => queue.enforcer.reconfigure(now, rules),
            Self::Baseline(_) => Ok(()),
        }
    }

    pub(super) fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        match self {
            Self::Enforcer(queue) => {
                let waiting = queue.enforcer.arrive(now, arrival);
                queue.waiting.insert(arrival.id, (arrival.flow, waiting));
            }
            Self::Baseline(baseline) => baseline.arrive(now, arrival),
        }
    }

    /// The request to dispatch now, if there is one.
    pub(super) fn next(&mut self, now: u64) -> Option<(u32, DispatchTicket)> {
        match self {
            Self::Enforcer(queue) => {
                let dispatch = queue.enforcer.dispatch_next(now)?;
                queue.waiting.remove(&dispatch.id);
                Some((dispatch.id, DispatchTicket::Enforcer(dispatch)))
            }
            Self::Baseline(baseline) => baseline.ready.pop_front(),
        }
    }

    /// The request to dispatch together with the one of `ticket`, if `continues` accepts it.
    pub(super) fn follow(
        &mut self,
        now: u64,
        ticket: &DispatchTicket,
        continues: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, DispatchTicket)> {
        match (self, ticket) {
            (Self::Enforcer(queue), DispatchTicket::Enforcer(dispatch)) => {
                let next = queue.enforcer.dispatch_continuation(now, dispatch, continues)?;
                queue.waiting.remove(&next.id);
                Some((next.id, DispatchTicket::Enforcer(next)))
            }
            _ => None,
        }
    }

    /// The request of this ticket is no longer outstanding.
    pub(super) fn done(&mut self, now: u64, ticket: DispatchTicket) {
        match (self, ticket) {
            (Self::Enforcer(queue), DispatchTicket::Enforcer(dispatch)) => {
                queue.enforcer.complete(dispatch);
            }
            (Self::Baseline(baseline), DispatchTicket::Worker(worker)) => baseline.done(now, worker),
            _ => unreachable!("a ticket comes from this queue"),
        }
    }

    /// Removes those waiting requests of a flow that `is_withdrawn` accepts, and returns whether the queue can do that.
    /// A baseline cannot: it dispatches them, and the engine returns their tickets at once.
    pub(super) fn withdraw(
        &mut self,
        now: u64,
        flow: u32,
        mut is_withdrawn: impl FnMut(u32) -> bool,
    ) -> bool {
        let Self::Enforcer(queue) = self else { return false };
        let EnforcerQueue { enforcer, waiting } = queue.as_mut();
        waiting.retain(|number, (of, request)| {
            let stays = *of != flow || !is_withdrawn(*number);
            if !stays {
                enforcer.withdraw(now, *request);
            }
            stays
        });
        true
    }

    /// When [`Self::next`] may have a request although nothing arrives or ends before.
    pub(super) fn wake_at(&self) -> Option<u64> {
        match self {
            Self::Enforcer(queue) => queue.enforcer.wake_at(),
            Self::Baseline(baseline) => baseline.discipline.wake_at(),
        }
    }

    /// Tells the queue the time, in case [`Self::wake_at`] has come.
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
            Self::Enforcer(queue) => queue.enforcer.waiting(),
            Self::Baseline(baseline) => baseline.discipline.waiting() + baseline.ready.len(),
        }
    }

    pub(super) fn outstanding(&self) -> u32 {
        match self {
            Self::Enforcer(queue) => queue.enforcer.outstanding(),
            Self::Baseline(baseline) => baseline.outstanding,
        }
    }

    /// Whether the queue keeps a waiting request that was withdrawn.
    pub(super) fn keeps_withdrawn(&self) -> bool {
        matches!(self, Self::Baseline(_))
    }
}

impl BaselineQueue {
    fn arrive(&mut self, now: u64, arrival: ArrivingRequest) {
        let flow = data_flow(arrival.flow);
        let class = if flow == UNKNOWN_FLOW { self.workloads } else { flow.min(self.workloads) };
        let item = QueueItem { id: arrival.id, class, age: now, size: arrival.cost };
        self.discipline.arrive(now, item, &mut self.begun);
        self.collect_begun();
    }

    fn done(&mut self, now: u64, worker: u32) {
        self.outstanding -= 1;
        self.discipline.depart(now, worker, &mut self.begun);
        self.collect_begun();
    }

    /// Makes requests ready that have just got a worker.
    fn collect_begun(&mut self) {
        for run in self.begun.drain(..) {
            self.outstanding += 1;
            self.ready.push_back((run.item, DispatchTicket::Worker(run.worker)));
        }
    }
}
