//! What a run brought.

use model::Observations;
use units::{Bytes, Nanos};

/// What happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ran {
    /// Every request that was meant to be sent after the warm-up. Instants count from its end. A request that was never
    /// sent is lost, and has the end of the run as the instant at which it was sent. Requests of closed demand were
    /// meant to be sent when the answer before them came.
    pub observations: Observations,
    /// For each of the observed requests, how long after its intended time the generator got to it: its own lag. What
    /// `sent` is later than that, the request waited for a connection or room in its socket. Zero for closed demand.
    pub lags: Vec<Nanos>,
    /// By workload, in the order in which they were given.
    pub counts: Vec<Counts>,
    /// What was compared, with [`crate::Options::verify_data`].
    pub compared: Compared,
    /// Share of the run in which some task of this machine was ready and had no CPU, 0 to 1; none where the kernel
    /// does not count it.
    pub cpu_pressure: Option<f64>,
    /// Length of the observed part: shorter than asked for if the run was stopped.
    pub observed: Nanos,
    /// What the reader of the figures should know.
    pub warnings: Vec<String>,
}

impl Ran {
    /// The generator's own lags of one workload's requests.
    pub fn lags_of(&self, workload: u32) -> impl Iterator<Item = Nanos> {
        let all = self.observations.requests.iter().zip(&self.lags);
        all.filter(move |(request, _)| request.workload == workload).map(|(_, lag)| *lag)
    }

    /// Connections that were set up again, over all workloads.
    pub fn reconnects(&self) -> u64 {
        self.counts.iter().map(|counts| counts.reconnects).sum()
    }
}

/// Of one workload, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that ended before the run did.
    pub disconnects: u64,
    /// Connections that were set up again.
    pub reconnects: u64,
    /// Keys that memcached no longer had. Such requests count as answered.
    pub misses: u64,
}

/// What was read, compared with what was written last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Bytes that were compared.
    pub bytes: Bytes,
    /// Bytes that were read where nothing was known: not written yet, or being written.
    pub unknown: Bytes,
    /// Blocks that had other contents.
    pub mismatches: u64,
    /// The first of them, exactly.
    pub first: Option<String>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Connections are set up.
    SettingUp,
    /// Requests are sent.
    Running,
    /// The last answers are waited for.
    Draining,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What it does.
    pub phase: Phase,
    /// Since the clock was started.
    pub elapsed: Nanos,
    /// Warm-up and duration.
    pub total: Nanos,
    /// Requests that the generator got to.
    pub requests: u64,
    /// Of them, those that were answered.
    pub answered: u64,
    /// Of them, those that failed.
    pub failed: u64,
}
