//! Gandhi and Suresh, *Leveraging Queueing Theory and OS Profiling*: what variability of the service time costs.

mod numbers;

use crate::{Experiment, Paper};

pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    name: "variability-numbers",
    paper: Paper::Variability,
    title: "Mean latency with more and more variability, at a load of 60 % (section 2)",
    run: numbers::run,
}];
