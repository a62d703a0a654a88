//! The ideal latencies of a stream, by discipline: as JSON and as a table.

use crate::output::json::pretty;
use crate::output::percent;
use crate::output::simulated::{Figures, PERCENTILES, interval, plain};
use crate::terminal::{Align, Table};
use serde::Serialize;
use sim::engine::{Estimate, Histogram};
use sim::ideal::{ServiceOrder, Summary};
use units::Percentile;

/// One discipline.
pub(crate) struct Outcome {
    pub(crate) order: ServiceOrder,
    pub(crate) latencies: Histogram,
    pub(crate) figures: Figures,
}

/// Everything that was asked for.
pub(crate) struct View {
    /// Of the stream.
    pub(crate) name: String,
    pub(crate) service: String,
    pub(crate) workers: usize,
    pub(crate) utilisation: f64,
    pub(crate) seed: u64,
    /// At least one.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Outcome {
    /// `None` without requests.
    pub(crate) fn new(order: ServiceOrder, summary: &Summary, elapsed: f64) -> Option<Self> {
        let scaled = |figure: Estimate, unit: f64| Estimate {
            value: figure.value * unit,
            half_width: figure.half_width * unit,
        };
        let time = |figure: Estimate| scaled(figure, 1e-9);
        let percentile = |percent| summary.percentile(Percentile::new(percent)?).map(time);
        let [p50_s, p90_s, p99_s, p99_9_s] = PERCENTILES.map(|(_, percent)| percentile(percent));
        let requests = summary.count();
        let figures = Figures {
            requests,
            mean_s: Some(time(summary.mean()?)),
            p50_s,
            p90_s,
            p99_s,
            p99_9_s,
            slowdown_p99: Percentile::new(99.0).and_then(|p| summary.slowdown(p)),
            reordering_pct: summary.displaced_pct(),
            throughput_per_s: summary.throughput_per_s(),
            // An arrival and a departure each.
            events_per_s: (elapsed > 0.0).then(|| 2.0 * requests as f64 / elapsed),
            ..Figures::default()
        };
        Some(Self { order, latencies: summary.latencies(), figures: figures.with_intervals() })
    }
}

#[derive(Serialize)]
struct Document<'a> {
    stream: &'a str,
    service: &'a str,
    workers: usize,
    utilisation: f64,
    seed: u64,
    #[serde(flatten)]
    first: Entry<'a>,
    compared: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    discipline: String,
    #[serde(flatten)]
    figures: &'a Figures,
}

/// The first discipline's figures, the others' under `compared`.
pub(crate) fn json(view: &View) -> String {
    let entry = |at: &Outcome| at.order.to_string();
    let entry = |at| Entry { discipline: entry(at), figures: &at.figures };
    pretty(&Document {
        stream: &view.name,
        service: &view.service,
        workers: view.workers,
        utilisation: view.utilisation,
        seed: view.seed,
        first: entry(&view.outcomes[0]),
        compared: view.outcomes[1..].iter().map(entry).collect(),
    })
}

/// What was simulated, in a sentence.
pub(crate) fn lead(view: &View) -> String {
    let workers = crate::output::words::count(view.workers, "worker");
    let some = view.outcomes.iter().any(|outcome| !outcome.figures.ci.is_empty());
    let intervals = if some { " ± are 95 % confidence intervals." } else { "" };
    format!(
        "{} requests of {}, service {}, {workers}: utilisation {}.{intervals}",
        view.outcomes[0].figures.requests,
        view.name,
        view.service,
        percent(view.utilisation)
    )
}

/// Headings and a row per discipline.
pub(crate) fn rows(view: &View) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut headings = vec!["discipline", "mean"];
    headings.extend(PERCENTILES.map(|(name, _)| name));
    headings.extend(["slowdown p99", "reordering"]);
    let row = |at: &Outcome| {
        let f = &at.figures;
        let mut cells = vec![at.order.to_string()];
        let times = [f.mean_s, f.p50_s, f.p90_s, f.p99_s, f.p99_9_s];
        cells.extend(times.map(interval));
        cells.push(plain(f.slowdown_p99.map(|e| e.value), ""));
        cells.push(plain(f.reordering_pct.map(|e| e.value), " %"));
        cells
    };
    (headings, view.outcomes.iter().map(row).collect())
}

/// The table for people.
pub(crate) fn text(view: &View) -> String {
    let (headings, rows) = rows(view);
    let align = |(index, heading): (usize, &&'static str)| {
        (*heading, if index == 0 { Align::Left } else { Align::Right })
    };
    let mut table = Table::new(&headings.iter().enumerate().map(align).collect::<Vec<_>>());
    rows.into_iter().for_each(|row| table.row(row));
    format!("{}\n\n{}", lead(view), table.render())
}
