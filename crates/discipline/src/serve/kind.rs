//! Disciplines by name: plain data that a scenario carries, and one type that is any of them.

use super::{
    ByAge, ByDeadline, Central, Choice, Discipline, Enforced, Fair, FairParameters, Feedback,
    FeedbackParameters, Item, Lifo, Limited, LimitedParameters, Proportional, RandomOrder, Rank, Ranked, Run,
    Split,
};
use crate::enforce::Rules;
use crate::{Sharing, StrictPriority};
use std::collections::VecDeque;

/// Which discipline, with its parameters. Times are in the caller's unit (nanoseconds in Tailwright).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// First come, first served, one line before all workers.
    Fifo,
    /// Last come, first served, not preemptive.
    Lifo,
    /// The next item is any of those that wait.
    RandomOrder,
    /// Oldest first by time of entry into the system, not preemptive: global first come, first served.
    OldestFirst,
    /// A level per class, 0 first, not preemptive.
    Priority {
        /// Number of levels.
        levels: u32,
    },
    /// Earliest deadline first, not preemptive.
    Deadline {
        /// Time from entry to deadline, by class.
        allowed: Vec<u64>,
    },
    /// Shares in proportion to weights, by start-time fair queueing, not preemptive.
    Proportional {
        /// Weight by class.
        weights: Vec<u32>,
    },
    /// A level per class, 0 first, preemptive.
    PreemptivePriority {
        /// Number of levels.
        levels: u32,
    },
    /// Earliest deadline first, preemptive.
    PreemptiveDeadline {
        /// Time from entry to deadline, by class.
        allowed: Vec<u64>,
    },
    /// Oldest first by time of entry into the system, preemptive.
    PreemptiveOldestFirst,
    /// A queue per worker.
    Split(Choice),
    /// Round-robin among a limited number, chosen by age or not: ORF and its ablations.
    Limited(LimitedParameters),
    /// Fair sharing by worker.
    Fair(FairParameters),
    /// Strict priority under token buckets and bounds: the queueing logic of an enforcer; looks at sizes. A class
    /// is a flow.
    Enforced(Rules),
    /// Shares in proportion to weights that follow measured latencies, not preemptive; looks at sizes.
    Feedback(FeedbackParameters),
    /// Ideal processor sharing; looks at sizes.
    Sharing {
        /// Most in service at once; `None` for no limit.
        limit: Option<u32>,
    },
    /// Ideal processor sharing in proportion to weights; looks at sizes.
    WeightedSharing {
        /// Most in service at once; `None` for no limit.
        limit: Option<u32>,
        /// Weight by class.
        weights: Vec<u32>,
    },
}

/// A discipline at rest, by what the caller has to do for it.
#[derive(Debug, Clone)]
pub enum Built {
    /// It orders workers about.
    Workers(Any),
    /// It says when the next item is due.
    Shared(Sharing),
}

/// Any discipline.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Any {
    Fifo(Central<VecDeque<u32>>),
    Lifo(Central<Lifo>),
    RandomOrder(Central<RandomOrder>),
    OldestFirst(Central<ByAge>),
    Priority(Central<StrictPriority<u32>>),
    Deadline(Central<ByDeadline>),
    Proportional(Central<Proportional>),
    Ranked(Ranked),
    Split(Split),
    Limited(Limited),
    Fair(Fair),
    Enforced(Box<Enforced>),
    Feedback(Box<Feedback>),
}

impl Kind {
    /// The discipline for `workers` idle workers. `seed` is for those that draw lots.
    ///
    /// # Panics
    /// When there are no workers or a parameter is out of its range.
    pub fn build(&self, workers: u32, seed: u64) -> Built {
        let ranked = |rank: Rank| Any::Ranked(Ranked::new(workers, rank));
        Built::Workers(match self {
            Self::Fifo => Any::Fifo(Central::new(workers, VecDeque::new())),
            Self::Lifo => Any::Lifo(Central::new(workers, Lifo::default())),
            Self::RandomOrder => Any::RandomOrder(Central::new(workers, RandomOrder::new(seed))),
            Self::OldestFirst => Any::OldestFirst(Central::new(workers, ByAge::default())),
            Self::Priority { levels } => {
                Any::Priority(Central::new(workers, StrictPriority::new(*levels as usize)))
            }
            Self::Deadline { allowed } => {
                Any::Deadline(Central::new(workers, ByDeadline::new(allowed.clone())))
            }
            Self::Proportional { weights } => {
                Any::Proportional(Central::new(workers, Proportional::new(weights.clone())))
            }
            Self::PreemptivePriority { .. } => ranked(Rank::Class),
            Self::PreemptiveDeadline { allowed } => ranked(Rank::Deadline(allowed.clone())),
            Self::PreemptiveOldestFirst => ranked(Rank::Age),
            Self::Split(choice) => Any::Split(Split::new(workers, *choice, seed)),
            Self::Limited(parameters) => Any::Limited(Limited::new(workers, *parameters)),
            Self::Fair(parameters) => Any::Fair(Fair::new(workers, *parameters)),
            Self::Enforced(rules) => Any::Enforced(Box::new(Enforced::new(workers, rules))),
            Self::Feedback(parameters) => Any::Feedback(Box::new(Feedback::new(workers, parameters.clone()))),
            Self::Sharing { limit } => return Built::Shared(Sharing::new(workers, *limit)),
            Self::WeightedSharing { limit, weights } => {
                return Built::Shared(Sharing::weighted(workers, *limit, weights));
            }
        })
    }

    /// Whether its parameters are within their ranges; what is wrong otherwise.
    pub fn check(&self) -> Result<(), String> {
        let fault = match self {
            Self::Proportional { weights } | Self::WeightedSharing { weights, .. }
                if weights.contains(&0) =>
            {
                "a weight of a class is at least 1"
            }
            Self::Limited(limited) if limited.limit == 0 => "the limit of processor sharing is at least 1",
            Self::Limited(limited) if limited.slice == 0 => "a slice is at least 1",
            Self::Fair(fair) if fair.min_granularity == 0 => "the minimum granularity is at least 1",
            Self::Sharing { limit: Some(0) } | Self::WeightedSharing { limit: Some(0), .. } => {
                "the limit of processor sharing is at least 1"
            }
            Self::Enforced(rules) => return rules.check(),
            Self::Feedback(parameters) => return parameters.check(),
            _ => return Ok(()),
        };
        Err(fault.to_owned())
    }

    /// Whether time alone can put an item on a worker ([`Discipline::wake_at`]).
    pub fn wakes(&self) -> bool {
        matches!(self, Self::Enforced(_))
    }

    /// Whether it has a queue of those whose service has begun, to which an item goes back when other work takes its
    /// worker ([`Discipline::leave`]).
    pub fn requeues(&self) -> bool {
        matches!(self, Self::Limited(_))
    }

    /// Number of classes that the discipline tells apart; `None` when it does not look at classes.
    pub fn classes(&self) -> Option<usize> {
        match self {
            Self::Priority { levels } | Self::PreemptivePriority { levels } => Some(*levels as usize),
            Self::Deadline { allowed } | Self::PreemptiveDeadline { allowed } => Some(allowed.len()),
            Self::Proportional { weights } | Self::WeightedSharing { weights, .. } => Some(weights.len()),
            Self::Feedback(parameters) => Some(parameters.classes.len()),
            _ => None,
        }
    }
}

/// The same expression for whichever it is.
macro_rules! each {
    ($any:expr, $discipline:ident => $body:expr) => {
        match $any {
            Any::Fifo($discipline) => $body,
            Any::Lifo($discipline) => $body,
            Any::RandomOrder($discipline) => $body,
            Any::OldestFirst($discipline) => $body,
            Any::Priority($discipline) => $body,
            Any::Deadline($discipline) => $body,
            Any::Proportional($discipline) => $body,
            Any::Ranked($discipline) => $body,
            Any::Split($discipline) => $body,
            Any::Limited($discipline) => $body,
            Any::Fair($discipline) => $body,
            Any::Enforced($discipline) => $body,
            Any::Feedback($discipline) => $body,
        }
    };
}

impl Discipline for Any {
    #[inline]
    fn arrive(&mut self, now: u64, item: Item, runs: &mut Vec<Run>) {
        each!(self, discipline => discipline.arrive(now, item, runs));
    }

    #[inline]
    fn depart(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        each!(self, discipline => discipline.depart(now, worker, runs));
    }

    fn expire(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        each!(self, discipline => discipline.expire(now, worker, runs));
    }

    fn leave(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        each!(self, discipline => discipline.leave(now, worker, runs));
    }

    fn back(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        each!(self, discipline => discipline.back(now, worker, runs));
    }

    fn waiting(&self) -> usize {
        each!(self, discipline => discipline.waiting())
    }

    #[inline]
    fn wake_at(&self) -> Option<u64> {
        each!(self, discipline => discipline.wake_at())
    }

    fn wake(&mut self, now: u64, runs: &mut Vec<Run>) {
        each!(self, discipline => discipline.wake(now, runs));
    }
}
