//! Requests of a workload as its proxy counted them: whether the SLO was met, windows, and the distribution.

use crate::pages::text::{percent, time};
use controller::{BurnAlert, LatencyBucket, ObservedVerdict, WorkloadObservation};
use plot::{Axis, Block, Cell, Chart, Column, KeyFigure, Reference, Series, Status, Table, Unit};

/// Returns the word for a verdict.
pub(super) fn verdict_cell(verdict: Option<ObservedVerdict>) -> Cell {
    verdict.map_or_else(|| Cell::text("–"), |verdict| Cell::text(words(verdict)).status(status(verdict)))
}

/// Returns the blocks of a workload with this SLO, seconds.
pub(super) fn requests(observed: &WorkloadObservation, slo_s: f64) -> Vec<Block> {
    let verdict = observed.verdict;
    let mut facts = vec![KeyFigure::new(words(verdict), "SLO in the last hour").status(status(verdict))];
    if let Some(alert) = observed.alert {
        let text = match alert {
            BurnAlert::Fast => "for two days",
            BurnAlert::Slow => "for five days",
        };
        facts.push(KeyFigure::new(text, "a month's error budget would last").status(Status::Bad));
    }
    let mut blocks = vec![facts.into(), Block::paragraph(sentence(&observed.reason))];
    let Some(counted_s) = observed.observed_s else { return blocks };
    blocks.push(windows(observed).into());
    blocks.push(Block::paragraph(format!(
        "Counted by the proxy for {}, from the arrival of a request to its reply. The network to its clients is not in it. \
         Percentiles are upper ends of buckets, which are 19 % apart.",
        time(counted_s)
    )));
    let points = ccdf(&observed.latencies_hour);
    if !points.is_empty() {
        let share = Axis::log("share of requests that took longer", Unit::Percent);
        let chart = Chart::new("Latencies of the last hour", Axis::log("latency", Unit::Seconds), share)
            .series(Series::line("at the proxy", points))
            .reference(Reference::x(observed.bound_s, "bound"))
            .reference(Reference::x(slo_s, "SLO"));
        blocks.push(chart.into());
    }
    blocks
}

fn windows(observed: &WorkloadObservation) -> Table {
    let mut table = Table::new([
        Column::name("last"),
        Column::number("requests"),
        Column::number("p50"),
        Column::number("p99"),
        Column::number("p99.9"),
        Column::number("late"),
        Column::number("burn rate"),
        Column::number("beyond limits"),
    ]);
    let number =
        |value: Option<f64>, unit| value.map_or_else(|| Cell::text("–"), |it| Cell::number(it, unit));
    for window in &observed.windows {
        let share = |count: u64| (window.requests > 0).then(|| count as f64 / window.requests as f64);
        let share_cell =
            |count| share(count).map_or_else(|| Cell::text("–"), |it| Cell::keyed(percent(it), it));
        table.push([
            Cell::text(time(window.window_s)),
            Cell::number(window.requests as f64, Unit::Count),
            number(window.p50_s, Unit::Seconds),
            number(window.p99_s, Unit::Seconds),
            number(window.p999_s, Unit::Seconds),
            share_cell(window.late),
            window.burn_rate.map_or_else(|| Cell::text("–"), |it| Cell::keyed(format!("{it:.2}"), it)),
            share_cell(window.beyond_limits),
        ]);
    }
    table
}

/// Returns the share of requests above the end of each bucket, without those that nothing is above.
fn ccdf(buckets: &[LatencyBucket]) -> Vec<(f64, f64)> {
    let all: u64 = buckets.iter().map(|bucket| bucket.requests).sum();
    let mut above = all;
    let mut points = Vec::new();
    for bucket in buckets {
        above -= bucket.requests;
        if let Some(end) = bucket.to_s.filter(|_| above > 0) {
            points.push((end, above as f64 / all as f64));
        }
    }
    points
}

fn words(verdict: ObservedVerdict) -> &'static str {
    match verdict {
        ObservedVerdict::NoData => "no data",
        ObservedVerdict::TooFew => "too few requests",
        ObservedVerdict::Met => "met",
        ObservedVerdict::NotMet => "not met",
        ObservedVerdict::Outgrows => "outgrows its limits",
    }
}

fn status(verdict: ObservedVerdict) -> Status {
    match verdict {
        ObservedVerdict::Met => Status::Good,
        ObservedVerdict::NotMet => Status::Bad,
        ObservedVerdict::NoData | ObservedVerdict::TooFew | ObservedVerdict::Outgrows => Status::Warn,
    }
}

/// Begins with a capital letter and ends with a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_above_each_bucket() {
        let bucket = |to_s, requests| LatencyBucket { to_s, requests };
        let buckets = [bucket(Some(0.001), 90), bucket(Some(0.01), 9), bucket(None, 1)];
        assert_eq!(ccdf(&buckets), [(0.001, 0.1), (0.01, 0.01)]);
        assert!(ccdf(&[bucket(Some(0.001), 5)]).is_empty());
        assert!(ccdf(&[]).is_empty());
    }
}
