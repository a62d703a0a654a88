//! Latencies of simulated requests as a page: the share that takes longer, the figures, and what they mean.

use crate::simulate::measured::{class_rows, evenness};
use crate::simulate::text::{lead, rows};
use crate::simulate::workloads;
use cli::shares;
use plot::{Axis, Block, Cell, Chart, Column, Page, Series, Table, Unit};
use sim::engine::Histogram;
use simulate::simulation::VariantFigures;

/// The complementary distribution function of several sets of requests.
pub(crate) fn page(
    title: &str,
    lead: &str,
    lines: impl IntoIterator<Item = (String, Vec<(f64, f64)>)>,
    tables: impl IntoIterator<Item = Table>,
    reading: &[&str],
) -> String {
    let lines = shares::without_duplicates(lines);
    let x = shares::latency_axis("latency", lines.iter().map(|(_, points)| points.as_slice()), None);
    let chart = Chart::new("Latency", x, Axis::log("share of requests at least as long", Unit::Percent));
    let chart = chart.all(lines.into_iter().map(|(name, points)| Series::line(name, points)));
    let page = Page::new(title)
        .lead(lead)
        .section("Share of requests that take longer", [chart.note(shares::READING).into()])
        .section("All figures", tables.into_iter().map(Into::into))
        .section("How to read this page", reading.iter().copied().map(Block::paragraph));
    cli::page::document(page)
}

/// Explanation of the figures of requests, for any system.
pub(crate) const FIGURES: &str = "Latency is the time from the arrival of a request to its completion. Slowdown is the latency divided by the service that \
     the request needs. Reordering is the share of requests that complete at another position than if no request ever \
     waited.";

/// Explanation of the other figures of stations.
const STATIONS: &str = "A row is the whole system (end to end) or a station (tier). Load is the work that came divided by what the workers can do. \
     Present is the mean number of requests there, waiting or in service, and most the largest number. Overhead is the \
     share of the workers' time that is not spent on requests: switching, waiting for the dispatcher and other work.";

/// Explanation of the evenness of a system.
const EVENNESS: &str = "Overtaken is the share of requests that complete after one that would complete later if no request ever waited. Fairness is \
     Jain's index of the slowdowns: 1 if all requests are slowed down equally, 1/n if only one of n is. The p99 of the \
     shortest 1 % is that of the requests whose total service is among the least 1 %.";

/// Explanation of the verdicts of a simulation.
const VERDICTS: &str = "Verdict done: the system is stable, and the intervals are as narrow as the scenario asks, if it does. Transient: the scenario \
     is about exactly these requests, without a steady state. Unstable: the number of requests in the system grows \
     without bound, so that there are no figures.";

/// Explanation of the columns of workloads.
const WORKLOADS: &str = "Measured is the latency at the percentile of the SLO, and the interval contains the true one with the stated confidence. \
     Met: all of the interval is within the SLO; not met: all of it is beyond. Best-effort workloads have no SLO.";

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
    // Promises to workloads are measured end to end, so stations are not shown.
    if !view.workloads.is_empty() {
        lines = view.workloads.iter().map(|at| (at.name.clone(), ccdf(&at.response))).collect();
        let lead = format!("{} Verdict: {}.", lead(view), view.message());
        let rows = view.workloads.iter().map(workloads::row).collect();
        return page(
            &view.case.name,
            &lead,
            lines,
            [table(&workloads::HEADINGS, rows)],
            &[WORKLOADS, VERDICTS],
        );
    }
    let lead = format!("{} {} Verdict: {}.", lead(view), evenness(view), view.message());
    let (classes, by_class) = class_rows(view);
    let by_class = (!by_class.is_empty()).then(|| table(&classes, by_class));
    let tables = [table(&headings, figures)].into_iter().chain(by_class);
    let reading = [FIGURES, STATIONS, EVENNESS, VERDICTS];
    page(&view.case.name, &lead, lines, tables, &reading)
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
