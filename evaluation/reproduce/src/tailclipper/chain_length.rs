//! Figure 13b: chains of one to six tiers.

use super::comparison_claims::{FAIR, LIMITED, ROUND_ROBIN};
use super::scenario_runs::{ScenarioRuns, p99};
use super::setting::{MORE_BY_AGE, SETTING};
use crate::claim::{Claim, Expected, format_change, format_number, format_time};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, ReproducedFigure};
use sim::engine::Estimate;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-13b.toml");
const READING: &str = "100 requests/s, one to six tiers, with half the mean and with the mean as printed (a \
    utilisation of one third). Up to six requests at a tier are served alike by round-robin, limited and ORF.";

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-13b.toml", SCENARIO)?;
    let mut plots = Vec::new();
    let mut claims = Vec::new();
    for mean in runs.values("mean") {
        plots.push(FigurePlot::new(
            format!("99th percentile, mean of {mean} by tier"),
            FigureAxis::linear("tiers", AxisQuantity::Number),
            FigureAxis::linear("99th percentile", AxisQuantity::Seconds),
            runs.series_by(&[("mean", mean)], "tiers", "scheduler", p99),
        ));
        claims.extend(linearity_claims(&runs, mean));
        claims.extend(margin_claim(&runs, mean, ROUND_ROBIN, "Shinjuku"));
        claims.extend(margin_claim(&runs, mean, FAIR, "CFS"));
        claims.extend(age_claim(&runs, mean));
    }
    Ok(ReproducedFigure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn linearity_claims(runs: &ScenarioRuns, mean: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for scheduler in ["round-robin", "fair", "orf"] {
        let points = runs.points(&[("mean", mean), ("scheduler", scheduler)], "tiers", p99);
        let statement = format!("mean {mean}, {scheduler}: P99 grows linearly with the tiers (R² of a line)");
        claims.push(Claim::exact(&statement, Expected::AtLeast(0.99), r_squared(&points), format_number));
    }
    claims
}

fn margin_claim(runs: &ScenarioRuns, mean: &str, pair: [&str; 2], against: &str) -> Option<Claim> {
    let statement = format!("mean {mean}: six tiers have a larger margin to {against} than two");
    let six = margin(runs, mean, "6", pair)?;
    let two = margin(runs, mean, "2", pair)?;
    // The intervals of the margins add up: the runs are independent but for common arrivals.
    let growth = Estimate { value: six.value - two.value, half_width: six.half_width + two.half_width };
    Some(Claim::new(&statement, Expected::Positive, growth, format_time))
}

/// Returns the P99 of another scheduler minus that of ORF, seconds.
fn margin(runs: &ScenarioRuns, mean: &str, tiers: &str, [orf, other]: [&str; 2]) -> Option<Estimate> {
    let choices = [("mean", mean), ("tiers", tiers)];
    let base = runs.estimate(&[&choices[..], &[("scheduler", other)]].concat(), p99)?;
    let change = runs.change(&choices, "scheduler", [orf, other], p99)?;
    Some(Estimate { value: -change.value * base.value, half_width: change.half_width * base.value })
}

fn age_claim(runs: &ScenarioRuns, mean: &str) -> Option<Claim> {
    let statement = format!("mean {mean}, six tiers: age adds at most 5 % to the cap");
    let change = runs.change(&[("mean", mean), ("tiers", "6")], "scheduler", LIMITED, p99)?;
    Some(Claim::new(&statement, Expected::AtLeast(-0.05), change, format_change).ours().because(MORE_BY_AGE))
}

/// R² of the straight line with the least squares through these points.
fn r_squared(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / n;
    let mut xx = 0.0;
    let mut xy = 0.0;
    let mut yy = 0.0;
    for (x, y) in points.iter().map(|(x, y)| (x - mean_x, y - mean_y)) {
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    xy.powi(2) / (xx * yy)
}

#[cfg(test)]
mod tests {
    use super::r_squared;

    #[test]
    fn a_r_squared_itself_and_not_a_parabola() {
        assert!((r_squared(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]) - 1.0).abs() < 1e-12);
        assert!(r_squared(&[(-1.0, 1.0), (0.0, 0.0), (1.0, 1.0)]) < 1e-12);
    }
}
