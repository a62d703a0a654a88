//! Figure 12: c, the number of requests that share the workers.

use super::scenario_runs::{Measure, ScenarioRuns, p99, throughput};
use super::setting::SETTING;
use crate::claim::{Claim, Expected, format_change, format_number};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, ReproducedFigure};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-12.toml");
const READING: &str = "Trimodal(90-5, 10-50, 1-100): the shares add up to 101 and are divided by 1.01; rates are not \
    printed. 60 s of arrivals from an empty system. c counts the requests on workers too, so that 3 is global first \
    come, first served.";

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-12.toml", SCENARIO)?;
    let p99_axis = FigureAxis::log("99th percentile", AxisQuantity::Seconds);
    let throughput_axis = FigureAxis::linear("completions", AxisQuantity::PerSecond);
    let plots = vec![
        plot(&runs, "99th percentile", p99_axis, p99),
        plot(&runs, "Throughput", throughput_axis, throughput),
    ];
    Ok(ReproducedFigure { reading: format!("{SETTING} {READING}"), plots, claims: claims(&runs) })
}

fn plot(runs: &ScenarioRuns, title: &str, y: FigureAxis, measure: Measure) -> FigurePlot {
    let mut lines = runs.series_by(&[], "c", "rate", measure);
    for line in &mut lines {
        line.name = format!("{} requests/s", line.name);
    }
    FigurePlot::new(title, FigureAxis::log("c", AxisQuantity::Number), y, lines)
}

/// A claim about the change of a measure from one limit to another.
struct LimitClaim {
    statement: &'static str,
    rate: &'static str,
    /// The limit c, and the one that it is compared with.
    pair: [&'static str; 2],
    measure: Measure,
}

/// These measures are all claimed to be larger.
const LIMIT_CLAIMS: [LimitClaim; 4] = [
    LimitClaim {
        statement: "450/s: a small c, 3, raises P99 against 6",
        rate: "450",
        pair: ["3", "6"],
        measure: p99,
    },
    LimitClaim {
        statement: "450/s: a large c, 200, raises P99 against 6",
        rate: "450",
        pair: ["200", "6"],
        measure: p99,
    },
    LimitClaim {
        statement: "600/s: c = 8 has more throughput than 3",
        rate: "600",
        pair: ["8", "3"],
        measure: throughput,
    },
    LimitClaim {
        statement: "600/s: c = 8 has more throughput than 200",
        rate: "600",
        pair: ["8", "200"],
        measure: throughput,
    },
];

fn claims(runs: &ScenarioRuns) -> Vec<Claim> {
    let mut claims = Vec::new();
    let four_to_eight = Expected::About { value: 6.0, within: 1.0 / 3.0 };
    for rate in ["400", "450", "500"] {
        let points = runs.points(&[("rate", rate)], "c", p99);
        let lowest = points.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        claims.extend(lowest.map(|(limit, _)| {
            let statement = format!("{rate}/s: P99 is lowest with c from 4 to 8");
            Claim::exact(&statement, four_to_eight, limit, format_number)
        }));
    }
    let points = runs.points(&[("rate", "600")], "c", throughput);
    // Of equal ones the first.
    let largest = points.into_iter().min_by(|a, b| b.1.total_cmp(&a.1));
    claims.extend(largest.map(|(limit, _)| {
        let eight = Expected::About { value: 8.0, within: 0.0 };
        Claim::exact("600/s: throughput is largest with c = 8", eight, limit, format_number)
    }));
    for LimitClaim { statement, rate, pair, measure } in LIMIT_CLAIMS {
        let change = runs.change(&[("rate", rate)], "c", pair, measure);
        claims.extend(change.map(|change| Claim::new(statement, Expected::Positive, change, format_change)));
    }
    claims
}
