//! Results of a bench: the plays of each mode combined, and comparisons of modes.

use crate::age_order::younger_share;
use crate::gains::{GainSplit, RatioEstimate};
use crate::kernel_slice::KernelSlices;
use crate::measures::PlayMeasures;
use crate::mode::ScheduleMode;
use crate::play::FinishedPlay;
use crate::settings::BenchSettings;
use crate::workload::ChainWorkload;
use schemars::JsonSchema;
use serde::Serialize;
use sim::pool_tiers::PlayedRequest;
use std::collections::BTreeSet;

/// Figures of one play, for comparisons across repetitions. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PlaySummary {
    /// Index of the repetition, from 0.
    pub repetition: usize,
    /// Mean latency, seconds.
    pub mean_s: f64,
    /// Median latency, seconds.
    pub p50_s: f64,
    /// 99th percentile of latency, seconds.
    pub p99_s: f64,
    /// 99th percentile of latency in the simulator, seconds.
    pub simulated_p99_s: f64,
}

/// Results of one mode, all repetitions combined.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeReport {
    pub mode: ScheduleMode,
    /// Concurrency limit of each tier at the end of the last play; `None` is no limit.
    pub limits: Vec<Option<u32>>,
    /// Measurements of the services.
    pub measured: PlayMeasures,
    /// Predictions of the simulator for the same requests.
    pub simulated: PlayMeasures,
    /// Predictions of the simulator if work takes as long at each tier as its CPUs were busy for it,
    /// including load generator, kernel and other processes. `None` if the kernel does not report busy times.
    pub simulated_with_costs: Option<PlayMeasures>,
    /// Busy time of each tier's CPUs ÷ the work assigned to it, mean of the plays.
    pub busy_per_work: Option<Vec<f64>>,
    /// Each play by itself, in order of repetitions.
    pub plays: Vec<PlaySummary>,
    /// By tier, the share of time in which a request ran that was not among the c oldest; in modes by
    /// deadline, not among the c with the earliest deadlines. `None` without a limit.
    pub younger_share: Vec<Option<f64>>,
    /// Ratio of the 99th percentile to that of a thread per request, if both were played.
    pub against_fair: Option<RatioEstimate>,
    /// 99th percentile of the delays in sending requests, in the worst play, seconds.
    pub lag_p99_s: f64,
    /// Number of requests answered with an error.
    pub failed: usize,
    /// Maximum number of concurrent requests.
    pub in_flight_max: usize,
    /// CPU time of each tier ÷ the work assigned to it.
    pub cpu_per_work: Vec<f64>,
    /// Share of CPU time used by processes other than load and tiers; `None` if the kernel does not report
    /// it.
    pub others_share: Option<f64>,
}

/// A mode that could not be played.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnplayedMode {
    #[schemars(with = "String")]
    pub mode: ScheduleMode,
    /// Reason why it was not played.
    pub why: String,
}

/// Results of a bench.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchReport {
    /// Modes that were played, in the order of the settings.
    pub modes: Vec<ModeReport>,
    /// Modes that could not be played.
    pub left_out: Vec<UnplayedMode>,
    /// Number of repetitions in which all modes were played.
    pub repetitions: usize,
    /// The bench was stopped before the last repetition.
    pub is_stopped: bool,
    /// Names of the tiers, in the order of figures by tier.
    pub tiers: Vec<String>,
    /// CPUs of each tier.
    pub cpus: Vec<BTreeSet<usize>>,
    /// Work that arrives ÷ capacity of the CPUs, by tier, in the drawn requests.
    pub utilisation: Vec<f64>,
    /// Mean number of requests per repetition.
    pub requests_mean: f64,
    /// Number of requests whose steps could have overlapped but were played in sequence.
    pub serialised: usize,
    /// Separate effects of limit and age on the median, if `fair`, `limited` and `orf` (or `orf-admission`)
    /// were played.
    pub p50_gain: Option<GainSplit>,
    /// The same for the 99th percentile.
    pub p99_gain: Option<GainSplit>,
    /// The same for the mean.
    pub mean_gain: Option<GainSplit>,
    /// Mode that represents age in these: `orf`, or `orf-admission` if preemption was unavailable.
    pub oldest: ScheduleMode,
    /// Time slices of the kernel's scheduler that the simulator assumes.
    pub slices: KernelSlices,
    /// Scheduling policy of the load generator.
    pub load_scheduling: String,
}

/// All plays of one mode so far.
#[derive(Debug)]
pub(crate) struct ModePlays {
    pub(crate) mode: ScheduleMode,
    pub(crate) finished: Vec<FinishedPlay>,
    pub(crate) predicted: Vec<Vec<PlayedRequest>>,
    /// As many as plays, unless the kernel does not report busy times.
    pub(crate) predicted_with_costs: Vec<Vec<PlayedRequest>>,
}

impl ModePlays {
    pub(crate) fn of(mode: ScheduleMode) -> Self {
        Self { mode, finished: Vec::new(), predicted: Vec::new(), predicted_with_costs: Vec::new() }
    }
}

/// Returns the report of these plays; fields about the machine stay empty.
pub(crate) fn report(
    settings: &BenchSettings,
    workloads: &[ChainWorkload],
    plays: &[ModePlays],
) -> BenchReport {
    let mut modes: Vec<ModeReport> =
        plays.iter().filter_map(|plays| mode_report(settings, workloads, plays)).collect();
    let fair = figures(&modes, ScheduleMode::Fair, |play| play.p99_s);
    for mode in &mut modes {
        let own: Vec<f64> = mode.plays.iter().map(|play| play.p99_s).collect();
        mode.against_fair = RatioEstimate::of(&fair, &own, settings.confidence);
    }
    let has_preemption = modes.iter().any(|mode| mode.mode == ScheduleMode::OldestFirst);
    let oldest = if has_preemption { ScheduleMode::OldestFirst } else { ScheduleMode::OldestAdmission };
    let gain = |figure: fn(&PlaySummary) -> f64| {
        let [fair, limited, oldest] =
            [ScheduleMode::Fair, ScheduleMode::Limited, oldest].map(|mode| figures(&modes, mode, figure));
        GainSplit::of(&fair, &limited, &oldest, settings.confidence)
    };
    BenchReport {
        p50_gain: gain(|play| play.p50_s),
        p99_gain: gain(|play| play.p99_s),
        mean_gain: gain(|play| play.mean_s),
        repetitions: workloads.len(),
        is_stopped: workloads.len() < settings.repetitions,
        tiers: workloads[0].tiers.iter().map(|tier| tier.name.clone()).collect(),
        utilisation: (0..workloads[0].tiers.len())
            .map(|tier| utilisation(settings, workloads, tier))
            .collect(),
        requests_mean: mean(workloads.iter().map(|workload| workload.requests.len() as f64)),
        serialised: workloads.iter().map(|workload| workload.serialised).sum(),
        cpus: Vec::new(),
        left_out: Vec::new(),
        slices: KernelSlices::default(),
        load_scheduling: String::new(),
        oldest,
        modes,
    }
}

/// Returns a figure of each play of a mode; empty if the mode was not played.
fn figures(modes: &[ModeReport], mode: ScheduleMode, figure: fn(&PlaySummary) -> f64) -> Vec<f64> {
    let played = modes.iter().find(|report| report.mode == mode);
    played.map_or(Vec::new(), |report| report.plays.iter().map(figure).collect())
}

fn utilisation(settings: &BenchSettings, workloads: &[ChainWorkload], tier: usize) -> f64 {
    let work: f64 = workloads.iter().map(|workload| workload.work(tier).as_secs()).sum();
    let workers = f64::from(workloads[0].tiers[tier].workers);
    work / (settings.duration.as_secs() * workloads.len() as f64 * workers)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn mode_report(
    settings: &BenchSettings,
    workloads: &[ChainWorkload],
    plays: &ModePlays,
) -> Option<ModeReport> {
    let live: Vec<_> =
        workloads.iter().zip(plays.finished.iter().map(|play| play.played.as_slice())).collect();
    let predicted: Vec<_> = workloads.iter().zip(plays.predicted.iter().map(Vec::as_slice)).collect();
    let mut summaries = Vec::new();
    for (repetition, (live, predicted)) in live.iter().zip(&predicted).enumerate() {
        let measured = PlayMeasures::of(&[*live])?;
        let simulated = PlayMeasures::of(&[*predicted])?;
        summaries.push(PlaySummary {
            repetition,
            mean_s: measured.mean_s,
            p50_s: measured.p50_s,
            p99_s: measured.p99_s,
            simulated_p99_s: simulated.p99_s,
        });
    }
    let tiers = workloads[0].tiers.len();
    let by_play = &plays.finished;
    let others: Option<Vec<f64>> = by_play.iter().map(|play| play.others_share).collect();
    Some(ModeReport {
        mode: plays.mode,
        limits: by_play.last()?.limits.clone(),
        measured: PlayMeasures::of(&live)?,
        simulated: PlayMeasures::of(&predicted)?,
        simulated_with_costs: with_costs(workloads, plays),
        busy_per_work: busy_per_work(by_play, tiers),
        plays: summaries,
        younger_share: (0..tiers).map(|tier| younger(settings.c, by_play, tier)).collect(),
        against_fair: None,
        lag_p99_s: by_play.iter().map(|play| play.lag_p99.as_secs()).fold(0.0, f64::max),
        failed: by_play.iter().map(|play| play.failed).sum(),
        in_flight_max: by_play.iter().map(|play| play.in_flight_max).max()?,
        cpu_per_work: (0..tiers)
            .map(|tier| mean(by_play.iter().map(|play| play.cpu_per_work[tier])))
            .collect(),
        others_share: others.map(|others| mean(others.into_iter())),
    })
}

/// Returns the measures of the simulation with costs, if every play has one.
fn with_costs(workloads: &[ChainWorkload], plays: &ModePlays) -> Option<PlayMeasures> {
    let predicted = plays.predicted_with_costs.iter().map(Vec::as_slice);
    let pairs: Vec<_> = workloads.iter().zip(predicted).collect();
    if pairs.len() == workloads.len() { PlayMeasures::of(&pairs) } else { None }
}

fn busy_per_work(plays: &[FinishedPlay], tiers: usize) -> Option<Vec<f64>> {
    let factors: Vec<&Vec<f64>> =
        plays.iter().map(|play| play.busy_per_work.as_ref()).collect::<Option<_>>()?;
    Some((0..tiers).map(|tier| mean(factors.iter().map(|factors| factors[tier]))).collect())
}

/// Returns the mean over plays of a tier's share of time in which a request ran that was not among the c
/// oldest.
fn younger(c: Option<u32>, plays: &[FinishedPlay], tier: usize) -> Option<f64> {
    let shares: Vec<f64> =
        plays.iter().filter_map(|play| younger_share(&play.visits[tier], c? as usize)).collect();
    (!shares.is_empty()).then(|| mean(shares.into_iter()))
}
