//! The four mean latencies of section 3.1: 1.0, 1.7, 2.5 and 3.3 ms.

use super::pollaczek_khinchin::mean_latency;
use crate::claim::{Claim, Expected, format_change, format_time, to_seconds};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/variability-numbers.toml");

/// A queue of section 3.1.
struct PrintedMean {
    queue: &'static str,
    /// The mean latency that the paper prints, seconds.
    mean: f64,
    /// The squared coefficient of variation of the service time.
    c2: f64,
}

/// The queues in the order of the scenario.
const PRINTED: [PrintedMean; 4] = [
    PrintedMean { queue: "D/D/1", mean: 1.0e-3, c2: 0.0 },
    PrintedMean { queue: "M/D/1", mean: 1.7e-3, c2: 0.0 },
    PrintedMean { queue: "M/M/1", mean: 2.5e-3, c2: 1.0 },
    PrintedMean { queue: "M/H2/1", mean: 3.3e-3, c2: 2.0 },
];
/// The mean service time, seconds.
const SERVICE: f64 = 1e-3;
/// The arrival rate, per second.
const RATE: f64 = 600.0;

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = context.run_variants(&embedded_scenario("variability-numbers.toml", SCENARIO)?)?;
    let mut claims = Vec::new();
    for (run, printed) in runs.iter().zip(&PRINTED) {
        claims.extend(mean_claims(run, printed));
    }
    claims.extend(increase_claims(&runs));
    Ok(ReproducedFigure {
        reading:
            "One worker, first come, first served, 600 requests/s, service of 1 ms on average. The paper \
            writes that the rate is 0.6 · E[ST]; it is 0.6 ÷ E[ST]."
                .to_owned(),
        plots: vec![plot(&runs)],
        claims,
    })
}

/// The mean latency over the variation of the service time, for the queues with Poisson arrivals.
fn plot(runs: &[ScenarioRun]) -> FigurePlot {
    let mut simulated = Vec::new();
    for (run, printed) in runs.iter().zip(&PRINTED).skip(1) {
        simulated.extend(run.report.mean().map(|mean| (printed.c2, to_seconds(mean).value)));
    }
    let steps = (0..=8).map(|step| 0.25 * f64::from(step));
    let formula = steps.map(|c2| (c2, mean_by_formula(c2)));
    FigurePlot::new(
        "Mean latency with Poisson arrivals at a load of 60 %",
        FigureAxis::linear("squared coefficient of variation of the service", AxisQuantity::Number),
        FigureAxis::linear("mean latency", AxisQuantity::Seconds),
        vec![FigureSeries::new("simulated", simulated), FigureSeries::new("Eq. 3", formula)],
    )
}

/// The mean latency by Eq. 3, seconds, for this squared coefficient of variation of the service time.
fn mean_by_formula(c2: f64) -> f64 {
    mean_latency(RATE, SERVICE, c2 * SERVICE * SERVICE)
}

/// Compares a mean with the paper's, to its rounding, and with the formula where that applies: to Poisson arrivals.
fn mean_claims(run: &ScenarioRun, printed: &PrintedMean) -> Vec<Claim> {
    let queue = printed.queue;
    debug_assert_eq!(run.choice("queue"), queue);
    let Some(mean) = run.report.mean().map(to_seconds) else { return Vec::new() };
    let as_printed = Expected::About { value: printed.mean, within: 0.051e-3 / printed.mean };
    let statement = format!("the mean of {queue} is {}", format_time(printed.mean));
    let mut claims = vec![Claim::new(&statement, as_printed, mean, format_time)];
    if queue.starts_with('M') {
        let formula = mean_by_formula(printed.c2);
        let as_computed = Expected::About { value: formula, within: 0.02 };
        let statement = format!("the mean of {queue} is {} by Eq. 3", format_time(formula));
        claims.push(Claim::new(&statement, as_computed, mean, format_time));
    }
    claims
}

/// The claims "70 %", "a 250 % increase over the baseline" and "a 330 % increase": over the mean of D/D/1.
fn increase_claims(runs: &[ScenarioRun]) -> Vec<Claim> {
    let Some((base, others)) = runs.split_first() else { return Vec::new() };
    let mut claims = Vec::new();
    for (run, (queue, printed)) in others.iter().zip([("M/D/1", 0.7), ("M/M/1", 2.5), ("M/H2/1", 3.3)]) {
        let Some(change) = run.report.change(&base.report, |run| run.response.mean()) else { continue };
        let statement = format!("{queue}: an increase of {:.0} % over D/D/1", 100.0 * printed);
        // Means are printed to 0.1 ms, so an increase over 1 ms is known to 10 %.
        let expected = Expected::About { value: printed, within: 0.051 / printed };
        let claim = Claim::new(&statement, expected, change, format_change);
        let remark = "the latency is that percentage of the baseline; the increase is 100 % less";
        claims.push(if printed > 1.0 { claim.remark(remark) } else { claim });
    }
    claims
}
