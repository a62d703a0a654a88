//! Figure 2: one worker that takes 50 µs, Poisson arrivals, from 50 % to 95 %.

use super::exact::Exact;
use super::{SERVICE, at, chosen, ratio};
use crate::claim::{Claim, Expected, seconds, time, times};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-2.toml");

pub(super) fn run(context: &Context) -> Result<Figure, FigureError> {
    let runs = context.play(&embedded("tales-fig-2.toml", SCENARIO)?)?;
    let loads: Vec<f64> = runs.iter().filter_map(|run| run.choice("load").parse().ok()).collect();
    let exact: Vec<Exact> = loads.iter().map(|load| Exact::new(1, *load)).collect();
    let name =
        |run: &ScenarioRun, load: f64| Line::ccdf(format!("{:.0} %", 100.0 * load), &run.report.response());
    let lines = runs.iter().zip(&loads).map(|(run, load)| name(run, *load)).collect();
    Ok(Figure {
        reading:
            "One worker, first come, first served, Poisson arrivals. \"10x\" is read as 9.5 to 10.5. The \
                  simulation is held against the exact distribution of M/D/1."
                .to_owned(),
        plots: vec![Plot::tails("Latency by utilisation", lines), growth(&runs, &loads, &exact)],
        claims: claims(&runs, &exact),
    })
}

/// The 99th percentile over the utilisation.
fn growth(runs: &[ScenarioRun], loads: &[f64], exact: &[Exact]) -> Plot {
    let p99 = |run: &ScenarioRun| Some(run.report.estimate(at(99.0))?.value / 1e9);
    let simulated = runs.iter().zip(loads).filter_map(|(run, load)| Some((*load, p99(run)?)));
    let known = exact.iter().zip(loads).map(|(exact, load)| (*load, exact.quantile(0.99)));
    Plot {
        title: "99th percentile by utilisation".to_owned(),
        x: Axis::linear("utilisation", Quantity::Share),
        y: Axis::linear("p99", Quantity::Seconds),
        lines: vec![Line::new("simulated", simulated), Line::new("exact, M/D/1", known)],
    }
}

fn claims(runs: &[ScenarioRun], exact: &[Exact]) -> Vec<Claim> {
    let tenfold = Expected::About { value: 10.0, within: 0.05 };
    let mut claims = Vec::new();
    if let (Some(half), Some(most)) = (chosen(runs, "load", "0.5"), chosen(runs, "load", "0.95")) {
        let said = "from 50 % to 95 % the p99 grows 10x";
        claims.extend(ratio(most, half, 99.0).map(|found| Claim::new(said, tenfold, found, times)));
    }
    if let (Some(half), Some(most)) = (exact.first(), exact.last()) {
        let (half, most) = (half.quantile(0.99), most.quantile(0.99));
        let said = "the same by the exact distribution of M/D/1";
        let claim = Claim::exact(said, tenfold, most / half, times);
        claims.push(claim.remark(&format!(
            "{} and {}; of waiting alone {}",
            time(half),
            time(most),
            times((most - SERVICE) / (half - SERVICE))
        )));
    }
    for (run, exact) in runs.iter().zip(exact) {
        let formula = exact.quantile(0.99);
        // The bucket of a histogram.
        let expected = Expected::About { value: formula, within: 0.002 };
        let said = format!("p99 at {} by the exact distribution: {}", run.choice("load"), time(formula));
        let found = run.report.estimate(at(99.0)).map(seconds);
        claims.extend(found.map(|found| Claim::new(&said, expected, found, time)));
    }
    claims
}
