//! Figure 12: c, the number of requests that share the workers.

use super::scenario_runs::{Measure, ScenarioRuns, p99, throughput};
use super::setting::{DIRECTION_OF_COSTS, SETTING};
use crate::claim::{Claim, Expected, format_change, format_number};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, ReproducedFigure};
use sim::engine::Estimate;

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
    /// Point left open by the paper that decides the claim, if there is one.
    open: Option<&'static str>,
}

/// These measures are all claimed to be larger.
const LIMIT_CLAIMS: [LimitClaim; 4] = [
    LimitClaim {
        statement: "450/s: a small c, 3, raises P99 against 6",
        rate: "450",
        pair: ["3", "6"],
        measure: p99,
        open: None,
    },
    LimitClaim {
        statement: "450/s: a large c, 200, raises P99 against 6",
        rate: "450",
        pair: ["200", "6"],
        measure: p99,
        open: None,
    },
    LimitClaim {
        statement: "600/s: c = 8 has more throughput than 3",
        rate: "600",
        pair: ["8", "3"],
        measure: throughput,
        open: Some(DIRECTION_OF_COSTS),
    },
    LimitClaim {
        statement: "600/s: c = 8 has more throughput than 200",
        rate: "600",
        pair: ["8", "200"],
        measure: throughput,
        open: Some(DIRECTION_OF_COSTS),
    },
];

/// Why the smallest limit may be the best one.
const NOTHING_SWITCHES: &str = "with c = 3 no request is ever interrupted, which costs nothing and suits the long ones, and 3 % of the \
    requests are long in some tier: they make the 99th percentile";

/// A limit c at which a measure is best, and the limits that chance does not tell from it.
struct BestLimit {
    best: f64,
    least: f64,
    most: f64,
}

impl BestLimit {
    /// Looks for the largest value of a measure where `sign` is 1, for the smallest where it is −1.
    fn find(runs: &ScenarioRuns, rate: &str, measure: Measure, sign: f64) -> Option<Self> {
        let choices = [("rate", rate)];
        let value =
            |limit: &str| runs.estimate(&[("rate", rate), ("c", limit)], measure).map(|found| found.value);
        let limits = runs.values("c").into_iter().filter_map(|limit| Some((limit, sign * value(limit)?)));
        // Of equal ones the first.
        let (best, _) = limits.min_by(|a, b| b.1.total_cmp(&a.1))?;
        let number = |limit: &str| limit.parse::<f64>().ok();
        let mut found = Self { best: number(best)?, least: number(best)?, most: number(best)? };
        for limit in runs.values("c").into_iter().filter(|limit| *limit != best) {
            let Some(change) = runs.change(&choices, "c", [limit, best], measure) else { continue };
            if change.value.abs() <= change.half_width {
                let limit = number(limit)?;
                (found.least, found.most) = (found.least.min(limit), found.most.max(limit));
            }
        }
        Some(found)
    }

    fn claim(&self, statement: &str, expected: Expected) -> Claim {
        let Self { best, least, most } = self;
        let found = Estimate { value: least.midpoint(*most), half_width: 0.5 * (most - least) };
        let text =
            if least < most { format!("{best}; {least} to {most} are alike") } else { best.to_string() };
        Claim::new(statement, expected, found, format_number).shown_as(text)
    }
}

fn claims(runs: &ScenarioRuns) -> Vec<Claim> {
    let mut claims = Vec::new();
    let four_to_eight = Expected::About { value: 6.0, within: 1.0 / 3.0 };
    for rate in ["400", "450", "500"] {
        let statement = format!("{rate}/s: P99 is lowest with c from 4 to 8");
        let best = BestLimit::find(runs, rate, p99, -1.0);
        claims.extend(best.map(|best| best.claim(&statement, four_to_eight).because(NOTHING_SWITCHES)));
    }
    let eight = Expected::About { value: 8.0, within: 0.0 };
    let best = BestLimit::find(runs, "600", throughput, 1.0);
    claims.extend(best.map(|best| {
        best.claim("600/s: throughput is largest with c = 8", eight).underspecified(DIRECTION_OF_COSTS)
    }));
    for LimitClaim { statement, rate, pair, measure, open } in LIMIT_CLAIMS {
        let Some(change) = runs.change(&[("rate", rate)], "c", pair, measure) else { continue };
        let claim = Claim::new(statement, Expected::Positive, change, format_change);
        claims.push(match open {
            Some(open) => claim.underspecified(open),
            None => claim.because(NOTHING_SWITCHES),
        });
    }
    claims
}
