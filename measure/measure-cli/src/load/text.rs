//! What a run of load says: a row per workload, as a table or JSON.

use cli::terminal::{Align, TextTable};
use load::{DataComparison, LoadReport};
use measure::load::{WorkloadLoadSummary, summarise_load};
use operation::document::document;
use operation::text::{percent, time};
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

#[derive(Serialize, JsonSchema)]
pub(crate) struct LoadDocument<'a> {
    observed_s: f64,
    seed: u64,
    cpu_pressure: Option<f64>,
    compared: &'a DataComparison,
    warnings: Vec<&'a str>,
    workloads: Vec<WorkloadLoadSummary<'a>>,
}

/// The table for people, a row per workload.
pub(crate) fn text(ran: &LoadReport) -> String {
    let right = |name| (name, Align::Right);
    let mut table = TextTable::new(&[
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
    for row in summarise_load(ran) {
        table.row(vec![
            row.name.to_owned(),
            row.requests.to_string(),
            format!("{:.1}", row.rate_per_s),
            time_or_dash(row.p50_s),
            time_or_dash(row.p99_s),
            time_or_dash(row.p99_9_s),
            time_or_dash(row.max_s),
            row.failed.to_string(),
            row.lost.to_string(),
            time_or_dash(row.lag_p99_s),
        ]);
    }
    let table = table.without_first(&["lag p99", "p99.9", "per second"]);
    let mut text = table.answered_by(&["p99", "p50", "failed", "lost"]).render();
    text.push_str(&compared(&ran.comparison));
    if let Some(share) = ran.cpu_pressure {
        text.push_str(&format!(
            "CPU pressure: at least one task of this machine waited for a CPU {} of the time\n",
            percent(share)
        ));
    }
    text
}

fn time_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), time)
}

fn compared(compared: &DataComparison) -> String {
    if *compared == DataComparison::default() {
        return String::new();
    }
    let DataComparison { bytes, unknown, mismatches, first } = compared;
    let mut text = format!(
        "{bytes} read were compared with what was written, {unknown} could not be; different: {}\n",
        plural(*mismatches, "block")
    );
    if let Some(first) = first {
        text.push_str(&format!("the first: {first}\n"));
    }
    text
}

/// One object: the run, and its workloads.
pub(crate) fn json(ran: &LoadReport, seed: u64) -> String {
    let warnings = ran.warnings.iter().map(String::as_str).collect();
    let observed_s = ran.observed_duration.as_secs();
    let cpu_pressure = ran.cpu_pressure;
    document(&LoadDocument {
        observed_s,
        seed,
        cpu_pressure,
        compared: &ran.comparison,
        warnings,
        workloads: summarise_load(ran),
    })
}
