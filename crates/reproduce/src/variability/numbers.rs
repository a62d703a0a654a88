//! The four means of section 3.1: 1.0, 1.7, 2.5 and 3.3 ms.

use super::mean_latency;
use crate::claim::{Claim, Expected, change, seconds, time};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/variability-numbers.toml");

/// By queue: the paper's mean in seconds, and the squared variation of the service.
const SAID: [(&str, f64, f64); 4] =
    [("D/D/1", 1.0e-3, 0.0), ("M/D/1", 1.7e-3, 0.0), ("M/M/1", 2.5e-3, 1.0), ("M/H2/1", 3.3e-3, 2.0)];
/// Mean service, seconds.
const SERVICE: f64 = 1e-3;
const RATE: f64 = 600.0;

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let runs = context.play(&embedded("variability-numbers.toml", SCENARIO)?)?;
    let mut claims: Vec<Claim> = runs.iter().zip(SAID).flat_map(|(run, said)| claims(run, said)).collect();
    claims.extend(increases(&runs));
    let mean = |run: &ScenarioRun| Some(seconds(run.report.mean()?).value);
    let point = |(run, said): (&ScenarioRun, (&str, f64, f64))| Some((said.2, mean(run)?));
    let simulated = runs.iter().zip(SAID).skip(1).filter_map(point);
    let formula = (0..=8).map(|step| 0.25 * f64::from(step));
    let formula = formula.map(|c2| (c2, mean_latency(RATE, SERVICE, c2 * SERVICE * SERVICE)));
    let plot = Plot {
        title: "Mean latency with Poisson arrivals at a load of 60 %".to_owned(),
        x: Axis::linear("squared coefficient of variation of the service", Quantity::Number),
        y: Axis::linear("mean latency", Quantity::Seconds),
        lines: vec![Line::new("simulated", simulated), Line::new("Eq. 3", formula)],
    };
    Ok(Figure {
        reading:
            "One worker, first come, first served, 600 requests/s, service of 1 ms on average. The paper \
            writes that the rate is 0.6 · E[ST]; it is 0.6 ÷ E[ST]."
                .to_owned(),
        plots: vec![plot],
        claims,
    })
}

/// The mean beside the paper's, to its rounding, and beside the formula where it applies: to Poisson arrivals.
fn claims(run: &ScenarioRun, (queue, said, c2): (&str, f64, f64)) -> Vec<Claim> {
    debug_assert_eq!(run.choice("queue"), queue);
    let Some(mean) = run.report.mean().map(seconds) else { return Vec::new() };
    let printed = Expected::About { value: said, within: 0.051e-3 / said };
    let mut claims = vec![Claim::new(&format!("the mean of {queue} is {}", time(said)), printed, mean, time)];
    if queue.starts_with('M') {
        let formula = mean_latency(RATE, SERVICE, c2 * SERVICE * SERVICE);
        let exact = Expected::About { value: formula, within: 0.0 };
        let said = format!("the mean of {queue} is {} by Eq. 3", time(formula));
        claims.push(Claim::new(&said, exact, mean, time));
    }
    claims
}

/// "70 %", "a 250 % increase over the baseline", "a 330 % increase": over the mean of D/D/1, as increases.
fn increases(runs: &[ScenarioRun]) -> Vec<Claim> {
    let Some(base) = runs.first() else { return Vec::new() };
    let words = [("M/D/1", 0.7), ("M/M/1", 2.5), ("M/H2/1", 3.3)];
    let claim = |(run, (queue, said)): (&ScenarioRun, (&str, f64))| {
        let found = run.report.change(&base.report, |run| run.response.mean())?;
        let text = format!("{queue}: an increase of {:.0} % over D/D/1", 100.0 * said);
        // Means are printed to 0.1 ms, so an increase is to 10 %.
        let claim = Claim::new(&text, Expected::About { value: said, within: 0.051 / said }, found, change);
        let over = "the latency is that percentage of the baseline; the increase is 100 % less";
        Some(if said > 1.0 { claim.remark(over) } else { claim })
    };
    runs[1..].iter().zip(words).filter_map(claim).collect()
}
