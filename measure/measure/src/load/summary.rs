//! What a run says about each workload.

use ::load::{LoadReport, WorkloadCounters};
use model::{Observation, RequestOutcome};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Nanos, Percentile};

/// What a run says about a workload.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkloadLoadSummary<'a> {
    /// The name of the workload.
    pub name: &'a str,
    /// Requests that were meant to be sent.
    pub requests: usize,
    /// The same per second of the observed time.
    pub rate_per_s: f64,
    /// Payload of answered requests, bytes per second.
    pub bytes_per_s: f64,
    /// Median latency of answered requests, seconds.
    pub p50_s: Option<f64>,
    /// 99th percentile of the latency of answered requests, seconds.
    pub p99_s: Option<f64>,
    /// 99.9th percentile of the latency of answered requests, seconds.
    pub p99_9_s: Option<f64>,
    /// The longest latency of an answered request, seconds.
    pub max_s: Option<f64>,
    /// Requests that the server answered with an error.
    pub failed: usize,
    /// Requests that were never answered.
    pub lost: usize,
    /// How late the generator was at the 99th percentile, beside what waited for connections, seconds.
    pub lag_p99_s: Option<f64>,
    /// How late the generator was at most, seconds.
    pub lag_max_s: Option<f64>,
    /// Connections that were lost.
    pub disconnects: u64,
    /// Connections that were set up again.
    pub reconnects: u64,
    /// Connections that were replaced because they had taken as many requests as they were to take.
    pub renewals: u64,
    /// Reads of keys that the server did not have.
    pub misses: u64,
}

/// The percentile of lags, and of the latencies that they are compared with.
fn p99() -> Percentile {
    Percentile::new(99.0).expect("a percentile")
}

/// Summarises every workload of a run.
pub fn summarise_load(report: &LoadReport) -> Vec<WorkloadLoadSummary<'_>> {
    let named = (0..).zip(&report.observations.workloads).zip(&report.counters);
    named.map(|((index, name), counters)| summarise(report, index, name, *counters)).collect()
}

fn summarise<'a>(
    report: &LoadReport,
    index: u32,
    name: &'a str,
    counters: WorkloadCounters,
) -> WorkloadLoadSummary<'a> {
    let requests: Vec<&Observation> =
        report.observations.requests.iter().filter(|request| request.workload == index).collect();
    let mut latencies: Vec<Nanos> = requests.iter().filter_map(|request| request.latency()).collect();
    latencies.sort_unstable();
    let done = requests.iter().filter(|request| matches!(request.outcome, RequestOutcome::Done(_)));
    let bytes = done.map(|request| request.size.0 as f64).sum::<f64>();
    let seconds = report.observed_duration.as_secs().max(1e-9);
    let lag = verify::summarize_lags(report.generator_lags(index), p99());
    WorkloadLoadSummary {
        name,
        requests: requests.len(),
        rate_per_s: requests.len() as f64 / seconds,
        bytes_per_s: bytes / seconds,
        p50_s: percentile(&latencies, 50.0),
        p99_s: percentile(&latencies, 99.0),
        p99_9_s: percentile(&latencies, 99.9),
        max_s: latencies.last().map(|last| last.as_secs()),
        failed: requests
            .iter()
            .filter(|request| matches!(request.outcome, RequestOutcome::Failed(_)))
            .count(),
        lost: requests.iter().filter(|request| request.outcome == RequestOutcome::Lost).count(),
        lag_p99_s: lag.map(|lag| lag.at_percentile.as_secs()),
        lag_max_s: lag.map(|lag| lag.max.as_secs()),
        disconnects: counters.disconnects,
        reconnects: counters.reconnects,
        renewals: counters.renewals,
        misses: counters.misses,
    }
}

/// A percentile of sorted latencies by the nearest rank, seconds.
fn percentile(sorted: &[Nanos], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = confidence::nearest_rank(percent, sorted.len()) - 1;
    Some(sorted[rank.min(last)].as_secs())
}

/// Warnings about workloads whose latency is that of the generator in part.
pub(super) fn doubts(report: &LoadReport) -> Vec<String> {
    let named = (0..).zip(&report.observations.workloads);
    named.filter_map(|(index, name)| doubt(report, index, name)).collect()
}

fn doubt(report: &LoadReport, index: u32, name: &str) -> Option<String> {
    let lag = verify::summarize_lags(report.generator_lags(index), p99())?;
    let requests = report.observations.requests.iter().filter(|request| request.workload == index);
    let latency = verify::summarize_lags(requests.filter_map(Observation::latency), p99())?.at_percentile;
    lag.spoils(latency).then(|| {
        format!(
            "workload {name}: the generator was {} late at p99, where latency is {latency}; give it real-time \
             priority (realtime = 20) and a CPU of its own (cpu = 1), or ask for less",
            lag.at_percentile
        )
    })
}
