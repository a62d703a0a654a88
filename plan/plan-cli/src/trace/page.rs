//! Page about a trace: arrivals over time, burstiness and sizes.

use crate::trace::info_text::{byte_rate, number, percent, quantities, request_rate};
use cli::shares;
use plan::trace_files::InspectedTrace;
use plot::{Axis, Block, Chart, Column, KeyFigure, Page, Reference, Series, Table, Unit};
use std::path::Path;
use trace::stats::TraceStatistics;
use units::plural;

/// The page about one trace.
pub(crate) fn html(trace: &InspectedTrace) -> String {
    cli::page::document(page(trace))
}

fn page(trace: &InspectedTrace) -> Page {
    let stats = &trace.stats;
    let name =
        Path::new(&trace.file).file_name().map_or(trace.file.as_str().into(), |name| name.to_string_lossy());
    Page::new(format!("Trace {name}"))
        .lead(format!(
            "{} in {}. A Poisson stream has squared variation 1, dispersion 1 at every scale and Hurst \
             parameter 0.5; larger is burstier.",
            plural(stats.count, "request"),
            Unit::Seconds.format((stats.last - stats.first).as_secs())
        ))
        .section("", [facts(stats)])
        .section("Arrivals over time", [requests_over_time(stats).into(), bytes_over_time(stats).into()])
        .section("Burstiness", [Block::grid(2, [dispersion(stats).into(), gaps(stats).into()])])
        .section("Sizes", [sizes(stats)])
        .section("All quantities", [table(trace).into()])
        .footer(trace.file.clone())
}

fn facts(stats: &TraceStatistics) -> Block {
    let second = stats.binned_counts.last();
    vec![
        KeyFigure::new(request_rate(stats), "requests"),
        KeyFigure::new(byte_rate(stats.bytes_per_sec), "data"),
        KeyFigure::new(percent(Some(stats.read_share)), "of requests are reads"),
        KeyFigure::new(number(stats.interarrival_scv), "squared variation of gaps"),
        KeyFigure::new(number(second.and_then(|at| at.peak_to_mean)), "busiest second over mean"),
        KeyFigure::new(stats.hurst.map_or("-".to_owned(), |h| format!("{:.2}", h.h)), "Hurst parameter"),
    ]
    .into()
}

/// Values per bin of the timeline as a rate over time; the last bin may be incomplete and is left out. Requests at one
/// instant have no rate.
fn rate_steps(stats: &TraceStatistics, values: &[u64]) -> Vec<(f64, f64)> {
    if stats.first == stats.last {
        return Vec::new();
    }
    let bin_s = stats.timeline.bin_length.as_secs();
    let complete = values.len().saturating_sub(1).max(1);
    let rates = values.iter().take(complete).enumerate();
    let mut points: Vec<(f64, f64)> = rates.map(|(i, &v)| (i as f64 * bin_s, v as f64 / bin_s)).collect();
    // A step chart needs the end of its last step.
    points.extend(points.last().map(|&(x, y)| (x + bin_s, y)));
    points
}

fn bin_length(stats: &TraceStatistics) -> String {
    Unit::Seconds.format(stats.timeline.bin_length.as_secs())
}

fn requests_over_time(stats: &TraceStatistics) -> Chart {
    let points = rate_steps(stats, &stats.timeline.requests);
    let axis = Axis::linear("requests", Unit::PerSec).zero();
    let chart = Chart::new("Requests", Axis::linear("time since the first arrival", Unit::Seconds), axis)
        .series(Series::steps("requests", points))
        .note(format!(
            "Requests per second, each step the mean of {}: bursts stand out above the line of the mean.",
            bin_length(stats)
        ))
        .height(220);
    match stats.requests_per_sec {
        Some(mean) => chart.reference(Reference::y(mean, "mean").quiet()),
        None => chart,
    }
}

fn bytes_over_time(stats: &TraceStatistics) -> Chart {
    let points = rate_steps(stats, &stats.timeline.bytes);
    let axis = Axis::linear("data", Unit::BytesPerSec).zero();
    let chart = Chart::new("Data", Axis::linear("time since the first arrival", Unit::Seconds), axis)
        .series(Series::steps("data", points))
        .note(format!(
            "Bytes per second, each step the mean of {}: large where many or large requests come.",
            bin_length(stats)
        ))
        .height(220);
    match stats.bytes_per_sec {
        Some(mean) => chart.reference(Reference::y(mean, "mean").quiet()),
        None => chart,
    }
}

fn dispersion(stats: &TraceStatistics) -> Chart {
    let points = stats.dyadic_scales.iter().map(|s| (s.bin_length.as_secs(), s.dispersion));
    let x = Axis::log("length of a bin", Unit::Seconds);
    let chart = Chart::new("Index of dispersion for counts", x, Axis::log("variance over mean", Unit::Plain))
        .series(Series::line("this trace", points))
        .reference(Reference::y(1.0, "Poisson").quiet());
    match stats.hurst {
        Ok(h) => chart.note(format!(
            "How much counts in bins vary: flat at 1 is Poisson, rising means bursts at that scale and above. Rises with \
             slope 2H − 1. Hurst parameter {:.3} ± {:.3}, from scales of {} to {}.",
            h.h,
            h.standard_error,
            Unit::Seconds.format(h.from.as_secs()),
            Unit::Seconds.format(h.to.as_secs())
        )),
        Err(fault) => chart.note(format!(
            "How much counts in bins vary: flat at 1 is Poisson, rising means bursts at that scale and above. No Hurst \
             parameter: {fault}."
        )),
    }
}

fn gaps(stats: &TraceStatistics) -> Chart {
    let total: u64 = stats.interarrival_bins.iter().map(|bin| bin.count).sum();
    let mut above = total;
    let shares = stats.interarrival_bins.iter().map(|bin| {
        // At the start of a bin, everything from it on is at least as long.
        let share = above as f64 / total as f64;
        above -= bin.count;
        (bin.from_ns as f64 / 1e9, share)
    });
    let points: Vec<(f64, f64)> = shares.filter(|(gap, _)| *gap > 0.0).collect();
    let chart = Chart::new(
        "Inter-arrival times",
        shares::latency_axis("gap", [points.as_slice()], None),
        Axis::log("share of gaps at least as long", Unit::Percent),
    )
    .series(Series::line("this trace", points.clone()))
    .note("Where the trace is right of the Poisson line, long pauses are more frequent, so requests come in bursts.");
    let (Some(rate), Some(&(shortest, _)), Some(&(longest, least))) =
        (stats.requests_per_sec, points.first(), points.last())
    else {
        return chart;
    };
    // The exponential distribution of the same mean, as far as the trace's own range goes.
    let exponential = (0..=200)
        .map(|step| shortest * (longest / shortest).powf(f64::from(step) / 200.0))
        .map(|gap| (gap, (-rate * gap).exp()))
        .filter(move |(_, share)| *share >= least);
    chart.series(Series::line("Poisson of the same rate", exponential))
}

fn sizes(stats: &TraceStatistics) -> Block {
    if let [only] = stats.sizes.counts.as_slice() {
        return Block::paragraph(format!("All requests have {}.", only.size));
    }
    let mut below = 0;
    let steps: Vec<(f64, f64)> = stats
        .sizes
        .counts
        .iter()
        .map(|entry| {
            below += entry.count;
            (entry.size.0 as f64, below as f64 / stats.count as f64)
        })
        .collect();
    Chart::new(
        "Requests by size",
        Axis::log("size", Unit::Bytes),
        Axis::linear("share of requests at most as large", Unit::Percent).zero().max(1.0),
    )
    .series(Series::steps("requests", steps))
    .note("The share of requests of at most this size: a step is a size that is frequent.")
    .height(260)
    .into()
}

fn table(trace: &InspectedTrace) -> Table {
    let empty = Table::new([Column::text("quantity"), Column::text("value")]);
    quantities(trace).into_iter().fold(empty, |table, (name, value)| table.row([name.into(), value.into()]))
}
