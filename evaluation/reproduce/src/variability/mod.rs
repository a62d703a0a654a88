//! Gandhi and Suresh, *Leveraging Queueing Theory and OS Profiling*: cost of variable service times.

mod pollaczek_khinchin;
mod printed_means;
mod variance_map;

use crate::experiment::{Paper, PaperExperiment};

pub(crate) const EXPERIMENTS: &[PaperExperiment] = &[
    PaperExperiment {
        name: "variability-numbers",
        paper: Paper::Variability,
        title: "Mean latency with more and more variability, at a load of 60 % (section 3.1)",
        run: printed_means::run,
    },
    PaperExperiment {
        name: "variability-fig-1",
        paper: Paper::Variability,
        title: "Mean latency by mean and variance of the service time, 100 requests/s (figure 1)",
        run: variance_map::run,
    },
];
