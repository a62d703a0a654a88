//! Disciplines by name with their parameters: plain data that a scenario carries.

use super::{
    EnforcedDeviceParameters, FairSchedulerParameters, FeedbackParameters, LimitedSharingParameters,
    PacketLinkParameters, PoolOrder, QueueChoice,
};
use crate::enforce::EnforcementRules;

/// A discipline with its parameters. Times are in the caller's unit (nanoseconds in Tailwright).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisciplineSpec {
    /// First come, first served, with one line for all workers.
    Fifo,
    /// Last come, first served, not preemptive.
    Lifo,
    /// A waiting item chosen uniformly at random.
    RandomOrder,
    /// Oldest first by time of entry into the system, not preemptive: global first come, first served.
    OldestFirst,
    /// A priority level per class, level 0 first, not preemptive.
    Priority {
        /// The number of levels.
        levels: u32,
    },
    /// Earliest deadline first, not preemptive.
    Deadline {
        /// The time from entry to deadline, by class.
        allowed: Vec<u64>,
    },
    /// Service in proportion to weights by start-time fair queueing, not preemptive.
    Proportional {
        /// The weight of each class.
        weights: Vec<u32>,
    },
    /// A priority level per class, level 0 first, preemptive.
    PreemptivePriority {
        /// The number of levels.
        levels: u32,
    },
    /// Earliest deadline first, preemptive.
    PreemptiveDeadline {
        /// The time from entry to deadline, by class.
        allowed: Vec<u64>,
    },
    /// Oldest first by time of entry into the system, preemptive.
    PreemptiveOldestFirst,
    /// A queue per worker, first come, first served.
    Split(QueueChoice),
    /// Round-robin among a limited number of items, chosen by age or not: ORF and its ablations.
    Limited(LimitedSharingParameters),
    /// Limited sharing with deadlines instead of ages: earliest deadline first among a limited number of
    /// items.
    LimitedDeadline {
        /// Limit, slice and entrance of early deadlines; the order is by deadline.
        sharing: LimitedSharingParameters,
        /// Time from entry to deadline, by class.
        allowed: Vec<u64>,
    },
    /// Per-worker fair sharing, as in Linux.
    Fair(FairSchedulerParameters),
    /// Strict priority under token buckets and bounds: the queueing logic of an enforcer. A class is a flow.
    /// Uses sizes.
    Enforced(EnforcementRules),
    /// A storage proxy in front of a device that serves first come, first served. A class is a flow. Uses
    /// sizes.
    EnforcedDevice(EnforcedDeviceParameters),
    /// A shaped network link with one worker that sends packets. Uses sizes.
    PacketLink(PacketLinkParameters),
    /// Service in proportion to weights that follow measured latencies, not preemptive. Uses sizes.
    Feedback(FeedbackParameters),
    /// Ideal processor sharing. Uses sizes.
    Sharing {
        /// Maximum number of items in service; `None` for no limit.
        limit: Option<u32>,
    },
    /// Ideal processor sharing in proportion to weights. Uses sizes.
    WeightedSharing {
        /// Maximum number of items in service; `None` for no limit.
        limit: Option<u32>,
        /// The weight of each class.
        weights: Vec<u32>,
    },
}

impl DisciplineSpec {
    /// Checks that the parameters are within their ranges.
    ///
    /// # Errors
    /// Describes the first parameter that is not.
    pub fn check(&self) -> Result<(), String> {
        if let Some(sharing) = self.limited_sharing() {
            sharing.check()?;
        }
        let error = match self {
            Self::Proportional { weights } | Self::WeightedSharing { weights, .. }
                if weights.contains(&0) =>
            {
                "a weight of a class is at least 1"
            }
            Self::LimitedDeadline { sharing, .. } if sharing.order == PoolOrder::Arrival => {
                "the order of deadlines is not that of arrival"
            }
            Self::Fair(fair) if fair.min_granularity == 0 => "the minimum granularity is at least 1",
            Self::Sharing { limit: Some(0) } | Self::WeightedSharing { limit: Some(0), .. } => {
                "the limit of processor sharing is at least 1"
            }
            Self::Enforced(rules) => return rules.check(),
            Self::EnforcedDevice(parameters) => return parameters.rules.check(),
            Self::PacketLink(parameters) => return parameters.check(),
            Self::Feedback(parameters) => return parameters.check(),
            _ => return Ok(()),
        };
        Err(error.to_owned())
    }

    /// Returns true if the passage of time alone can put an item on a worker
    /// ([`super::Discipline::wake_at`]).
    pub fn needs_wake_ups(&self) -> bool {
        matches!(self, Self::Enforced(_) | Self::EnforcedDevice(_) | Self::PacketLink(_))
    }

    /// Returns true if an item whose service has begun returns to a queue when other work takes its worker
    /// ([`super::Discipline::take_worker`]).
    pub fn requeues(&self) -> bool {
        self.limited_sharing().is_some()
    }

    /// Returns the parameters of limited processor sharing, by arrival or by deadline; `None` for other
    /// disciplines.
    pub fn limited_sharing(&self) -> Option<&LimitedSharingParameters> {
        match self {
            Self::Limited(sharing) | Self::LimitedDeadline { sharing, .. } => Some(sharing),
            _ => None,
        }
    }

    /// Returns the number of classes that the discipline distinguishes; `None` if it ignores classes.
    pub fn classes(&self) -> Option<usize> {
        match self {
            Self::Priority { levels } | Self::PreemptivePriority { levels } => Some(*levels as usize),
            Self::Deadline { allowed }
            | Self::PreemptiveDeadline { allowed }
            | Self::LimitedDeadline { allowed, .. } => Some(allowed.len()),
            Self::Proportional { weights } | Self::WeightedSharing { weights, .. } => Some(weights.len()),
            Self::Feedback(parameters) => Some(parameters.classes.len()),
            Self::PacketLink(parameters) => Some(parameters.classes.len()),
            _ => None,
        }
    }
}
