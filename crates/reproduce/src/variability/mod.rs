//! Gandhi and Suresh, *Leveraging Queueing Theory and OS Profiling*: what variability of the service time costs.

mod lines;
mod numbers;

use crate::{Experiment, Paper};

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "variability-numbers",
        paper: Paper::Variability,
        title: "Mean latency with more and more variability, at a load of 60 % (section 3.1)",
        run: numbers::run,
    },
    Experiment {
        name: "variability-fig-1",
        paper: Paper::Variability,
        title: "Mean latency by mean and variance of the service time, 100 requests/s (figure 1)",
        run: lines::run,
    },
];

/// Mean latency of M/G/1 by Pollaczek and Khinchin (Eq. 3): `rate` per second, mean in seconds, variance in seconds
/// squared; load below 1.
fn mean_latency(rate: f64, mean: f64, variance: f64) -> f64 {
    let load = rate * mean;
    variance * rate / (2.0 * (1.0 - load)) + mean * (2.0 - load) / (2.0 * (1.0 - load))
}
