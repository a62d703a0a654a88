//! What an observation is to do, what it comes to, and who follows it.

use crate::causes::{Cause, CauseReport, IntendedWaits};
use crate::counters::CounterReport;
use crate::join::JoinCounts;
use crate::probe::ProbeSettings;
use crate::request::ObservedRequest;
use crate::sampling::{CostLimit, SampledTime};
use crate::seconds::in_seconds;
use crate::statistics::{LatencyProfile, RequestStatistics};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::time::Duration;

/// What an observation is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationSettings {
    /// Which ports and connections are observed.
    pub probes: ProbeSettings,
    /// How long it lasts at most.
    pub duration: Duration,
    /// For how much of that the kernel measures what the programs cost, if it may; this makes them a little slower.
    pub cost_duration: Duration,
    /// Whether the time that the server sleeps in the middle of requests counts when causes are sought.
    pub intended_waits: IntendedWaits,
    /// What observing may cost: then the server is observed in short windows only, at random. Nothing: all the time.
    pub cost_limit: Option<CostLimit>,
}

/// Why an observation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservationEnd {
    /// Its time was over.
    Over,
    /// The caller stopped it.
    Stopped,
    /// What the caller makes of the requests could not be written.
    WriteFailed,
    /// Every process that was seen to serve has ended, if there was any, and nobody listens at the ports any more.
    ServerEnded,
}

/// What the programs in the kernel cost, as far as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredCost {
    /// Time that was measured.
    #[serde(rename = "measured_s", serialize_with = "duration_in_seconds")]
    #[schemars(with = "f64", description = "For how long that was measured, in seconds.")]
    pub duration: Duration,
    /// CPU time of the programs in nanoseconds, over all CPUs.
    #[serde(rename = "cpu_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64", description = "CPU time of the programs in seconds, over all CPUs.")]
    pub run_ns: u64,
    /// Number of runs of programs.
    #[schemars(description = "How often a program ran.")]
    pub runs: u64,
    /// Requests that were completed in this time.
    pub requests: u64,
}

fn duration_in_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl MeasuredCost {
    /// Returns the CPU time of the programs as a share of one CPU.
    pub fn cpu_share(&self) -> f64 {
        self.run_ns as f64 / 1e9 / self.duration.as_secs_f64()
    }
}

/// How long connections waited to be accepted, from the end of their handshake on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct AcceptQueue {
    /// The number of connections that were accepted, and whose handshake was seen.
    pub connections: u64,
    /// Their waits, in nanoseconds; `None` without connections.
    #[schemars(description = "Their waits; null without connections.")]
    pub waits: Option<LatencyProfile>,
}

/// What an observation came to.
#[derive(Debug, Clone)]
pub struct ObservationReport {
    /// Sums over all requests.
    pub statistics: RequestStatistics,
    /// What could not be joined.
    pub counts: JoinCounts,
    /// Events that the kernel could not report because nobody took the earlier ones in time.
    pub lost_events: u64,
    /// How often the kernel skipped a run of a program, each time perhaps an event that is missing.
    pub skipped_runs: u64,
    /// The number of events.
    pub events: u64,
    /// How long it took.
    pub duration: Duration,
    /// Why the observation ended.
    pub end: ObservationEnd,
    /// The cost, if this process may have it measured and there was time for that.
    pub cost: Option<MeasuredCost>,
    /// Whether this process may have the cost measured.
    pub may_measure_cost: bool,
    /// The threads that read requests.
    pub readers: BTreeSet<u32>,
    /// The processes that read requests, without those that were found to have ended.
    pub processes: BTreeSet<u32>,
    /// What the tail is made of.
    pub causes: CauseReport,
    /// What counters of the kernel say: quotas, drops, retransmits, steal.
    pub counters: CounterReport,
    /// How long connections waited to be accepted, where that is observed.
    pub accept_queue: Option<AcceptQueue>,
    /// In which part of the time requests counted, if not in all of it.
    pub sampled: Option<SampledTime>,
}

/// The largest share of requests that may be taken by calls that are not seen while percentiles of the others still stand
/// for all.
const UNSEEN_SHARE_MAX: f64 = 0.01;

/// So few requests of that kind are taken to be those that were under way when the observation began.
const UNSEEN_FEW: u64 = 2;

/// Observed requests, beside those that the server took from its connections by calls that are not seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCoverage {
    /// Requests that were observed.
    pub observed: u64,
    /// Requests taken by calls that are not seen.
    pub unseen: u64,
    /// Of these, those that came by MPTCP.
    pub multipath: u64,
}

impl ReadCoverage {
    fn new(counts: JoinCounts, observed: u64) -> Self {
        Self { observed, unseen: counts.unseen_reads, multipath: counts.multipath }
    }

    /// Returns the growth since an earlier coverage.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            observed: self.observed.saturating_sub(earlier.observed),
            unseen: self.unseen.saturating_sub(earlier.unseen),
            multipath: self.multipath.saturating_sub(earlier.multipath),
        }
    }

    /// All requests.
    pub fn all(self) -> u64 {
        self.observed + self.unseen
    }

    /// Returns true if so many requests are unseen that the observed ones say nothing about the server.
    pub fn is_blind(self) -> bool {
        self.unseen > UNSEEN_FEW && self.unseen as f64 > UNSEEN_SHARE_MAX * self.all() as f64
    }
}

impl ObservationReport {
    /// Returns the observed and the unseen requests.
    pub fn coverage(&self) -> ReadCoverage {
        ReadCoverage::new(self.counts, self.statistics.count())
    }

    /// Whether so many requests were taken by calls that are not seen that the others say nothing about the server.
    pub fn is_blind(&self) -> bool {
        self.coverage().is_blind()
    }

    /// For how long requests counted that arrived.
    pub fn counted(&self) -> Duration {
        self.sampled.map_or(self.duration, |sampled| sampled.counted)
    }
}

/// What an observation has come to until now.
#[derive(Debug, Clone, Copy)]
pub struct ObservationProgress<'a> {
    /// Sums over all requests.
    pub statistics: &'a RequestStatistics,
    /// What could not be joined.
    pub counts: JoinCounts,
    /// The number of events.
    pub events: u64,
    /// Events that the kernel could not report because nobody took the earlier ones in time.
    pub lost_events: u64,
    /// Runs of the programs that the kernel had skipped when it was last asked, at most about a second ago.
    pub skipped_runs: u64,
    /// The number of threads that were seen to read requests.
    pub readers: usize,
    /// The time since the observation began.
    pub elapsed: Duration,
    /// The cost, as soon as it has been measured, if this process may have it measured.
    pub cost: Option<MeasuredCost>,
    /// Counters of the kernel when they were last read, for a watcher that wants parts.
    pub counters: &'a CounterReport,
}

impl ObservationProgress<'_> {
    /// Returns the observed and the unseen requests until now.
    pub fn coverage(&self) -> ReadCoverage {
        ReadCoverage::new(self.counts, self.statistics.count())
    }
}

/// Who follows an observation while it runs.
pub trait ObservationWatcher {
    /// Nothing is missed any more; called once.
    fn attached(&mut self) {}

    /// The server is observed again after a pause; requests between are missing. Not called without a cost limit.
    fn window_begins(&mut self) {}

    /// A request is complete; `cause` has most of its time.
    fn take(&mut self, request: &ObservedRequest, cause: Cause);

    /// Called whenever events have been looked at, about 50 times a second.
    fn progress(&mut self, _progress: &ObservationProgress<'_>) {}

    /// Returns true to get reports of parts of the observation and counters of the kernel while it runs.
    fn wants_parts(&self) -> bool {
        false
    }

    /// Called at the end of each part, of ten seconds or longer, with its report without replays.
    fn part_over(&mut self, _report: ObservationReport) {}

    /// Whether the observation ends when every process that was seen to serve has ended, and nobody listens at the ports any
    /// more.
    fn ends_with_server(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_hundredth_and_more_than_two_unseen_requests_blind() {
        let coverage = |observed, unseen| ReadCoverage { observed, unseen, multipath: 0 };
        for (observed, unseen, is_blind) in [
            (0, 0, false),
            (0, 2, false),
            (0, 3, true),
            (297, 3, false),
            (296, 3, true),
            (99_000, 1000, false),
        ] {
            assert_eq!(coverage(observed, unseen).is_blind(), is_blind, "{observed} {unseen}");
        }
        let grown = coverage(10_000, 40).since(coverage(9_900, 0));
        assert_eq!((grown.all(), grown.is_blind()), (140, true), "the share of the whole run is small");
    }
}
