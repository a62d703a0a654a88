//! What a run says: a row per workload, as a table or JSON.

use super::p99;
use crate::output::{json, percent, time};
use crate::terminal::{Align, Table};
use load::{DataComparison, LoadReport, WorkloadCounters};
use model::Outcome;
use serde::Serialize;
use units::Nanos;

/// A workload. Times in seconds.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    name: &'a str,
    requests: usize,
    rate_per_s: f64,
    /// Payload of answered requests.
    bytes_per_s: f64,
    p50_s: Option<f64>,
    p99_s: Option<f64>,
    p999_s: Option<f64>,
    max_s: Option<f64>,
    failed: usize,
    lost: usize,
    /// How late the generator was, beside what waited for connections.
    lag_p99_s: Option<f64>,
    lag_max_s: Option<f64>,
    disconnects: u64,
    reconnects: u64,
    misses: u64,
}

#[derive(Serialize)]
struct View<'a> {
    observed_s: f64,
    seed: u64,
    cpu_pressure: Option<f64>,
    compared: ComparedView<'a>,
    warnings: Vec<&'a str>,
    workloads: &'a [Row<'a>],
}

#[derive(Serialize)]
struct ComparedView<'a> {
    bytes: u64,
    unknown_bytes: u64,
    mismatches: u64,
    first_mismatch: Option<&'a str>,
}

pub(crate) fn rows(ran: &LoadReport) -> Vec<Row<'_>> {
    (0..)
        .zip(&ran.observations.workloads)
        .zip(&ran.counters)
        .map(|((index, name), counts)| row(ran, index, name, *counts))
        .collect()
}

fn row<'a>(ran: &LoadReport, index: u32, name: &'a str, counts: WorkloadCounters) -> Row<'a> {
    let mine = || ran.observations.requests.iter().filter(|request| request.workload == index);
    let mut latencies: Vec<Nanos> = mine().filter_map(model::Observation::latency).collect();
    latencies.sort_unstable();
    let at = |percent: f64| {
        let last = latencies.len().checked_sub(1)?;
        let rank = confidence::nearest_rank(percent, latencies.len()) - 1;
        Some(latencies[rank.min(last)].as_secs())
    };
    let seconds = ran.observed_duration.as_secs().max(1e-9);
    let done = mine().filter(|request| matches!(request.outcome, Outcome::Done(_)));
    let lag = verify::lag(ran.generator_lags(index), p99());
    Row {
        name,
        requests: mine().count(),
        rate_per_s: mine().count() as f64 / seconds,
        bytes_per_s: done.map(|request| request.size.0 as f64).sum::<f64>() / seconds,
        p50_s: at(50.0),
        p99_s: at(99.0),
        p999_s: at(99.9),
        max_s: latencies.last().map(|last| last.as_secs()),
        failed: mine().filter(|request| matches!(request.outcome, Outcome::Failed(_))).count(),
        lost: mine().filter(|request| request.outcome == Outcome::Lost).count(),
        lag_p99_s: lag.map(|lag| lag.at_percentile.as_secs()),
        lag_max_s: lag.map(|lag| lag.max.as_secs()),
        disconnects: counts.disconnects,
        reconnects: counts.reconnects,
        misses: counts.misses,
    }
}

pub(crate) fn text(ran: &LoadReport, rows: &[Row<'_>]) -> String {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("workload", Align::Left),
        right("requests"),
        right("per second"),
        right("p50"),
        right("p99"),
        right("p99.9"),
        right("max"),
        right("failed"),
        right("lost"),
        right("lag p99"),
    ]);
    let or_none = |value: Option<f64>| value.map_or("-".to_owned(), time);
    for row in rows {
        table.row(vec![
            row.name.to_owned(),
            row.requests.to_string(),
            format!("{:.1}", row.rate_per_s),
            or_none(row.p50_s),
            or_none(row.p99_s),
            or_none(row.p999_s),
            or_none(row.max_s),
            row.failed.to_string(),
            row.lost.to_string(),
            or_none(row.lag_p99_s),
        ]);
    }
    let mut text = table.render();
    text.push_str(&compared(&ran.comparison));
    if let Some(share) = ran.cpu_pressure {
        text.push_str(&format!(
            "somebody on this machine waited for a CPU for {} of the time\n",
            percent(share)
        ));
    }
    text
}

fn compared(compared: &DataComparison) -> String {
    if *compared == DataComparison::default() {
        return String::new();
    }
    let DataComparison { bytes, unknown, mismatches, first } = compared;
    let mut text = format!(
        "{bytes} read were compared with what was written, {unknown} could not be: {mismatches} blocks differ\n"
    );
    if let Some(first) = first {
        text.push_str(&format!("the first: {first}\n"));
    }
    text
}

pub(crate) fn json(ran: &LoadReport, rows: &[Row<'_>], seed: u64) -> String {
    let DataComparison { bytes, unknown, mismatches, first } = &ran.comparison;
    let compared = ComparedView {
        bytes: bytes.0,
        unknown_bytes: unknown.0,
        mismatches: *mismatches,
        first_mismatch: first.as_deref(),
    };
    let warnings = ran.warnings.iter().map(String::as_str).collect();
    let (observed_s, cpu_pressure) = (ran.observed_duration.as_secs(), ran.cpu_pressure);
    json::pretty(&View { observed_s, seed, cpu_pressure, compared, warnings, workloads: rows })
}

/// Workloads whose latency is that of the generator in part.
pub(crate) fn doubts(ran: &LoadReport) -> Vec<String> {
    let doubt = |(index, name): (u32, &String)| {
        let lag = verify::lag(ran.generator_lags(index), p99())?;
        let mine = ran.observations.requests.iter().filter(|request| request.workload == index);
        let latency = verify::lag(mine.filter_map(model::Observation::latency), p99())?.at_percentile;
        lag.spoils(latency).then(|| {
            format!(
                "workload {name}: the generator was {} late at p99, where latency is {latency}; give it real-time \
                 priority (realtime = 20) and a CPU of its own (cpu = 1), or ask for less",
                lag.at_percentile
            )
        })
    };
    (0..).zip(&ran.observations.workloads).filter_map(doubt).collect()
}
