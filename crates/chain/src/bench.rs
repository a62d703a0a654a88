//! Modes side by side: in every repetition all modes play the same requests, in random order, and the simulator plays
//! them as well.

use crate::age_order::younger_share;
use crate::gains::{GainSplit, RatioEstimate};
use crate::kernel_slice::KernelSlices;
use crate::measures::{PlayMeasures, PlayedRequest};
use crate::mode::ScheduleMode;
use crate::play::{FinishedPlay, PlayEnd, play};
use crate::simulated::predicted_play;
use crate::tier::ROUND_ROBIN_PRIORITY;
use crate::workload::{ChainWorkload, draw_workload};
use discipline::serve::DisciplineSpec;
use machine::scheduling::{self, SchedulingPolicy, ThreadScheduling};
use model::OperationError;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use scenario::SimulationCase;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Nanos;

/// The real-time priority of the load, above that of tiers under SCHED_RR.
const LOAD_PRIORITY: u32 = 2;
/// For how long the load runs before others may, where it has no real-time priority: the least that Linux takes, so that it
/// is woken at once (since Linux 6.12).
const LOAD_SLICE_NS: u64 = 100_000;

/// What is played, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchSettings {
    /// The modes, each once.
    pub modes: Vec<ScheduleMode>,
    /// The limit of requests in service where a mode has one, at least 1; none is no limit.
    pub c: Option<u32>,
    /// How often every mode plays, at least 1.
    pub repetitions: usize,
    /// For how long requests arrive in each play.
    pub duration: Nanos,
    /// Of arrivals, work and the order of modes.
    pub seed: u64,
    /// Of the intervals of ratios, strictly between 0 and 1.
    pub confidence: f64,
    /// The program whose `schedule tier` is a tier.
    pub program: PathBuf,
}

/// Whoever wants to know how a bench is getting on, and may end it.
pub trait BenchHost {
    /// A play begins: its number from 0, of so many.
    fn play_begins(&mut self, number: usize, plays: usize, mode: ScheduleMode);

    /// A mode cannot be played here, and why.
    fn mode_left_out(&mut self, mode: ScheduleMode, why: &str);
}

/// The figures of one play, for comparisons over repetitions. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlaySummary {
    /// The repetition, from 0.
    pub repetition: usize,
    /// Mean latency.
    pub mean_s: f64,
    /// Median latency.
    pub p50_s: f64,
    /// 99th percentile of latencies.
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
    /// Each play by itself, in order of repetitions.
    pub plays: Vec<PlaySummary>,
    /// By tier, the share of the time in which something ran that was not among the c oldest; none without a limit.
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
struct ModePlays {
    mode: ScheduleMode,
    finished: Vec<FinishedPlay>,
    predicted: Vec<Vec<PlayedRequest>>,
}

/// The limit of requests in service where neither file nor user gives one.
const LIMIT: u32 = 3;

/// The limit of requests in service that a scenario gives for a station, of the first with one.
pub fn scenario_limit(case: &SimulationCase) -> u32 {
    let limits = case.network.stations.iter().filter_map(|station| match &station.discipline {
        DisciplineSpec::Limited(limited) if limited.limit < u32::MAX => Some(limited.limit),
        _ => None,
    });
    limits.into_iter().next().unwrap_or(LIMIT)
}

/// Plays all modes with the requests of a scenario. When `stop` becomes true, it ends with the repetitions that are
/// complete.
///
/// # Errors
/// When the scenario cannot be played here, tiers fail, or it is stopped before the first repetition is complete.
pub fn run_bench(
    case: &SimulationCase,
    settings: &BenchSettings,
    stop: &AtomicBool,
    host: &mut dyn BenchHost,
) -> Result<BenchReport, OperationError> {
    check(case)?;
    let cpus = tier_cpus(case)?;
    let slices = KernelSlices::read();
    let load_scheduling = schedule_load();
    let mut plays: Vec<ModePlays> = settings.modes.iter().map(|mode| ModePlays::of(*mode)).collect();
    let (mut left_out, mut workloads) = (Vec::new(), Vec::new());
    if let Some(why) = no_round_robin() {
        leave_out(ScheduleMode::RoundRobin, &why, &mut plays, &mut left_out, host);
    }
    for repetition in 0..settings.repetitions {
        let seed = StdRng::seed_from_u64(settings.seed.wrapping_add(repetition as u64)).random();
        let workload = draw_workload(case, seed, settings.duration)?;
        if workload.requests.is_empty() {
            return Err(OperationError::input(format_args!("no request arrives within {}", settings.duration))
                .hint("give a longer --duration"));
        }
        let done = RepetitionPlan { settings, workload: &workload, cpus: &cpus, slices: &slices, repetition, seed }
            .play_all(&mut plays, &mut left_out, stop, host)?;
        if !done {
            break;
        }
        workloads.push(workload);
    }
    if workloads.is_empty() || plays.is_empty() {
        return Err(OperationError::machine("no repetition is complete, and there is nothing to show")
            .hint("let it run longer, or give a shorter --duration"));
    }
    let kept = workloads.len();
    for mode in &mut plays {
        mode.finished.truncate(kept);
        mode.predicted.truncate(kept);
    }
    let mut report = report(settings, &workloads, &plays);
    report.cpus = cpus;
    report.slices = slices;
    report.load_scheduling = load_scheduling;
    report.left_out = left_out;
    Ok(report)
}

/// Refuses what would not come to an end.
fn check(case: &SimulationCase) -> Result<(), OperationError> {
    if case.server.is_some() {
        return Ok(());
    }
    let (busiest, load) = case.busiest();
    if load < 1.0 || case.plan.transient {
        return Ok(());
    }
    let (name, percent) = (&case.network.stations[busiest].name, 100.0 * load);
    Err(OperationError::input(format_args!("unstable: tier '{name}' gets {percent:.1} % of the work that it can do"))
        .hint("give a --load below 1, or `transient = true` under [run] to see what happens"))
}

/// CPUs of its own for each tier.
fn tier_cpus(case: &SimulationCase) -> Result<Vec<BTreeSet<usize>>, OperationError> {
    let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let allowed = scheduling::cpus(own)
        .map_err(|error| OperationError::machine(format_args!("the CPUs of this process: {error}")))?;
    let wanted: usize = case.network.stations.iter().map(|station| station.workers as usize).sum();
    if wanted > allowed.len() {
        let found = allowed.len();
        return Err(OperationError::machine(format_args!(
            "the tiers need {wanted} CPUs of their own, and this process may use {found}"
        ))
        .hint("`taskset -p $$` shows which; `--set 'station.*.workers=1'` needs fewer; `tailwright simulate` needs none"));
    }
    let mut left = allowed.into_iter();
    let stations = case.network.stations.iter();
    Ok(stations.map(|station| left.by_ref().take(station.workers as usize).collect()).collect())
}

/// Has this thread run as soon as a request is due, as far as it may, and says how.
fn schedule_load() -> String {
    let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let _ = machine::realtime::exact_timers();
    let fifo = ThreadScheduling::real_time(SchedulingPolicy::Fifo, LOAD_PRIORITY);
    let reset = ThreadScheduling { resets_on_fork: true, ..fifo };
    if scheduling::set_scheduling(own, &reset).is_ok() {
        return fifo.to_string();
    }
    let short = ThreadScheduling { slice_ns: LOAD_SLICE_NS, resets_on_fork: true, ..ThreadScheduling::ordinary(0) };
    match scheduling::set_scheduling(own, &short) {
        Ok(()) => format!("ordinary, slices of {}", Nanos(LOAD_SLICE_NS)),
        Err(_) => "ordinary".to_owned(),
    }
}

/// Why this process may not have threads under SCHED_RR, tried by a thread that ends with it.
fn no_round_robin() -> Option<String> {
    let tried = std::thread::spawn(|| {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let wanted = ThreadScheduling::real_time(SchedulingPolicy::RoundRobin, ROUND_ROBIN_PRIORITY);
        scheduling::set_scheduling(own, &wanted)
    });
    let error = tried.join().ok()?.err()?;
    Some(format!("no real-time priority ({error}); `ulimit -r` or the capability SYS_NICE gives it"))
}

fn leave_out(
    mode: ScheduleMode,
    why: &str,
    plays: &mut Vec<ModePlays>,
    left_out: &mut Vec<(ScheduleMode, String)>,
    host: &mut dyn BenchHost,
) {
    if plays.iter().any(|plays| plays.mode == mode) {
        plays.retain(|plays| plays.mode != mode);
        host.mode_left_out(mode, why);
        left_out.push((mode, why.to_owned()));
    }
}

impl ModePlays {
    fn of(mode: ScheduleMode) -> Self {
        Self { mode, finished: Vec::new(), predicted: Vec::new() }
    }
}

/// One repetition: the same requests for all modes.
struct RepetitionPlan<'a> {
    settings: &'a BenchSettings,
    workload: &'a ChainWorkload,
    cpus: &'a [BTreeSet<usize>],
    slices: &'a KernelSlices,
    repetition: usize,
    seed: u64,
}

impl RepetitionPlan<'_> {
    /// Plays all modes in random order; false when it was stopped.
    fn play_all(
        &self,
        plays: &mut Vec<ModePlays>,
        left_out: &mut Vec<(ScheduleMode, String)>,
        stop: &AtomicBool,
        host: &mut dyn BenchHost,
    ) -> Result<bool, OperationError> {
        let mut order: Vec<ScheduleMode> = plays.iter().map(|plays| plays.mode).collect();
        order.shuffle(&mut StdRng::seed_from_u64(self.seed));
        for (position, mode) in order.iter().copied().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let number = self.repetition * order.len() + position;
            host.play_begins(number, self.settings.repetitions * order.len(), mode);
            let BenchSettings { c, program, .. } = self.settings;
            match play(self.workload, mode, *c, self.cpus, program, stop)? {
                PlayEnd::Stopped => return Ok(false),
                PlayEnd::Unavailable(why) => leave_out(mode, &why, plays, left_out, host),
                PlayEnd::Finished(finished) => {
                    let predicted = self.predict(mode, &finished)?;
                    let of_mode = plays.iter_mut().find(|plays| plays.mode == mode);
                    let of_mode = of_mode.expect("modes that were left out are not played");
                    of_mode.finished.push(*finished);
                    of_mode.predicted.push(predicted);
                }
            }
        }
        Ok(true)
    }

    fn predict(&self, mode: ScheduleMode, finished: &FinishedPlay) -> Result<Vec<PlayedRequest>, OperationError> {
        let slice = if mode == ScheduleMode::RoundRobin { self.slices.round_robin } else { self.slices.fair };
        let limits = finished.limits.iter();
        let disciplines: Vec<DisciplineSpec> = limits.map(|limit| mode.discipline(*limit, slice.0)).collect();
        predicted_play(self.workload, &disciplines)
    }
}

fn report(settings: &BenchSettings, workloads: &[ChainWorkload], plays: &[ModePlays]) -> BenchReport {
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
        utilisation: (0..workloads[0].tiers.len()).map(|tier| utilisation(settings, workloads, tier)).collect(),
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

fn mode_report(settings: &BenchSettings, workloads: &[ChainWorkload], plays: &ModePlays) -> Option<ModeReport> {
    let live: Vec<_> = workloads.iter().zip(plays.finished.iter().map(|play| play.played.as_slice())).collect();
    let predicted: Vec<_> = workloads.iter().zip(plays.predicted.iter().map(Vec::as_slice)).collect();
    let mut summaries = Vec::new();
    for (repetition, (live, predicted)) in live.iter().zip(&predicted).enumerate() {
        let (measured, simulated) = (PlayMeasures::of(&[*live])?, PlayMeasures::of(&[*predicted])?);
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
        plays: summaries,
        younger_share: (0..tiers).map(|tier| younger(settings.c, by_play, tier)).collect(),
        against_fair: None,
        lag_p99_s: by_play.iter().map(|play| play.lag_p99.as_secs()).fold(0.0, f64::max),
        failed: by_play.iter().map(|play| play.failed).sum(),
        in_flight_max: by_play.iter().map(|play| play.in_flight_max).max()?,
        cpu_per_work: (0..tiers).map(|tier| mean(by_play.iter().map(|play| play.cpu_per_work[tier]))).collect(),
        others_share: others.map(|others| mean(others.into_iter())),
    })
}

/// The mean over plays of the share of the time in which something ran at a tier that was not among the c oldest.
fn younger(c: Option<u32>, plays: &[FinishedPlay], tier: usize) -> Option<f64> {
    let shares: Vec<f64> =
        plays.iter().filter_map(|play| younger_share(&play.visits[tier], c? as usize)).collect();
    (!shares.is_empty()).then(|| mean(shares.into_iter()))
}
