//! Observations as documents.

use super::Observations;
use super::burn::{BurnAlert, burn_rate};
use super::counts::Counts;
use super::latencies::LatencyBucket;
use super::live_limits::{LiveTraffic, NormalisedCurves};
use super::record::{FIVE_MINUTES, HALF_HOUR, HOUR, LateCounts, SIX_HOURS, WorkloadRecord};
use super::verdict::{ObservedVerdict, judge_record};
use crate::state::{ClusterState, WorkloadState};
use model::Slo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;
use verify::Judgement;

/// A workload as its proxy saw it. Latency is from the arrival of a request at the proxy to its reply there: the network
/// between clients and proxy, which the SLO includes, is not in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadObservation {
    pub tenant: String,
    pub name: String,
    pub server: String,
    pub slo: String,
    /// Bound on its latency by the latest policy of its server, seconds.
    pub bound_s: f64,
    pub verdict: ObservedVerdict,
    /// Reason in a sentence, with figures.
    pub reason: String,
    /// Alert on the burn rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert: Option<BurnAlert>,
    /// Time for which requests have been counted, seconds; absent before the first report. A restart of the controller
    /// begins it anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_s: Option<f64>,
    /// Age of the latest report, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<f64>,
    /// The last hour compared with the SLO, as `tailwright verify` does.
    pub judgement: Judgement,
    /// The last five minutes, half hour, hour and six hours.
    pub windows: Vec<WindowObservation>,
    /// All of `observed_s`.
    pub total: WindowObservation,
    /// Latencies of the last hour.
    pub latencies_hour: Vec<LatencyBucket>,
    /// Latencies of all of `observed_s`.
    pub latencies: Vec<LatencyBucket>,
    /// Real traffic, against the limits; absent without reported traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveTraffic>,
}

/// Requests of a workload in a window. A request is counted when its answer was reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowObservation {
    /// Length of the window, seconds.
    pub window_s: f64,
    pub requests: u64,
    pub bytes: u64,
    /// Number of requests that took longer than the SLO allows.
    pub late: u64,
    /// Share of late requests; absent without requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_share: Option<f64>,
    /// Share of late requests ÷ the share that may be late; absent without requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_rate: Option<f64>,
    /// Number of requests that the limits did not cover. They are served while no other request wants the device.
    pub beyond_limits: u64,
    /// Total time that those waited in the proxy, seconds.
    pub beyond_limits_waited_s: f64,
    /// Percentiles, seconds: upper ends of their buckets, which are 19 % apart. Absent without requests, beyond 16.8 s,
    /// and for six hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_s: Option<f64>,
}

/// Requests in the proxy before a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerCounts<'a> {
    pub server: &'a str,
    /// Number of requests in the queue.
    pub waiting: u64,
    /// Number of requests at the server.
    pub outstanding: u64,
}

impl WindowObservation {
    fn new(counts: &Counts, window: u64, slo: Slo, has_latencies: bool) -> Self {
        let percentile = |percent| counts.latencies.percentile_s(percent).filter(|_| has_latencies);
        Self {
            window_s: Nanos(window).as_secs(),
            requests: counts.requests,
            bytes: counts.bytes,
            late: counts.late,
            late_share: (counts.requests > 0).then(|| counts.late as f64 / counts.requests as f64),
            burn_rate: burn_rate(LateCounts { requests: counts.requests, late: counts.late }, slo),
            beyond_limits: counts.beyond_limits,
            beyond_limits_waited_s: counts.beyond_limits_waited_s,
            p50_s: percentile(50.0),
            p99_s: percentile(99.0),
            p999_s: percentile(99.9),
        }
    }
}

impl Observations {
    /// Returns the observation of a workload at an instant.
    pub fn of(
        &self,
        state: &ClusterState,
        id: u64,
        workload: &WorkloadState,
        now: u64,
    ) -> WorkloadObservation {
        let slo = workload.slo;
        let found = self.workloads.get(&id);
        let empty = WorkloadRecord::new(now);
        let record = found.unwrap_or(&empty);
        let judged = judge_record(record, slo, now);
        let live = LiveTraffic::of(&record.live, state, workload, now);
        let needed = live.as_ref().and_then(LiveTraffic::limits_needed);
        let windows = [FIVE_MINUTES, HALF_HOUR, HOUR, SIX_HOURS]
            .map(|window| WindowObservation::new(&record.window(now, window), window, slo, window <= HOUR));
        let age = |at: u64| Nanos(now.saturating_sub(at)).as_secs();
        WorkloadObservation {
            tenant: workload.request.tenant.clone(),
            name: workload.request.name.clone(),
            server: workload.server.clone(),
            slo: workload.request.slo.clone(),
            bound_s: workload.bound_s,
            verdict: judged.verdict,
            reason: judged.reason(slo, needed.as_deref()),
            alert: judged.alert,
            observed_s: found.map(|record| age(record.since)),
            age_s: found.map(|record| age(record.reported_at)),
            judgement: judged.judgement,
            windows: windows.to_vec(),
            total: WindowObservation::new(&record.total, now.saturating_sub(record.since), slo, true),
            latencies_hour: record.window(now, HOUR).latencies.buckets(),
            latencies: record.total.latencies.buckets(),
            live,
        }
    }

    /// Returns the burst curves of what a workload sent in the last week.
    pub fn live_curves(
        &self,
        state: &ClusterState,
        id: u64,
        workload: &WorkloadState,
        now: u64,
    ) -> Option<NormalisedCurves> {
        NormalisedCurves::new(self.workloads.get(&id)?.live.longest(now)?, state, workload)
    }

    /// Returns the observations of all workloads with a place, by name.
    pub fn all<'a>(
        &'a self,
        state: &'a ClusterState,
        now: u64,
    ) -> impl Iterator<Item = WorkloadObservation> + 'a {
        state.workloads().map(move |(id, workload)| self.of(state, id, workload, now))
    }

    /// Returns the numbers of requests in all latency buckets since a workload is observed, and their sum in seconds.
    pub fn total_latencies(&self, id: u64) -> Option<(Vec<u64>, f64)> {
        let record = self.workloads.get(&id)?;
        Some((record.total.latencies.dense(), record.total.latency_s))
    }

    /// Returns the latest numbers of requests in the proxies.
    pub fn servers(&self) -> impl Iterator<Item = ServerCounts<'_>> {
        self.servers.iter().map(|(server, ledger)| ServerCounts {
            server,
            waiting: ledger.waiting,
            outstanding: ledger.outstanding,
        })
    }
}
