//! Results of a simulation: figures with intervals, as JSON with fixed field names and as a table.

use crate::simulate::figure::{interval, plain};
use crate::simulate::measured::{class_table, evenness};
use crate::simulate::workloads;
use cli::terminal::TextTable;
use sim::engine::SimulationPlan;
use simulate::simulation::{LatencyFigures, PERCENTILES, SimulatedFigure, StationOccupancy, VariantFigures};
use units::plural;

/// One object: end to end, and by tier.
pub(crate) fn json(view: &VariantFigures) -> String {
    operation::document::document(&view.document())
}

/// Describes the measurement window of a replication.
pub(crate) fn window(plan: &SimulationPlan) -> String {
    match plan.window.span {
        Some((begin, end)) => format!("{} after {begin}", end - begin),
        None => format!("{} after {}", plural(plan.window.measured, "request"), plan.window.warm_up),
    }
}

/// Describes the run in a sentence.
pub(crate) fn lead(view: &VariantFigures) -> String {
    let plan = &view.case.plan;
    format!(
        "{}: {} of {} of warm-up, seed {}; ± are {} % confidence intervals.",
        view.case.name,
        plural(view.report.runs.len(), "replication"),
        window(plan),
        view.seed,
        100.0 * view.report.confidence
    )
}

/// The rows of the table: headings, then a row end to end and one per tier.
pub(crate) fn rows(view: &VariantFigures) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut headings = vec!["tier", "load", "mean"];
    headings.extend(PERCENTILES.map(|(name, _)| name));
    headings.extend(["slowdown p99", "reordering", "per second", "present", "most", "overhead"]);
    let mut rows = vec![row("end to end", &StationOccupancy::default(), &view.end_to_end())];
    let stations = view.case.network.stations.iter().enumerate();
    rows.extend(stations.map(|(index, at)| row(&at.name, &view.occupancy(index), &view.station(index))));
    (headings, rows)
}

fn row(name: &str, at: &StationOccupancy, figures: &LatencyFigures) -> Vec<String> {
    let percent = |figure: SimulatedFigure| plain(figure.map(|share| 100.0 * share.value), " %");
    let mut cells = vec![name.to_owned(), percent(at.utilisation)];
    cells.extend(figures.times().map(interval));
    cells.push(plain(figures.slowdown_p99.map(|e| e.value), ""));
    cells.push(plain(figures.reordering_pct.map(|e| e.value), " %"));
    cells.push(plain(figures.throughput_per_s.map(|e| e.value), ""));
    cells.push(plain(at.present_mean.map(|e| e.value), ""));
    cells.push(at.present_max.map_or_else(|| "-".to_owned(), |most| most.to_string()));
    cells.push(percent(at.overhead));
    cells
}

/// The table for people.
pub(crate) fn text(view: &VariantFigures) -> String {
    let (headings, rows) = rows(view);
    let details = ["overhead", "most", "reordering", "slowdown p99", "p90", "present", "per second", "p50"];
    let table = TextTable::of_rows(&headings, 1, rows).without_first(&details);
    let table = table.answered_by(&["p99", "mean", "load"]);
    if !view.workloads.is_empty() {
        let workloads = workloads::text(&view.workloads);
        let broken = view.broken_bounds.map_or(String::new(), |broken| format!("{broken}\n"));
        return format!("{broken}{}\n\n{}\n{workloads}\n{}\n", lead(view), table.render(), view.message());
    }
    let classes = class_table(view);
    let evenness = evenness(view);
    format!("{}\n\n{}{classes}\n{evenness}\n{}\n", lead(view), table.render(), view.message())
}
