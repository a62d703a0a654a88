//! Figure 2: one worker that takes 50 µs, Poisson arrivals, utilisations from 50 % to 95 %.

use super::mdc_distribution::MdcDistribution;
use super::runs::{EXACT, SERVICE, find_run, percentile_ratio, response_percentile};
use crate::claim::{Claim, Expected, format_factor, format_time, to_seconds};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-2.toml");

pub(super) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = context.run_variants(&embedded_scenario("tales-fig-2.toml", SCENARIO)?)?;
    let loads: Vec<f64> = runs.iter().filter_map(|run| run.choice("load").parse().ok()).collect();
    let exact: Vec<MdcDistribution> = loads.iter().map(|load| MdcDistribution::new(1, *load)).collect();
    let mut lines = Vec::new();
    for (run, load) in runs.iter().zip(&loads) {
        lines.push(FigureSeries::ccdf(format!("{:.0} %", 100.0 * load), &run.report.response()));
    }
    Ok(ReproducedFigure {
        reading:
            "One worker, first come, first served, Poisson arrivals. \"10x\" is read as 8.75 to 11.25, to an eighth as \"4x\" is in figure 3. The \
                  simulation is held against the exact distribution of M/D/1."
                .to_owned(),
        plots: vec![FigurePlot::tails("Latency by utilisation", lines), growth(&runs, &loads, &exact)],
        claims: claims(&runs, &exact),
    })
}

/// The 99th percentile over the utilisation.
fn growth(runs: &[ScenarioRun], loads: &[f64], exact: &[MdcDistribution]) -> FigurePlot {
    let mut simulated = Vec::new();
    let mut known = Vec::new();
    for ((run, &load), exact) in runs.iter().zip(loads).zip(exact) {
        let p99 = run.report.estimate(response_percentile(99.0));
        simulated.extend(p99.map(|p99| (load, p99.value / 1e9)));
        known.push((load, exact.quantile(0.99)));
    }
    FigurePlot::new(
        "99th percentile by utilisation",
        FigureAxis::linear("utilisation", AxisQuantity::Share),
        FigureAxis::linear("p99", AxisQuantity::Seconds),
        vec![FigureSeries::new("simulated", simulated), FigureSeries::new("exact, M/D/1", known)],
    )
}

fn claims(runs: &[ScenarioRun], exact: &[MdcDistribution]) -> Vec<Claim> {
    let tenfold = Expected::About { value: 10.0, within: 0.125 };
    let mut claims = Vec::new();
    if let (Some(half), Some(most)) = (find_run(runs, "load", "0.5"), find_run(runs, "load", "0.95")) {
        let statement = "from 50 % to 95 % the p99 grows 10x";
        claims.extend(
            percentile_ratio(most, half, 99.0)
                .map(|found| Claim::new(statement, tenfold, found, format_factor)),
        );
    }
    if let (Some(half), Some(most)) = (exact.first(), exact.last()) {
        let half = half.quantile(0.99);
        let most = most.quantile(0.99);
        let statement = "the same by the exact distribution of M/D/1";
        let claim = Claim::exact(statement, tenfold, most / half, format_factor);
        claims.push(claim.remark(&format!(
            "{} and {}; of waiting alone {}",
            format_time(half),
            format_time(most),
            format_factor((most - SERVICE) / (half - SERVICE))
        )));
    }
    for (run, exact) in runs.iter().zip(exact) {
        let formula = exact.quantile(0.99);
        let expected = Expected::About { value: formula, within: EXACT };
        let statement =
            format!("p99 at {} by the exact distribution: {}", run.choice("load"), format_time(formula));
        let found = run.report.estimate(response_percentile(99.0)).map(to_seconds);
        claims.extend(found.map(|found| Claim::new(&statement, expected, found, format_time).ours()));
    }
    claims
}
