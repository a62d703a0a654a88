//! What a simulation found: figures with intervals, as JSON with fixed field names and as a table.

use crate::output::json::pretty;
use crate::output::measured::{Class, Evenness, Occupancy, class_table, evenness, intervals};
use crate::output::time;
use crate::output::workloads;
use crate::terminal::{Align, Table};
use model::OperationError;
use scenario::server::Outcome;
use scenario::{Case, Run, Variant};
use serde::{Serialize, Serializer};
use sim::engine::{
    Estimate, Histogram, Measures, ReplicationVerdict, SLOWDOWN_UNIT, SimulationPlan, SimulationReport,
};
use std::collections::BTreeMap;
use std::time::Instant;
use units::Percentile;

/// The percentiles that are printed, with their headings.
pub(crate) const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// A figure; in JSON its value, or null where there is none.
pub(crate) type Figure = Option<Estimate>;

/// The figures of one place, in the order in which they are printed.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) requests: u64,
    #[serde(serialize_with = "value")]
    pub(crate) mean_s: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) p50_s: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) p90_s: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) p99_s: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) p99_9_s: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) slowdown_p99: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) reordering_pct: Figure,
    #[serde(serialize_with = "value")]
    pub(crate) throughput_per_s: Figure,
    /// Of the simulation itself, by the clock: the only figure that differs from run to run.
    pub(crate) events_per_s: Option<f64>,
    /// Lower and upper end of each figure that has an interval.
    pub(crate) ci: BTreeMap<&'static str, [f64; 2]>,
}

#[allow(clippy::ref_option, reason = "serde hands over a reference to the field")]
pub(crate) fn value<S: Serializer>(figure: &Figure, serializer: S) -> Result<S::Ok, S::Error> {
    figure.map(|estimate| estimate.value).serialize(serializer)
}

impl Figures {
    /// The times, shown with their intervals.
    pub(crate) fn times(&self) -> [Figure; 5] {
        [self.mean_s, self.p50_s, self.p90_s, self.p99_s, self.p99_9_s]
    }

    /// Fills in the ends of all intervals.
    pub(crate) fn with_intervals(mut self) -> Self {
        let named = [
            ("mean_s", self.mean_s),
            ("p50_s", self.p50_s),
            ("p90_s", self.p90_s),
            ("p99_s", self.p99_s),
            ("p99_9_s", self.p99_9_s),
            ("slowdown_p99", self.slowdown_p99),
            ("reordering_pct", self.reordering_pct),
            ("throughput_per_s", self.throughput_per_s),
        ];
        self.ci = intervals(&named);
        self
    }
}

/// A variant that was run, and for how long.
pub(crate) struct Played {
    pub(crate) run: Run,
    /// Seconds by the clock.
    elapsed: f64,
}

impl Played {
    /// Runs a variant.
    pub(crate) fn of(variant: &Variant, seed: u64) -> Result<Self, OperationError> {
        let begun = Instant::now();
        let run = variant.run(seed)?;
        Ok(Self { run, elapsed: begun.elapsed().as_secs_f64() })
    }

    /// For output.
    pub(crate) fn view(&self, seed: u64) -> View<'_> {
        let Run { case, report, .. } = &self.run;
        let workloads = self.run.workloads();
        View { case, report, seed, elapsed: self.elapsed, overloaded: self.run.overloaded(), workloads }
    }
}

/// An experiment with what it was.
pub(crate) struct View<'a> {
    pub(crate) case: &'a Case,
    pub(crate) report: &'a SimulationReport,
    pub(crate) seed: u64,
    /// Seconds by the clock.
    pub(crate) elapsed: f64,
    /// The station that cannot keep up, with its utilisation, whatever was measured.
    pub(crate) overloaded: Option<(&'a str, f64)>,
    /// Of a storage server.
    pub(crate) workloads: Vec<Outcome>,
}

impl View<'_> {
    /// One word for the verdict.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.report.verdict {
            _ if self.overloaded.is_some() => "unstable",
            ReplicationVerdict::Unbounded { .. } => "unstable",
            ReplicationVerdict::Imprecise { .. } => "imprecise",
            ReplicationVerdict::Done => "done",
            ReplicationVerdict::Transient => "transient",
        }
    }

    /// The verdict with its reason.
    pub(crate) fn message(&self) -> String {
        match self.overloaded {
            Some((name, load)) => format!(
                "unstable: grows without bound; station '{name}' gets {:.1} % of the work that it can do",
                100.0 * load
            ),
            None => self.report.verdict.to_string(),
        }
    }

    /// Figures end to end; without values when they would mean nothing.
    pub(crate) fn end_to_end(&self) -> Figures {
        let runs = &self.report.runs;
        let requests = runs.iter().map(|run| run.response.count()).sum();
        if self.verdict() == "unstable" {
            return Figures { requests, ..Figures::default() };
        }
        let events: u64 = runs.iter().map(|run| run.events).sum();
        let slowdown = |run: &Measures| at(&run.slowdown, 99.0).map(|units| units * SLOWDOWN_UNIT);
        Figures {
            slowdown_p99: self.report.estimate(slowdown),
            reordering_pct: self.report.estimate(Measures::displaced_pct),
            throughput_per_s: self.report.estimate(Measures::throughput_per_s),
            events_per_s: (self.elapsed > 0.0).then(|| events as f64 / self.elapsed),
            ..self.times(requests, |run| &run.response)
        }
        .with_intervals()
    }

    /// Figures of a station: time from arrival there to departure, one value per visit.
    pub(crate) fn tier(&self, station: usize) -> Figures {
        let time = |run: &Measures| run.stations[station].time.count();
        let requests = self.report.runs.iter().map(time).sum();
        if self.verdict() == "unstable" {
            return Figures { requests, ..Figures::default() };
        }
        let per_second = |run: &Measures| {
            let seconds = run.duration.as_secs();
            (seconds > 0.0).then(|| run.stations[station].time.count() as f64 / seconds)
        };
        let slowdown =
            |run: &Measures| at(&run.stations[station].slowdown, 99.0).map(|units| units * SLOWDOWN_UNIT);
        Figures {
            slowdown_p99: self.report.estimate(slowdown),
            reordering_pct: self.report.estimate(|run| run.stations[station].displaced_pct()),
            throughput_per_s: self.report.estimate(per_second),
            ..self.times(requests, |run| &run.stations[station].time)
        }
        .with_intervals()
    }

    pub(crate) fn times(&self, requests: u64, of: impl Fn(&Measures) -> &Histogram) -> Figures {
        let seconds = |ns: f64| ns / 1e9;
        let percentile = |percent: f64| self.report.estimate(|run| at(of(run), percent).map(seconds));
        let [p50_s, p90_s, p99_s, p99_9_s] = PERCENTILES.map(|(_, percent)| percentile(percent));
        let mean_s = self.report.estimate(|run| of(run).mean().map(seconds));
        Figures { requests, mean_s, p50_s, p90_s, p99_s, p99_9_s, ..Figures::default() }
    }
}

/// A percentile, if there is one.
pub(crate) fn at(histogram: &Histogram, percent: f64) -> Option<f64> {
    Some(histogram.percentile(Percentile::new(percent)?)?.0 as f64)
}

/// Everything about one experiment.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    scenario: &'a str,
    seed: u64,
    replications: usize,
    confidence: f64,
    verdict: &'static str,
    message: String,
    #[serde(flatten)]
    end_to_end: Figures,
    #[serde(flatten)]
    evenness: Evenness,
    tiers: Vec<Tier<'a>>,
    /// Empty where there is but one.
    classes: Vec<Class<'a>>,
    /// Of a storage server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workloads: Vec<workloads::Workload>,
}

#[derive(Serialize)]
struct Tier<'a> {
    name: &'a str,
    #[serde(flatten)]
    occupancy: Occupancy,
    #[serde(flatten)]
    figures: Figures,
}

/// One object: end to end, and by tier.
pub(crate) fn json(view: &View) -> String {
    pretty(&document(view))
}

/// What [`json`] prints.
pub(crate) fn document<'a>(view: &View<'a>) -> Document<'a> {
    let (mut end_to_end, evenness) = (view.end_to_end(), view.evenness());
    end_to_end.ci.extend(intervals(&evenness.named()));
    Document {
        scenario: &view.case.name,
        seed: view.seed,
        replications: view.report.runs.len(),
        confidence: view.report.confidence,
        verdict: view.verdict(),
        message: view.message(),
        end_to_end,
        evenness,
        tiers: (0..view.case.network.stations.len()).map(|station| tier(view, station)).collect(),
        classes: view.classes(),
        workloads: workloads::documents(&view.workloads),
    }
}

/// What a replication measures.
pub(crate) fn window(plan: &SimulationPlan) -> String {
    match plan.window.span {
        Some((begin, end)) => format!("{} after {begin}", end - begin),
        None => format!("{} requests after {}", plan.window.measured, plan.window.warm_up),
    }
}

fn tier<'a>(view: &View<'a>, station: usize) -> Tier<'a> {
    let (mut figures, occupancy) = (view.tier(station), view.occupancy(station));
    figures.ci.extend(intervals(&occupancy.named()));
    Tier { name: &view.case.network.stations[station].name, occupancy, figures }
}

/// A sentence about how it was run.
pub(crate) fn lead(view: &View) -> String {
    let plan = &view.case.plan;
    format!(
        "{}: {} replications of {} of warm-up, seed {}; ± are {} % confidence intervals.",
        view.case.name,
        view.report.runs.len(),
        window(plan),
        view.seed,
        100.0 * view.report.confidence
    )
}

/// The rows of the table: headings, then a row end to end and one per tier.
pub(crate) fn rows(view: &View) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut headings = vec!["tier", "load", "mean"];
    headings.extend(PERCENTILES.map(|(name, _)| name));
    headings.extend(["slowdown p99", "reordering", "per second", "present", "most", "overhead"]);
    let mut rows = vec![row("end to end", &Occupancy::default(), &view.end_to_end())];
    let stations = view.case.network.stations.iter().enumerate();
    rows.extend(stations.map(|(index, at)| row(&at.name, &view.occupancy(index), &view.tier(index))));
    (headings, rows)
}

fn row(name: &str, at: &Occupancy, figures: &Figures) -> Vec<String> {
    let percent = |figure: Figure| plain(figure.map(|share| 100.0 * share.value), " %");
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

/// A number with one decimal, or a dash.
pub(crate) fn plain(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}{unit}"))
}

/// A time with its interval.
pub(crate) fn interval(figure: Figure) -> String {
    match figure {
        None => "-".to_owned(),
        // Equal values differ by the rounding of their mean.
        Some(estimate) if estimate.half_width <= 1e-12 * estimate.value.abs() => {
            format!("{} ± 0s", time(estimate.value))
        }
        Some(estimate) if estimate.half_width.is_finite() => {
            format!("{} ± {}", time(estimate.value), time(estimate.half_width))
        }
        Some(estimate) => time(estimate.value),
    }
}

/// The table for people.
pub(crate) fn text(view: &View) -> String {
    let (headings, rows) = rows(view);
    let align =
        |heading: &&'static str| (*heading, if *heading == "tier" { Align::Left } else { Align::Right });
    let mut table = Table::new(&headings.iter().map(align).collect::<Vec<_>>());
    rows.into_iter().for_each(|row| table.row(row));
    if !view.workloads.is_empty() {
        let workloads = workloads::text(&view.workloads);
        return format!("{}\n\n{}\n{workloads}\n{}\n", lead(view), table.render(), view.message());
    }
    let (classes, evenness) = (class_table(view), evenness(view));
    format!("{}\n\n{}{classes}\n{evenness}\n{}\n", lead(view), table.render(), view.message())
}
