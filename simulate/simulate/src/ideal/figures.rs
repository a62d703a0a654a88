//! The latencies of a stream under one discipline.

use crate::simulation::{LatencyFigures, PERCENTILES};
use model::OperationError;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sim::engine::{Estimate, Histogram};
use sim::ideal::{ServiceOrder, Summary};
use units::Percentile;

/// Result of one discipline on a stream.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IdealOutcome {
    /// Order of service.
    #[serde(rename = "discipline", serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub order: ServiceOrder,
    /// Latencies of all requests.
    #[serde(skip)]
    pub latencies: Histogram,
    /// The mean latency is infinite, because service times have no variance; `mean_s` is null then.
    pub mean_is_infinite: bool,
    /// Mean, percentiles and the other reported figures.
    #[serde(flatten)]
    pub figures: LatencyFigures,
}

fn as_text<S: Serializer>(order: &ServiceOrder, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(order)
}

impl IdealOutcome {
    /// Builds the outcome of a summary; `played` requests took `elapsed_s` seconds of wall time.
    pub(super) fn new(
        order: ServiceOrder,
        summary: &Summary,
        played: u64,
        elapsed_s: f64,
    ) -> Result<Self, OperationError> {
        let Some(mean) = summary.mean() else {
            return Err(OperationError::input("there are no requests"));
        };
        let [p50_s, p90_s, p99_s, p99_9_s] =
            PERCENTILES.map(|(_, percent)| summary.percentile(Percentile::new(percent)?).map(seconds));
        let requests = summary.count();
        let figures = LatencyFigures {
            requests,
            mean_s: Some(seconds(mean)),
            p50_s,
            p90_s,
            p99_s,
            p99_9_s,
            slowdown_p99: Percentile::new(99.0).and_then(|percentile| summary.slowdown(percentile)),
            reordering_pct: summary.displaced_pct(),
            throughput_per_s: summary.throughput_per_s(),
            requests_per_wall_s: (elapsed_s > 0.0).then(|| played as f64 / elapsed_s),
            ..LatencyFigures::default()
        };
        let latencies = summary.latencies();
        Ok(Self { order, latencies, mean_is_infinite: false, figures: figures.with_intervals() })
    }

    /// Removes the mean of the sample, because it estimates nothing.
    pub(super) fn has_infinite_mean(&mut self) {
        self.mean_is_infinite = true;
        self.figures.mean_s = None;
        self.figures.ci.remove("mean_s");
    }
}

/// Converts an estimate from nanoseconds to seconds.
fn seconds(figure: Estimate) -> Estimate {
    Estimate { value: figure.value * 1e-9, half_width: figure.half_width * 1e-9 }
}
