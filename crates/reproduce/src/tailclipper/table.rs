//! ORF beside round-robin, fair sharing and its own cap without age, at loads that are stationary.

use super::grid::{Grid, Measure, mean, p99};
use super::said::{FAIR, LIMITED, ROUND_ROBIN};
use super::{COSTS, SETTING};
use crate::claim::{Claim, Expected, change};
use crate::context::{Context, Failure};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-table.toml");
const READING: &str = "Loads are relative to the 525 requests/s that round-robin can do: 600 less the 7.4 % of other \
    work and the 5.4 % of switching. After warm-up; what grows without bound has no figure.";
const PAIRS: [(&str, [&str; 2]); 3] =
    [("Shinjuku", ROUND_ROBIN), ("CFS", FAIR), ("the same cap without age", LIMITED)];

pub(crate) fn run(context: &Context) -> Result<Figure, Failure> {
    let grid = Grid::play(context, "tailclipper-table.toml", SCENARIO)?;
    let plots = grid.values("law").into_iter().map(|law| plot(&grid, law)).collect();
    let claims = grid.values("law").into_iter().flat_map(|law| claims(&grid, law)).collect();
    Ok(Figure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn plot(grid: &Grid, law: &str) -> Plot {
    let line = |what: &str, pair, measure: Measure| {
        Line::new(what, grid.changes(&[("law", law)], "load", "scheduler", pair, measure))
    };
    let lines = PAIRS.iter().flat_map(|(name, pair)| {
        [line(&format!("P99 against {name}"), *pair, p99), line(&format!("mean against {name}"), *pair, mean)]
    });
    Plot {
        title: format!("{law}: change by ORF"),
        x: Axis::linear("load", Quantity::Share),
        y: Axis::linear("change", Quantity::Share),
        lines: lines.collect(),
    }
}

/// Every cell, beside the most that the paper reports.
fn claims(grid: &Grid, law: &str) -> Vec<Claim> {
    let loads = grid.values("load");
    let cell = |load: &str, (name, pair): (&str, [&str; 2]), what: &str, most: f64, measure: Measure| {
        let found = grid.change(&[("law", law), ("load", load)], "scheduler", pair, measure)?;
        let of_paper = name == "Shinjuku";
        let said = match of_paper {
            true => format!("{law}, load {load}: {what} up to {} against {name}", change(most)),
            false => format!("(ours) {law}, load {load}: {what} not above {name}'s"),
        };
        let claim = match of_paper {
            true => Claim::new(&said, Expected::AtLeast(most), found, change).underspecified(COSTS),
            false => Claim::new(&said, Expected::AtMost(0.0), found, change),
        };
        Some(claim)
    };
    let cells = loads.into_iter().flat_map(|load| {
        PAIRS.iter().flat_map(move |pair| {
            [cell(load, *pair, "P99", -0.81, p99), cell(load, *pair, "mean", -0.54, mean)]
        })
    });
    cells.flatten().collect()
}
