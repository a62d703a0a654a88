//! Latency figures of one measuring point of a simulation, with confidence intervals.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sim::engine::{Estimate, Histogram};
use std::collections::BTreeMap;
use units::Percentile;

/// Reported percentiles with their names.
pub const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

pub type SimulatedFigure = Option<Estimate>;

/// Figures of one measuring point, in the order in which they are printed.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct LatencyFigures {
    /// Measured requests.
    pub requests: u64,
    /// Mean of the latency, seconds.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub mean_s: SimulatedFigure,
    /// Median of the latency, seconds.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub p50_s: SimulatedFigure,
    /// 90th percentile of the latency, seconds.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub p90_s: SimulatedFigure,
    /// 99th percentile of the latency, seconds.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub p99_s: SimulatedFigure,
    /// 99.9th percentile of the latency, seconds.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub p99_9_s: SimulatedFigure,
    /// 99th percentile of latency ÷ service time.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub slowdown_p99: SimulatedFigure,
    /// Requests that do not complete at their place in the ideal order, percent.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub reordering_pct: SimulatedFigure,
    /// Completed requests per second.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub throughput_per_s: SimulatedFigure,
    /// Speed of the simulation itself: all simulated requests, including the warm-up, per second of wall
    /// time. The only figure that differs between runs.
    pub requests_per_wall_s: Option<f64>,
    /// Lower and upper end of each interval, by the name of its figure.
    pub ci: BTreeMap<&'static str, [f64; 2]>,
}

impl LatencyFigures {
    /// Returns the times, which are shown with their intervals.
    pub fn times(&self) -> [SimulatedFigure; 5] {
        [self.mean_s, self.p50_s, self.p90_s, self.p99_s, self.p99_9_s]
    }

    /// Fills in the ends of all intervals.
    #[must_use]
    pub(crate) fn with_intervals(mut self) -> Self {
        self.ci = intervals(&[
            ("mean_s", self.mean_s),
            ("p50_s", self.p50_s),
            ("p90_s", self.p90_s),
            ("p99_s", self.p99_s),
            ("p99_9_s", self.p99_9_s),
            ("slowdown_p99", self.slowdown_p99),
            ("reordering_pct", self.reordering_pct),
            ("throughput_per_s", self.throughput_per_s),
        ]);
        self
    }
}

/// Returns the lower and upper end of each figure that has an interval, by name. None of them is negative,
/// so that the lower end is not either.
pub fn intervals(named: &[(&'static str, SimulatedFigure)]) -> BTreeMap<&'static str, [f64; 2]> {
    let mut intervals = BTreeMap::new();
    for (name, figure) in named {
        if let Some(estimate) = figure.filter(Estimate::has_interval) {
            let Estimate { value, half_width } = estimate;
            intervals.insert(*name, [(value - half_width).max(0.0), value + half_width]);
        }
    }
    intervals
}

/// Writes the value of a figure, or null without one.
///
/// # Errors
///
/// Forwards the serializer's errors.
#[allow(clippy::ref_option, reason = "serde hands over a reference to the field")]
pub(crate) fn serialize_value<S: Serializer>(
    figure: &SimulatedFigure,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    figure.map(|estimate| estimate.value).serialize(serializer)
}

/// Returns a percentile of a histogram in the histogram's unit; `None` without values.
pub(super) fn percentile(histogram: &Histogram, percent: f64) -> Option<f64> {
    Some(histogram.percentile(Percentile::new(percent)?)?.0 as f64)
}
