//! Results of services in each mode, beside the simulator, as a table and as JSON.

use crate::schedule::classes::class_table;
use chain::{
    BenchReport, BenchSettings, GainSplit, GainVerdict, ModeReport, PlayMeasures, PlaySummary, RatioEstimate,
    UnplayedMode,
};
use cli::terminal::TextTable;
use operation::document::document;
use operation::text::{percent, time};
use scenario::AxisChoice;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use units::plural;

/// Share of CPU time of other processes above which figures are doubtful.
const OTHERS_MAX: f64 = 0.03;
/// Minimum number of requests beyond a percentile; with fewer it is doubtful.
const BEYOND_MIN: usize = 10;
/// Sending delay, relative to the median latency, above which figures are doubtful.
const LAG_MAX: f64 = 0.05;
/// Maximum number of tiers in a table of 100 columns; JSON has all.
const TIERS_SHOWN: usize = 2;
/// Maximum length of tiers' names in tables.
const NAME_MAX: usize = 16;

/// One variant that was played.
pub(crate) struct ScheduledRun {
    pub(crate) name: String,
    pub(crate) choices: Vec<AxisChoice>,
    pub(crate) settings: BenchSettings,
    pub(crate) report: BenchReport,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ScheduledDocument<'a> {
    runs: Vec<RunDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct RunDocument<'a> {
    scenario: &'a str,
    choices: BTreeMap<&'a str, &'a str>,
    seed: u64,
    duration_s: f64,
    repetitions: usize,
    repetitions_wanted: usize,
    stopped: bool,
    requests_per_repetition: f64,
    serialised: usize,
    confidence: f64,
    load_scheduling: &'a str,
    fair_slice_s: f64,
    round_robin_slice_s: f64,
    tiers: Vec<TierDocument<'a>>,
    modes: Vec<ModeDocument<'a>>,
    left_out: &'a [UnplayedMode],
    age_by: &'static str,
    mean_gain: Option<GainSplit>,
    p50_gain: Option<GainSplit>,
    p99_gain: Option<GainSplit>,
}

#[derive(Serialize, JsonSchema)]
struct TierDocument<'a> {
    name: &'a str,
    cpus: &'a BTreeSet<usize>,
    utilisation: f64,
}

#[derive(Serialize, JsonSchema)]
struct ModeDocument<'a> {
    mode: &'static str,
    /// Limit of the first tier; `None` is no limit.
    c: Option<u32>,
    c_by_tier: &'a [Option<u32>],
    #[serde(flatten)]
    measured: &'a PlayMeasures,
    simulated_p50_s: f64,
    simulated_p99_s: f64,
    simulated_mean_s: f64,
    simulated: &'a PlayMeasures,
    simulated_with_costs: Option<&'a PlayMeasures>,
    busy_per_work: Option<&'a [f64]>,
    not_among_oldest: &'a [Option<f64>],
    p99_against_fair: Option<RatioEstimate>,
    failed: usize,
    in_flight_max: usize,
    lag_p99_s: f64,
    cpu_per_work: &'a [f64],
    others_cpu_share: Option<f64>,
    plays: &'a [PlaySummary],
}

/// Formats all runs as one document.
pub(crate) fn json(runs: &[ScheduledRun]) -> String {
    document(&ScheduledDocument { runs: runs.iter().map(run_document).collect() })
}

fn run_document(run: &ScheduledRun) -> RunDocument<'_> {
    let ScheduledRun { name, choices, settings, report } = run;
    let tiers = report.tiers.iter().zip(&report.cpus).zip(&report.utilisation);
    RunDocument {
        scenario: name,
        choices: choices.iter().map(|choice| (choice.axis.as_str(), choice.value.as_str())).collect(),
        seed: settings.seed,
        duration_s: settings.duration.as_secs(),
        repetitions: report.repetitions,
        repetitions_wanted: settings.repetitions,
        stopped: report.is_stopped,
        requests_per_repetition: report.requests_mean,
        serialised: report.serialised,
        confidence: settings.confidence,
        load_scheduling: &report.load_scheduling,
        fair_slice_s: report.slices.fair.as_secs(),
        round_robin_slice_s: report.slices.round_robin.as_secs(),
        tiers: tiers.map(|((name, cpus), load)| TierDocument { name, cpus, utilisation: *load }).collect(),
        modes: report.modes.iter().map(mode_document).collect(),
        left_out: &report.left_out,
        age_by: report.oldest.name(),
        mean_gain: report.mean_gain,
        p50_gain: report.p50_gain,
        p99_gain: report.p99_gain,
    }
}

fn mode_document(mode: &ModeReport) -> ModeDocument<'_> {
    ModeDocument {
        mode: mode.mode.name(),
        c: mode.limits.first().copied().flatten(),
        c_by_tier: &mode.limits,
        measured: &mode.measured,
        simulated_p50_s: mode.simulated.p50_s,
        simulated_p99_s: mode.simulated.p99_s,
        simulated_mean_s: mode.simulated.mean_s,
        simulated: &mode.simulated,
        simulated_with_costs: mode.simulated_with_costs.as_ref(),
        busy_per_work: mode.busy_per_work.as_deref(),
        not_among_oldest: &mode.younger_share,
        p99_against_fair: mode.against_fair,
        failed: mode.failed,
        in_flight_max: mode.in_flight_max,
        lag_p99_s: mode.lag_p99_s,
        cpu_per_work: &mode.cpu_per_work,
        others_cpu_share: mode.others_share,
        plays: &mode.plays,
    }
}

fn verdict(ratio: &RatioEstimate) -> &'static str {
    match ratio.verdict {
        GainVerdict::Shorter => "shorter",
        GainVerdict::Longer => "longer",
        GainVerdict::NotShown => "not shown",
    }
}

/// Formats all runs for people.
pub(crate) fn text(runs: &[ScheduledRun]) -> String {
    runs.iter().map(run_text).collect::<Vec<_>>().join("\n")
}

fn run_text(run: &ScheduledRun) -> String {
    let report = &run.report;
    let settings = &run.settings;
    let mut text = lead(run);
    text.push_str(&mode_table(report).render());
    if report.tiers.len() <= TIERS_SHOWN {
        text.push('\n');
        text.push_str(&tier_table(report).render());
    }
    text.push_str(&class_table(report));
    text.push_str(&against_fair(report, settings));
    text.push_str(&gains(report));
    text
}

fn lead(run: &ScheduledRun) -> String {
    let report = &run.report;
    let settings = &run.settings;
    let choices: String =
        run.choices.iter().map(|choice| format!(", {} {}", choice.axis, choice.value)).collect();
    let repetitions = if report.is_stopped {
        format!("{} of {}", report.repetitions, plural(settings.repetitions, "repetition"))
    } else {
        plural(report.repetitions, "repetition")
    };
    let tiers: Vec<String> = (report.tiers.iter().zip(&report.cpus).zip(&report.utilisation))
        .map(|((name, cpus), load)| {
            let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
            format!("{name} on CPU {}, utilisation {}", cpus.join(","), percent(*load))
        })
        .collect();
    format!(
        "{}{choices}: {repetitions} of {} with {:.0} requests each, the same for all modes.\n{}.\n\n",
        run.name,
        settings.duration,
        report.requests_mean,
        tiers.join("; ")
    )
}

fn mode_table(report: &BenchReport) -> TextTable {
    let headings =
        ["mode", "c", "p50", "p99", "p99.9", "mean", "short 1%", "reordered", "simulated", "÷", "with costs"];
    let rows = report.modes.iter().map(|mode| {
        let measured = &mode.measured;
        let mut cells = vec![mode.mode.to_string(), limits(&mode.limits)];
        cells.extend(
            [measured.p50_s, measured.p99_s, measured.p99_9_s, measured.mean_s, measured.shortest_p99_s]
                .map(time),
        );
        cells.push(format!("{:.1} %", measured.reordering_pct));
        cells.push(time(mode.simulated.p99_s));
        cells.push(format!("{:.2}", measured.p99_s / mode.simulated.p99_s));
        cells.push(mode.simulated_with_costs.as_ref().map_or("-".to_owned(), |costly| time(costly.p99_s)));
        cells
    });
    TextTable::of_rows(&headings, 1, rows).answered_by(&["p99", "simulated", "÷", "p50"])
}

/// Formats the limit of all tiers, or of each if they differ.
fn limits(limits: &[Option<u32>]) -> String {
    let shown: Vec<String> =
        limits.iter().map(|limit| limit.map_or("-".to_owned(), |limit| limit.to_string())).collect();
    let is_one = shown.windows(2).all(|pair| pair[0] == pair[1]);
    if is_one { shown.first().cloned().unwrap_or_default() } else { shown.join("/") }
}

/// Shortens a name to leave space for the rest of the table.
fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    let kept: String = name.chars().take(NAME_MAX - 1).collect();
    kept + "…"
}

/// Returns the mean waits at each tier, measured and simulated, and the share of time in which a younger
/// request runs.
fn tier_table(report: &BenchReport) -> TextTable {
    let mut headings: Vec<String> = vec!["mean wait at".to_owned()];
    headings.extend(
        report
            .tiers
            .iter()
            .flat_map(|tier| [shortened(tier), "simulated".to_owned(), "not oldest".to_owned()]),
    );
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let rows = report.modes.iter().map(|mode| {
        let waits =
            mode.measured.wait_mean_s.iter().zip(&mode.simulated.wait_mean_s).zip(&mode.younger_share);
        let mut cells = vec![mode.mode.to_string()];
        for ((wait, simulated), younger) in waits {
            let younger = younger.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
            cells.extend([time(*wait), time(*simulated), younger]);
        }
        cells
    });
    TextTable::of_rows(&headings, 1, rows)
}

/// Formats the 99th percentile of each mode against a thread per request.
fn against_fair(report: &BenchReport, settings: &BenchSettings) -> String {
    let rows: Vec<Vec<String>> = report
        .modes
        .iter()
        .filter(|mode| mode.mode != chain::ScheduleMode::Fair)
        .filter_map(|mode| {
            let ratio = mode.against_fair?;
            Some(vec![
                format!("  {}", mode.mode),
                format!("× {:.2}", ratio.ratio),
                range(&ratio),
                verdict(&ratio).to_owned(),
            ])
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let lead = format!(
        "\n99th percentile against fair, with {} % confidence intervals over repetitions:\n",
        100.0 * settings.confidence
    );
    lead + &untitled(rows)
}

fn range(ratio: &RatioEstimate) -> String {
    if ratio.high.is_finite() {
        format!("({:.2} to {:.2})", ratio.low, ratio.high)
    } else {
        "(one repetition: no interval)".to_owned()
    }
}

/// Formats the separate effects of limit and age.
fn gains(report: &BenchReport) -> String {
    let age = format!("age: limited → {}", report.oldest);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (figure, gain) in [("p99", report.p99_gain), ("p50", report.p50_gain), ("mean", report.mean_gain)] {
        let Some(GainSplit { total, cap, age: of_age, .. }) = gain else { continue };
        for (figure, part, ratio) in
            [(figure, "limit: fair → limited", cap), ("", age.as_str(), of_age), ("", "both", total)]
        {
            let mut row = vec![format!("  {figure}"), part.to_owned(), format!("× {:.2}", ratio.ratio)];
            row.extend([range(&ratio), verdict(&ratio).to_owned()]);
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\nwhat is due to what:\n{}", untitled(rows))
}

/// Formats rows of words without headings.
fn untitled(rows: Vec<Vec<String>>) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let table = TextTable::of_rows(&vec![""; columns], columns, rows).render();
    table.trim_start_matches('\n').to_owned()
}

/// Returns the reasons why the figures of a run are doubtful.
pub(crate) fn doubts(run: &ScheduledRun) -> Vec<String> {
    let report = &run.report;
    let modes = &run.report.modes;
    let mut doubts = Vec::new();
    let others = modes.iter().filter_map(|mode| mode.others_share).fold(0.0, f64::max);
    if others > OTHERS_MAX {
        doubts.push(format!(
            "other programs had {} of the CPUs in a mode: figures are those of a busy machine",
            percent(others)
        ));
    }
    let late = modes.iter().filter(|mode| mode.lag_p99_s > LAG_MAX * mode.measured.p50_s);
    if let Some(mode) = late.max_by(|a, b| a.lag_p99_s.total_cmp(&b.lag_p99_s)) {
        doubts.push(format!(
            "{}: 1 % of the requests were sent more than {} late",
            mode.mode,
            time(mode.lag_p99_s)
        ));
    }
    doubts.extend(few_requests(modes));
    let failed: usize = modes.iter().map(|mode| mode.failed).sum();
    if failed > 0 {
        doubts.push(format!("{} answered with an error, and not counted", plural(failed, "request")));
    }
    if report.serialised > 0 {
        doubts.push(format!(
            "{} could do steps at once, which are done one after the other here, in the simulation as well",
            plural(report.serialised, "request")
        ));
    }
    doubts
}

/// Returns the percentiles that depend on few requests, in the mode with the fewest.
fn few_requests(modes: &[ModeReport]) -> Option<String> {
    let answered = modes.iter().map(|mode| mode.measured.answered).min()?;
    let [beyond_p99, beyond_p999] = [100, 1000].map(|part| answered / part);
    let words = match (beyond_p99, beyond_p999) {
        (..BEYOND_MIN, _) => format!("{beyond_p99} are beyond p99, {beyond_p999} beyond p99.9"),
        (_, ..BEYOND_MIN) => format!("{beyond_p999} are beyond p99.9"),
        _ => return None,
    };
    Some(format!("of {} {words}: a longer --duration makes that more certain", plural(answered, "request")))
}
