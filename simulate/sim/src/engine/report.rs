//! Replications of a simulation, and the verdict on them.

use super::histogram::Histogram;
use super::measures::Measures;
use super::plan::LatencyStatistic;
use confidence::Estimate;
use std::fmt;
use units::Percentile;

/// Verdict on the replications of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplicationVerdict {
    /// No precision was requested, or it is reached.
    Done,
    /// As `Done`, for a transient plan: no claim about longer runs.
    Transient,
    /// The requested precision is not reached.
    Imprecise {
        /// Relative half-width so far.
        relative: f64,
        /// Estimated number of replications needed; `None` if it cannot be estimated.
        needed: Option<u64>,
    },
    /// The replications were interrupted: the figures are those of the complete ones.
    Interrupted,
    /// The number of requests inside grows as long as the runs last: the figures are meaningless.
    Unbounded {
        /// Requests that stay inside per arrival; `None` if a run hit the limit on requests inside.
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
            Self::Interrupted => {
                f.write_str("interrupted: the figures are those of the replications that were complete")
            }
            Self::Unbounded { per_arrival } => {
                f.write_str("unstable: grows without bound")?;
                per_arrival
                    .map_or(Ok(()), |share| write!(f, " ({:.1} of 100 arrivals stay inside)", 100.0 * share))
            }
        }
    }
}

/// All replications of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationReport {
    /// Measures of each replication.
    pub runs: Vec<Measures>,
    /// Verdict on all replications.
    pub verdict: ReplicationVerdict,
    /// Confidence of the intervals.
    pub confidence: f64,
}

impl SimulationReport {
    /// Returns the mean of a figure over the replications that have it, with its interval.
    pub fn estimate(&self, figure: impl Fn(&Measures) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.runs.iter().filter_map(figure).collect();
        Estimate::of(&values, self.confidence)
    }

    /// Returns the relative change of a figure from `base`: −0.5 is half. Replications are paired: with equal
    /// seeds and requests, the randomness that both share cancels out.
    pub fn change(&self, base: &Self, figure: impl Fn(&Measures) -> Option<f64>) -> Option<Estimate> {
        let pairs = self.runs.iter().zip(&base.runs);
        let values = pairs.filter_map(|(run, base)| {
            let value = figure(run)?;
            let base = figure(base)?;
            (base != 0.0).then(|| value / base - 1.0)
        });
        Estimate::of(&values.collect::<Vec<_>>(), self.confidence)
    }

    /// Returns a statistic of the response time end to end, nanoseconds: the mean over the replications.
    pub fn statistic(&self, statistic: LatencyStatistic) -> Option<Estimate> {
        self.estimate(|run| statistic.of_run(run))
    }

    /// Mean response time end to end, nanoseconds.
    pub fn mean(&self) -> Option<Estimate> {
        self.statistic(LatencyStatistic::Mean)
    }

    /// Returns a percentile of the response time end to end, nanoseconds: the mean over the replications,
    /// each within [`Histogram::RELATIVE_ERROR`].
    pub fn percentile(&self, percentile: Percentile) -> Option<Estimate> {
        self.statistic(LatencyStatistic::Percentile(percentile))
    }

    /// Response times of all replications together.
    pub fn response(&self) -> Histogram {
        let mut all = Histogram::default();
        self.runs.iter().for_each(|run| all.merge(&run.response));
        all
    }
}
