//! Li, Sharma, Ports and Gribble, *Tales of the Tail*, §2: the latency that queueing alone causes.

mod arrival_process;
mod discipline;
mod mdc_distribution;
mod recorded_arrivals;
mod runs;
mod utilisation;
mod workers;

use crate::experiment::{Paper, PaperExperiment};

pub(crate) const EXPERIMENTS: &[PaperExperiment] = &[
    PaperExperiment {
        name: "tales-fig-1",
        paper: Paper::Tales,
        title: "Latency by arrival process: one worker, 50 µs, 70 % (figure 1)",
        run: arrival_process::run,
    },
    PaperExperiment {
        name: "tales-fig-2",
        paper: Paper::Tales,
        title: "Latency by utilisation: one worker, 50 µs, Poisson arrivals (figure 2)",
        run: utilisation::run,
    },
    PaperExperiment {
        name: "tales-fig-3",
        paper: Paper::Tales,
        title: "Latency by number of workers at 70 % (figure 3)",
        run: workers::run,
    },
    PaperExperiment {
        name: "tales-fig-4",
        paper: Paper::Tales,
        title: "Latency by queueing discipline: four workers at 80 % (figure 4)",
        run: discipline::run,
    },
];
