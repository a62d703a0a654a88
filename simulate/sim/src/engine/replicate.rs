//! Independent replications: confidence intervals, the number needed, and detection of unbounded growth.

use super::entry::RequestEntry;
use super::error::{InvalidSimulationError, SimulationError};
use super::measures::Measures;
use super::network::QueueingNetwork;
use super::plan::SimulationPlan;
use super::report::{ReplicationVerdict, SimulationReport};
use super::simulation::SimulationEngine;
use confidence::Estimate;
use machine::parallel;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Observer of replications: receives their progress, and may end them early. Called from several threads at
/// once.
pub trait ReplicationWatch: Sync {
    /// Reports that `done` replications are complete, of the number wanted so far.
    fn replications_done(&self, done: usize, wanted: usize);

    /// Returns true if no further replication should begin, and those that have begun should end without a
    /// result.
    fn is_interrupted(&self) -> bool;
}

/// A watch that ignores progress and never interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl ReplicationWatch for Unwatched {
    fn replications_done(&self, _: usize, _: usize) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Runs replications on all processors. `load` makes the entries of one from its seed. The result does not depend
/// on the number of processors.
///
/// # Errors
/// When the network or an entry cannot be simulated.
///
/// # Panics
/// Unless the plan's confidence is strictly between 0 and 1.
pub fn replicate(
    network: &QueueingNetwork,
    load: impl Fn(u64) -> Vec<RequestEntry> + Sync,
    plan: &SimulationPlan,
) -> Result<SimulationReport, InvalidSimulationError> {
    replicate_watched(network, load, plan, &Unwatched)
}

/// Like [`replicate`], but `watch` may end it early: the report then has the complete replications, perhaps
/// none.
///
/// # Errors
/// As [`replicate`].
///
/// # Panics
/// As [`replicate`].
pub fn replicate_watched(
    network: &QueueingNetwork,
    load: impl Fn(u64) -> Vec<RequestEntry> + Sync,
    plan: &SimulationPlan,
    watch: &dyn ReplicationWatch,
) -> Result<SimulationReport, InvalidSimulationError> {
    network.check()?;
    let verdict = ReplicationVerdict::Done;
    let mut report = SimulationReport { runs: Vec::new(), verdict, confidence: plan.confidence };
    let mut wanted = plan.replications.max(1);
    let is_interrupted = || watch.is_interrupted();
    loop {
        let done = report.runs.len();
        let ended = AtomicUsize::new(done);
        let run = |(): &mut (), index: usize| {
            if watch.is_interrupted() {
                return None;
            }
            let seed = plan.seed.wrapping_add((done + index) as u64);
            let engine = SimulationEngine::new(network, load(seed), seed);
            let engine = engine.map_err(SimulationError::from);
            let result = engine.and_then(|engine| engine.ended_by(&is_interrupted).run(plan.window));
            if result == Err(SimulationError::Interrupted) {
                return None;
            }
            watch.replications_done(ended.fetch_add(1, Ordering::Relaxed) + 1, wanted);
            Some(result)
        };
        for result in parallel::map_with(wanted - done, || (), run).into_iter().flatten() {
            match result {
                Ok(measures) => report.runs.push(measures),
                Err(SimulationError::Invalid(error)) => return Err(error),
                Err(SimulationError::Interrupted) => {}
                Err(SimulationError::Unbounded { .. }) => {
                    report.verdict = ReplicationVerdict::Unbounded { per_arrival: None };
                    return Ok(report);
                }
            }
        }
        if report.runs.len() < wanted {
            report.verdict = ReplicationVerdict::Interrupted;
            return Ok(report);
        }
        report.verdict = judge(&report, plan);
        let imprecise = matches!(report.verdict, ReplicationVerdict::Imprecise { .. });
        if !imprecise || wanted >= plan.replications_max {
            return Ok(report);
        }
        wanted = (wanted * 2).min(plan.replications_max);
    }
}

fn judge(report: &SimulationReport, plan: &SimulationPlan) -> ReplicationVerdict {
    let done = if plan.transient { ReplicationVerdict::Transient } else { ReplicationVerdict::Done };
    if !plan.transient
        && let Some(per_arrival) = growth(&report.runs)
    {
        return ReplicationVerdict::Unbounded { per_arrival: Some(per_arrival) };
    }
    let Some(goal) = plan.goal else { return done };
    let Some(estimate) = report.statistic(goal.statistic) else { return done };
    let relative = estimate.relative();
    if relative <= goal.relative || estimate.value == 0.0 {
        return done;
    }
    let times = (relative / goal.relative).powi(2);
    // Rounded up; a ratio beyond what can be run is not a number of replications.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let needed = (times < 1e9).then(|| (times * report.runs.len() as f64).ceil() as u64);
    ReplicationVerdict::Imprecise { relative, needed }
}

/// Minimum growth that is recognised, requests per arrival: an overload of 0.2 %.
const GROWTH_MIN: f64 = 0.002;

/// Returns the requests that stay inside per arrival if the system is unstable. The number inside must grow
/// from quarter to quarter of the window, without the slowdown of a system that is still filling up. The
/// growth must exceed [`GROWTH_MIN`] and the 99.9 % confidence interval of the replications. Needs at least
/// three replications.
fn growth(runs: &[Measures]) -> Option<f64> {
    if runs.len() < 3 {
        return None;
    }
    let quarters = [0, 1, 2, 3].map(|quarter| {
        runs.iter().map(|run| run.inside_by_quarter[quarter]).sum::<f64>() / runs.len() as f64
    });
    let rises: Vec<f64> = quarters.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if rises.iter().any(|rise| *rise <= 0.0) || rises[2] < 0.5 * rises[0] {
        return None;
    }
    let growths: Vec<f64> = runs.iter().map(growth_of_run).collect();
    let estimate = Estimate::of(&growths, 0.999)?;
    let is_certain = estimate.value - estimate.half_width > 0.0;
    (is_certain && estimate.value > GROWTH_MIN).then_some(estimate.value)
}

/// Returns the requests that stay inside per arrival in the second half of a run.
fn growth_of_run(run: &Measures) -> f64 {
    let quarters = run.inside_by_quarter;
    // The middles of the second and the last quarter are half a window apart.
    (quarters[3] - quarters[1]) / (run.arrivals.max(1) as f64 / 2.0)
}
