//! Who is next: the enforcer, or another discipline before as many workers as may be outstanding, to compare with.
//! Both are the code that the simulator runs.

use super::rules::{CONTROL, UNKNOWN};
use discipline::enforce::{Arrival, Dispatch, Enforcer, Rules};
use discipline::serve::{Any, Built, Discipline, Item, Kind, Run};
use std::collections::VecDeque;

/// A discipline to compare with. A class is the position of a workload in the policy; unknown clients are one
/// class more. Bounds on bytes, limits and levels of the policy do not apply.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Any that is not preemptive and does not share without slices.
    pub kind: Kind,
    /// Most requests outstanding.
    pub outstanding: u32,
    /// How many workloads the discipline has classes for; unknown clients have the one behind them.
    pub workloads: u32,
}

/// A request at the device, to be handed back.
#[derive(Debug)]
pub(super) enum Ticket {
    Enforced(Dispatch),
    Worker(u32),
}

/// Requests that wait.
#[derive(Debug)]
pub(super) enum Queue {
    Enforced(Box<Enforcer>),
    Compared(Box<Compared>),
}

#[derive(Debug)]
pub(super) struct Compared {
    discipline: Any,
    workloads: u32,
    runs: Vec<Run>,
    ready: VecDeque<(u32, Ticket)>,
    outstanding: u32,
}

impl Queue {
    pub(super) fn new(now: u64, rules: &Rules, baseline: Option<&Baseline>) -> Result<Self, String> {
        let Some(Baseline { kind, outstanding, workloads }) = baseline else {
            return Ok(Self::Enforced(Box::new(Enforcer::new(now, rules)?)));
        };
        kind.check()?;
        let Built::Workers(discipline) = kind.build(*outstanding, 0) else {
            return Err("a proxy serves requests whole: no sharing without slices".to_owned());
        };
        let (runs, ready) = (Vec::new(), VecDeque::new());
        Ok(Self::Compared(Box::new(Compared {
            discipline,
            workloads: *workloads,
            runs,
            ready,
            outstanding: 0,
        })))
    }

    /// Other rules; a discipline to compare with has none.
    pub(super) fn reconfigure(&mut self, now: u64, rules: &Rules) -> Result<(), String> {
        match self {
            Self::Enforced(enforcer) => enforcer.reconfigure(now, rules),
            Self::Compared(_) => Ok(()),
        }
    }

    pub(super) fn arrive(&mut self, now: u64, arrival: Arrival) {
        match self {
            Self::Enforced(enforcer) => enforcer.arrive(now, arrival),
            Self::Compared(compared) => compared.arrive(now, arrival),
        }
    }

    /// The request to send now.
    pub(super) fn next(&mut self, now: u64) -> Option<(u32, Ticket)> {
        match self {
            Self::Enforced(enforcer) => {
                enforcer.next(now).map(|dispatch| (dispatch.id, Ticket::Enforced(dispatch)))
            }
            Self::Compared(compared) => compared.ready.pop_front(),
        }
    }

    /// The request that goes together with the one that was sent last.
    pub(super) fn follow(
        &mut self,
        now: u64,
        ticket: &Ticket,
        continues: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, Ticket)> {
        match (self, ticket) {
            (Self::Enforced(enforcer), Ticket::Enforced(dispatch)) => {
                let next = enforcer.follow(now, dispatch, continues)?;
                Some((next.id, Ticket::Enforced(next)))
            }
            _ => None,
        }
    }

    pub(super) fn done(&mut self, now: u64, ticket: Ticket) {
        match (self, ticket) {
            (Self::Enforced(enforcer), Ticket::Enforced(dispatch)) => enforcer.done(dispatch),
            (Self::Compared(compared), Ticket::Worker(worker)) => compared.done(now, worker),
            _ => unreachable!("a ticket comes from this queue"),
        }
    }

    /// Takes back what waits in a flow. A discipline to compare with cannot: it sends it, and gets it back at once.
    pub(super) fn withdraw(&mut self, now: u64, flow: u32, gone: impl FnMut(u32) -> bool) -> bool {
        if let Self::Enforced(enforcer) = self {
            enforcer.withdraw(now, flow, gone);
            return true;
        }
        false
    }

    pub(super) fn wake_at(&self) -> Option<u64> {
        match self {
            Self::Enforced(enforcer) => enforcer.wake_at(),
            Self::Compared(compared) => compared.discipline.wake_at(),
        }
    }

    /// It may be that late.
    pub(super) fn wake(&mut self, now: u64) {
        if let Self::Compared(compared) = self
            && compared.discipline.wake_at().is_some_and(|at| at <= now)
        {
            compared.discipline.wake(now, &mut compared.runs);
            compared.settle();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        match self {
            Self::Enforced(enforcer) => enforcer.waiting(),
            Self::Compared(compared) => compared.discipline.waiting() + compared.ready.len(),
        }
    }

    pub(super) fn outstanding(&self) -> u32 {
        match self {
            Self::Enforced(enforcer) => enforcer.outstanding(),
            Self::Compared(compared) => compared.outstanding,
        }
    }
}

impl Compared {
    fn arrive(&mut self, now: u64, arrival: Arrival) {
        let flow = arrival.flow & !CONTROL;
        let class = if flow == UNKNOWN { self.workloads } else { flow.min(self.workloads) };
        let item = Item { id: arrival.id, class, age: now, size: arrival.cost };
        self.discipline.arrive(now, item, &mut self.runs);
        self.settle();
    }

    fn done(&mut self, now: u64, worker: u32) {
        self.outstanding -= 1;
        self.discipline.depart(now, worker, &mut self.runs);
        self.settle();
    }

    fn settle(&mut self) {
        for run in self.runs.drain(..) {
            self.outstanding += 1;
            self.ready.push_back((run.item, Ticket::Worker(run.worker)));
        }
    }
}
