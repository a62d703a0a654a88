//! The ideal latencies of a stream, by discipline: as JSON and as a table.

use crate::simulate::figure::{interval, plain};
use cli::terminal::TextTable;
use operation::document::document;
use operation::text::percent;
use schemars::JsonSchema;
use serde::Serialize;
use simulate::ideal::IdealOutcome;
use simulate::simulation::PERCENTILES;
use units::plural;

/// Everything requested.
pub(crate) struct IdealView {
    /// Name of the stream.
    pub(crate) name: String,
    pub(crate) service: String,
    pub(crate) workers: usize,
    pub(crate) utilisation: f64,
    pub(crate) seed: u64,
    /// The latencies by discipline, at least one.
    pub(crate) outcomes: Vec<IdealOutcome>,
    pub(crate) requests_needed: Option<u64>,
    /// Latencies have a mean but no variance.
    pub(crate) has_wide_mean: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct IdealDocument<'a> {
    stream: &'a str,
    service: &'a str,
    workers: usize,
    utilisation: f64,
    seed: u64,
    /// Number of requests that this utilisation takes, if there are fewer: figures and intervals may be off.
    requests_needed: Option<u64>,
    #[serde(flatten)]
    first: &'a IdealOutcome,
    compared: &'a [IdealOutcome],
}

/// The first discipline's figures, the others' under `compared`.
pub(crate) fn json(view: &IdealView) -> String {
    document(&IdealDocument {
        stream: &view.name,
        service: &view.service,
        workers: view.workers,
        utilisation: view.utilisation,
        seed: view.seed,
        requests_needed: view.requests_needed,
        first: &view.outcomes[0],
        compared: &view.outcomes[1..],
    })
}

/// Describes the simulation in a sentence.
pub(crate) fn lead(view: &IdealView) -> String {
    let workers = plural(view.workers, "worker");
    let some = view.outcomes.iter().any(|outcome| !outcome.figures.ci.is_empty());
    let too_few = view.requests_needed.map_or_else(String::new, |needed| {
        format!(" Too few requests to tell: this load takes --requests {needed} or more.")
    });
    let infinite = match view.outcomes.iter().any(|outcome| outcome.mean_is_infinite) {
        true => " Service times without a variance make the mean infinite; percentiles exist.",
        false if view.has_wide_mean => {
            " Service times without a third moment: the mean of a sample varies so much that its interval is too narrow."
        }
        false => "",
    };
    let intervals = if some { " ± are 95 % confidence intervals." } else { "" };
    format!(
        "{} of {}, service {}, {workers}: utilisation {}.{intervals}{infinite}{too_few}",
        requests(view.outcomes[0].figures.requests),
        view.name,
        view.service,
        percent(view.utilisation)
    )
}

fn requests(count: u64) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// Headings and a row per discipline.
pub(crate) fn rows(view: &IdealView) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut headings = vec!["discipline", "mean"];
    headings.extend(PERCENTILES.map(|(name, _)| name));
    headings.extend(["slowdown p99", "reordering"]);
    let row = |at: &IdealOutcome| {
        let f = &at.figures;
        let mut cells = vec![at.order.to_string()];
        let times = [f.mean_s, f.p50_s, f.p90_s, f.p99_s, f.p99_9_s];
        cells.extend(times.map(interval));
        if at.mean_is_infinite {
            cells[1] = "infinite".to_owned();
        }
        cells.push(plain(f.slowdown_p99.map(|e| e.value), ""));
        cells.push(plain(f.reordering_pct.map(|e| e.value), " %"));
        cells
    };
    (headings, view.outcomes.iter().map(row).collect())
}

/// The table for people.
pub(crate) fn text(view: &IdealView) -> String {
    let (headings, rows) = rows(view);
    let table =
        TextTable::of_rows(&headings, 1, rows).without_first(&["reordering", "p90", "slowdown p99", "p50"]);
    let table = table.answered_by(&["p99", "mean"]);
    format!("{}\n\n{}", lead(view), table.render())
}
