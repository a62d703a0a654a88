//! ORF compared with round-robin, fair sharing and its own cap without age, at loads below saturation.

use super::comparison_claims::{FAIR, LIMITED, ROUND_ROBIN};
use super::scenario_runs::{Measure, ScenarioRuns, mean, p99};
use super::setting::{DIRECTION_OF_COSTS, MORE_BY_AGE, SETTING, WITHOUT_VARIANCE};
use crate::claim::{Claim, ClaimSource, Expected, format_change};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-table.toml");
const READING: &str = "Loads are relative to the 525 requests/s that round-robin can do: 600 less the 7.4 % of other \
    work and the 5.4 % of switching. After warm-up; what grows without bound has no figure.";
const PAIRS: [(&str, [&str; 2]); 3] =
    [("Shinjuku", ROUND_ROBIN), ("CFS", FAIR), ("the same cap without age", LIMITED)];

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-table.toml", SCENARIO)?;
    let mut plots = Vec::new();
    let mut claims = Vec::new();
    for law in runs.values("law") {
        plots.push(plot(&runs, law));
        claims.extend(self::claims(&runs, law));
    }
    Ok(ReproducedFigure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn plot(runs: &ScenarioRuns, law: &str) -> FigurePlot {
    let mut lines = Vec::new();
    for (name, pair) in PAIRS {
        for (what, measure) in [("P99", p99 as Measure), ("mean", mean)] {
            let points = runs.change_points(&[("law", law)], "load", "scheduler", pair, measure);
            lines.push(FigureSeries::new(format!("{what} against {name}"), points));
        }
    }
    FigurePlot::new(
        format!("{law}: change by ORF"),
        FigureAxis::linear("load", AxisQuantity::Share),
        FigureAxis::linear("change", AxisQuantity::Share),
        lines,
    )
}

/// Why CFS may be ahead.
const FEWER_SLICES: &str = "CFS, as it was read, changes requests after a millisecond and has no dispatcher, ORF after 300 us with one; \
    at low loads nearly no request waits, and what is left are these costs of about 5 %";

/// A claim for every cell of the table, about ORF compared with another scheduler.
struct TableClaim {
    statement: &'static str,
    pair: [&'static str; 2],
    measure: Measure,
    expected: Expected,
    source: ClaimSource,
    /// Point left open by the paper that decides the claim, if there is one.
    open: Option<&'static str>,
    /// Why it is otherwise here, in case it is.
    why: &'static str,
}

const TABLE_CLAIMS: [TableClaim; 4] = [
    TableClaim {
        statement: "P99 not above Shinjuku's (−81 % at best)",
        pair: ROUND_ROBIN,
        measure: p99,
        expected: Expected::AtMost(0.0),
        source: ClaimSource::Paper,
        open: None,
        why: "",
    },
    TableClaim {
        statement: "mean not above Shinjuku's (−54 % at best)",
        pair: ROUND_ROBIN,
        measure: mean,
        expected: Expected::AtMost(0.0),
        source: ClaimSource::Paper,
        open: Some(DIRECTION_OF_COSTS),
        why: "",
    },
    TableClaim {
        statement: "P99 not above CFS's",
        pair: FAIR,
        measure: p99,
        expected: Expected::AtMost(0.0),
        source: ClaimSource::Paper,
        open: None,
        why: FEWER_SLICES,
    },
    TableClaim {
        statement: "P99: age adds at most 5 % to the cap",
        pair: LIMITED,
        measure: p99,
        expected: Expected::AtLeast(-0.05),
        source: ClaimSource::Ours,
        open: None,
        why: MORE_BY_AGE,
    },
];

/// The claims for all cells of a law of demands.
fn claims(runs: &ScenarioRuns, law: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for TableClaim { statement, pair, measure, expected, source, open, why } in TABLE_CLAIMS {
        for load in runs.values("load") {
            let change = runs.change(&[("law", law), ("load", load)], "scheduler", pair, measure);
            let Some(change) = change else { continue };
            let statement = format!("{law}, load {load}: {statement}");
            let claim = Claim::new(&statement, expected, change, format_change).with_source(source);
            claims.push(match open.filter(|_| law != WITHOUT_VARIANCE) {
                Some(open) => claim.underspecified(open),
                None => claim.because(why),
            });
        }
    }
    claims
}
