//! Construction of disciplines, and an enum over those that assign items to workers.

use super::{
    Assignment, CentralQueue, Discipline, DisciplineSpec, EarliestDeadlineFirst, EnforcedDevice,
    EnforcedDiscipline, FairScheduler, FeedbackScheduler, Lifo, LimitedSharing, OldestFirst, PacketLink,
    PreemptiveRank, PreemptiveRanked, ProportionalShare, QueueItem, QueuePerWorker, RandomOrder,
};
use crate::{ProcessorSharing, StrictPriority};
use std::collections::VecDeque;

/// A discipline without items, by the way in which the caller runs it.
#[derive(Debug, Clone)]
pub enum BuiltDiscipline {
    /// Assigns items to workers.
    Workers(AnyDiscipline),
    /// Reports when the next item is due.
    Shared(ProcessorSharing),
}

/// Any discipline that assigns items to workers.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each variant has the name of its discipline")]
#[non_exhaustive]
pub enum AnyDiscipline {
    Fifo(CentralQueue<VecDeque<u32>>),
    Lifo(CentralQueue<Lifo>),
    RandomOrder(CentralQueue<RandomOrder>),
    OldestFirst(CentralQueue<OldestFirst>),
    Priority(CentralQueue<StrictPriority<u32>>),
    Deadline(CentralQueue<EarliestDeadlineFirst>),
    Proportional(CentralQueue<ProportionalShare>),
    Ranked(PreemptiveRanked),
    Split(QueuePerWorker),
    Limited(LimitedSharing),
    Fair(FairScheduler),
    Enforced(Box<EnforcedDiscipline>),
    EnforcedDevice(Box<EnforcedDevice>),
    PacketLink(Box<PacketLink>),
    Feedback(Box<FeedbackScheduler>),
}

impl DisciplineSpec {
    /// Builds the discipline for `workers` idle workers. `seed` seeds random choices.
    ///
    /// # Panics
    /// When there are no workers or a parameter is out of its range.
    pub fn build(&self, workers: u32, seed: u64) -> BuiltDiscipline {
        BuiltDiscipline::Workers(match self {
            Self::Fifo => AnyDiscipline::Fifo(CentralQueue::new(workers, VecDeque::new())),
            Self::Lifo => AnyDiscipline::Lifo(CentralQueue::new(workers, Lifo::default())),
            Self::RandomOrder => {
                AnyDiscipline::RandomOrder(CentralQueue::new(workers, RandomOrder::new(seed)))
            }
            Self::OldestFirst => {
                AnyDiscipline::OldestFirst(CentralQueue::new(workers, OldestFirst::default()))
            }
            Self::Priority { levels } => {
                AnyDiscipline::Priority(CentralQueue::new(workers, StrictPriority::new(*levels as usize)))
            }
            Self::Deadline { allowed } => AnyDiscipline::Deadline(CentralQueue::new(
                workers,
                EarliestDeadlineFirst::new(allowed.clone()),
            )),
            Self::Proportional { weights } => AnyDiscipline::Proportional(CentralQueue::new(
                workers,
                ProportionalShare::new(weights.clone()),
            )),
            Self::PreemptivePriority { .. } => AnyDiscipline::ranked(workers, PreemptiveRank::Class),
            Self::PreemptiveDeadline { allowed } => {
                AnyDiscipline::ranked(workers, PreemptiveRank::Deadline(allowed.clone()))
            }
            Self::PreemptiveOldestFirst => AnyDiscipline::ranked(workers, PreemptiveRank::Age),
            Self::Split(choice) => AnyDiscipline::Split(QueuePerWorker::new(workers, *choice, seed)),
            Self::Limited(parameters) => AnyDiscipline::Limited(LimitedSharing::new(workers, *parameters)),
            Self::LimitedDeadline { sharing, allowed } => {
                AnyDiscipline::Limited(LimitedSharing::new(workers, *sharing).by_deadline(allowed.clone()))
            }
            Self::Fair(parameters) => AnyDiscipline::Fair(FairScheduler::new(workers, *parameters)),
            Self::Enforced(rules) => {
                AnyDiscipline::Enforced(Box::new(EnforcedDiscipline::new(workers, rules)))
            }
            Self::EnforcedDevice(parameters) => {
                AnyDiscipline::EnforcedDevice(Box::new(EnforcedDevice::new(workers, parameters)))
            }
            Self::PacketLink(parameters) => AnyDiscipline::PacketLink(Box::new(PacketLink::new(parameters))),
            Self::Feedback(parameters) => {
                AnyDiscipline::Feedback(Box::new(FeedbackScheduler::new(workers, parameters.clone())))
            }
            Self::Sharing { limit } => {
                return BuiltDiscipline::Shared(ProcessorSharing::new(workers, *limit));
            }
            Self::WeightedSharing { limit, weights } => {
                return BuiltDiscipline::Shared(ProcessorSharing::weighted(workers, *limit, weights));
            }
        })
    }
}

impl AnyDiscipline {
    fn ranked(workers: u32, rank: PreemptiveRank) -> Self {
        Self::Ranked(PreemptiveRanked::new(workers, rank))
    }
}

/// Evaluates the same expression for each variant.
macro_rules! for_any {
    ($any:expr, $discipline:ident => $body:expr) => {
        match $any {
            AnyDiscipline::Fifo($discipline) => $body,
            AnyDiscipline::Lifo($discipline) => $body,
            AnyDiscipline::RandomOrder($discipline) => $body,
            AnyDiscipline::OldestFirst($discipline) => $body,
            AnyDiscipline::Priority($discipline) => $body,
            AnyDiscipline::Deadline($discipline) => $body,
            AnyDiscipline::Proportional($discipline) => $body,
            AnyDiscipline::Ranked($discipline) => $body,
            AnyDiscipline::Split($discipline) => $body,
            AnyDiscipline::Limited($discipline) => $body,
            AnyDiscipline::Fair($discipline) => $body,
            AnyDiscipline::Enforced($discipline) => $body,
            AnyDiscipline::EnforcedDevice($discipline) => $body,
            AnyDiscipline::PacketLink($discipline) => $body,
            AnyDiscipline::Feedback($discipline) => $body,
        }
    };
}

impl Discipline for AnyDiscipline {
    #[inline]
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        for_any!(self, discipline => discipline.arrive(now, item, assignments));
    }

    #[inline]
    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        for_any!(self, discipline => discipline.depart(now, worker, assignments));
    }

    fn expire(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        for_any!(self, discipline => discipline.expire(now, worker, assignments));
    }

    fn take_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        for_any!(self, discipline => discipline.take_worker(now, worker, assignments));
    }

    fn return_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        for_any!(self, discipline => discipline.return_worker(now, worker, assignments));
    }

    fn waiting(&self) -> usize {
        for_any!(self, discipline => discipline.waiting())
    }

    #[inline]
    fn wake_at(&self) -> Option<u64> {
        for_any!(self, discipline => discipline.wake_at())
    }

    fn wake(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        for_any!(self, discipline => discipline.wake(now, assignments));
    }
}
