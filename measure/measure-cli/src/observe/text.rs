//! What was seen of live servers: latencies, stages ranked by variance, what was guessed, what observing cost.

use crate::observe::causes::CauseFields;
use crate::observe::cost::{SampledFields, cost_lines, full_percent, sampled_fields};
use crate::observe::counters::CounterFields;
use crate::observe::doubts::{doubts, is_protocol_understood, left_out, skipped_words};
use crate::observe::{
    causes as observed_causes, counters as observed_counters, fields as observed_fields,
    ideal as observed_ideal,
};
use cli::terminal::TextTable;
use measure::observation::{Caveat, Finding, ServerObservation};
use observe::{
    AcceptQueue, LatencyProfile, MeasuredCost, ObservationEnd, ObservationReport, ProbeSettings,
    SelfTestReport, StageProfile, ThrottledGroup,
};
use operation::document::document;
use operation::text::{percent, time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use units::plural;

/// An observation, with what was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservedServer<'a> {
    /// Which ports and connections were to be observed.
    pub(crate) asked: &'a ProbeSettings,
    pub(crate) observation: &'a ServerObservation,
    /// CPU time of the thread that joins events, while it did, in nanoseconds.
    pub(crate) joining_ns: u64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ObservedDocument<'a> {
    /// The answer, from which the rest follows.
    finding: &'a Finding,
    ports: &'a BTreeSet<u16>,
    /// About this share of TCP connections was observed, and rates are of these; all of UDP was.
    connection_share: f64,
    /// With a protocol: whether any message of it was read. Null without requests.
    protocol_understood: Option<bool>,
    observed_s: f64,
    /// With a limit of the cost, which is usual: what part of that time requests counted in.
    sampled: Option<SampledFields>,
    ended: &'static str,
    requests: u64,
    per_second: f64,
    reader_threads: usize,
    /// Null without requests, as all of their times.
    latency_from_t1: Option<LatencyProfile>,
    latency_from_t0: Option<LatencyProfile>,
    /// Of T6 − T0, in square seconds.
    variance_s2: Option<f64>,
    /// Of all requests; empty if there were none.
    stages: Vec<StageProfile>,
    causes: CauseFields,
    /// What counters of the kernel have counted meanwhile; those that have not grown are left out.
    kernel_counters: Vec<CounterFields>,
    cpu_quotas: &'a [ThrottledGroup],
    /// For how long CPU quotas kept threads that read requests from running.
    threads_throttled_s: f64,
    #[serde(flatten)]
    derived: observed_fields::DerivedFields,
    guessed_or_unseen: Vec<CountFields>,
    not_joined: Vec<CountFields>,
    /// How many, and the times from their first to their last byte.
    sent_in_several_packets: u64,
    sending: Option<LatencyProfile>,
    /// Where that was asked for.
    accept_queue: Option<AcceptQueue>,
    lost_events: u64,
    /// How often the kernel passed over a program, each time perhaps an event that is missing.
    skipped_runs: u64,
    /// The number of events that the kernel reported.
    events: u64,
    /// Of the programs in the kernel, in a part of the time.
    cost: Option<CostShare>,
    /// CPU time of the thread that joins events, in all of the time, in seconds.
    joining_cpu_s: f64,
}

#[derive(Serialize, JsonSchema)]
struct CountFields {
    what: &'static str,
    requests: u64,
}

/// Cost of the programs, in total and as a share.
#[derive(Serialize, JsonSchema)]
struct CostShare {
    #[serde(flatten)]
    cost: MeasuredCost,
    /// `cpu_s` ÷ `measured_s`: a share of one CPU.
    cpu_share: f64,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct SelfTestDocument {
    right: bool,
    sent: u64,
    observed: u64,
    nested: u64,
    outside: u64,
    missing: u64,
    lost_events: u64,
    skipped_runs: u64,
}

/// The observation as one object.
pub(crate) fn json(server: ObservedServer<'_>) -> String {
    let ObservedServer { asked, observation, joining_ns } = server;
    let report = &observation.report;
    let statistics = &report.statistics;
    let observed_s = report.duration.as_secs_f64();
    // Without requests, or with a few that do not stand for the others, nothing was measured.
    let has_any = statistics.count() > 0 && !report.is_blind();
    let (several, sending) = statistics.sending();
    let counts = |counts: Vec<(&'static str, u64)>| {
        counts.into_iter().map(|(what, requests)| CountFields { what, requests }).collect()
    };
    document(&ObservedDocument {
        finding: &observation.finding,
        ports: &asked.ports,
        connection_share: asked.share,
        protocol_understood: is_protocol_understood(asked, statistics),
        observed_s,
        sampled: report.sampled.as_ref().map(|sampled| sampled_fields(sampled, report)),
        ended: ended(report.end),
        requests: statistics.count(),
        per_second: per_second(report),
        reader_threads: report.readers.len(),
        latency_from_t1: has_any.then(|| statistics.from_stack()),
        latency_from_t0: has_any.then(|| statistics.from_wire()),
        variance_s2: has_any.then(|| statistics.variance() / 1e18),
        stages: if has_any { statistics.stages().to_vec() } else { Vec::new() },
        causes: observed_causes::fields(&report.causes),
        kernel_counters: observed_counters::fields(&report.counters),
        cpu_quotas: &report.counters.throttled,
        threads_throttled_s: report.counters.threads_throttled_ns as f64 / 1e9,
        derived: observed_fields::fields(observation),
        guessed_or_unseen: counts(statistics.flagged().collect()),
        not_joined: counts(not_joined(report).to_vec()),
        sent_in_several_packets: several,
        sending: (several > 0).then_some(sending),
        accept_queue: report.accept_queue,
        lost_events: report.lost_events,
        skipped_runs: report.skipped_runs,
        events: report.events,
        cost: report.cost.map(|cost| CostShare { cost, cpu_share: cost.cpu_share() }),
        joining_cpu_s: joining_ns as f64 / 1e9,
    })
}

/// Arrivals in the time in which they counted.
fn per_second(report: &ObservationReport) -> f64 {
    let count = report.statistics.count() as f64;
    let seconds = report.counted().as_secs_f64();
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// How many requests, in which time.
pub(crate) fn extent(report: &ObservationReport) -> String {
    let requests = plural(report.statistics.count(), "request");
    let whole = time(report.duration.as_secs_f64());
    match &report.sampled {
        Some(sampled) if sampled.has_pauses => {
            format!("{requests} in {} of {whole}", time(sampled.counted.as_secs_f64()))
        }
        _ => format!("{requests} in {whole}"),
    }
}

/// The rate of arrivals, in words.
pub(crate) fn rate(report: &ObservationReport) -> String {
    format!("{:.1}", per_second(report))
}

fn ended(end: ObservationEnd) -> &'static str {
    match end {
        ObservationEnd::Over => "the time was over",
        ObservationEnd::Stopped => "it was stopped",
        ObservationEnd::WriteFailed => "a file could not be written",
        ObservationEnd::ServerEnded => "the server ended",
    }
}

/// What could not be joined, with how often, for machines.
fn not_joined(report: &ObservationReport) -> [(&'static str, u64); 8] {
    let counts = report.counts;
    [
        ("without an answer", counts.unanswered),
        ("answers to nothing seen", counts.unrequested),
        ("reads of bytes not seen to arrive", counts.unseen_arrivals),
        ("discarded: events lost, or message boundaries unknown", counts.discarded),
        ("that their protocol leaves without an answer", counts.one_way),
        ("with good news, of which the protocol says nothing", counts.silent),
        ("times that the message boundaries of a connection were lost", counts.untold),
        ("taken by calls that are not seen", counts.unseen_reads),
    ]
}

/// Which part of the connections was observed, if not all were.
pub(crate) fn share_words(asked: &ProbeSettings) -> Option<String> {
    let share = full_percent(asked.share);
    (asked.share < 1.0).then(|| format!("about {share} of TCP connections observed; rates are of these"))
}

/// That several ports are summed up as one, where there are several.
pub(crate) fn ports_words(asked: &ProbeSettings) -> Option<&'static str> {
    (asked.ports.len() > 1).then_some("all ports are taken together, in one distribution")
}

/// The answer for people: first what was not seen, then the sentence, then the command to paste.
fn answer(finding: &Finding) -> String {
    let is_told = |caveat: &&Caveat| caveat.kind == "lost-events";
    let caveats = finding
        .caveats
        .iter()
        .filter(|caveat| !is_told(caveat))
        .map(|caveat| format!("not seen: {}\n", caveat.words));
    let (sentence, command) = finding.sentence_and_command();
    let mut text = caveats.map(|line| observed_ideal::wrapped(&line)).collect::<String>();
    text += &observed_ideal::wrapped(sentence);
    if let Some(command) = command {
        text += &format!("  {command}\n");
    }
    text + "\n"
}

/// The answer and the tables for people, 80 columns wide.
pub(crate) fn text(server: ObservedServer<'_>) -> String {
    let ObservedServer { asked, observation, .. } = server;
    let report = &observation.report;
    let statistics = &report.statistics;
    let ports: Vec<String> = asked.ports.iter().map(u16::to_string).collect();
    let share = share_words(asked).map(|words| words + "\n").unwrap_or_default();
    // What was lost is said before any figure.
    let mut text = observed_counters::losses(&report.counters) + &left_out(report);
    if !report.is_blind() {
        text += &answer(&observation.finding);
    }
    text += &format!(
        "port {}: {share}{}, {}/s, read by {}\n",
        ports.join(","),
        extent(report),
        rate(report),
        plural(report.readers.len(), "thread"),
    );
    if let Some(words) = ports_words(asked) {
        text += &format!("{words}\n");
    }
    if report.end != ObservationEnd::Over {
        text += &format!("ended because {}\n", ended(report.end));
    }
    if statistics.count() > 0 && !report.is_blind() {
        text += &format!("\n{}", latencies(report));
        text += &observed_causes::text(&report.causes, &report.counters);
        text += &format!("\n{}", stages(&statistics.stages()));
    }
    text += &observed_counters::text(&report.counters);
    text += &around_requests(report);
    text += &observed_ideal::text(observation);
    text += &doubts(asked, report);
    text + &cost_lines(report, server.joining_ns)
}

/// How long clients took to send requests, and connections waited to be accepted: both are not in the stages.
fn around_requests(report: &ObservationReport) -> String {
    let times = |LatencyProfile { mean, p50, p99, max, .. }: LatencyProfile| {
        let [p50, p99, max] = [p50, p99, max].map(nanoseconds);
        format!("mean {}, p50 {p50}, p99 {p99}, max {max}", time(mean / 1e9))
    };
    let mut text = String::new();
    let (count, sending) = report.statistics.sending();
    if count > 0 {
        let requests = plural(count, "request");
        text += &format!(
            "\n{requests} in several packets, from the first to the last byte:\n  {}\n",
            times(sending)
        );
    }
    if let Some(queue) = report.accept_queue {
        let waits = match queue.waits {
            None => "no connection was accepted".to_owned(),
            Some(waits) => format!("{}:\n  {}", plural(queue.connections, "connection"), times(waits)),
        };
        text += &format!("\naccept queue, {waits}\n");
    }
    text
}

fn latencies(report: &ObservationReport) -> String {
    let statistics = &report.statistics;
    let rows = [("T6-T1", statistics.from_stack()), ("T6-T0", statistics.from_wire())];
    let row = |(name, times): (&str, LatencyProfile)| {
        let LatencyProfile { mean, p50, p90, p99, p999, max } = times;
        let mut cells = vec![name.to_owned(), time(mean / 1e9)];
        cells.extend([p50, p90, p99, p999, max].map(nanoseconds));
        cells
    };
    let headings = ["latency", "mean", "p50", "p90", "p99", "p99.9", "max"];
    TextTable::of_rows(&headings, 1, rows.map(row)).answered_by(&["p99", "p50", "p99.9", "mean"]).render()
}

fn nanoseconds(count: u64) -> String {
    time(count as f64 / 1e9)
}

/// A row per stage, the one with the largest share of the variance first.
fn stages(stages: &[StageProfile]) -> String {
    let table = TextTable::of_rows(&STAGE_HEADINGS, 1, stage_rows(stages));
    table.answered_by(&["p99", "of var", "mean"]).render() + &ranking(stages)
}

/// The headings of [`stage_rows`].
pub(crate) const STAGE_HEADINGS: [&str; 8] =
    ["stage", "mean", "p50", "p99", "p99.9", "var us2", "of var", "of mean"];

/// The cells of the stages, the one with the largest share of the variance first.
pub(crate) fn stage_rows(stages: &[StageProfile]) -> Vec<Vec<String>> {
    let by_variance = ranked(stages, |stage| stage.share_of_variance);
    let row = |stage: &&StageProfile| {
        vec![
            stage.name.to_owned(),
            time(stage.times.mean / 1e9),
            nanoseconds(stage.times.p50),
            nanoseconds(stage.times.p99),
            nanoseconds(stage.times.p999),
            format!("{:.1}", stage.variance / 1e6),
            percent(stage.share_of_variance),
            percent(stage.share_of_mean),
        ]
    };
    by_variance.iter().map(row).collect()
}

/// Whether variance and mean point at the same stage.
pub(crate) fn ranking(stages: &[StageProfile]) -> String {
    let by_variance = ranked(stages, |stage| stage.share_of_variance);
    let by_mean = ranked(stages, |stage| stage.share_of_mean);
    if by_variance[0].name == by_mean[0].name {
        return format!("{} is first by variance and by mean\n", by_mean[0].name);
    }
    format!("first by variance: {}; first by mean: {}\n", by_variance[0].name, by_mean[0].name)
}

fn ranked(stages: &[StageProfile], share: impl Fn(&StageProfile) -> f64) -> Vec<&StageProfile> {
    let mut ranked: Vec<&StageProfile> = stages.iter().collect();
    ranked.sort_by(|a, b| share(b).total_cmp(&share(a)));
    ranked
}

/// The result of the self-test, in lines.
pub(crate) fn test_text(report: &SelfTestReport) -> String {
    let SelfTestReport { observed, nesting, sent } = report;
    let complete = match (observed.lost_events, observed.skipped_runs) {
        (0, 0) => "no event was lost".to_owned(),
        (0, skipped) => skipped_words(skipped),
        _ => "events were lost".to_owned(),
    };
    format!(
        "{} sent by clients, {} observed: {} inside of what a client saw, {} outside, {} missing\n{}; {complete}\n",
        plural(*sent, "request"),
        observed.statistics.count(),
        nesting.nested,
        nesting.outside,
        nesting.missing,
        if report.is_right() { "the self-test has passed" } else { "the self-test has FAILED" },
    )
}

/// The result of the self-test as one object.
pub(crate) fn test_json(report: &SelfTestReport) -> String {
    let SelfTestReport { observed, nesting, sent } = report;
    document(&SelfTestDocument {
        right: report.is_right(),
        sent: *sent,
        observed: observed.statistics.count(),
        nested: nesting.nested,
        outside: nesting.outside,
        missing: nesting.missing,
        lost_events: observed.lost_events,
        skipped_runs: observed.skipped_runs,
    })
}
