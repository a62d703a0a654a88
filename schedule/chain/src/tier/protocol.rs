//! What a tier is told, and what it reports.

use crate::mode::ScheduleMode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Where a tier listens.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TierPort {
    /// The port on the loopback address.
    pub(crate) port: u16,
}

/// What a tier is and how it schedules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TierSettings {
    /// Its index in routes.
    pub(crate) tier: usize,
    /// The CPUs on which it runs.
    pub(crate) cpus: BTreeSet<usize>,
    /// How it schedules requests.
    pub(crate) mode: ScheduleMode,
    /// The limit of requests in service; none is no limit.
    pub(crate) limit: Option<u32>,
    /// Where the tiers listen, by index.
    pub(crate) tiers: Vec<SocketAddr>,
}

/// A tier that takes requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TierReady {
    /// What its mode needs and it cannot have, such as that older requests take the place of younger ones in service.
    pub(crate) lacks: Option<String>,
}

/// What a tier has seen.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TierReport {
    /// Its visits, in the order in which their work was done.
    pub(crate) visits: Vec<LoggedVisit>,
    /// CPU time of all its threads, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// The limit of requests in service at the end; none is no limit.
    pub(crate) limit: Option<u32>,
}

/// A visit to a tier. Instants are nanoseconds of the machine's monotonic clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoggedVisit {
    /// The number of the request.
    pub(crate) request: u64,
    /// What orders it here: its start, or its deadline.
    pub(crate) key: u64,
    /// When the caller had sent it.
    pub(crate) arrival: u64,
    /// When its work was done.
    pub(crate) end: u64,
    /// From when until when its thread ran on its behalf.
    pub(crate) runs: Vec<(u64, u64)>,
}
