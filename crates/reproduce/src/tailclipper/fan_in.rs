//! Two paths that join: requests of the slow one are older in the shared tier, and that is where age pays.

use super::grid::{Grid, p99};
use super::said::{LIMITED, ROUND_ROBIN};
use crate::claim::{Claim, Expected, change};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fan-in.toml");
const READING: &str = "Not in the paper. Half of the requests go through a slow tier (15 ms), half through a fast one \
    (5 ms), all through a shared one (7.5 ms), exponential, three workers each; costs and other work as in the paper's \
    figures, no limit on requests inside. The load is that of the slow and of the shared tier before costs.";

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fan-in.toml", SCENARIO)?;
    let load = || Axis::linear("load", Quantity::Share);
    let tails = Plot {
        title: "99th percentile of all requests".to_owned(),
        x: load(),
        y: Axis::log("99th percentile", Quantity::Seconds),
        lines: grid.lines(&[], "load", "scheduler", p99),
    };
    let changes = |name: &str, pair| Line::new(name, grid.changes(&[], "load", "scheduler", pair, p99));
    let age = Plot {
        title: "Change of the 99th percentile".to_owned(),
        x: load(),
        y: Axis::linear("change", Quantity::Share),
        lines: vec![
            changes("ORF against round-robin", ROUND_ROBIN),
            changes("the cap against round-robin", ["limited", "round-robin"]),
            changes("ORF against the cap", LIMITED),
        ],
    };
    let claims = [
        claim(&grid, "(ours) load 75 %: ORF against round-robin", Expected::Negative, "0.75", ROUND_ROBIN),
        claim(&grid, "(ours) load 75 %: age takes 6 % or more off the cap", six_percent(), "0.75", LIMITED),
        claim(&grid, "(ours) load 80 %: age takes 6 % or more off the cap", six_percent(), "0.8", LIMITED),
    ];
    let claims = claims.into_iter().flatten().collect();
    Ok(Figure { reading: READING.to_owned(), plots: vec![tails, age], claims })
}

/// Prototypes found 6 to 12 % where paths join.
fn six_percent() -> Expected {
    Expected::AtMost(-0.06)
}

fn claim(grid: &Grid, said: &str, expected: Expected, load: &str, pair: [&str; 2]) -> Option<Claim> {
    Some(Claim::new(said, expected, grid.change(&[("load", load)], "scheduler", pair, p99)?, change))
}
