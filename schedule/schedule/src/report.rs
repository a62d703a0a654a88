//! What a gate says about itself: the mode in force with its reason, and counts.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// Which modes a gate is in, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionReport {
    /// Whether older requests take the CPU from younger ones.
    pub preemption: PreemptionReport,
    /// Whether requests that sleep without having said so are noticed.
    pub sentinel: SentinelReport,
}

/// Whether older requests take the CPU from younger ones, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreemptionReport {
    /// Older requests take the CPU from younger ones: SCHED_OTHER over SCHED_IDLE.
    Preemptive,
    /// Requests that have begun go on until they are done or block, with the reason. Its cost: an old request that
    /// comes late waits for the end of one of those running.
    AdmissionOnly {
        /// Why nobody is demoted, and what to do where that is not wanted.
        reason: String,
    },
}

/// Whether somebody looks which requests sleep, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentinelReport {
    /// It was not asked for.
    Off,
    /// A thread looks, while somebody waits.
    Active {
        /// The time between two looks.
        every: Duration,
    },
    /// It was asked for, and nobody looks.
    Unavailable {
        /// Why, and what to do where that is not wanted.
        reason: String,
    },
}

impl fmt::Display for AdmissionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.preemption)?;
        match self.sentinel {
            SentinelReport::Off => Ok(()),
            _ => write!(f, "; {}", self.sentinel),
        }
    }
}

impl fmt::Display for SentinelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("no sentinel"),
            Self::Active { every } => write!(f, "sentinel: looks every {every:?} which requests sleep"),
            Self::Unavailable { reason } => write!(f, "no sentinel: {reason}"),
        }
    }
}

impl fmt::Display for PreemptionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preemptive => {
                f.write_str("preemptive: older requests demote younger ones to SCHED_IDLE and back")
            }
            Self::AdmissionOnly { reason } => write!(f, "admission only: {reason}"),
        }
    }
}

/// Counts of a gate since it was made, and how many requests are where now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GateStatistics {
    /// The limit in force, c; `None` for no limit.
    pub limit: Option<NonZeroU32>,
    /// Requests that wait now.
    pub waiting: usize,
    /// Requests that run now and count towards the limit.
    pub serving: usize,
    /// Requests that were displaced by older ones now.
    pub demoted: usize,
    /// Requests that wait for something other than a CPU now.
    pub blocked: usize,
    /// Requests that run now and do not count any more, because they did for longer than the patience.
    pub overdue: usize,
    /// Requests that a sentinel has seen to sleep, which do not count until it sees them awake.
    pub asleep: usize,
    /// Requests that came so far.
    pub entered: u64,
    /// Requests that left so far, those that gave up while waiting included.
    pub left: u64,
    /// Requests so far whose waiting ended by a timeout or a cancellation.
    pub given_up: u64,
    /// Threads that were demoted so far.
    pub demotions: u64,
    /// Threads that were promoted so far.
    pub promotions: u64,
    /// Looks of the sentinel so far.
    pub looks: u64,
    /// Demotions and promotions that the kernel refused so far.
    pub refused_changes: u64,
    /// The squared coefficient of variation of the CPU time of requests, as far as it was measured.
    pub service_variation: Option<f64>,
}
