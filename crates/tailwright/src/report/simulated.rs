//! Latencies of simulated requests as a page: the share that takes longer, and the figures.

use crate::output::measured::{class_rows, evenness};
use crate::output::simulated::{lead, rows};
use crate::output::workloads;
use plot::{Axis, Cell, Chart, Column, Page, Series, Table, Unit};
use sim::engine::Histogram;
use workflow::simulation::VariantFigures;

/// The complementary distribution function of several sets of requests.
pub(crate) fn page(
    title: &str,
    lead: &str,
    lines: impl IntoIterator<Item = (String, Vec<(f64, f64)>)>,
    tables: impl IntoIterator<Item = Table>,
) -> String {
    let lines: Vec<_> = lines.into_iter().collect();
    let mut x = Axis::log("latency", Unit::Seconds);
    if let Some(round) = round_below(&lines) {
        x = x.min(round);
    }
    let chart = Chart::new("Latency", x, Axis::log("share of requests at least as long", Unit::Percent));
    let chart = chart.all(lines.into_iter().map(|(name, points)| Series::line(name, points)));
    Page::new(title)
        .lead(lead)
        .section("Share of requests that take longer", [chart.into()])
        .section("All figures", tables.into_iter().map(Into::into))
        .footer(format!("tailwright {}", env!("CARGO_PKG_VERSION")))
        .to_html()
}

/// A table with names in its first column.
pub(crate) fn table(headings: &[&str], rows: Vec<Vec<String>>) -> Table {
    let column = |(index, heading): (usize, &&str)| {
        if index == 0 { Column::name(*heading) } else { Column::number(*heading) }
    };
    let mut table = Table::new(headings.iter().enumerate().map(column));
    rows.into_iter().for_each(|row| table.push(row.into_iter().map(Cell::from)));
    table
}

/// The page of an experiment.
pub(crate) fn html(view: &VariantFigures) -> String {
    let (headings, figures) = rows(view);
    let mut lines = vec![("end to end".to_owned(), ccdf(&view.report.response()))];
    for (index, station) in view.case.network.stations.iter().enumerate() {
        let mut all = Histogram::default();
        view.report.runs.iter().for_each(|run| all.merge(&run.stations[index].time));
        lines.push((station.name.clone(), ccdf(&all)));
    }
    for (name, class) in several(&view.case.classes) {
        let mut all = Histogram::default();
        view.report.runs.iter().for_each(|run| all.merge(&run.by_class[class]));
        lines.push((format!("class {name}"), ccdf(&all)));
    }
    if view.verdict() == "unstable" {
        lines.clear();
    }
    // What is promised to workloads is measured end to end: no stations beside them.
    if !view.workloads.is_empty() {
        lines = view.workloads.iter().map(|at| (at.name.clone(), ccdf(&at.response))).collect();
        let lead = format!("{} Verdict: {}.", lead(view), view.message());
        let rows = view.workloads.iter().map(workloads::row).collect();
        return page(&view.case.name, &lead, lines, [table(&workloads::HEADINGS, rows)]);
    }
    let lead = format!("{} {} Verdict: {}.", lead(view), evenness(view), view.message());
    let (classes, by_class) = class_rows(view);
    let by_class = (!by_class.is_empty()).then(|| table(&classes, by_class));
    page(&view.case.name, &lead, lines, [table(&headings, figures)].into_iter().chain(by_class))
}

/// Names with their places, if there are several.
fn several(names: &[String]) -> impl Iterator<Item = (&str, usize)> {
    let all = names.iter().enumerate().filter(|_| names.len() > 1);
    all.map(|(place, name)| (name.as_str(), place))
}

/// The line of a histogram, seconds.
pub(crate) fn ccdf(histogram: &Histogram) -> Vec<(f64, f64)> {
    histogram.ccdf().into_iter().map(|(at, share)| (at.as_secs(), share)).collect()
}

/// The largest 1, 2 or 5 times a power of ten at or below the least latency, so that an axis begins there; `None` when that is zero.
fn round_below(lines: &[(String, Vec<(f64, f64)>)]) -> Option<f64> {
    let least = lines.iter().flat_map(|(_, points)| points).map(|(at, _)| *at).fold(f64::INFINITY, f64::min);
    if !(least > 0.0 && least.is_finite()) {
        return None;
    }
    let power = 10f64.powf(least.log10().floor());
    // A hair, so that 50 µs is not below 5 times 10 µs.
    let round = [5.0, 2.0, 1.0].map(|digit| digit * power).into_iter().find(|at| *at <= least * (1.0 + 1e-9));
    round.map(|round| round.min(least))
}
