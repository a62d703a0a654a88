//! Results of the workloads of a storage server, with the verdicts on their SLOs: table, lines of a page.

use cli::from_to;
use cli::terminal::{Align, TextTable};
use model::Verdict;
use operation::text::{percent, time};
use scenario::server::WorkloadOutcome;

/// The headings of the cells of [`row`].
pub(crate) const HEADINGS: [&str; 7] =
    ["workload", "SLO", "measured", "interval", "over SLO", "requests", "verdict"];

/// Cells of a workload.
pub(crate) fn row(outcome: &WorkloadOutcome) -> Vec<String> {
    let interval = match (outcome.ci_low_s, outcome.ci_high_s) {
        (None, None) => "-".to_owned(),
        (low, high) => from_to(time_or(low, "?"), &time_or(high, "?")),
    };
    let verdict = match outcome.verdict {
        None => String::new(),
        Some(verdict @ (Verdict::Met | Verdict::NotMet)) => verdict.words().to_owned(),
        Some(Verdict::TooFew) => outcome.needed_requests.map_or_else(
            || "not missed; no sample shows 100 %".to_owned(),
            |needed| format!("too few requests: {needed} are needed"),
        ),
    };
    vec![
        outcome.name.clone(),
        outcome.slo.map_or_else(|| "best effort".to_owned(), |slo| slo.to_string()),
        format!("{} {}", outcome.percentile, time_or(outcome.measured_s, "-")),
        interval,
        outcome.over_slo.map_or_else(|| "-".to_owned(), percent),
        outcome.requests.to_string(),
        verdict,
    ]
}

fn time_or(seconds: Option<f64>, unknown: &str) -> String {
    seconds.map_or_else(|| unknown.to_owned(), time)
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
    let table = table.without_first(&["interval", "requests", "SLO", "longest"]);
    table.answered_by(&[&["workload", "measured", "verdict"], before].concat()).render()
}

/// Returns the table of one run; empty without workloads.
pub(crate) fn text(outcomes: &[WorkloadOutcome]) -> String {
    if outcomes.is_empty() { String::new() } else { table(&[], outcomes.iter().map(row).collect()) }
}
