//! ORF beside round-robin, fair sharing and its own cap without age, at loads that are stationary.

use super::SETTING;
use super::grid::{Grid, Measure, mean, p99};
use super::said::{FAIR, LIMITED, ROUND_ROBIN};
use crate::claim::{Claim, Expected, change};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-table.toml");
const READING: &str = "Loads are relative to the 525 requests/s that round-robin can do: 600 less the 7.4 % of other \
    work and the 5.4 % of switching. After warm-up; what grows without bound has no figure.";
const PAIRS: [(&str, [&str; 2]); 3] =
    [("Shinjuku", ROUND_ROBIN), ("CFS", FAIR), ("the same cap without age", LIMITED)];

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
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

/// What a cell is compared with, which figure, and what is said of it.
struct Cell {
    of: &'static str,
    pair: [&'static str; 2],
    measure: Measure,
    expected: Expected,
}

const CELLS: [Cell; 4] = [
    Cell {
        of: "P99 not above Shinjuku's (−81 % at best)",
        pair: ROUND_ROBIN,
        measure: p99,
        expected: Expected::AtMost(0.0),
    },
    Cell {
        of: "mean not above Shinjuku's (−54 % at best)",
        pair: ROUND_ROBIN,
        measure: mean,
        expected: Expected::AtMost(0.0),
    },
    Cell { of: "P99 not above CFS's", pair: FAIR, measure: p99, expected: Expected::AtMost(0.0) },
    Cell {
        of: "(ours) P99: age adds at most 5 % to the cap",
        pair: LIMITED,
        measure: p99,
        expected: Expected::AtLeast(-0.05),
    },
];

/// Every cell of the table.
fn claims(grid: &Grid, law: &str) -> Vec<Claim> {
    let claim = |cell: &Cell, load: &str| {
        let found = grid.change(&[("law", law), ("load", load)], "scheduler", cell.pair, cell.measure)?;
        Some(Claim::new(&format!("{law}, load {load}: {}", cell.of), cell.expected, found, change))
    };
    let loads = grid.values("load");
    let row = |cell: &Cell| loads.iter().filter_map(|load| claim(cell, load)).collect::<Vec<_>>();
    CELLS.iter().flat_map(row).collect()
}
