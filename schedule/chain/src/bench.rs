//! Modes side by side: in every repetition all modes play the same requests, in random order, and the simulator plays
//! them as well.

use crate::grouping::TierGrouping;
use crate::kernel_slice::KernelSlices;
use crate::machine_fit::{LoadTurn, no_round_robin, tier_cpus};
use crate::mode::ScheduleMode;
use crate::play::{FinishedPlay, PlayEnd, play};
use crate::report::{BenchReport, ModePlays, UnplayedMode, report};
use crate::settings::BenchSettings;
use crate::simulated::{predicted_play, predicted_waiting_play};
use crate::workload::{ChainWorkload, draw_workload};
use discipline::serve::DisciplineSpec;
use model::OperationError;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use scenario::SimulationCase;
use sim::pool_tiers::PlayedRequest;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Nanos;

/// Observer of a bench, which may end it.
pub trait BenchHost {
    /// Called when a play begins: its number from 0, and the total.
    fn play_begins(&mut self, number: usize, plays: usize, mode: ScheduleMode);

    /// Called when a mode cannot be played here, with the reason.
    fn mode_left_out(&mut self, mode: ScheduleMode, why: &str);
}

/// Reason why no mode about unreported waits is played.
const NO_WAITS: &str = "no request waits: no [[step]] at the station of the step before it has a delay";
/// Patience of the tiers' gates.
const PATIENCE: Nanos = Nanos(1_000_000_000);
/// Limit of requests in service if neither file nor user gives one.
const LIMIT: u32 = 3;

/// Returns the limit of requests in service of the first station for which the scenario gives one.
pub fn scenario_limit(case: &SimulationCase) -> u32 {
    let sharing = case.network.stations.iter().filter_map(|station| station.discipline.limited_sharing());
    let mut limits = sharing.map(|sharing| sharing.limit).filter(|limit| *limit < u32::MAX);
    limits.next().unwrap_or(LIMIT)
}

/// Returns the class without an SLO because of which no mode by deadline can be played; `None` if each
/// class has one.
pub fn no_deadlines(case: &SimulationCase) -> Option<String> {
    let lacking = case.slos.iter().position(Option::is_none)?;
    if case.slos.iter().all(Option::is_none) {
        return Some("no deadlines: the scenario has no [[class]] with an slo".to_owned());
    }
    let name = case.classes.get(lacking).map_or("", String::as_str);
    Some(format!("no deadlines: class '{name}' has no slo"))
}

/// Plays all modes with the requests of a scenario. If `stop` becomes true, ends with the complete
/// repetitions.
///
/// # Errors
/// When the scenario cannot be played here, a tier fails, or the bench is stopped before the first
/// repetition is complete.
pub fn run_bench(
    case: &SimulationCase,
    settings: &BenchSettings,
    stop: &AtomicBool,
    host: &mut dyn BenchHost,
) -> Result<BenchReport, OperationError> {
    let grouping = tiers_of(case, settings)?;
    let cpus = tier_cpus(grouping.tiers())?;
    let slices = KernelSlices::read();
    let load_scheduling = LoadTurn::begin().scheduling.clone();
    let mut plays: Vec<ModePlays> = settings.modes.iter().map(|mode| ModePlays::of(*mode)).collect();
    let mut left_out = Vec::new();
    let mut workloads = Vec::new();
    if let Some(why) = no_round_robin() {
        leave_out(ScheduleMode::RoundRobin, &why, &mut plays, &mut left_out, host);
    }
    if let Some(why) = no_deadlines(case) {
        for mode in ScheduleMode::ALL.into_iter().filter(|mode| mode.is_by_deadline()) {
            leave_out(mode, &why, &mut plays, &mut left_out, host);
        }
    }
    if !draw_repetition(case, &grouping, settings, 0)?.0.has_waits() {
        for mode in ScheduleMode::ALL.into_iter().filter(|mode| !mode.reports_waits()) {
            leave_out(mode, NO_WAITS, &mut plays, &mut left_out, host);
        }
    }
    check_some_are_left(&plays, &left_out)?;
    for repetition in 0..settings.repetitions {
        let (workload, seed) = draw_repetition(case, &grouping, settings, repetition)?;
        let done =
            RepetitionPlan { settings, workload: &workload, cpus: &cpus, slices: &slices, repetition, seed }
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
        mode.predicted_with_costs.truncate(kept);
    }
    let mut report = report(settings, &workloads, &plays);
    report.cpus = cpus;
    report.slices = slices;
    report.load_scheduling = load_scheduling;
    report.left_out = left_out;
    Ok(report)
}

/// Checks that a scenario can be played here: its tiers on the CPUs of this process, and the requests of
/// the first repetition.
///
/// # Errors
/// When it has parts that services cannot play, would not end, needs more CPUs than there are, or has no
/// request.
pub fn check_playable(case: &SimulationCase, settings: &BenchSettings) -> Result<(), OperationError> {
    let grouping = tiers_of(case, settings)?;
    tier_cpus(grouping.tiers())?;
    draw_repetition(case, &grouping, settings, 0).map(drop)
}

fn tiers_of(case: &SimulationCase, settings: &BenchSettings) -> Result<TierGrouping, OperationError> {
    let grouping = match settings.cpus {
        Some(cpus) => TierGrouping::on_cpus(case, cpus),
        None => TierGrouping::one_by_one(case),
    };
    check(case, &grouping)?;
    Ok(grouping)
}

/// Draws the requests of a repetition, and the seed of its other random choices.
fn draw_repetition(
    case: &SimulationCase,
    grouping: &TierGrouping,
    settings: &BenchSettings,
    repetition: usize,
) -> Result<(ChainWorkload, u64), OperationError> {
    let seed = StdRng::seed_from_u64(settings.seed.wrapping_add(repetition as u64)).random();
    let workload = grouping.apply(draw_workload(case, seed, settings.duration)?);
    if workload.requests.is_empty() {
        return Err(OperationError::input(format_args!("no request arrives within {}", settings.duration))
            .hint("give a longer --duration"));
    }
    Ok((workload, seed))
}

/// Refuses a scenario that would not end.
fn check(case: &SimulationCase, grouping: &TierGrouping) -> Result<(), OperationError> {
    if case.server.is_some() {
        return Err(OperationError::input("a storage server cannot be run as services on this machine")
            .hint("describe [[station]] and [[entry]] sections"));
    }
    let loads = grouping.tiers().iter().zip(grouping.utilisation());
    let Some((tier, load)) = loads.max_by(|a, b| a.1.total_cmp(b.1)) else { return Ok(()) };
    if *load < 1.0 || case.plan.transient {
        return Ok(());
    }
    let name = &tier.name;
    let percent = 100.0 * load;
    Err(OperationError::input(format_args!(
        "unstable: tier '{name}' gets {percent:.1} % of the work that it can do"
    ))
    .hint("give a --load below 1, or `transient = true` under [run] to see what happens"))
}

/// Returns an error if every mode was left out.
fn check_some_are_left(plays: &[ModePlays], left_out: &[UnplayedMode]) -> Result<(), OperationError> {
    match left_out.first() {
        Some(UnplayedMode { mode, why }) if plays.is_empty() => {
            let error = OperationError::input(format_args!("--modes: '{mode}': {why}"));
            Err(error.hint("no mode is left; name others"))
        }
        _ => Ok(()),
    }
}

fn leave_out(
    mode: ScheduleMode,
    why: &str,
    plays: &mut Vec<ModePlays>,
    left_out: &mut Vec<UnplayedMode>,
    host: &mut dyn BenchHost,
) {
    if plays.iter().any(|plays| plays.mode == mode) {
        plays.retain(|plays| plays.mode != mode);
        host.mode_left_out(mode, why);
        left_out.push(UnplayedMode { mode, why: why.to_owned() });
    }
}

/// Adds the mode without preemption in place of one that preempts, unless it is played anyway. Returns
/// it.
fn substitute(mode: ScheduleMode, plays: &mut Vec<ModePlays>) -> Option<ScheduleMode> {
    let without = mode.without_preemption()?;
    if plays.iter().any(|plays| plays.mode == without) {
        return None;
    }
    plays.push(ModePlays::of(without));
    Some(without)
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
    /// Plays all modes in random order. Returns false if stopped.
    fn play_all(
        &self,
        plays: &mut Vec<ModePlays>,
        left_out: &mut Vec<UnplayedMode>,
        stop: &AtomicBool,
        host: &mut dyn BenchHost,
    ) -> Result<bool, OperationError> {
        let mut order: Vec<ScheduleMode> = plays.iter().map(|plays| plays.mode).collect();
        order.shuffle(&mut StdRng::seed_from_u64(self.seed));
        let mut position = 0;
        let all = self.settings.repetitions * order.len();
        while let Some(mode) = order.get(position).copied() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            host.play_begins(self.repetition * order.len() + position, all, mode);
            position += 1;
            let BenchSettings { c, program, .. } = self.settings;
            match play(self.workload, mode, *c, self.cpus, program, stop)? {
                PlayEnd::Stopped => return Ok(false),
                PlayEnd::Unavailable(why) => {
                    leave_out(mode, &why, plays, left_out, host);
                    order.extend(substitute(mode, plays));
                }
                PlayEnd::Finished(finished) => {
                    let predicted = self.predict(mode, &finished, self.workload)?;
                    let factors = finished.busy_per_work.as_deref();
                    let costly = factors.map(|factors| self.workload.with_costs(factors));
                    let costly = costly.map(|costly| self.predict(mode, &finished, &costly)).transpose()?;
                    let of_mode = plays.iter_mut().find(|plays| plays.mode == mode);
                    let of_mode = of_mode.expect("modes that were left out are not played");
                    of_mode.finished.push(*finished);
                    of_mode.predicted.push(predicted);
                    of_mode.predicted_with_costs.extend(costly);
                }
            }
        }
        Ok(true)
    }

    fn predict(
        &self,
        mode: ScheduleMode,
        finished: &FinishedPlay,
        workload: &ChainWorkload,
    ) -> Result<Vec<PlayedRequest>, OperationError> {
        if let Some(waits) = mode.waits_in_simulation() {
            return Ok(predicted_waiting_play(workload, &finished.limits, PATIENCE, waits));
        }
        let slice = if mode == ScheduleMode::RoundRobin { self.slices.round_robin } else { self.slices.fair };
        let limits = finished.limits.iter();
        let allowed_ns = workload.allowed_ns();
        let disciplines: Vec<DisciplineSpec> =
            limits.map(|limit| mode.discipline(*limit, slice.0, &allowed_ns)).collect();
        predicted_play(workload, &disciplines)
    }
}
