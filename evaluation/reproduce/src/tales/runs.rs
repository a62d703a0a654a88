//! Shared parts of the experiments of §2: service time, and finding and comparing runs.

use scenario::ScenarioRun;
use sim::engine::{Estimate, Measures};
use units::Percentile;

/// The service time of every request in §2, seconds.
pub(super) const SERVICE: f64 = 50e-6;

/// Relative tolerance of a simulated percentile against the exact one.
pub(super) const EXACT: f64 = 0.05;

/// A function that takes a percentile of the response time of a run, nanoseconds.
pub(super) fn response_percentile(percent: f64) -> impl Fn(&Measures) -> Option<f64> {
    move |measures| Some(measures.response.percentile(Percentile::new(percent)?)?.0 as f64)
}

/// The run with this value on an axis of the scenario.
pub(super) fn find_run<'a>(runs: &'a [ScenarioRun], axis: &str, value: &str) -> Option<&'a ScenarioRun> {
    runs.iter().find(|run| run.choice(axis) == value)
}

/// A percentile of the response time of one run divided by that of another.
pub(super) fn percentile_ratio(run: &ScenarioRun, base: &ScenarioRun, percent: f64) -> Option<Estimate> {
    let change = run.report.change(&base.report, response_percentile(percent))?;
    Some(Estimate { value: 1.0 + change.value, ..change })
}
