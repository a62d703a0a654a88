//! What a simulation measured besides latencies: by tier, by class, and how evenly requests are treated.

use crate::output::simulated::{Figure, Figures, View, at, interval, plain, value};
use crate::output::time;
use crate::terminal::{Align, Table};
use serde::Serialize;
use sim::engine::{Measures, SLOWDOWN_UNIT, StationMeasures};
use std::collections::BTreeMap;

/// A station.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Occupancy {
    /// Work that came to it ÷ what its workers can do, as measured.
    #[serde(serialize_with = "value")]
    pub(crate) utilisation: Figure,
    /// Requests there, in service or not, on average over time.
    #[serde(serialize_with = "value")]
    pub(crate) present_mean: Figure,
    /// Most at once in any replication.
    pub(crate) present_max: Option<u64>,
    /// Share of the workers' time spent on switching, the dispatcher and other work.
    #[serde(serialize_with = "value")]
    pub(crate) overhead: Figure,
}

/// How requests fare beside each other.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Evenness {
    /// Requests that are complete after one that is later in the ideal order.
    #[serde(serialize_with = "value")]
    pub(crate) overtaken_pct: Figure,
    /// Jain's index of slowdowns.
    #[serde(serialize_with = "value")]
    pub(crate) fairness: Figure,
    /// 99th percentile of the shortest 1 % of requests.
    #[serde(serialize_with = "value")]
    pub(crate) shortest_p99_s: Figure,
    /// The longest that any request was longer in the system than it would have been alone.
    pub(crate) longest_wait_s: Option<f64>,
}

/// A class of requests.
#[derive(Debug, Serialize)]
pub(crate) struct Class<'a> {
    name: &'a str,
    #[serde(flatten)]
    figures: Figures,
}

/// Lower and upper end of figures that have an interval.
pub(crate) fn intervals(named: &[(&'static str, Figure)]) -> BTreeMap<&'static str, [f64; 2]> {
    let known = named.iter().filter_map(|(name, figure)| Some((*name, (*figure)?)));
    let finite = known.filter(|(_, estimate)| estimate.half_width.is_finite());
    finite.map(|(name, e)| (name, [e.value - e.half_width, e.value + e.half_width])).collect()
}

impl Occupancy {
    pub(crate) fn named(&self) -> [(&'static str, Figure); 3] {
        [("utilisation", self.utilisation), ("present_mean", self.present_mean), ("overhead", self.overhead)]
    }
}

impl Evenness {
    pub(crate) fn named(&self) -> [(&'static str, Figure); 3] {
        [
            ("overtaken_pct", self.overtaken_pct),
            ("fairness", self.fairness),
            ("shortest_p99_s", self.shortest_p99_s),
        ]
    }
}

impl<'a> View<'a> {
    /// Of a station; the load is there even when the system is unstable.
    pub(crate) fn occupancy(&self, station: usize) -> Occupancy {
        let of = |figure: fn(&StationMeasures) -> f64| {
            self.report.estimate(|run| Some(figure(&run.stations[station])))
        };
        let utilisation = of(|at| at.offered);
        if self.verdict() == "unstable" {
            return Occupancy { utilisation, ..Occupancy::default() };
        }
        Occupancy {
            utilisation,
            present_mean: of(|at| at.present_mean),
            present_max: self.report.runs.iter().map(|run| run.stations[station].present_max).max(),
            overhead: of(|at| at.overhead),
        }
    }

    /// Of all requests.
    pub(crate) fn evenness(&self) -> Evenness {
        if self.verdict() == "unstable" {
            return Evenness::default();
        }
        Evenness {
            overtaken_pct: self.report.estimate(Measures::overtaken_pct),
            fairness: self.report.estimate(Measures::fairness),
            shortest_p99_s: self.report.estimate(|run| at(&run.shortest, 99.0).map(|ns| ns / 1e9)),
            longest_wait_s: self
                .report
                .runs
                .iter()
                .map(|run| run.longest_wait.as_secs())
                .max_by(f64::total_cmp),
        }
    }

    /// By class; none where there is but one.
    pub(crate) fn classes(&self) -> Vec<Class<'a>> {
        let names: &'a [String] = &self.case.classes;
        let of = |(class, name)| Class { name, figures: self.class(class) };
        if names.len() > 1 {
            names.iter().map(String::as_str).enumerate().map(of).collect()
        } else {
            Vec::new()
        }
    }

    fn class(&self, class: usize) -> Figures {
        let requests = self.report.runs.iter().map(|run| run.by_class[class].count()).sum();
        if self.verdict() == "unstable" {
            return Figures { requests, ..Figures::default() };
        }
        let slowdown =
            |run: &Measures| at(&run.slowdown_by_class[class], 99.0).map(|units| units * SLOWDOWN_UNIT);
        let per_second = |run: &Measures| {
            let seconds = run.duration.as_secs();
            (seconds > 0.0).then(|| run.by_class[class].count() as f64 / seconds)
        };
        Figures {
            slowdown_p99: self.report.estimate(slowdown),
            throughput_per_s: self.report.estimate(per_second),
            ..self.times(requests, |run| &run.by_class[class])
        }
        .with_intervals()
    }
}

/// Headings and rows by class.
pub(crate) fn class_rows(view: &View) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let headings = vec!["class", "mean", "p50", "p90", "p99", "p99.9", "slowdown p99", "per second"];
    let row = |class: &Class| {
        let mut cells = vec![class.name.to_owned()];
        cells.extend(class.figures.times().map(interval));
        cells.push(plain(class.figures.slowdown_p99.map(|e| e.value), ""));
        cells.push(plain(class.figures.throughput_per_s.map(|e| e.value), ""));
        cells
    };
    (headings, view.classes().iter().map(row).collect())
}

/// The table of classes for people; nothing where there is but one.
pub(crate) fn class_table(view: &View) -> String {
    let (headings, rows) = class_rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let align =
        |heading: &&'static str| (*heading, if *heading == "class" { Align::Left } else { Align::Right });
    let mut table = Table::new(&headings.iter().map(align).collect::<Vec<_>>());
    rows.into_iter().for_each(|row| table.row(row));
    format!("\n{}", table.render())
}

/// A sentence about how evenly requests are treated; nothing of an unstable system.
pub(crate) fn evenness(view: &View) -> String {
    let found = view.evenness();
    let (Some(overtaken), Some(wait)) = (found.overtaken_pct, found.longest_wait_s) else {
        return String::new();
    };
    let mut text = format!("Overtaken {:.1} %; longest wait {}", overtaken.value, time(wait));
    if let Some(fairness) = found.fairness {
        text.push_str(&format!("; fairness (Jain, of slowdowns) {:.3}", fairness.value));
    }
    if let Some(shortest) = found.shortest_p99_s {
        text.push_str(&format!("; p99 of the shortest 1 % {}", interval(Some(shortest))));
    }
    text.push('.');
    text
}
