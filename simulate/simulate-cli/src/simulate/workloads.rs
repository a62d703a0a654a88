//! Results of the workloads of a storage server, with the verdicts on their SLOs: table, JSON, lines of a
//! page.

use cli::from_to;
use cli::terminal::{Align, TextTable};
use operation::text::{percent, time};
use scenario::server::{SloVerdict, WorkloadOutcome};
use schemars::JsonSchema;
use serde::Serialize;

/// A workload in JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkloadOutcomeDocument {
    name: String,
    slo_s: Option<f64>,
    percentile: f64,
    measured_s: Option<f64>,
    ci_low_s: Option<f64>,
    ci_high_s: Option<f64>,
    /// Null without an SLO.
    verdict: Option<verify::Verdict>,
    requests: u64,
    over_slo: Option<f64>,
    throughput_per_s: f64,
}

/// The workloads as JSON documents.
pub(crate) fn documents(outcomes: &[WorkloadOutcome]) -> Vec<WorkloadOutcomeDocument> {
    outcomes.iter().map(document).collect()
}

fn document(outcome: &WorkloadOutcome) -> WorkloadOutcomeDocument {
    WorkloadOutcomeDocument {
        name: outcome.name.clone(),
        slo_s: outcome.slo.map(|slo| slo.latency.0),
        percentile: outcome.percentile.percent(),
        measured_s: outcome.measured_ns.map(|ns| ns / 1e9),
        ci_low_s: outcome.low_ns.map(|ns| ns / 1e9),
        ci_high_s: outcome.high_ns.map(|ns| ns / 1e9),
        verdict: outcome.verdict.map(verdict),
        requests: outcome.requests,
        over_slo: outcome.over,
        throughput_per_s: outcome.per_second,
    }
}

/// The verdict in documents, as `tailwright verify` says it.
fn verdict(kept: SloVerdict) -> verify::Verdict {
    match kept {
        SloVerdict::Met => verify::Verdict::Met,
        SloVerdict::Missed => verify::Verdict::NotMet,
        SloVerdict::TooFew { .. } => verify::Verdict::TooFew,
    }
}

fn name(kept: SloVerdict) -> &'static str {
    match kept {
        SloVerdict::Met => "met",
        SloVerdict::Missed => "not met",
        SloVerdict::TooFew { .. } => "too few",
    }
}

/// The headings of the cells of [`row`].
pub(crate) const HEADINGS: [&str; 7] =
    ["workload", "SLO", "measured", "interval", "over SLO", "requests", "verdict"];

/// Cells of a workload.
pub(crate) fn row(outcome: &WorkloadOutcome) -> Vec<String> {
    let interval = match (outcome.low_ns, outcome.high_ns) {
        (None, None) => "-".to_owned(),
        (low, high) => from_to(time_or(low, "?"), &time_or(high, "?")),
    };
    let verdict = match outcome.verdict {
        None => String::new(),
        Some(SloVerdict::TooFew { needed: Some(needed) }) => format!("too few requests: {needed} are needed"),
        Some(SloVerdict::TooFew { needed: None }) => "not missed; no sample shows 100 %".to_owned(),
        Some(kept) => name(kept).to_owned(),
    };
    vec![
        outcome.name.clone(),
        outcome.slo.map_or_else(|| "best effort".to_owned(), |slo| slo.to_string()),
        format!("{} {}", outcome.percentile, time_or(outcome.measured_ns, "-")),
        interval,
        outcome.over.map_or_else(|| "-".to_owned(), percent),
        outcome.requests.to_string(),
        verdict,
    ]
}

fn time_or(ns: Option<f64>, unknown: &str) -> String {
    ns.map_or_else(|| unknown.to_owned(), |ns| time(ns / 1e9))
}

/// Returns the table, with the `before` columns in front of those of workloads.
pub(crate) fn table(before: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut columns: Vec<(&str, Align)> = before
        .iter()
        .map(|heading| (*heading, if *heading == "server" { Align::Left } else { Align::Right }))
        .collect();
    for heading in HEADINGS {
        let is_words = matches!(heading, "workload" | "verdict" | "interval");
        columns.push((heading, if is_words { Align::Left } else { Align::Right }));
    }
    let mut table = TextTable::new(&columns);
    rows.into_iter().for_each(|row| table.row(row));
    table.without_first(&["interval", "requests", "SLO", "longest"]).render()
}

/// Returns the table of one run; empty without workloads.
pub(crate) fn text(outcomes: &[WorkloadOutcome]) -> String {
    if outcomes.is_empty() { String::new() } else { table(&[], outcomes.iter().map(row).collect()) }
}
