//! Length, number and precision of replications.

use super::measures::Measures;
use super::window::MeasurementWindow;
use units::Percentile;

/// Statistic of the response times end to end, as the subject of a precision goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyStatistic {
    /// The mean response time.
    Mean,
    /// A percentile of the response time.
    Percentile(Percentile),
}

impl LatencyStatistic {
    /// Returns the statistic of one run, nanoseconds; `None` without requests.
    pub(super) fn of_run(self, run: &Measures) -> Option<f64> {
        match self {
            Self::Mean => run.response.mean(),
            Self::Percentile(percentile) => Some(run.response.percentile(percentile)?.0 as f64),
        }
    }
}

/// Precision at which no further replications are needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionGoal {
    /// Statistic that has to be precise.
    pub statistic: LatencyStatistic,
    /// Maximum half-width of its confidence interval ÷ its value.
    pub relative: f64,
}

/// Plan of the replications of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationPlan {
    /// Seed of the first replication; replication i has seed `seed` + i.
    pub seed: u64,
    /// Window of each replication.
    pub window: MeasurementWindow,
    /// Confidence of all intervals, strictly between 0 and 1.
    pub confidence: f64,
    /// Initial number of replications, at least 1.
    pub replications: usize,
    /// Maximum number of replications: with a goal their number doubles up to this until the goal is reached.
    pub replications_max: usize,
    /// Wanted precision, if any.
    pub goal: Option<PrecisionGoal>,
    /// True if the figures describe exactly these requests, such as an overload of limited length: growth
    /// is no error then.
    pub transient: bool,
}

impl SimulationPlan {
    /// 16 replications that measure this many requests each, 95 % confidence, no goal.
    pub fn of_requests(measured: u64, seed: u64) -> Self {
        Self {
            seed,
            window: MeasurementWindow::of_requests(measured),
            confidence: 0.95,
            replications: 16,
            replications_max: 256,
            goal: None,
            transient: false,
        }
    }
}
