//! Figure 11: 99 % of the requests are long.

use super::comparison_claims::{ComparisonClaim, LIMITED, ROUND_ROBIN, compare};
use super::scenario_runs::{Measure, ScenarioRuns, p99, shortest_p99};
use super::setting::{COSTS_UNKNOWN, MORE_BY_AGE, SETTING};
use crate::claim::{ClaimSource, Expected};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, ReproducedFigure};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-11.toml");
const READING: &str = "Bimodal(99-100, 1-10) at half the times as everywhere, drawn by tier as the paper does: 60.5 \
    requests/s are a utilisation of 1. Ten minutes of arrivals. The shortest are those whose total demand is at most its \
    1 % quantile: as it has three values only, these are the 3 % that are short in at least one tier.";

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-11.toml", SCENARIO)?;
    let plots = vec![plot(&runs, "All requests", p99), plot(&runs, "The shortest", shortest_p99)];
    let claims = compare(&runs, &CLAIMS);
    Ok(ReproducedFigure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn plot(runs: &ScenarioRuns, title: &str, measure: Measure) -> FigurePlot {
    let x = FigureAxis::linear("requests/s", AxisQuantity::PerSecond);
    let y = FigureAxis::log("99th percentile", AxisQuantity::Seconds);
    FigurePlot::new(title, x, y, runs.series_by(&[], "rate", "scheduler", measure))
}

const CLAIMS: [ComparisonClaim; 8] = [
    ComparisonClaim {
        statement: "20/s: P99 −17 % against Shinjuku",
        expected: Expected::About { value: -0.17, within: 0.05 },
        choices: &[("rate", "20")],
        pair: ROUND_ROBIN,
        measure: p99,
        source: ClaimSource::Paper,
        open: Some(COSTS_UNKNOWN),
        why: "",
    },
    ComparisonClaim {
        statement: "20/s: P99 lower than Shinjuku's",
        expected: Expected::Negative,
        choices: &[("rate", "20")],
        pair: ROUND_ROBIN,
        measure: p99,
        source: ClaimSource::Paper,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "48/s: P99 lower than Shinjuku's",
        expected: Expected::Negative,
        choices: &[("rate", "48")],
        pair: ROUND_ROBIN,
        measure: p99,
        source: ClaimSource::Paper,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "48/s: age adds at most 5 % to the cap",
        expected: Expected::AtLeast(-0.05),
        choices: &[("rate", "48")],
        pair: LIMITED,
        measure: p99,
        source: ClaimSource::Ours,
        open: None,
        why: MORE_BY_AGE,
    },
    ComparisonClaim {
        statement: "30/s: the shortest have a higher P99 than with Shinjuku",
        expected: Expected::Positive,
        choices: &[("rate", "30")],
        pair: ROUND_ROBIN,
        measure: shortest_p99,
        source: ClaimSource::Paper,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "30/s: higher P99 of the shortest, and yet not of all",
        expected: Expected::AtMost(0.0),
        choices: &[("rate", "30")],
        pair: ROUND_ROBIN,
        measure: p99,
        source: ClaimSource::Paper,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "48/s: the shortest have a lower P99 than with Shinjuku",
        expected: Expected::Negative,
        choices: &[("rate", "48")],
        pair: ROUND_ROBIN,
        measure: shortest_p99,
        source: ClaimSource::Paper,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "48/s: the shortest are not worse off by age, to 5 %",
        expected: Expected::AtMost(0.05),
        choices: &[("rate", "48")],
        pair: LIMITED,
        measure: shortest_p99,
        source: ClaimSource::Ours,
        open: None,
        why: "age prefers those that have been in the system for long, which are the long ones: who is short and \
            young waits behind them",
    },
];
