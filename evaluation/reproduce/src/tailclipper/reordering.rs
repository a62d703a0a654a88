//! Figure 2: reordering by first come, first served, and its effect on slowdowns.

use super::scenario_runs::{Measure, ScenarioRuns, reordering, slowdown_p99};
use crate::claim::{Claim, Expected, format_change, format_share};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, ReproducedFigure};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-2.toml");
/// The rate of most claims, requests per second.
const RATE: (&str, &str) = ("rate", "300");
const READING: &str = "Three tiers of three workers, first come, first served, mean 5 ms; 1 us to take a request up and \
    0.7 us of a dispatcher. The 1 % of long requests of the bimodal law are long in all tiers. Reordered is who is \
    complete in another position than without queueing. Other work takes each worker for 4 ms (a tick at 250 Hz) \
    every 50 ms on average; the 50 ms were chosen for the 40 % at a fixed demand and 300 requests/s, which \
    therefore judge nothing, and all other experiments have them too.";

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-2.toml", SCENARIO)?;
    let reordering_axis = FigureAxis::linear("reordered requests", AxisQuantity::Share);
    let slowdown_axis = FigureAxis::log("99th percentile of the slowdown", AxisQuantity::Number);
    let plots = vec![
        plot(&runs, "Reordering", reordering_axis, reordering),
        plot(&runs, "Slowdown", slowdown_axis, slowdown_p99),
    ];
    Ok(ReproducedFigure { reading: READING.to_owned(), plots, claims: claims(&runs) })
}

fn plot(runs: &ScenarioRuns, title: &str, y: FigureAxis, measure: Measure) -> FigurePlot {
    let x = FigureAxis::linear("requests/s", AxisQuantity::PerSecond);
    FigurePlot::new(title, x, y, runs.series_by(&[], "rate", "law", measure))
}

fn claims(runs: &ScenarioRuns) -> Vec<Claim> {
    let more = "more are reordered";
    let slower = "the 99th percentile of slowdown is higher";
    let claims = [
        fixed_demand_claim(runs),
        against_fixed_claim(runs, "exponential", reordering, more),
        against_fixed_claim(runs, "bimodal", reordering, more),
        against_fixed_claim(runs, "exponential", slowdown_p99, slower),
        against_fixed_claim(runs, "bimodal", slowdown_p99, slower),
        rate_claim(runs, "fixed"),
        rate_claim(runs, "exponential"),
        rate_claim(runs, "bimodal"),
    ];
    claims.into_iter().flatten().collect()
}

fn fixed_demand_claim(runs: &ScenarioRuns) -> Option<Claim> {
    let share = runs.estimate(&[RATE, ("law", "fixed")], reordering)?;
    let expected = Expected::About { value: 0.4, within: 0.05 };
    let statement = "40 % are reordered at 300 requests/s and fixed demands";
    let claim = Claim::new(statement, expected, share, format_share);
    Some(claim.underspecified("what else runs on the workers is not said, and was chosen for this"))
}

fn against_fixed_claim(runs: &ScenarioRuns, law: &str, measure: Measure, what: &str) -> Option<Claim> {
    let change = runs.change(&[RATE], "law", [law, "fixed"], measure)?;
    let statement = format!("{what} at 300 requests/s with {law} demands than with fixed ones");
    Some(Claim::new(&statement, Expected::Positive, change, format_change))
}

fn rate_claim(runs: &ScenarioRuns, law: &str) -> Option<Claim> {
    let change = runs.change(&[("law", law)], "rate", ["500", "100"], reordering)?;
    let statement = format!("reordering grows with the rate: {law} demands, 500 against 100 requests/s");
    Some(Claim::new(&statement, Expected::Positive, change, format_change))
}
