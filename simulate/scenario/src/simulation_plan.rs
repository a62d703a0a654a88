//! Length, number and precision of the runs of a scenario: its `[run]` section.

use crate::file::{RunSpec, Scenario};
use sim::engine::{MeasurementWindow, PrecisionGoal, SimulationPlan};
use units::Nanos;

/// More replications do not fit into memory: each keeps its histograms.
const REPLICATIONS_MAX: usize = 10_000;

/// Returns the plan of a scenario. Its seed is replaced by that of the run.
///
/// # Errors
/// When a number is out of its range, or the length of the run is given twice.
pub(crate) fn simulation_plan(scenario: &Scenario) -> Result<SimulationPlan, String> {
    let run = &scenario.run;
    let mut plan = SimulationPlan::of_requests(run.requests.unwrap_or(100_000), 0);
    let warm_up = if run.transient { 0 } else { plan.window.warm_up };
    let warm_up = run.warm_up.unwrap_or(warm_up);
    plan.window = MeasurementWindow { warm_up, by_station: true, span: span(run)?, ..plan.window };
    plan.transient = run.transient;
    plan.replications = run.replications.unwrap_or(8);
    plan.replications_max = run.replications_max.unwrap_or(plan.replications.max(64));
    plan.confidence = run.confidence.unwrap_or(0.95);
    plan.goal =
        run.precision.as_ref().map(|goal| PrecisionGoal { statistic: goal.of.0, relative: goal.relative });
    if plan.window.measured == 0 || plan.replications == 0 {
        return Err("run: at least one request and one replication".into());
    }
    if plan.replications_max < plan.replications {
        return Err(format!(
            "run: expected replications_max to be at least replications, {}, found {}",
            plan.replications, plan.replications_max
        ));
    }
    if plan.replications_max > REPLICATIONS_MAX {
        return Err(format!(
            "run: expected at most {REPLICATIONS_MAX} replications, found {}",
            plan.replications_max
        ));
    }
    if !(plan.confidence > 0.0 && plan.confidence < 1.0) {
        return Err(format!("run: expected a confidence between 0 and 1, found {}", plan.confidence));
    }
    match plan.goal {
        Some(goal) if !(goal.relative > 0.0 && goal.relative.is_finite()) => {
            Err(format!("run: expected a relative precision above 0, such as 0.05, found {}", goal.relative))
        }
        _ => Ok(plan),
    }
}

/// The window as times, if the scenario gives durations.
fn span(run: &RunSpec) -> Result<Option<(Nanos, Nanos)>, String> {
    let Some(duration) = run.duration else {
        return match run.warm_up_duration {
            Some(_) => Err("run: warm_up_duration needs duration".into()),
            None => Ok(None),
        };
    };
    if run.requests.is_some() || run.warm_up.is_some() {
        return Err("run: expected requests and warm_up, or duration and warm_up_duration".into());
    }
    let begin = run.warm_up_duration.unwrap_or(Nanos(duration.0 / 10));
    match begin.0.checked_add(duration.0) {
        Some(end) if duration > Nanos::ZERO => Ok(Some((begin, Nanos(end)))),
        _ => Err("run: expected a duration above 0 and below 500 years".into()),
    }
}
