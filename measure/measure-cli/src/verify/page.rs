//! Findings about observations as a page: verdicts first, then what they come from.

use crate::verify::guarantees::guarantee_words;
use crate::verify::latency;
use crate::verify::text as verified;
use crate::verify::text::{stage_rows, violations};
use cli::page_table::table;
use model::{Observations, Policy};
use operation::text::percent;
use plot::{Axis, Bars, Block, Bullets, Cell, KeyFigure, Page, RowOrder, Status, Unit};
use std::collections::BTreeSet;
use units::plural;
use verify::{ELSEWHERE, Finding, Findings, OverallVerdict, Verdict};

/// Beyond this number of workloads, the charts of the others stand behind a fold.
const CHARTS_OPEN: usize = 8;

/// What a page about findings is made of.
pub struct VerifiedRun<'a> {
    /// The policy under which it ran, if there was one.
    pub policy: Option<&'a Policy>,
    pub observations: &'a Observations,
    pub findings: &'a Findings,
    /// What was run, in sentences; empty where only its observations are known.
    pub origin: String,
}

impl VerifiedRun<'_> {
    /// The server of a workload, where a policy has several.
    fn server(&self, workload: &str) -> Option<&str> {
        let policy = self.policy.filter(|policy| policy.servers.len() > 1)?;
        let placed = policy.workloads.iter().find(|placed| placed.name == workload);
        Some(placed.and_then(|placed| placed.server.as_deref()).unwrap_or("–"))
    }

    /// Whether bounds count what stages have started.
    fn counts_enforcement(&self) -> bool {
        let mut servers = self.policy.into_iter().flat_map(|policy| &policy.servers);
        servers.any(|server| server.enforcement.is_some())
    }
}

/// The page about findings.
pub fn html(run: &VerifiedRun) -> String {
    let VerifiedRun { policy, observations, findings, origin } = run;
    let policy_name = policy.map(|policy| policy.policy_name.as_str());
    let mut ordered: Vec<&Finding> = findings.workloads.iter().collect();
    ordered.sort_by_key(|found| urgency(found));
    let names: BTreeSet<&str> = findings.workloads.iter().map(|found| found.name.as_str()).collect();
    let title = format!("{} judged", plural(names.len(), "workload"));
    let mut page = Page::new(title)
        .lead(format!("{}.", verified::lead(policy_name, findings)))
        .section("", [facts(findings)]);
    if !origin.is_empty() {
        page = page.section("What was run", [Block::paragraph(origin)]);
    }
    page = page
        .section("Verdicts", verdicts(run, &ordered))
        .section("Latency", folded(&ordered, |found| charts(findings, found, observations)));
    let windows: Vec<_> =
        findings.workloads.iter().filter_map(|found| verified::window_row(findings, found)).collect();
    if !windows.is_empty() {
        let table = table(&verified::WINDOWS, 1, windows).caption(verified::windows_lead(findings));
        page = page.section("Windows", [table.into()]);
    }
    if findings.workloads.iter().any(|found| !found.limits.is_empty()) {
        page = page.section("Traffic and limits", limits(run));
    }
    let stages = stage_rows(findings);
    if !stages.is_empty() {
        page = page.section("Queues by stage", stage_blocks(findings, &ordered, stages));
    }
    if !findings.unjudged.is_empty() {
        let rows = findings.unjudged.iter().map(verified::unjudged_row).collect();
        page = page.section("Observed without an SLO", [table(&verified::UNJUDGED, 1, rows).into()]);
    }
    let requests = plural(observations.requests.len(), "request");
    cli::page::document(page.section("How to read this page", how_to_read(findings)).footer(requests))
}

/// What is not as wanted comes first.
fn urgency(found: &Finding) -> u8 {
    let open = match found.judgement.verdict {
        _ if found.is_bound_broken() => 0,
        Verdict::NotMet => 0,
        Verdict::TooFew => 1,
        Verdict::Met => 2,
    };
    if found.admitted { open } else { 3 }
}

fn facts(findings: &Findings) -> Block {
    let admitted: Vec<&Finding> = findings.workloads.iter().filter(|found| found.admitted).collect();
    let met = admitted
        .iter()
        .filter(|found| found.judgement.verdict == Verdict::Met && !found.is_bound_broken())
        .count();
    let answer = match findings.overall() {
        OverallVerdict::AllMet => Status::Good,
        OverallVerdict::BoundBroken | OverallVerdict::SomeNotMet => Status::Bad,
        OverallVerdict::TooFew | OverallVerdict::Spoiled => Status::Warn,
    };
    let mut facts = vec![KeyFigure::new(format!("{met} of {}", admitted.len()), "SLOs met").status(answer)];
    if findings.workloads.iter().any(|found| !found.limits.is_empty()) {
        let over: BTreeSet<_> = violations(findings).map(|(found, ..)| &found.name).collect();
        facts.push(
            KeyFigure::new(over.len().to_string(), "workloads over limits").status(bad_if(!over.is_empty())),
        );
    }
    let bounds: Vec<_> = findings.workloads.iter().filter_map(|found| found.bound).collect();
    if !bounds.is_empty() {
        let within: u64 = bounds.iter().map(|bound| bound.beyond_within_limits).sum();
        facts.push(
            KeyFigure::new(within.to_string(), "beyond a bound while within limits")
                .status(bad_if(within > 0)),
        );
    }
    facts.into()
}

fn bad_if(is_bad: bool) -> Status {
    if is_bad { Status::Bad } else { Status::Good }
}

fn verdicts(run: &VerifiedRun, ordered: &[&Finding]) -> Vec<Block> {
    const SERVER_AT: usize = 2;
    let has_servers = ordered.iter().any(|found| run.server(&found.name).is_some());
    let mut headings = verified::VERDICTS.to_vec();
    if has_servers {
        headings.insert(SERVER_AT, "server");
    }
    let mut table = table(&headings, 3 + usize::from(has_servers), Vec::new());
    for found in ordered {
        let mut cells: Vec<Cell> = verified::verdict_row(found).into_iter().map(Cell::from).collect();
        if found.admitted {
            cells[1] = cells[1].clone().status(latency::status(found));
        }
        if let Some(server) = run.server(&found.name) {
            cells.insert(SERVER_AT, server.into());
        }
        table.push(cells);
    }
    let mut blocks = vec![table.into()];
    if ordered.iter().any(|found| found.judgement.ci_low_s.is_some()) {
        let name = |found: &Finding| match run.findings.label(found) {
            label if label == found.name => format!("{label} p{}", found.judgement.percentile),
            label => label,
        };
        let rows = ordered.iter().map(|found| (name(found), *found));
        blocks.push(latency::intervals(rows).into());
    }
    blocks
}

/// The first workloads, and the others behind a fold.
fn folded(ordered: &[&Finding], blocks: impl Fn(&Finding) -> Vec<Block>) -> Vec<Block> {
    let seen: Vec<&&Finding> = ordered.iter().filter(|found| found.judgement.requests > 0).collect();
    let (open, rest) = seen.split_at(seen.len().min(CHARTS_OPEN));
    let all = |part: &[&&Finding]| Block::grid(2, part.iter().flat_map(|found| blocks(found)));
    let mut parts = vec![all(open)];
    if !rest.is_empty() {
        parts.push(Block::fold(format!("{} more", plural(rest.len(), "SLO")), [all(rest)]));
    }
    parts
}

/// The latencies of a workload over time, and their distribution.
fn charts(findings: &Findings, found: &Finding, observations: &Observations) -> Vec<Block> {
    let seen = latency::judged_latencies(observations, found);
    let name = findings.label(found);
    let title = |what: &str| format!("{name}: {what}");
    let time = latency::over_time(title("latency over time"), latency::axis(), found, &seen);
    let line = ("observed".to_owned(), verify::exceedance(seen.iter().map(|(_, latency)| *latency)), None);
    vec![
        time.into(),
        latency::distribution(title("share of requests that take longer"), found, [line]).into(),
    ]
}

fn limits(run: &VerifiedRun) -> Vec<Block> {
    let findings = run.findings;
    let broken: Vec<_> = violations(findings).collect();
    let mut blocks: Vec<Block> =
        guarantee_words(findings).into_iter().map(|line| Block::paragraph(line + ".")).collect();
    blocks.extend(guarantees(run).map(Block::from));
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
fn guarantees(run: &VerifiedRun) -> Option<Bullets> {
    let findings = run.findings;
    let started = if run.counts_enforcement() {
        "It counts the requests and packets that a stage has started."
    } else {
        "It does not count the request of lower priority that may be in service already."
    };
    let rows: Vec<_> = findings
        .workloads
        .iter()
        .filter_map(|at| Some((findings.label(at), at.max_s?, at.bound?.bound_s)))
        .collect();
    let chart = Bullets::new(
        "Longest latency against bound, least slack first",
        Axis::log("latency", Unit::Seconds),
        ("longest", "bound"),
    )
    .order(RowOrder::TightestFirst)
    .note(format!("A bound is for traffic within its limits. {started}"));
    (!rows.is_empty()).then(|| {
        rows.into_iter().fold(chart, |chart, (name, longest, bound)| chart.row(name, longest, bound))
    })
}

/// What the stage [`ELSEWHERE`] stands for.
const OUTSIDE: &str = " Elsewhere: outside the stages; in a simulation, the latency of the idle device.";

fn stage_blocks(findings: &Findings, ordered: &[&Finding], rows: Vec<Vec<String>>) -> Vec<Block> {
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
        Bars::stacked("Where the mean latency is spent", ("latency", Unit::Seconds), names.iter().copied())
            .note(format!(
                "The parts of a bar are the mean times at each stage; together they are the mean latency.{}",
                if names.contains(&ELSEWHERE) { OUTSIDE } else { "" }
            ));
    let mean =
        staged.iter().fold(chart, |chart, found| chart.row(findings.label(found), of(found, |at| at.mean_s)));
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
            chart.row(findings.label(found), of(found, |at| at.share_of_tail_excess.unwrap_or(0.0)))
        });
    vec![Block::grid(2, [mean.into(), tail.into()]), table(&verified::STAGES, 2, rows).into()]
}

fn how_to_read(findings: &Findings) -> Vec<Block> {
    let sure = percent(findings.confidence);
    let limits = || findings.workloads.iter().flat_map(|found| &found.limits);
    let mut blocks = vec![Block::paragraph(format!(
        "An SLO is about the long run, and the observations are a sample of it. With {sure} confidence the true \
             percentile lies between the two ends; no distribution is assumed, and requests that met in a queue count \
             for less than independent ones. Met: both ends are within the SLO. Not met: both are beyond. Too few: \
             the SLO lies between them, or there are too few requests for an upper end. Latency counts from the \
             time at which a request was meant to be sent; a request without an answer counts as infinitely late."
    ))];
    if limits().next().is_some() {
        blocks.push(Block::paragraph(
            "A bound is guaranteed to traffic within its limits: a token bucket of a rate and a burst at each stage. \
             The burst that was needed is the smallest with which the traffic would have kept to the rate.",
        ));
    }
    if limits().any(|limit| !limit.periods.is_empty()) {
        blocks.push(Block::paragraph(
            "Points 'traffic over limits' are the intervals in which a limiter would have delayed a request, or in \
             which the work that had come was more than the rate allows.",
        ));
    }
    blocks
}
