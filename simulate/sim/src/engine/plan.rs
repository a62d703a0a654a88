//! How long, how often and how precisely to simulate.

use super::measures::Measures;
use super::window::MeasurementWindow;
use units::Percentile;

/// A figure of the response times end to end whose precision is wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyStatistic {
    /// The mean response time.
    Mean,
    /// A percentile of the response time.
    Percentile(Percentile),
}

impl LatencyStatistic {
    /// The statistic of one run, nanoseconds; `None` without requests.
    pub(super) fn of_run(self, run: &Measures) -> Option<f64> {
        match self {
            Self::Mean => run.response.mean(),
            Self::Percentile(percentile) => Some(run.response.percentile(percentile)?.0 as f64),
        }
    }
}

/// The precision at which there are enough replications.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrecisionGoal {
    /// The figure that has to be precise.
    pub statistic: LatencyStatistic,
    /// The largest half-width of its confidence interval ÷ its value.
    pub relative: f64,
}

/// How to run replications of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationPlan {
    /// The seed of the first replication; replication i has seed `seed` + i.
    pub seed: u64,
    /// The requests that each replication measures.
    pub window: MeasurementWindow,
    /// The confidence of all intervals, strictly between 0 and 1.
    pub confidence: f64,
    /// Replications that are run first, at least 1.
    pub replications: usize,
    /// The most replications: with a goal their number doubles until it is reached, up to this.
    pub replications_max: usize,
    /// The wanted precision, if any.
    pub goal: Option<PrecisionGoal>,
    /// The figures are those of exactly these requests, such as an overload of some length: growth is no error.
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
