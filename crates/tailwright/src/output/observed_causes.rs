//! What the tail of a live server is made of: causes near percentiles, what these would be without each, and whose
//! doing it is.

use crate::terminal::TextTable;
use observe::{
    Cause, CauseReport, Counterfactual, EXPLAINED_PERCENTILES, IntendedWaits, PercentileCauses, TakenOut,
    unseen_causes,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use units::plural;
use workflow::text::{percent, time};

/// A cause with less than this share near every percentile is not in the table for people.
const SHOWN_SHARE: f64 = 0.0005;

/// A cause with at least this share near the last percentile is explained below the table.
const EXPLAINED_SHARE: f64 = 0.05;

/// The most processes that are named in a line for people.
const NAMED_MAX: usize = 3;

/// What the tail is made of, as a part of the document for machines.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CauseFields {
    intended_waits: &'static str,
    intended_waits_left_out_s: f64,
    requests: u64,
    percentiles: Vec<NearPercentileFields>,
    replayed: usize,
    /// Percentiles of the requests that were replayed, with nothing taken out.
    replayed_s: BTreeMap<&'static str, f64>,
    one_queue_for_all_workers_s: BTreeMap<&'static str, f64>,
    overtaken: u64,
    overtaken_longest_s: f64,
    /// What the hypervisor took from all CPUs meanwhile.
    stolen_from_cpus_s: Option<f64>,
    not_told_apart: BTreeMap<&'static str, String>,
}

#[derive(Serialize, JsonSchema)]
struct NearPercentileFields {
    percentile: &'static str,
    requests: u64,
    latency_min_s: f64,
    latency_max_s: f64,
    causes: Vec<ShareFields>,
    interfering_processes: Vec<ProcessFields>,
}

#[derive(Serialize, JsonSchema)]
struct ShareFields {
    cause: &'static str,
    what_acts_on_it: &'static str,
    mean_s: f64,
    share: f64,
    requests: u64,
    without_s: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct ProcessFields {
    name: String,
    process: u32,
    mean_s: f64,
}

/// The fields of a report.
pub(crate) fn fields(report: &CauseReport) -> CauseFields {
    let replayed = |taken_out| report.without(taken_out).map(percentile_fields).unwrap_or_default();
    CauseFields {
        intended_waits: match report.intended_waits {
            IntendedWaits::Included => "included",
            IntendedWaits::Excluded => "excluded",
        },
        intended_waits_left_out_s: report.left_out as f64 / 1e9,
        requests: report.requests,
        percentiles: (0..report.percentiles.len()).map(|place| near_fields(report, place)).collect(),
        replayed: report.replayed,
        replayed_s: replayed(TakenOut::Nothing),
        one_queue_for_all_workers_s: replayed(TakenOut::QueuesOfWorkers),
        overtaken: report.overtaken.overtaken,
        overtaken_longest_s: report.overtaken.longest_ns as f64 / 1e9,
        stolen_from_cpus_s: report.stolen.map(|stolen| stolen as f64 / 1e9),
        not_told_apart: unseen_causes().into_iter().map(|unseen| (unseen.name, unseen.why)).collect(),
    }
}

fn percentile_fields(counterfactual: &Counterfactual) -> BTreeMap<&'static str, f64> {
    let named = EXPLAINED_PERCENTILES.into_iter().zip(counterfactual.percentiles);
    named.map(|((name, ..), latency)| (name, latency as f64 / 1e9)).collect()
}

fn near_fields(report: &CauseReport, place: usize) -> NearPercentileFields {
    let near = &report.percentiles[place];
    let requests = near.requests.max(1) as f64;
    let share = |cause: Cause| ShareFields {
        cause: cause.name(),
        what_acts_on_it: cause.what_acts_on_it(),
        mean_s: near.mean(cause) / 1e9,
        share: near.share(cause),
        requests: near.with[cause as usize],
        without_s: report
            .without(TakenOut::Cause(cause))
            .map(|without| without.percentiles[place] as f64 / 1e9),
    };
    let process = |(who, time): &(observe::InterferingProcess, u128)| ProcessFields {
        name: who.name.clone(),
        process: who.process,
        mean_s: *time as f64 / requests / 1e9,
    };
    NearPercentileFields {
        percentile: near.name,
        requests: near.requests,
        latency_min_s: near.latency_min as f64 / 1e9,
        latency_max_s: near.latency_max as f64 / 1e9,
        causes: Cause::ALL.into_iter().map(share).collect(),
        interfering_processes: near.interferers.iter().map(process).collect(),
    }
}

/// The tables for people, at most 100 columns wide; nothing without requests.
pub(crate) fn text(report: &CauseReport) -> String {
    if report.percentiles.is_empty() {
        return String::new();
    }
    format!(
        "\nwhat the tail is made of: mean times in requests near a percentile; w/o: what it would be without\n\
         {}{}",
        TextTable::of_rows(&HEADINGS, 1, rows(report)).render(),
        notes(report)
    )
}

/// What explains the table: who is behind the largest causes, which requests were looked at, what cannot be seen here.
pub(crate) fn notes(report: &CauseReport) -> String {
    let mut text = report.percentiles.last().map(explained).unwrap_or_default();
    text += &windows(report);
    text += &replays(report);
    text += &left_out(report);
    text += &stolen(report);
    for unseen in unseen_causes() {
        text += &format!("  not distinguished here: {}: {}\n", unseen.name, unseen.why);
    }
    text
}

/// The causes that have a share near any percentile, the largest near the last one first.
pub(crate) fn shown(report: &CauseReport) -> Vec<Cause> {
    let Some(last) = report.percentiles.last() else { return Vec::new() };
    let is_shown = |cause: &Cause| report.percentiles.iter().any(|near| near.share(*cause) >= SHOWN_SHARE);
    let mut causes: Vec<Cause> = Cause::ALL.into_iter().filter(is_shown).collect();
    causes.sort_by(|a, b| last.mean(*b).total_cmp(&last.mean(*a)));
    causes
}

/// The headings of [`rows`].
pub(crate) const HEADINGS: [&str; 9] =
    ["cause", "p50", "of", "p99", "of", "p99.9", "of", "p99 w/o", "p99.9 w/o"];

/// A row for each cause that is shown, and one for all of them.
pub(crate) fn rows(report: &CauseReport) -> Vec<Vec<String>> {
    let row = |cause: Cause| {
        let mut cells = vec![cause.name().to_owned()];
        for near in &report.percentiles {
            cells.extend([time(near.mean(cause) / 1e9), percent(near.share(cause))]);
        }
        let without = report.without(TakenOut::Cause(cause)).map(|without| without.percentiles);
        cells.extend([1, 2].map(|place| without.map_or(String::new(), |times| nanoseconds(times[place]))));
        cells
    };
    let mut rows: Vec<Vec<String>> = shown(report).into_iter().map(row).collect();
    rows.push(sum(report));
    rows
}

/// The last row: all causes together, and the percentiles with nothing taken out.
fn sum(report: &CauseReport) -> Vec<String> {
    let mut cells = vec!["all".to_owned()];
    for near in &report.percentiles {
        let total: u128 = near.times.iter().sum();
        cells.extend([time(total as f64 / near.requests.max(1) as f64 / 1e9), percent(1.0)]);
    }
    let replayed = report.without(TakenOut::Nothing).map(|nothing| nothing.percentiles);
    cells.extend([1, 2].map(|place| replayed.map_or(String::new(), |times| nanoseconds(times[place]))));
    cells
}

fn nanoseconds(count: u64) -> String {
    time(count as f64 / 1e9)
}

/// Who and what is behind the largest causes, and what acts on them.
fn explained(near: &PercentileCauses) -> String {
    let mut causes = Cause::ALL.to_vec();
    causes.retain(|cause| near.share(*cause) >= EXPLAINED_SHARE);
    causes.sort_by(|a, b| near.mean(*b).total_cmp(&near.mean(*a)));
    let line = |cause: Cause| {
        let (with, of) = (near.with[cause as usize], near.requests);
        let mut line = format!("  {}: in {with} of {of} near {}", cause.name(), near.name);
        if cause == Cause::OtherProcess {
            let names = near.interferers.iter().take(NAMED_MAX).map(|(who, time)| {
                let mean = workflow::text::time(*time as f64 / of.max(1) as f64 / 1e9);
                format!("{} ({}) {mean}", who.name, who.process)
            });
            line += &format!("\n    {}", names.collect::<Vec<_>>().join(", "));
        }
        if !cause.what_acts_on_it().is_empty() {
            line += &format!("\n    what affects it: {}", cause.what_acts_on_it());
        }
        line + "\n"
    };
    causes.into_iter().map(line).collect()
}

/// Which requests are near the percentiles.
fn windows(report: &CauseReport) -> String {
    let window = |(near, (_, rank, half)): (&PercentileCauses, (&str, f64, f64))| {
        format!(
            "  near {}: {} from {} to {}, with all ranks from {:.2}% to {:.2}%\n",
            near.name,
            plural(near.requests, "request"),
            nanoseconds(near.latency_min),
            nanoseconds(near.latency_max),
            (rank - half) * 100.0,
            (rank + half) * 100.0,
        )
    };
    report.percentiles.iter().zip(EXPLAINED_PERCENTILES).map(window).collect()
}

/// What the replays of the last requests say.
fn replays(report: &CauseReport) -> String {
    let mut text = format!(
        "  w/o: a replay of the last {} without the time of the cause",
        plural(report.replayed, "request")
    );
    if let Some(one) = report.without(TakenOut::QueuesOfWorkers) {
        let [p50, p99, p999] = one.percentiles.map(nanoseconds);
        text += &format!("\n  one queue for all workers: p50 {p50}, p99 {p99}, p99.9 {p999}");
    }
    let overtaken = report.overtaken;
    if overtaken.overtaken > 0 {
        text += &format!(
            "\n  out of order: {} of them still waited when a later one was begun, up to {} longer",
            overtaken.overtaken,
            nanoseconds(overtaken.longest_ns)
        );
    }
    text + "\n"
}

/// What the hypervisor took; nothing where it took nothing.
fn stolen(report: &CauseReport) -> String {
    match report.stolen {
        None | Some(0) => String::new(),
        Some(stolen) => format!(
            "  steal: the hypervisor took {} of CPU time meanwhile; of runs of threads it is not known when\n",
            nanoseconds(stolen)
        ),
    }
}

fn left_out(report: &CauseReport) -> String {
    let mean = report.left_out as f64 / report.requests.max(1) as f64 / 1e9;
    match report.intended_waits {
        IntendedWaits::Included => String::new(),
        IntendedWaits::Excluded => {
            format!("  left out: {} of sleep in processing per request, in the mean\n", time(mean))
        }
    }
}
