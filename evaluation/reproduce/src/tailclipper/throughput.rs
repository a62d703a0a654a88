//! Figure 10: throughput at 600 requests/s.

use super::comparison_claims::{ComparisonClaim, FAIR, LIMITED, ROUND_ROBIN, compare};
use super::scenario_runs::{ScenarioRuns, throughput};
use super::setting::{COSTS_OF_CFS, COSTS_UNKNOWN, DIRECTION_OF_COSTS, SETTING, WITHOUT_VARIANCE};
use crate::claim::{Claim, ClaimSource, Expected, format_change};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-10.toml");

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-10.toml", SCENARIO)?;
    let mut claims = compare(&runs, &CLAIMS);
    for law in runs.values("law") {
        claims.extend(highest_claim(&runs, law, ROUND_ROBIN, "Shinjuku"));
        claims.extend(highest_claim(&runs, law, FAIR, "CFS"));
    }
    Ok(ReproducedFigure {
        reading: format!("{SETTING} 60 s of arrivals from an empty system."),
        plots: vec![plot(&runs)],
        claims,
    })
}

/// The throughput of each scheduler over the number of the law, from 1.
fn plot(runs: &ScenarioRuns) -> FigurePlot {
    let laws = runs.values("law");
    let mut lines = Vec::new();
    for scheduler in runs.values("scheduler") {
        let mut points = Vec::new();
        for (index, law) in laws.iter().enumerate() {
            let found = runs.estimate(&[("law", law), ("scheduler", scheduler)], throughput);
            points.extend(found.map(|found| (index as f64 + 1.0, found.value)));
        }
        lines.push(FigureSeries::new(scheduler, points));
    }
    FigurePlot::new(
        "Throughput at 600 requests/s",
        FigureAxis::linear(&laws.join(", "), AxisQuantity::Number),
        FigureAxis::linear("completions", AxisQuantity::PerSecond),
        lines,
    )
}

const CLAIMS: [ComparisonClaim; 4] = [
    ComparisonClaim {
        statement: "exponential: throughput +29 % against Shinjuku",
        expected: Expected::About { value: 0.29, within: 0.05 },
        choices: &[("law", "exponential")],
        pair: ROUND_ROBIN,
        measure: throughput,
        source: ClaimSource::Paper,
        open: Some(COSTS_UNKNOWN),
        why: "",
    },
    ComparisonClaim {
        statement: "exponential: 2.2 × the throughput of CFS",
        expected: Expected::About { value: 1.2, within: 0.05 },
        choices: &[("law", "exponential")],
        pair: FAIR,
        measure: throughput,
        source: ClaimSource::Paper,
        open: Some(COSTS_UNKNOWN),
        why: "",
    },
    ComparisonClaim {
        statement: "exponential: the cap without age has the same throughput, to 1 %",
        expected: Expected::AtMost(0.01),
        choices: &[("law", "exponential")],
        pair: LIMITED,
        measure: throughput,
        source: ClaimSource::Ours,
        open: None,
        why: "",
    },
    ComparisonClaim {
        statement: "log-normal: the cap without age has the same throughput, to 1 %",
        expected: Expected::AtMost(0.01),
        choices: &[("law", "log-normal")],
        pair: LIMITED,
        measure: throughput,
        source: ClaimSource::Ours,
        open: None,
        why: "",
    },
];

/// The claim that ORF has a higher throughput than another scheduler.
fn highest_claim(runs: &ScenarioRuns, law: &str, pair: [&str; 2], name: &str) -> Option<Claim> {
    let change = runs.change(&[("law", law)], "scheduler", pair, throughput)?;
    let statement = format!("{law}: throughput highest, against {name}");
    let claim = Claim::new(&statement, Expected::Positive, change, format_change);
    Some(match (pair, law) {
        (ROUND_ROBIN, WITHOUT_VARIANCE) => claim,
        (ROUND_ROBIN, _) => claim.underspecified(DIRECTION_OF_COSTS),
        _ => claim.underspecified(COSTS_OF_CFS),
    })
}
