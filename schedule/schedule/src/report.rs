//! Report of a gate: its modes in force with reasons, and counters.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// Modes of a gate, with reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionReport {
    /// Preemption of younger requests by older ones.
    pub preemption: PreemptionReport,
    /// Detection of requests that sleep without having announced it.
    pub sentinel: SentinelReport,
}

/// Mode of preemption, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreemptionReport {
    /// Older requests take the CPU from younger ones: SCHED_OTHER over SCHED_IDLE.
    Preemptive,
    /// Running requests continue until they complete or block. The cost: an old request that arrives late
    /// waits for the end of a running one.
    AdmissionOnly {
        /// Reason why no request is demoted, and a remedy.
        reason: String,
    },
}

/// State of the sentinel, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentinelReport {
    /// Not requested.
    Off,
    /// A thread samples running requests while others wait.
    Active {
        /// Sampling interval.
        every: Duration,
    },
    /// Requested, but not available.
    Unavailable {
        /// Reason, and a remedy.
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
            Self::Active { every } => write!(f, "sentinel: samples running requests every {every:?}"),
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

/// Counters of a gate since its creation, and the present numbers of requests by state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GateStatistics {
    /// Limit c in force; `None` is no limit.
    pub limit: Option<NonZeroU32>,
    /// Requests that wait now.
    pub waiting: usize,
    /// Requests that run now and count towards the limit.
    pub serving: usize,
    /// Requests displaced by older ones now.
    pub demoted: usize,
    /// Requests that wait for something other than a CPU now.
    pub blocked: usize,
    /// Requests that run now but no longer count towards the limit, because they exceeded the patience.
    pub overdue: usize,
    /// Requests that the sentinel has found asleep; they do not count until it finds them awake.
    pub asleep: usize,
    /// Requests that entered, total.
    pub entered: u64,
    /// Requests that left, including those that gave up waiting, total.
    pub left: u64,
    /// Requests whose waiting ended by a timeout or a cancellation, total.
    pub given_up: u64,
    /// Demotions of threads, total.
    pub demotions: u64,
    /// Promotions of threads, total.
    pub promotions: u64,
    /// Samples of the sentinel, total.
    pub looks: u64,
    /// Demotions and promotions that the kernel refused, total.
    pub refused_changes: u64,
    /// Squared coefficient of variation of the requests' CPU time; `None` until measured.
    pub service_variation: Option<f64>,
}
