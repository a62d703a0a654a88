//! Independent replications: how sure a figure is, whether more are needed, and whether there is one at all.

use super::load::RequestEntry;
use super::measure::{MeasurementWindow, Measures};
use super::network::QueueingNetwork;
use super::run::SimulationEngine;
use super::{Histogram, InvalidSimulationError, SimulationError};
use confidence::Estimate;
use machine::parallel;
use std::fmt;
use units::Percentile;

/// What a precision is wanted of: response times end to end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyStatistic {
    /// Their mean.
    Mean,
    /// A percentile.
    Percentile(Percentile),
}

/// When there are enough replications.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionGoal {
    /// The figure that matters.
    pub of: LatencyStatistic,
    /// Largest half-width of its confidence interval ÷ its value.
    pub relative: f64,
}

/// How to run an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationPlan {
    /// Replication i has seed `seed` + i.
    pub seed: u64,
    /// The requests that each replication measures.
    pub window: MeasurementWindow,
    /// Of all intervals, strictly between 0 and 1.
    pub confidence: f64,
    /// Replications at first, at least 1.
    pub replications: usize,
    /// With a goal: their number doubles until it is reached, up to this.
    pub replications_max: usize,
    /// The wanted precision, if any.
    pub goal: Option<PrecisionGoal>,
    /// The figures are those of exactly these requests, such as an overload of some length: growth is no fault.
    pub transient: bool,
}

impl SimulationPlan {
    /// 16 replications of `measured` requests each, 95 % confidence, no goal.
    pub fn of(measured: u64, seed: u64) -> Self {
        let window = MeasurementWindow::of(measured);
        Self {
            seed,
            window,
            confidence: 0.95,
            replications: 16,
            replications_max: 256,
            goal: None,
            transient: false,
        }
    }
}

/// What may be said of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplicationVerdict {
    /// No precision was asked for, or it is reached.
    Done,
    /// The same for a plan that is transient: what it would be with more requests is not said.
    Transient,
    /// The wanted precision is not reached.
    Imprecise {
        /// The precision that is.
        relative: f64,
        /// About how many replications it would take; none when that cannot be said.
        needed: Option<u64>,
    },
    /// The number of requests inside grows for as long as the runs last: the figures mean nothing.
    Unbounded {
        /// Requests that stay inside for each that arrives; none when a run was ended by the limit on requests inside.
        per_arrival: Option<f64>,
    },
}

impl fmt::Display for ReplicationVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Transient => f.write_str("transient: the figures are those of exactly these requests"),
            Self::Imprecise { relative, needed } => {
                write!(f, "the precision is ±{:.1} %, less than asked for", 100.0 * relative)?;
                needed.map_or(Ok(()), |needed| write!(f, "; about {needed} replications would do"))
            }
            Self::Unbounded { per_arrival } => {
                f.write_str("unstable: grows without bound")?;
                per_arrival
                    .map_or(Ok(()), |share| write!(f, " ({:.1} of 100 arrivals stay inside)", 100.0 * share))
            }
        }
    }
}

/// All replications of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationReport {
    /// By replication.
    pub runs: Vec<Measures>,
    /// What may be said.
    pub verdict: ReplicationVerdict,
    /// Of the intervals.
    pub confidence: f64,
}

impl SimulationReport {
    /// Any figure of a run, with its interval: the mean over the replications that have it.
    pub fn estimate(&self, figure: impl Fn(&Measures) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.runs.iter().filter_map(figure).collect();
        Estimate::of(&values, self.confidence)
    }

    /// How much larger a figure is here than in `base`, relative to that: −0.5 is half of it. Replications are paired:
    /// where both have the same seeds and the same requests, chance that both share cancels out.
    pub fn change(&self, base: &Self, figure: impl Fn(&Measures) -> Option<f64>) -> Option<Estimate> {
        let pairs = self.runs.iter().zip(&base.runs);
        let values = pairs.filter_map(|(run, base)| {
            let (value, base) = (figure(run)?, figure(base)?);
            (base != 0.0).then(|| value / base - 1.0)
        });
        Estimate::of(&values.collect::<Vec<_>>(), self.confidence)
    }

    /// Mean response time end to end, nanoseconds.
    pub fn mean(&self) -> Option<Estimate> {
        self.estimate(|run| quantity(run, LatencyStatistic::Mean))
    }

    /// A percentile of the response time end to end, nanoseconds: the mean of those of the replications, each
    /// within [`Histogram::RELATIVE_ERROR`].
    pub fn percentile(&self, percentile: Percentile) -> Option<Estimate> {
        self.estimate(|run| quantity(run, LatencyStatistic::Percentile(percentile)))
    }

    /// Response times of all replications together.
    pub fn response(&self) -> Histogram {
        let mut all = Histogram::default();
        self.runs.iter().for_each(|run| all.merge(&run.response));
        all
    }
}

fn quantity(run: &Measures, of: LatencyStatistic) -> Option<f64> {
    match of {
        LatencyStatistic::Mean => run.response.mean(),
        LatencyStatistic::Percentile(percentile) => Some(run.response.percentile(percentile)?.0 as f64),
    }
}

/// Runs replications on all processors. `load` makes the entries of one from its seed. The result does not depend
/// on the number of processors.
///
/// # Panics
/// Unless the plan's confidence is strictly between 0 and 1.
pub fn replicate(
    network: &QueueingNetwork,
    load: impl Fn(u64) -> Vec<RequestEntry> + Sync,
    plan: &SimulationPlan,
) -> Result<SimulationReport, InvalidSimulationError> {
    network.check()?;
    let mut report =
        SimulationReport { runs: Vec::new(), verdict: ReplicationVerdict::Done, confidence: plan.confidence };
    let mut wanted = plan.replications.max(1);
    loop {
        let begun = report.runs.len();
        let run = |_: &mut (), index: usize| {
            let seed = plan.seed.wrapping_add((begun + index) as u64);
            SimulationEngine::new(network, load(seed), seed).map_err(SimulationError::from)?.run(plan.window)
        };
        for outcome in parallel::map_with(wanted - begun, || (), run) {
            match outcome {
                Ok(measures) => report.runs.push(measures),
                Err(SimulationError::InvalidSimulationError(invalid)) => return Err(invalid),
                Err(SimulationError::Unbounded { .. }) => {
                    report.verdict = ReplicationVerdict::Unbounded { per_arrival: None };
                    return Ok(report);
                }
            }
        }
        report.verdict = judge(&report, plan);
        if !matches!(report.verdict, ReplicationVerdict::Imprecise { .. }) || wanted >= plan.replications_max
        {
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
    let Some(estimate) = report.estimate(|run| quantity(run, goal.of)) else { return done };
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

/// Growth that is recognised, requests per arrival: an overload of 0.2 %.
const LEAST_GROWTH: f64 = 0.002;

/// Requests that stay inside per arrival, if the number inside grows from quarter to quarter of the window, does not
/// slow down as a system does that is still filling up, and more than chance and [`LEAST_GROWTH`] explain: beyond
/// the 99.9 % confidence interval of the replications. At least three replications are needed to say so.
fn growth(runs: &[Measures]) -> Option<f64> {
    if runs.len() < 3 {
        return None;
    }
    let mean = |quarter: usize| -> f64 {
        runs.iter().map(|run| run.inside_by_quarter[quarter]).sum::<f64>() / runs.len() as f64
    };
    let quarters = [mean(0), mean(1), mean(2), mean(3)];
    let rises: Vec<f64> = quarters.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if rises.iter().any(|rise| *rise <= 0.0) || rises[2] < 0.5 * rises[0] {
        return None;
    }
    // The middles of the second and the last quarter are half a window apart.
    let growth = |run: &Measures| {
        let quarters = run.inside_by_quarter;
        (quarters[3] - quarters[1]) / (run.arrivals.max(1) as f64 / 2.0)
    };
    let values: Vec<f64> = runs.iter().map(growth).collect();
    let estimate = Estimate::of(&values, 0.999)?;
    (estimate.value - estimate.half_width > 0.0 && estimate.value > LEAST_GROWTH).then_some(estimate.value)
}
