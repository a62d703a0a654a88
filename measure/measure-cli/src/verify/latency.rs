//! Latencies and their SLOs as charts, for all pages that have some.

use cli::shares;
use model::{Observation, Observations};
use plot::{Axis, Chart, Dots, Marker, Reference, Series, Status, Unit};
use units::{Nanos, plural};
use verify::{Finding, TimelineInterval, Verdict};

/// Points in time of a chart: as many as can be told apart.
const INTERVALS_MAX: u64 = 120;
/// Fewer requests have no 99th percentile worth drawing.
const REQUESTS_PER_INTERVAL: u64 = 50;

/// When the requests of a workload were meant to be sent, and how long they took if they were answered.
pub type ObservedLatencies = Vec<(Nanos, Option<Nanos>)>;

/// The requests of a workload with their latencies.
pub fn observed_latencies(observations: &Observations, workload: usize) -> ObservedLatencies {
    let requests = observations.requests.iter().filter(|at| at.workload as usize == workload);
    requests.map(|at| (at.intended, at.latency())).collect()
}

/// The requests that a finding is about, with their latencies.
pub(crate) fn judged_latencies(observations: &Observations, found: &Finding) -> ObservedLatencies {
    let number = observations.workloads.iter().position(|name| *name == found.name);
    let objective = found.objective();
    let is_judged = |at: &&Observation| Some(at.workload as usize) == number && objective.is_about(at.op);
    let requests = observations.requests.iter().filter(is_judged);
    requests.map(|at| (at.intended, at.latency())).collect()
}

pub fn axis() -> Axis {
    Axis::log("latency", Unit::Seconds)
}

pub fn status(found: &Finding) -> Status {
    match found.judgement.verdict {
        _ if found.is_bound_broken() => Status::Bad,
        Verdict::Met => Status::Good,
        Verdict::NotMet => Status::Bad,
        Verdict::TooFew => Status::Warn,
    }
}

/// The measured percentiles with their confidence intervals, beside the SLOs.
pub fn intervals<'a>(rows: impl IntoIterator<Item = (String, &'a Finding)>) -> Dots {
    let rows: Vec<_> = rows.into_iter().collect();
    let open = rows.iter().filter(|(_, found)| found.judgement.ci_high_s.is_none()).count();
    let chart = Dots::new(
        "The percentile of each SLO: measured, with its confidence interval",
        axis(),
        ["lower limit", "measured", "upper limit"],
        "SLO",
    )
    .note("Met: all points are left of the bar. Not met: all are right of it.")
    .missing(match open {
        0 => String::new(),
        1 => "1 interval has no upper end: too few requests, or too many without an answer.".to_owned(),
        _ => format!("{open} intervals have no upper end: too few requests, or too many without an answer."),
    });
    rows.into_iter().fold(chart, |chart, (name, found)| {
        chart.row(
            name,
            [found.judgement.ci_low_s, found.judgement.measured_s, found.judgement.ci_high_s],
            found.judgement.slo_s,
        )
    })
}

/// Latencies of a workload by when requests were meant to be sent.
pub fn over_time(title: String, latency: Axis, found: &Finding, latencies: &ObservedLatencies) -> Chart {
    let intervals = (latencies.len() as u64 / REQUESTS_PER_INTERVAL).clamp(1, INTERVALS_MAX);
    let timeline = verify::timeline(latencies, intervals);
    let line = |of: fn(&TimelineInterval) -> Option<f64>| {
        timeline.iter().filter_map(|at| Some((at.at_s, of(at)?))).collect::<Vec<_>>()
    };
    let lines =
        [("p50", line(|at| at.p50_s)), ("p99", line(|at| at.p99_s)), ("longest", line(|at| at.max_s))];
    let lines = shares::without_duplicates(lines.map(|(name, points)| (name.to_owned(), points)));
    let mut chart = Chart::new(title, Axis::linear("intended time", Unit::Seconds), latency)
        .all(lines.into_iter().map(|(name, points)| Series::line(name, points)))
        .reference(Reference::y(found.judgement.slo_s, format!("SLO p{}", found.judgement.percentile)));
    if let Some(bound) = found.bound {
        chart = chart.reference(Reference::y(bound.bound_s, "bound").quiet());
    }
    let over: Vec<(f64, f64)> = over_points(found, &timeline);
    if !over.is_empty() {
        chart = chart.series(Series::points("traffic over limits", over));
    }
    let reading = "Latency by when requests were meant to be sent: the line of the SLO's percentile should stay below the SLO.";
    let unanswered: u64 = timeline.iter().map(|at| at.unanswered).sum();
    match unanswered {
        0 => chart.note(reading),
        _ => chart.note(format!("{reading} Not drawn: {} without an answer.", plural(unanswered, "request"))),
    }
}

/// The longest latencies of the intervals in which the traffic was over a limit.
fn over_points(found: &Finding, timeline: &[TimelineInterval]) -> Vec<(f64, f64)> {
    let half =
        timeline.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).fold(f64::INFINITY, f64::min) / 2.0;
    let half = if half.is_finite() { half } else { f64::MAX };
    let periods: Vec<_> = found.limits.iter().flat_map(|limit| &limit.periods).collect();
    let is_over = |at: f64| periods.iter().any(|p| p.from_s <= at + half && p.until_s >= at - half);
    timeline.iter().filter(|at| is_over(at.at_s)).filter_map(|at| Some((at.at_s, at.max_s?))).collect()
}

/// The name of a line, its points in seconds and shares, and the slot of its style if it is not its place.
pub type DistributionLine = (String, Vec<(f64, f64)>, Option<usize>);

/// Lines of the share of requests that take longer, beside the SLO and the bound of a finding.
pub fn distribution(
    title: String,
    found: &Finding,
    lines: impl IntoIterator<Item = DistributionLine>,
) -> Chart {
    let allowed = 1.0 - found.judgement.percentile / 100.0;
    let lines: Vec<DistributionLine> = lines.into_iter().collect();
    let x = shares::latency_axis(
        "latency",
        lines.iter().map(|(_, points, _)| points.as_slice()),
        Some(found.judgement.slo_s),
    );
    let series = |(name, points, slot): DistributionLine| {
        let series = Series::steps(name, points);
        slot.map_or(series.clone(), |slot| series.styled_as(slot))
    };
    let mut chart = Chart::new(title, x, Axis::log("share", Unit::Percent))
        .all(lines.into_iter().map(series))
        .note("The SLO is met where the line passes left of and below its mark.");
    // An SLO for all requests has no place on a logarithm.
    if allowed > 0.0 {
        chart =
            chart.marker(Marker::new(found.judgement.slo_s, allowed, format!("SLO {}", found.objective())));
    }
    if let Some(bound) = found.bound {
        chart = chart.reference(Reference::x(bound.bound_s, "bound").quiet());
    }
    chart
}
