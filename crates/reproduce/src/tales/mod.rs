//! Li, Sharma, Ports and Gribble, *Tales of the Tail*, §2: the latency that queueing alone causes.

mod arrivals;
mod exact;
mod measured;
mod order;
mod utilisation;
mod workers;

use crate::{Experiment, Paper};
use scenario::ScenarioRun;
use sim::engine::{Estimate, Measures};
use units::Percentile;

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "tales-fig-1",
        paper: Paper::Tales,
        title: "Latency by arrival process: one worker, 50 µs, 70 % (figure 1)",
        run: arrivals::run,
    },
    Experiment {
        name: "tales-fig-2",
        paper: Paper::Tales,
        title: "Latency by utilisation: one worker, 50 µs, Poisson arrivals (figure 2)",
        run: utilisation::run,
    },
    Experiment {
        name: "tales-fig-3",
        paper: Paper::Tales,
        title: "Latency by number of workers at 70 % (figure 3)",
        run: workers::run,
    },
    Experiment {
        name: "tales-fig-4",
        paper: Paper::Tales,
        title: "Latency by queueing discipline: four workers at 80 % (figure 4)",
        run: order::run,
    },
];

/// What every request takes in §2, seconds.
const SERVICE: f64 = 50e-6;

/// A percentile of a run, nanoseconds.
fn at(percent: f64) -> impl Fn(&Measures) -> Option<f64> {
    move |run| Some(run.response.percentile(Percentile::new(percent)?)?.0 as f64)
}

/// The run whose choice on an axis is this.
fn chosen<'a>(runs: &'a [ScenarioRun], axis: &str, value: &str) -> Option<&'a ScenarioRun> {
    runs.iter().find(|run| run.choice(axis) == value)
}

/// How many times as large a percentile is in one run as in another.
fn ratio(run: &ScenarioRun, base: &ScenarioRun, percent: f64) -> Option<Estimate> {
    let change = run.report.change(&base.report, at(percent))?;
    Some(Estimate { value: 1.0 + change.value, ..change })
}
