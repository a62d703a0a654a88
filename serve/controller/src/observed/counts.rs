//! Counts of requests.

use super::latencies::LatencyCounts;

/// Requests of a workload: between two reports, or in a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) late: u64,
    pub(super) beyond_limits: u64,
    pub(super) beyond_limits_waited_s: f64,
    pub(super) latency_s: f64,
    pub(super) latencies: LatencyCounts,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.late = self.late.saturating_add(other.late);
        self.beyond_limits = self.beyond_limits.saturating_add(other.beyond_limits);
        self.beyond_limits_waited_s += other.beyond_limits_waited_s;
        self.latency_s += other.latency_s;
        self.latencies.add_all(&other.latencies);
    }
}
