//! Findings about observations as tables for people and as JSON.

use crate::verify::guarantees::guarantees;
use cli::from_to;
use cli::terminal::TextTable;
use measure::verification::FindingsDocument;
use model::Stage;
use operation::document::document;
use operation::text::{percent, time};
use plot::Unit;
use units::plural;
use verify::{Finding, Findings, LimitFinding, SloWindow, Verdict};

/// The findings as one JSON object.
pub fn json(policy: Option<&str>, findings: &Findings, broken_bounds: Option<&str>) -> String {
    document(&FindingsDocument::new(policy, findings, broken_bounds))
}

/// Everything that people want to know, the answer first.
pub fn text(policy: Option<&str>, findings: &Findings) -> String {
    let mut text = format!("{}.\n\n{}", lead(policy, findings), verdicts(findings));
    let parts = [
        guarantees(findings),
        windows(findings),
        limits(findings),
        lag(findings),
        unjudged(findings),
        stages(findings),
    ];
    for part in parts {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

/// The answer in a sentence, without its full stop.
pub fn lead(policy: Option<&str>, findings: &Findings) -> String {
    let judged: Vec<&Finding> = findings.workloads.iter().filter(|found| found.admitted).collect();
    let (spoiled, sound): (Vec<&Finding>, Vec<&Finding>) =
        judged.iter().copied().partition(|found| found.is_spoiled());
    let (broken, sound): (Vec<&Finding>, Vec<&Finding>) =
        sound.into_iter().partition(|found| found.is_bound_broken());
    let count = |verdict| sound.iter().filter(|found| found.judgement.verdict == verdict).count();
    let mut parts = vec![format!("{} of {} met", count(Verdict::Met), plural(judged.len(), "SLO"))];
    for (count, what) in [
        (broken.len(), "bound broken"),
        (count(Verdict::NotMet), Verdict::NotMet.words()),
        (count(Verdict::TooFew), "open for lack of requests"),
        (spoiled.len(), "without a verdict because requests were sent too late"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    let under = policy.map(|name| format!(", policy {name}")).unwrap_or_default();
    format!("{} (confidence {}{under})", parts.join(", "), percent(findings.confidence))
}

/// The verdict in words.
pub fn verdict(found: &Finding) -> &'static str {
    match found.judgement.verdict {
        _ if found.is_spoiled() => "sent too late",
        _ if found.is_bound_broken() => "bound broken",
        verdict => verdict.words(),
    }
}

/// Names of the columns of [`verdict_row`], the first three of words.
pub const VERDICTS: [&str; 10] =
    ["workload", "verdict", "SLO", "measured", "interval", "requests", "over", "failed", "lost", "it takes"];

/// A workload as a row.
pub fn verdict_row(found: &Finding) -> Vec<String> {
    let judgement = found.judgement;
    let measured = match judgement.measured_s {
        None if judgement.requests > 0 => "no answer".to_owned(),
        other => other.map_or_else(|| "–".to_owned(), time),
    };
    vec![
        found.name.clone(),
        if found.admitted { verdict(found).to_owned() } else { format!("({})", verdict(found)) },
        found.objective().to_string(),
        measured,
        from_to(interval_end(judgement.ci_low_s), &interval_end(judgement.ci_high_s)),
        judgement.requests.to_string(),
        judgement.over.to_string(),
        found.failed.to_string(),
        found.lost.to_string(),
        needed(found),
    ]
}

fn interval_end(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "?".to_owned(), time)
}

fn verdicts(findings: &Findings) -> String {
    let mut text = table(&VERDICTS, 3, findings.workloads.iter().map(verdict_row));
    if findings.workloads.iter().any(|found| !found.admitted) {
        text.push_str("(In brackets: not admitted, so without a guarantee.)\n");
    }
    text
}

/// How many requests it takes for a verdict, and how long at the observed rate; none where there is one.
fn needed(found: &Finding) -> String {
    let needed = found.judgement.needed_requests.map(|needed| Unit::Plain.format(about(needed as f64)));
    match (found.judgement.verdict, needed) {
        (Verdict::TooFew, Some(needed)) => match found.needed_s {
            Some(long) => format!("{needed} in {}", long_time(long)),
            None => needed,
        },
        // A percentile so close to the SLO, or a generator so late, that nobody can say.
        (Verdict::TooFew, None) => "not known".to_owned(),
        _ => "–".to_owned(),
    }
}

/// A time of which two digits are known, in the unit in which it is written.
fn long_time(seconds: f64) -> String {
    let unit = match seconds {
        s if s >= 10_800.0 => 3600.0,
        s if s >= 180.0 => 60.0,
        _ => 1.0,
    };
    Unit::Seconds.format(about(seconds / unit) * unit)
}

/// Two digits of a positive estimate: more would pretend to be known.
fn about(value: f64) -> f64 {
    let scale = 10f64.powf(value.log10().floor() - 1.0);
    (value / scale).ceil() * scale
}

/// Names of the columns of `window_row`, the first of words.
pub(crate) const WINDOWS: [&str; 8] = [
    "workload",
    "windows",
    Verdict::Met.words(),
    Verdict::NotMet.words(),
    Verdict::TooFew.words(),
    "over in these",
    "worst",
    "at",
];

/// How a workload fared in the windows of a run, as a row; none where it has none.
pub(crate) fn window_row(findings: &Findings, found: &Finding) -> Option<Vec<String>> {
    let of = |verdict| found.windows.iter().filter(move |window| window.verdict == verdict);
    // Where nothing was answered, nothing is worse.
    let latency =
        |window: &SloWindow| window.measured_s.unwrap_or(if window.over > 0 { f64::INFINITY } else { 0.0 });
    let judged = found.windows.iter().filter(|window| window.verdict != Verdict::TooFew);
    let worst = judged.max_by(|a, b| latency(a).total_cmp(&latency(b)));
    (!found.windows.is_empty()).then(|| {
        vec![
            findings.label(found),
            found.windows.len().to_string(),
            of(Verdict::Met).count().to_string(),
            of(Verdict::NotMet).count().to_string(),
            of(Verdict::TooFew).count().to_string(),
            of(Verdict::TooFew).map(|window| window.over).sum::<u64>().to_string(),
            worst.map_or_else(
                || "–".to_owned(),
                |window| window.measured_s.map_or("no answer".to_owned(), time),
            ),
            worst.map_or_else(|| "–".to_owned(), |window| Unit::Seconds.format(window.from_s)),
        ]
    })
}

/// What the table of windows shows.
pub(crate) fn windows_lead(findings: &Findings) -> String {
    format!(
        "Percentiles of SLOs in windows of {} (without confidence)",
        time(findings.window_s.unwrap_or_default())
    )
}

fn windows(findings: &Findings) -> String {
    let rows: Vec<_> = findings.workloads.iter().filter_map(|found| window_row(findings, found)).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("{}:\n{}", windows_lead(findings), table(&WINDOWS, 1, rows))
}

/// A limit's work in its unit.
pub fn work(stage: Stage, amount: f64) -> String {
    match stage {
        Stage::Storage => time(amount),
        Stage::NetworkIn | Stage::NetworkOut => Unit::Bytes.format(amount),
    }
}

/// The burst that the traffic needed: where it reads like the allowed one and is not, what it is more.
fn needed_work(limit: &LimitFinding) -> String {
    let allowed = work(limit.stage, limit.burst);
    let needed = work(limit.stage, limit.needed_burst);
    if limit.kept || allowed != needed {
        return needed;
    }
    format!("{allowed} + {}", work(limit.stage, limit.needed_burst - limit.burst))
}

/// Limits that were not kept, with the traffic that did not: as it was meant to be sent, or only as it was sent.
pub(crate) fn violations(
    findings: &Findings,
) -> impl Iterator<Item = (&Finding, &'static str, &LimitFinding)> {
    let mut violations = Vec::new();
    for found in &findings.workloads {
        for limit in found.limits.iter().filter(|limit| !limit.kept) {
            violations.push((found, "meant", limit));
        }
        for limit in found.sent_limits.iter().filter(|limit| !limit.kept) {
            let is_known = found.limits.iter().any(|meant| {
                !meant.kept && meant.stage == limit.stage && meant.rate_per_s == limit.rate_per_s
            });
            if !is_known {
                violations.push((found, "sent", limit));
            }
        }
    }
    violations.into_iter()
}

/// Names of the columns of `limit_row`.
pub(crate) const LIMITS: [&str; 9] =
    ["workload", "stage", "traffic", "rate", "burst", "needed", "since", "times", "over"];

/// Traffic against a limit as a row.
pub(crate) fn limit_row((found, traffic, limit): (&Finding, &str, &LimitFinding)) -> Vec<String> {
    let rate = match limit.stage {
        Stage::Storage => percent(limit.rate_per_s),
        Stage::NetworkIn | Stage::NetworkOut => Unit::BytesPerSec.format(limit.rate_per_s),
    };
    vec![
        found.name.clone(),
        limit.stage.to_string(),
        traffic.to_owned(),
        rate,
        work(limit.stage, limit.burst),
        needed_work(limit),
        limit.first_over_s.map_or_else(|| "–".to_owned(), |at| Unit::Seconds.format(at)),
        limit.periods.len().to_string(),
        percent(limit.share_over),
    ]
}

fn limits(findings: &Findings) -> String {
    let broken: Vec<_> = violations(findings).collect();
    let judged = findings.workloads.iter().filter(|found| !found.limits.is_empty()).count();
    if judged == 0 {
        return String::new();
    }
    if broken.is_empty() {
        return format!(
            "All traffic of {} kept to the limits that were judged.\n",
            plural(judged, "workload")
        );
    }
    let rows = broken.into_iter().map(limit_row);
    format!(
        "Traffic beyond its limits (since and times: in seconds of the run, periods until the rate caught up; over: share of the work):\n{}",
        table(&LIMITS, 3, rows)
    )
}

/// How late requests were sent, where they were.
fn lag(findings: &Findings) -> String {
    let mut rows = Vec::new();
    for found in &findings.workloads {
        if let Some(lag) = found.lag.filter(|lag| lag.max_s > 0.0) {
            let mut row = vec![findings.label(found)];
            row.extend([lag.median_s, lag.at_percentile_s, lag.max_s].map(time));
            row.push(percent(lag.at_percentile_s / found.judgement.slo_s));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["workload", "half", "at the percentile", "latest", "of the SLO"];
    format!("Sent late by (beyond 10% of the SLO, there is no verdict):\n{}", table(&headings, 1, rows))
}

fn unjudged(findings: &Findings) -> String {
    if findings.unjudged.is_empty() {
        return String::new();
    }
    let rows = findings.unjudged.iter().map(unjudged_row);
    format!("Observed without an SLO:\n{}", table(&UNJUDGED, 1, rows))
}

/// Names of the columns of [`unjudged_row`].
pub(crate) const UNJUDGED: [&str; 8] =
    ["workload", "p50", "p99", "longest", "requests", "per second", "failed", "lost"];

/// A workload without an SLO as a row.
pub(crate) fn unjudged_row(other: &verify::UnjudgedWorkload) -> Vec<String> {
    let mut row = vec![other.name.clone()];
    row.extend([other.p50_s, other.p99_s, other.max_s].map(time_or_dash));
    row.push(other.requests.to_string());
    row.push(other.per_s.map_or_else(|| "–".to_owned(), |rate| Unit::Plain.format(rate)));
    row.extend([other.failed, other.lost].map(|number| number.to_string()));
    row
}

/// Names of the columns of `stage_rows`.
pub const STAGES: [&str; 8] =
    ["workload", "stage", "mean", "p50", "p99", "p99.9", "of the mean", "of the tail's excess"];

/// Time by stage as rows.
pub(crate) fn stage_rows(findings: &Findings) -> Vec<Vec<String>> {
    let rows = findings.workloads.iter().flat_map(|found| {
        found.stages.iter().map(|at| {
            let mut row = vec![findings.label(found), at.stage.clone()];
            row.extend([at.mean_s, at.p50_s, at.p99_s, at.p99_9_s].map(time));
            row.push(percent(at.share_of_mean));
            row.push(at.share_of_tail_excess.map_or_else(|| "–".to_owned(), percent));
            row
        })
    });
    rows.collect()
}

/// Beyond this number of workloads, the table of stages would hide the rest.
const STAGED_MAX: usize = 10;

fn time_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), time)
}

fn stages(findings: &Findings) -> String {
    match stage_rows(findings) {
        rows if rows.is_empty() => String::new(),
        _ if findings.workloads.len() > STAGED_MAX => "Time by stage is in --json and --report.\n".to_owned(),
        rows => format!("Time by stage, of answered requests:\n{}", table(&STAGES, 2, rows)),
    }
}

/// Columns that answer what a table is about, the most important first, in all tables.
const ANSWERS: [&str; 13] = [
    "verdict",
    "measured",
    "stage",
    "not met",
    "worst",
    "p99",
    "bound",
    "needed",
    "of the tail's excess",
    "it takes",
    "burst",
    "traffic",
    "too few",
];

/// The first `words` columns are words, the others numbers.
pub fn table(headings: &[&str], words: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let table = TextTable::of_rows(headings, words, rows);
    table.without_first(&["failed", "lost", "over", "interval"]).answered_by(&ANSWERS).render()
}
