//! Findings about observations as a page: verdicts first, then what they come from.

use crate::output::verified::{self, stage_rows, violations};
use crate::output::{percent, words};
use model::{Observation, Observations};
use plot::{
    Axis, Bars, Block, Bullets, Cell, Chart, Column, Dots, Fact, Marker, Order, Page, Reference, Series,
    Status, Table, Unit,
};
use units::Nanos;
use verify::{Conclusion, Finding, Findings, Interval};

/// Of more workloads, the charts of those that come later stand behind a fold.
const CHARTS_OPEN: usize = 8;
/// Points in time of a chart: as many as can be told apart.
const INTERVALS_MAX: u64 = 120;
/// Fewer requests have no 99th percentile worth drawing.
const REQUESTS_PER_INTERVAL: u64 = 50;

/// The page.
pub(crate) fn html(policy: Option<&str>, observations: &Observations, findings: &Findings) -> String {
    let mut ordered: Vec<&Finding> = findings.workloads.iter().collect();
    ordered.sort_by_key(|found| urgency(found));
    let title = format!("{} judged", words::count(findings.workloads.len(), "workload"));
    let mut page = Page::new(title)
        .lead(format!("{}.", verified::lead(policy, findings)))
        .section("", [facts(findings)])
        .section("Verdicts", verdicts(&ordered))
        .section("Latency", folded(&ordered, |found| charts(found, observations)));
    if findings.workloads.iter().any(|found| !found.limits.is_empty()) {
        page = page.section("Traffic and limits", limits(findings));
    }
    let stages = stage_rows(findings);
    if !stages.is_empty() {
        page = page.section("Queues by stage", stage_blocks(&ordered, stages));
    }
    if !findings.unjudged.is_empty() {
        let rows = findings.unjudged.iter().map(verified::unjudged_row).collect();
        page = page.section("Observed without an SLO", [table(&verified::UNJUDGED, 1, rows).into()]);
    }
    page.section("How to read this page", how_to_read(findings))
        .footer(format!(
            "tailwright {} · {}",
            env!("CARGO_PKG_VERSION"),
            words::count(observations.requests.len(), "request")
        ))
        .to_html()
}

/// The first `words` columns are words, the others numbers.
fn table(headings: &[&str], words: usize, rows: Vec<Vec<String>>) -> Table {
    let column = |(at, name): (usize, &&str)| {
        if at < words { Column::name(*name) } else { Column::number(*name) }
    };
    let mut table = Table::new(headings.iter().enumerate().map(column));
    rows.into_iter().for_each(|row| table.push(row.into_iter().map(Cell::from)));
    table
}

/// What is not as wanted comes first.
fn urgency(found: &Finding) -> u8 {
    let open = match found.verdict {
        Conclusion::NotMet => 0,
        Conclusion::TooFew => 1,
        Conclusion::Met => 2,
    };
    if found.admitted { open } else { 3 }
}

fn status(found: &Finding) -> Status {
    match found.verdict {
        Conclusion::Met => Status::Good,
        Conclusion::NotMet => Status::Bad,
        Conclusion::TooFew => Status::Warn,
    }
}

fn facts(findings: &Findings) -> Block {
    let admitted = || findings.workloads.iter().filter(|found| found.admitted);
    let met = admitted().filter(|found| found.verdict == Conclusion::Met).count();
    let (all, over) = (admitted().count(), violations(findings).map(|(found, ..)| &found.name));
    let over: std::collections::BTreeSet<_> = over.collect();
    let bad = |is_bad| if is_bad { Status::Bad } else { Status::Good };
    let answer = match findings.answer() {
        verify::Answer::AllMet => Status::Good,
        verify::Answer::SomeNotMet => Status::Bad,
        verify::Answer::TooFew | verify::Answer::Spoiled => Status::Warn,
    };
    let mut facts = vec![Fact::new(format!("{met} of {all}"), "SLOs met").status(answer)];
    if findings.workloads.iter().any(|found| !found.limits.is_empty()) {
        facts.push(Fact::new(over.len().to_string(), "workloads over limits").status(bad(!over.is_empty())));
    }
    let bounds = || findings.workloads.iter().filter_map(|found| found.bound);
    if bounds().next().is_some() {
        let within: u64 = bounds().map(|bound| bound.beyond_within_limits).sum();
        facts.push(
            Fact::new(within.to_string(), "beyond a bound while within limits").status(bad(within > 0)),
        );
    }
    facts.into()
}

fn verdicts(ordered: &[&Finding]) -> Vec<Block> {
    let mut table = table(&verified::VERDICTS, 3, Vec::new());
    for found in ordered {
        let mut cells: Vec<Cell> = verified::verdict_row(found).into_iter().map(Cell::from).collect();
        if found.admitted {
            cells[1] = cells[1].clone().status(status(found));
        }
        table.push(cells);
    }
    let mut blocks = vec![table.into()];
    if ordered.iter().any(|found| found.ci_low_s.is_some()) {
        blocks.push(intervals(ordered).into());
    }
    blocks
}

/// Where the true percentile lies, beside the SLO.
fn intervals(ordered: &[&Finding]) -> Dots {
    let chart = Dots::new(
        "The percentile of each SLO: measured, and between which values the true one lies",
        Axis::log("latency", Unit::Seconds),
        ["at least", "measured", "at most"],
        "SLO",
    )
    .note("Met: all points are left of the bar. Not met: all are right of it. An end that is not known has no point.");
    ordered.iter().fold(chart, |chart, found| {
        let points = [found.ci_low_s, found.measured_s, found.ci_high_s];
        chart.row(format!("{} p{}", found.name, found.percentile), points, found.slo_s)
    })
}

/// The first workloads, and the others behind a fold.
fn folded(ordered: &[&Finding], blocks: impl Fn(&Finding) -> Vec<Block>) -> Vec<Block> {
    let seen: Vec<&&Finding> = ordered.iter().filter(|found| found.requests > 0).collect();
    let (open, rest) = seen.split_at(seen.len().min(CHARTS_OPEN));
    let all = |part: &[&&Finding]| Block::grid(2, part.iter().flat_map(|found| blocks(found)));
    let mut parts = vec![all(open)];
    if !rest.is_empty() {
        parts.push(Block::fold(format!("{} more", words::count(rest.len(), "workload")), [all(rest)]));
    }
    parts
}

/// Over time, and as a distribution.
fn charts(found: &Finding, observations: &Observations) -> Vec<Block> {
    let number = observations.workloads.iter().position(|name| *name == found.name);
    let of_it = |at: &&Observation| Some(at.workload as usize) == number;
    let seen = observations.requests.iter().filter(of_it).map(|at| (at.intended, at.latency()));
    let seen: Vec<(Nanos, Option<Nanos>)> = seen.collect();
    vec![over_time(found, &seen).into(), distribution(found, &seen).into()]
}

fn over_time(found: &Finding, seen: &[(Nanos, Option<Nanos>)]) -> Chart {
    let intervals = (seen.len() as u64 / REQUESTS_PER_INTERVAL).clamp(1, INTERVALS_MAX);
    let timeline = verify::timeline(seen, intervals);
    let line = |of: fn(&Interval) -> Option<f64>| {
        timeline.iter().filter_map(|at| Some((at.at_s, of(at)?))).collect::<Vec<_>>()
    };
    let mut chart = Chart::new(
        format!("{}: latency over time", found.name),
        Axis::linear("intended time", Unit::Seconds),
        Axis::log("latency", Unit::Seconds),
    )
    .series(Series::line("p50", line(|at| at.p50_s)))
    .series(Series::line("p99", line(|at| at.p99_s)))
    .series(Series::line("longest", line(|at| at.max_s)))
    .reference(Reference::y(found.slo_s, format!("SLO p{}", found.percentile)));
    if let Some(bound) = found.bound {
        chart = chart.reference(Reference::y(bound.bound_s, "bound").quiet());
    }
    let over: Vec<(f64, f64)> = over_points(found, &timeline);
    if !over.is_empty() {
        chart = chart.series(Series::points("traffic over limits", over));
    }
    let unanswered: u64 = timeline.iter().map(|at| at.unanswered).sum();
    if unanswered > 0 {
        chart = chart.note(format!("{unanswered} requests without an answer are not drawn."));
    }
    chart
}

/// The longest latencies of the intervals in which the traffic was over a limit.
fn over_points(found: &Finding, timeline: &[Interval]) -> Vec<(f64, f64)> {
    let half =
        timeline.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).fold(f64::INFINITY, f64::min) / 2.0;
    let half = if half.is_finite() { half } else { f64::MAX };
    let periods: Vec<_> = found.limits.iter().flat_map(|limit| &limit.periods).collect();
    let is_over = |at: f64| periods.iter().any(|p| p.from_s <= at + half && p.until_s >= at - half);
    timeline.iter().filter(|at| is_over(at.at_s)).filter_map(|at| Some((at.at_s, at.max_s?))).collect()
}

fn distribution(found: &Finding, seen: &[(Nanos, Option<Nanos>)]) -> Chart {
    let points = verify::exceedance(seen.iter().map(|(_, latency)| *latency));
    let allowed = 1.0 - found.percentile / 100.0;
    let mut chart = Chart::new(
        format!("{}: share of requests that take longer", found.name),
        Axis::log("latency", Unit::Seconds),
        Axis::log("share", Unit::Percent),
    )
    .series(Series::steps("observed", points))
    .note("The SLO is met where the line passes left of and below its mark.");
    // An SLO for all requests has no place on a logarithm.
    if allowed > 0.0 {
        chart = chart.marker(Marker::new(found.slo_s, allowed, format!("SLO {}", found.slo)));
    }
    if let Some(bound) = found.bound {
        chart = chart.reference(Reference::x(bound.bound_s, "bound").quiet());
    }
    chart
}

fn limits(findings: &Findings) -> Vec<Block> {
    let broken: Vec<_> = violations(findings).collect();
    let mut blocks: Vec<Block> =
        verified::guarantee_words(findings).into_iter().map(|line| Block::paragraph(line + ".")).collect();
    blocks.extend(guarantees(findings).map(Block::from));
    if broken.is_empty() {
        blocks.push(Block::paragraph("All traffic kept to the limits that were judged."));
    } else {
        let rows = broken.iter().map(|row| verified::limit_row(*row)).collect();
        blocks.push(table(&verified::LIMITS, 3, rows).caption("Who was over which limit").into());
    }
    let all =
        || findings.workloads.iter().flat_map(|found| found.limits.iter().map(move |l| (found, "meant", l)));
    let rows = all().map(verified::limit_row).collect();
    blocks.push(Block::fold("All limits", [table(&verified::LIMITS, 3, rows).into()]));
    blocks
}

/// The longest latencies against what is guaranteed.
fn guarantees(findings: &Findings) -> Option<Bullets> {
    let rows: Vec<_> =
        findings.workloads.iter().filter_map(|at| Some((&at.name, at.max_s?, at.bound?.bound_s))).collect();
    let chart = Bullets::new(
        "Longest latency against bound, least slack first",
        Axis::log("latency", Unit::Seconds),
        ("longest", "bound"),
    )
    .order(Order::TightestFirst)
    .note("A bound is for traffic within its limits. It does not count the one request of lower priority that is in service already.");
    (!rows.is_empty()).then(|| {
        rows.into_iter().fold(chart, |chart, (name, longest, bound)| chart.row(name, longest, bound))
    })
}

fn stage_blocks(ordered: &[&Finding], rows: Vec<Vec<String>>) -> Vec<Block> {
    let staged: Vec<&&Finding> = ordered.iter().filter(|found| !found.stages.is_empty()).collect();
    let mut names: Vec<&str> = Vec::new();
    for at in staged.iter().flat_map(|found| &found.stages) {
        if !names.contains(&at.stage.as_str()) {
            names.push(&at.stage);
        }
    }
    let of = |found: &Finding, value: fn(&verify::StageFinding) -> f64| -> Vec<f64> {
        let one = |name: &&str| found.stages.iter().find(|at| at.stage == **name).map_or(0.0, value);
        names.iter().map(one).collect()
    };
    let chart =
        Bars::stacked("Where the mean latency is spent", ("latency", Unit::Seconds), names.iter().copied());
    let mean = staged.iter().fold(chart, |chart, found| chart.row(&found.name, of(found, |at| at.mean_s)));
    let tail = Bars::grouped(
        "Where the excess of the tail comes from",
        ("share", Unit::Percent),
        names.iter().copied(),
    )
    .note("Of what requests at or above the percentile of the SLO take longer than the mean.");
    let tail = staged
        .iter()
        .filter(|found| found.stages.iter().any(|at| at.share_of_tail_excess.is_some()))
        .fold(tail, |chart, found| {
            chart.row(&found.name, of(found, |at| at.share_of_tail_excess.unwrap_or(0.0)))
        });
    vec![Block::grid(2, [mean.into(), tail.into()]), table(&verified::STAGES, 2, rows).into()]
}

fn how_to_read(findings: &Findings) -> Vec<Block> {
    let sure = percent(findings.confidence);
    vec![
        Block::paragraph(format!(
            "An SLO is about the long run, and the observations are a sample of it. With {sure} confidence the true \
             percentile lies between the two ends; no distribution is assumed, and requests that met in a queue count \
             for less than independent ones. Met: both ends are within the SLO. Not met: both are beyond. Too few: \
             the SLO lies between them, or there are too few requests for an upper end. Latency counts from the \
             time at which a request was meant to be sent; a request without an answer took for ever."
        )),
        Block::paragraph(
            "A bound is guaranteed to traffic within its limits: a token bucket of a rate and a burst at each stage. \
             The burst that was needed is the smallest with which the traffic would have kept to the rate. Points \
             'traffic over limits' are the intervals in which a limiter would have held something back, or in which \
             work was beyond the rate and waited for it to catch up.",
        ),
    ]
}
