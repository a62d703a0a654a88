//! Results of a run.

use model::Observations;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Nanos, in_base_units};

/// Results of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadReport {
    /// Every request whose intended time is after the warm-up. Instants count from the end of the
    /// warm-up. A request counts as sent when the generator handled it: waiting for a connection or for
    /// room in its socket is latency, not lag. The intended time of a request of a closed loop is the
    /// arrival of the reply before it.
    pub observations: Observations,
    /// One entry per workload, in the order in which they were given.
    pub counters: Vec<WorkloadCounters>,
    /// The result of [`crate::LoadOptions::verify_data`], over all workloads.
    pub comparison: DataComparison,
    /// The share of the run in which some task of this machine was ready and had no CPU, 0 to 1; `None` where the
    /// kernel does not count it.
    pub cpu_pressure: Option<f64>,
    /// The length of the observed part. It is shorter than the requested duration if the run was stopped.
    pub observed_duration: Nanos,
    /// Warnings about the results, as sentences.
    pub warnings: Vec<String>,
}

impl LoadReport {
    /// Returns the lag of the generator for each request of a workload: sent − intended.
    pub fn generator_lags(&self, workload: u32) -> impl Iterator<Item = Nanos> {
        let own = self.observations.requests.iter().filter(move |request| request.workload == workload);
        own.map(|request| request.sent - request.intended)
    }

    /// Connections that were set up again, over all workloads.
    pub fn reconnects(&self) -> u64 {
        self.counters.iter().map(|counters| counters.reconnects).sum()
    }
}

/// Events of one workload, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadCounters {
    /// Connections that ended before the run did.
    pub disconnects: u64,
    /// Connections that were set up again.
    pub reconnects: u64,
    /// Connections that ended because they had taken as many requests as they were to take.
    pub renewals: u64,
    /// Reads of keys that memcached no longer had. Such requests count as answered.
    pub misses: u64,
}

/// Comparison of the data of reads with the last writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataComparison {
    /// Bytes that were read and compared.
    #[serde(serialize_with = "in_base_units")]
    #[schemars(with = "u64")]
    pub bytes: Bytes,
    /// Bytes that were read where the contents were not known: not yet written, or being written.
    #[serde(rename = "unknown_bytes", serialize_with = "in_base_units")]
    #[schemars(with = "u64")]
    pub unknown: Bytes,
    /// Blocks that had unexpected contents.
    pub mismatches: u64,
    /// A description of the first mismatch: where it is, what was expected and what was found.
    #[serde(rename = "first_mismatch")]
    pub first: Option<String>,
}

impl DataComparison {
    /// Adds the comparison of another workload.
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes.0 += other.bytes.0;
        self.unknown.0 += other.unknown.0;
        self.mismatches += other.mismatches;
        if self.first.is_none() {
            self.first = other.first;
        }
    }
}
