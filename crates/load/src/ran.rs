//! What a run brought.

use model::Observations;
use units::{Bytes, Nanos};

/// What happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ran {
    /// Every request that was meant to be sent after the warm-up. Instants count from its end. A request counts as sent
    /// when the generator got to it: waiting for a connection or for room in its socket is latency, and no lag.
    /// Requests of closed demand were meant to be sent when the answer before them came.
    pub observations: Observations,
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
    /// The generator's own lags of one workload's requests: sent − intended.
    pub fn lags_of(&self, workload: u32) -> impl Iterator<Item = Nanos> {
        let own = self.observations.requests.iter().filter(move |request| request.workload == workload);
        own.map(|request| request.sent - request.intended)
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
