//! What a bench found: the plays of each mode put together, and modes compared.

use crate::age_order::younger_share;
use crate::gains::{GainSplit, RatioEstimate};
use crate::kernel_slice::KernelSlices;
use crate::measures::PlayMeasures;
use crate::mode::ScheduleMode;
use crate::play::FinishedPlay;
use crate::played_request::PlayedRequest;
use crate::settings::BenchSettings;
use crate::workload::ChainWorkload;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// The figures of one play, for comparisons over repetitions. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PlaySummary {
    /// The repetition, from 0.
    pub repetition: usize,
    /// The mean of its latencies.
    pub mean_s: f64,
    /// The median of its latencies.
    pub p50_s: f64,
    /// The 99th percentile of its latencies.
    pub p99_s: f64,
    /// 99th percentile of latencies in the simulator.
    pub simulated_p99_s: f64,
}

/// What a mode did, all repetitions together.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeReport {
    /// The mode that was played.
    pub mode: ScheduleMode,
    /// The limit of requests in service of each tier at the end of the last play; none is no limit.
    pub limits: Vec<Option<u32>>,
    /// What the services did.
    pub measured: PlayMeasures,
    /// What the simulator says of the same requests.
    pub simulated: PlayMeasures,
    /// What it says when work takes as long at each tier as its CPUs were busy for it, with all that load, kernel and
    /// others did there; none where the kernel does not say.
    pub simulated_with_costs: Option<PlayMeasures>,
    /// How long the CPUs of each tier were busy ÷ the work that it was given, mean of the plays.
    pub busy_per_work: Option<Vec<f64>>,
    /// Each play by itself, in order of repetitions.
    pub plays: Vec<PlaySummary>,
    /// By tier, the share of the time in which something ran that was not among the c oldest, or of modes by deadline among
    /// the c with the earliest deadlines; none without a limit.
    pub younger_share: Vec<Option<f64>>,
    /// The ratio of the 99th percentile to that of a thread per request, where both were played.
    pub against_fair: Option<RatioEstimate>,
    /// The 99th percentile of how late requests were sent, in the worst play, seconds.
    pub lag_p99_s: f64,
    /// Requests that were answered with an error.
    pub failed: usize,
    /// The most requests in flight at once.
    pub in_flight_max: usize,
    /// CPU time of each tier ÷ the work that it was given.
    pub cpu_per_work: Vec<f64>,
    /// The share of the time of the CPUs that others than load and tiers had; none where the kernel does not say.
    pub others_share: Option<f64>,
}

/// What a bench found.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchReport {
    /// The modes that were played, in the order of the settings.
    pub modes: Vec<ModeReport>,
    /// The modes that could not be played, with the reasons.
    pub left_out: Vec<(ScheduleMode, String)>,
    /// Repetitions in which all modes were played.
    pub repetitions: usize,
    /// Whether it was stopped before all repetitions.
    pub is_stopped: bool,
    /// The names of the tiers, in the order of figures by tier.
    pub tiers: Vec<String>,
    /// The CPUs of each tier.
    pub cpus: Vec<BTreeSet<usize>>,
    /// Work that arrives ÷ what its CPUs can do, by tier, in the requests that were drawn.
    pub utilisation: Vec<f64>,
    /// Requests of a repetition on average.
    pub requests_mean: f64,
    /// Requests whose steps could overlap and were put one after the other.
    pub serialised: usize,
    /// What the limit and what age does to the median, if `fair`, `limited` and `orf` (or `orf-admission`) were played.
    pub p50_gain: Option<GainSplit>,
    /// The same of the 99th percentile.
    pub p99_gain: Option<GainSplit>,
    /// The same of the mean.
    pub mean_gain: Option<GainSplit>,
    /// The mode that stands for age in these: `orf`, or `orf-admission` where nobody may be preempted.
    pub oldest: ScheduleMode,
    /// For how long the kernel lets one of several threads run, as the simulator takes it.
    pub slices: KernelSlices,
    /// What the load was scheduled as.
    pub load_scheduling: String,
}

/// Everything that one mode has played so far.
#[derive(Debug)]
pub(crate) struct ModePlays {
    pub(crate) mode: ScheduleMode,
    pub(crate) finished: Vec<FinishedPlay>,
    pub(crate) predicted: Vec<Vec<PlayedRequest>>,
    /// As many as plays, unless the kernel does not say how busy CPUs are.
    pub(crate) predicted_with_costs: Vec<Vec<PlayedRequest>>,
}

impl ModePlays {
    pub(crate) fn of(mode: ScheduleMode) -> Self {
        Self { mode, finished: Vec::new(), predicted: Vec::new(), predicted_with_costs: Vec::new() }
    }
}

/// The report of these plays, without what is known of the machine.
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

/// A figure of each play of a mode; nothing when it was not played.
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

/// The measures of the simulation with costs, where every play has one.
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

/// The mean over plays of the share of the time in which something ran at a tier that was not among the c oldest.
fn younger(c: Option<u32>, plays: &[FinishedPlay], tier: usize) -> Option<f64> {
    let shares: Vec<f64> =
        plays.iter().filter_map(|play| younger_share(&play.visits[tier], c? as usize)).collect();
    (!shares.is_empty()).then(|| mean(shares.into_iter()))
}
