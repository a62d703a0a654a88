//! What the tail of a live server is made of: causes near percentiles, what these would be without each, and whose
//! doing it is.

use crate::observe::counters::quota_words;
use cli::terminal::TextTable;
use observe::{
    Cause, CauseReport, CounterReport, Counterfactual, EXPLAINED_PERCENTILES, IntendedWaits,
    PercentileCauses, ReplayDoubt, ReplayedPercentile, TakenOut, unseen_causes,
};
use operation::text::{percent, time};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use units::plural;

/// A cause with less than this share near every percentile is not in the table for people.
const SHOWN_SHARE: f64 = 0.0005;

/// A cause with at least this share near the last percentile is explained below the table.
const EXPLAINED_SHARE: f64 = 0.05;

/// Other clients must have a p99 of at most this share without the requests of one client, for that to be said.
const CLIENT_WORTH: f64 = 0.8;

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
    without_client: Option<WithoutClientFields>,
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
    /// The percentile without the cause; null where the cause was not seen, or where only a range is known.
    without_s: Option<f64>,
    without_least_s: Option<f64>,
    without_most_s: Option<f64>,
    /// Why only a range is known.
    without_unknown: Option<&'static str>,
}

/// What percentiles of other clients would be without the client whose requests lengthen p99 of the others most.
#[derive(Serialize, JsonSchema)]
struct WithoutClientFields {
    client: String,
    others_s: BTreeMap<&'static str, f64>,
    without_least_s: BTreeMap<&'static str, f64>,
    without_most_s: BTreeMap<&'static str, f64>,
}

#[derive(Serialize, JsonSchema)]
struct ProcessFields {
    name: String,
    process: u32,
    mean_s: f64,
    /// The percentile without this process alone; null for all but those that had the CPU longest.
    without_least_s: Option<f64>,
    without_most_s: Option<f64>,
}

/// The fields of a report.
pub(crate) fn fields(report: &CauseReport) -> CauseFields {
    let replayed = |taken_out| {
        report
            .without(taken_out)
            .map(|found| named(found.percentiles.map(|one| one.most)))
            .unwrap_or_default()
    };
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
        without_client: report.without_client().map(|(client, found)| WithoutClientFields {
            client: client.to_string(),
            others_s: named(found.measured),
            without_least_s: named(found.percentiles.map(|one| one.least)),
            without_most_s: named(found.percentiles.map(|one| one.most)),
        }),
        overtaken: report.overtaken.overtaken,
        overtaken_longest_s: report.overtaken.longest_ns as f64 / 1e9,
        stolen_from_cpus_s: report.stolen.map(|stolen| stolen as f64 / 1e9),
        not_told_apart: unseen_causes().into_iter().map(|unseen| (unseen.name, unseen.why)).collect(),
    }
}

/// Latencies in nanoseconds by the names of their percentiles.
fn named(latencies: [u64; 3]) -> BTreeMap<&'static str, f64> {
    let named = EXPLAINED_PERCENTILES.into_iter().zip(latencies);
    named.map(|((name, ..), latency)| (name, latency as f64 / 1e9)).collect()
}

fn near_fields(report: &CauseReport, place: usize) -> NearPercentileFields {
    let near = &report.percentiles[place];
    let requests = near.requests.max(1) as f64;
    let share = |cause: Cause| {
        let without = report.without(TakenOut::Cause(cause)).map(|without| without.percentiles[place]);
        ShareFields {
            cause: cause.name(),
            what_acts_on_it: cause.what_acts_on_it(),
            mean_s: near.mean(cause) / 1e9,
            share: near.share(cause),
            requests: near.with[cause as usize],
            without_s: without.and_then(ReplayedPercentile::known).map(|latency| latency as f64 / 1e9),
            without_least_s: without.map(|without| without.least as f64 / 1e9),
            without_most_s: without.map(|without| without.most as f64 / 1e9),
            without_unknown: without.and_then(|without| without.doubt).map(doubt_text),
        }
    };
    let process = |(who, time): &(observe::InterferingProcess, u128)| {
        let without =
            report.without(TakenOut::Process(who.process)).map(|without| without.percentiles[place]);
        ProcessFields {
            name: who.name.clone(),
            process: who.process,
            mean_s: *time as f64 / requests / 1e9,
            without_least_s: without.map(|without| without.least as f64 / 1e9),
            without_most_s: without.map(|without| without.most as f64 / 1e9),
        }
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
pub(crate) fn text(report: &CauseReport, counters: &CounterReport) -> String {
    if report.percentiles.is_empty() {
        return String::new();
    }
    format!(
        "\nwhat the tail is made of: mean times in requests near a percentile; w/o: what it would be without\n\
         {}{}",
        TextTable::of_rows(&HEADINGS, 1, rows(report))
            .answered_by(&["p99", "p99 w/o", "p50", "p99.9"])
            .render(),
        notes(report, counters)
    )
}

/// What explains the table: who is behind the largest causes, which requests were looked at, what cannot be seen here.
pub(crate) fn notes(report: &CauseReport, counters: &CounterReport) -> String {
    let mut text =
        report.percentiles.last().map(|near| explained(report, near, counters)).unwrap_or_default();
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
        cells.extend([1, 2].map(|place| without.map_or(String::new(), |times| replayed(times[place]))));
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
    let measured = report.without(TakenOut::Nothing).map(|nothing| nothing.measured);
    cells.extend([1, 2].map(|place| measured.map_or(String::new(), |times| nanoseconds(times[place]))));
    cells
}

/// A percentile without something: a value, or a range where that is all that is known.
fn replayed(percentile: ReplayedPercentile) -> String {
    match percentile.known() {
        Some(latency) => nanoseconds(latency),
        None => format!("{}-{}", nanoseconds(percentile.least), nanoseconds(percentile.most)),
    }
}

/// Why there is only a range.
fn doubt_text(doubt: ReplayDoubt) -> &'static str {
    match doubt {
        ReplayDoubt::Order => "the order in which waiting requests would be served decides",
        ReplayDoubt::Others => "other processes had the CPU in the same waits",
        ReplayDoubt::WakeUps => "too few requests without the cause woke a worker",
    }
}

fn nanoseconds(count: u64) -> String {
    time(count as f64 / 1e9)
}

/// Who and what is behind the largest causes, and what acts on them.
fn explained(report: &CauseReport, near: &PercentileCauses, counters: &CounterReport) -> String {
    let mut causes = Cause::ALL.to_vec();
    causes.retain(|cause| near.share(*cause) >= EXPLAINED_SHARE);
    causes.sort_by(|a, b| near.mean(*b).total_cmp(&near.mean(*a)));
    let line = |cause: Cause| {
        let with = near.with[cause as usize];
        let of = near.requests;
        let mut line = format!("  {}: in {with} of {of} near {}", cause.name(), near.name);
        if cause == Cause::OtherProcess {
            let names = near.interferers.iter().take(NAMED_MAX).map(|(who, time)| {
                let mean = operation::text::time(*time as f64 / of.max(1) as f64 / 1e9);
                let without = report.without(TakenOut::Process(who.process));
                let without = without.map_or(String::new(), |without| {
                    format!(" (p99 w/o it {})", replayed(without.percentiles[1]))
                });
                format!("{} ({}) {mean}{without}", who.name, who.process)
            });
            line += &format!("\n    {}", names.collect::<Vec<_>>().join(", "));
        }
        if cause == Cause::Throttled {
            line.extend(counters.throttled.iter().map(|group| format!("\n    {}", quota_words(group))));
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
    for doubt in [ReplayDoubt::Order, ReplayDoubt::WakeUps] {
        let is_in_doubt = |cause: &Cause| {
            report.without(TakenOut::Cause(*cause)).is_some_and(|without| {
                without.percentiles[1..].iter().any(|percentile| percentile.doubt == Some(doubt))
            })
        };
        let causes: Vec<&str> =
            shown(report).iter().filter(|cause| is_in_doubt(cause)).map(|cause| cause.name()).collect();
        if !causes.is_empty() {
            text += &format!("\n  a range for {}: {}", causes.join(", "), doubt_text(doubt));
        }
    }
    let is_worth = |without: &Counterfactual| {
        without.percentiles[1].most as f64 <= CLIENT_WORTH * without.measured[1] as f64
    };
    if let Some((client, without)) = report.without_client().filter(|(_, without)| is_worth(without)) {
        let [_, p99, p999] = without.percentiles.map(replayed);
        let [_, p99_now, p999_now] = without.measured.map(nanoseconds);
        text += &format!(
            "\n  without the requests of {client}, for the other clients: p99 {p99} (now {p99_now}), p99.9 {p999} \
             (now {p999_now})"
        );
    }
    if let Some(one) = report.without(TakenOut::QueuesOfWorkers) {
        let [p50, p99, p999] = one.percentiles.map(replayed);
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
