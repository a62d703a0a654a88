//! What Algorithm 1 and the text of section 4 say in two ways: what c counts, and where an old arrival goes.

use super::SETTING;
use super::grid::{Grid, mean, p99};
use crate::claim::{Claim, Expected, number};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-readings.toml");
const READING: &str = "450 requests/s. The limit counts the requests of the pool, on workers and in the queue (text of \
    section 4), or those of the queue only (Algorithm 1 to the letter); an old arrival goes to the back of the queue \
    (section 4), to its front (Figure 3), or onto the worker of the youngest at once.";
/// The reading that all other experiments have.
const USUAL: &str = "pool, back";

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-readings.toml", SCENARIO)?;
    let readings = grid.values("reading");
    let line = |law: &str, measure| {
        let points = readings.iter().enumerate().filter_map(|(index, reading)| {
            let found = grid.change(&[("law", law)], "reading", [reading, "round-robin"], measure)?;
            Some((index as f64, found.value))
        });
        Line::new(law, points)
    };
    let plot = |title: &str, measure| Plot {
        title: title.to_owned(),
        x: Axis::linear(&numbered(&readings), Quantity::Number),
        y: Axis::linear("change against round-robin", Quantity::Share),
        lines: grid.values("law").into_iter().map(|law| line(law, measure)).collect(),
    };
    let plots = vec![plot("99th percentile", p99), plot("Mean", mean)];
    let claims = grid.values("law").into_iter().flat_map(|law| claims(&grid, law)).collect();
    Ok(Figure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn numbered(readings: &[&str]) -> String {
    let one = |(index, reading): (usize, &&str)| format!("{index}: {reading}");
    readings.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}

/// Whether it matters how it is read.
fn claims(grid: &Grid, law: &str) -> Vec<Claim> {
    let ours = |reading: &&str| reading.contains(", ") && *reading != USUAL;
    let claim = |reading: &str| {
        let mut found = grid.change(&[("law", law)], "reading", [reading, USUAL], p99)?;
        found.value += 1.0;
        let said = format!("(ours) {law}: P99 with '{reading}' ÷ with '{USUAL}' is 1, to 5 %");
        Some(Claim::new(&said, Expected::About { value: 1.0, within: 0.05 }, found, number))
    };
    grid.values("reading").into_iter().filter(ours).filter_map(claim).collect()
}
