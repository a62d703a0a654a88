//! Settings and reports of a tier, as exchanged with the experiment.

use crate::mode::ScheduleMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Address of a tier.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TierPort {
    /// Port on the loopback address.
    pub(crate) port: u16,
}

/// Settings of a tier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TierSettings {
    /// Index of the tier in routes.
    pub(crate) tier: usize,
    /// CPUs on which it runs.
    pub(crate) cpus: BTreeSet<usize>,
    pub(crate) mode: ScheduleMode,
    /// Concurrency limit; `None` is no limit.
    pub(crate) limit: Option<u32>,
    /// Addresses of the tiers, by index.
    pub(crate) tiers: Vec<SocketAddr>,
}

/// A tier's answer to its settings.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TierReady {
    /// Missing requirement of its mode, such as preemption of younger requests by older ones.
    pub(crate) lacks: Option<String>,
}

/// Report of a tier.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TierReport {
    /// Visits, in the order of their completion.
    pub(crate) visits: Vec<LoggedVisit>,
    /// CPU time of all its threads, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Concurrency limit at the end; `None` is no limit.
    pub(crate) limit: Option<u32>,
}

/// A visit to a tier. Instants are nanoseconds of the machine's monotonic clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoggedVisit {
    pub(crate) request: u64,
    /// Key that orders the request here: its start, or its deadline.
    pub(crate) key: u64,
    /// Instant at which the caller had sent it.
    pub(crate) arrival: u64,
    /// Instant of its completion.
    pub(crate) end: u64,
    /// Intervals in which its thread ran on its behalf.
    pub(crate) runs: Vec<(u64, u64)>,
}
