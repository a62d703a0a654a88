//! The ideal latencies of a stream, by discipline: as JSON and as a table.

use crate::output::json::pretty;
use crate::output::simulated::{Figures, PERCENTILES, exact, plain};
use crate::output::{percent, time};
use crate::terminal::{Align, Table};
use serde::Serialize;
use sim::ideal::{Distribution, Order};
use sim::source::Demand;
use units::{Nanos, Percentile};

/// One discipline.
pub(crate) struct Outcome {
    pub(crate) order: Order,
    pub(crate) latencies: Distribution,
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
    /// From the latency of each request, in the order of arrivals; `None` without requests.
    pub(crate) fn new(order: Order, demands: &[Demand], latencies: Vec<Nanos>, elapsed: f64) -> Option<Self> {
        let per_second = |count: usize, seconds: f64| (seconds > 0.0).then(|| count as f64 / seconds);
        let done = demands.iter().zip(&latencies).map(|(demand, latency)| demand.arrival + *latency);
        let (last, first) = (done.max()?, demands.first()?.arrival);
        let reordering = displaced(demands, &latencies);
        let slowdown = slowdown(demands, &latencies);
        let latencies = Distribution::new(latencies)?;
        let at = |percent| Percentile::new(percent).map(|p| latencies.percentile(p).as_secs());
        let [p50, p90, p99, p99_9] = PERCENTILES.map(|(_, percent)| at(percent).and_then(exact));
        let figures = Figures {
            requests: demands.len() as u64,
            mean_s: exact(latencies.mean().0),
            p50_s: p50,
            p90_s: p90,
            p99_s: p99,
            p99_9_s: p99_9,
            slowdown_p99: slowdown.and_then(exact),
            reordering_pct: exact(100.0 * reordering as f64 / demands.len() as f64),
            throughput_per_s: per_second(demands.len(), (last - first).as_secs()).and_then(exact),
            // An arrival and a departure each.
            events_per_s: per_second(2 * demands.len(), elapsed),
            ..Figures::default()
        };
        Some(Self { order, latencies, figures })
    }
}

/// Requests whose position among completions is not the one that they would have with a worker each.
fn displaced(demands: &[Demand], latencies: &[Nanos]) -> usize {
    let order = |done: &dyn Fn(usize) -> Nanos| {
        let mut order: Vec<usize> = (0..demands.len()).collect();
        order.sort_by_key(|index| (done(*index), *index));
        order
    };
    let real = order(&|index| demands[index].arrival + latencies[index]);
    let ideal = order(&|index| demands[index].arrival + demands[index].service);
    real.iter().zip(&ideal).filter(|(real, ideal)| real != ideal).count()
}

/// The 99th percentile of latency ÷ service; requests without service are left out.
fn slowdown(demands: &[Demand], latencies: &[Nanos]) -> Option<f64> {
    let some = demands.iter().zip(latencies).filter(|(demand, _)| demand.service.0 > 0);
    let mut slowdowns: Vec<f64> =
        some.map(|(demand, latency)| latency.0 as f64 / demand.service.0 as f64).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    let count = std::num::NonZeroUsize::new(slowdowns.len())?;
    Some(slowdowns[sim::nearest_rank(Percentile::new(99.0)?, count.get()) - 1])
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
    format!(
        "{} requests of {}, service {}, {workers}: utilisation {}.",
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
        cells.extend(times.map(|figure| figure.map_or_else(|| "-".to_owned(), |e| time(e.value))));
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
