//! Two paths that join: requests of the slow one are older in the shared tier, and that is where age pays.

use super::comparison_claims::{ComparisonClaim, LIMITED, ROUND_ROBIN, compare};
use super::scenario_runs::{ScenarioRuns, p99};
use crate::claim::{ClaimSource, Expected};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fan-in.toml");
const READING: &str = "Not in the paper. Half of the requests go through a slow tier (15 ms), half through a fast one \
    (5 ms), all through a shared one (7.5 ms), exponential, three workers each; costs and other work as in the paper's \
    figures, no limit on requests inside. The load is that of the slow and of the shared tier before costs.";

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fan-in.toml", SCENARIO)?;
    let tails = FigurePlot::new(
        "99th percentile of all requests",
        FigureAxis::linear("load", AxisQuantity::Share),
        FigureAxis::log("99th percentile", AxisQuantity::Seconds),
        runs.series_by(&[], "load", "scheduler", p99),
    );
    let changes = FigurePlot::new(
        "Change of the 99th percentile",
        FigureAxis::linear("load", AxisQuantity::Share),
        FigureAxis::linear("change", AxisQuantity::Share),
        vec![
            change_series(&runs, "ORF against round-robin", ROUND_ROBIN),
            change_series(&runs, "the cap against round-robin", ["limited", "round-robin"]),
            change_series(&runs, "ORF against the cap", LIMITED),
        ],
    );
    let claims = compare(&runs, &CLAIMS);
    Ok(ReproducedFigure { reading: READING.to_owned(), plots: vec![tails, changes], claims })
}

fn change_series(runs: &ScenarioRuns, name: &str, pair: [&str; 2]) -> FigureSeries {
    FigureSeries::new(name, runs.change_points(&[], "load", "scheduler", pair, p99))
}

/// The least effect of age that counts: prototypes found 6 to 12 % where paths join.
const SIX_PERCENT_LESS: Expected = Expected::AtMost(-0.06);

const CLAIMS: [ComparisonClaim; 3] = [
    ComparisonClaim {
        statement: "load 75 %: ORF against round-robin",
        expected: Expected::Negative,
        choices: &[("load", "0.75")],
        pair: ROUND_ROBIN,
        measure: p99,
        source: ClaimSource::Ours,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "load 75 %: age takes 6 % or more off the cap",
        expected: SIX_PERCENT_LESS,
        choices: &[("load", "0.75")],
        pair: LIMITED,
        measure: p99,
        source: ClaimSource::Ours,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "load 80 %: age takes 6 % or more off the cap",
        expected: SIX_PERCENT_LESS,
        choices: &[("load", "0.8")],
        pair: LIMITED,
        measure: p99,
        source: ClaimSource::Ours,
        open: None,
        why: "",
    },
];
