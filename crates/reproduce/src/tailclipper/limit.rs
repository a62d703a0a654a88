//! Figure 12: how many requests share the workers.

use super::SETTING;
use super::grid::{Grid, Measure, p99, throughput};
use crate::claim::{Claim, Expected, change, number};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-12.toml");
const READING: &str = "Trimodal(90-5, 10-50, 1-100): the shares add up to 101 and are divided by 1.01; rates are not \
    printed. 60 s of arrivals from an empty system. c counts the requests on workers too, so that 3 is global first \
    come, first served.";

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-12.toml", SCENARIO)?;
    let plot = |title: &str, y, measure| Plot {
        title: title.to_owned(),
        x: Axis::log("c", Quantity::Number),
        y,
        lines: named(grid.lines(&[], "c", "rate", measure)),
    };
    let plots = vec![
        plot("99th percentile", Axis::log("99th percentile", Quantity::Seconds), p99),
        plot("Throughput", Axis::linear("completions", Quantity::PerSecond), throughput),
    ];
    Ok(Figure { reading: format!("{SETTING} {READING}"), plots, claims: claims(&grid) })
}

fn named(mut lines: Vec<crate::figure::Line>) -> Vec<crate::figure::Line> {
    lines.iter_mut().for_each(|line| line.name = format!("{} requests/s", line.name));
    lines
}

/// The c with the least (factor 1) or largest (−1) figure at a rate.
fn best(grid: &Grid, rate: &str, measure: Measure, factor: f64) -> Option<f64> {
    let points = grid.points(&[("rate", rate)], "c", measure);
    points.into_iter().min_by(|a, b| (factor * a.1).total_cmp(&(factor * b.1))).map(|(c, _)| c)
}

fn claims(grid: &Grid) -> Vec<Claim> {
    let four_to_eight = Expected::About { value: 6.0, within: 1.0 / 3.0 };
    let lowest = |rate: &str| {
        let said = format!("{rate}/s: P99 is lowest with c from 4 to 8");
        Some(Claim::exact(&said, four_to_eight, best(grid, rate, p99, 1.0)?, number))
    };
    let largest = best(grid, "600", throughput, -1.0).map(|found| {
        let eight = Expected::About { value: 8.0, within: 0.0 };
        Claim::exact("600/s: throughput is largest with c = 8", eight, found, number)
    });
    let small = |said: &str, rate, pair, expected, measure| {
        Some(Claim::new(said, expected, grid.change(&[("rate", rate)], "c", pair, measure)?, change))
    };
    let all = [
        lowest("400"),
        lowest("450"),
        lowest("500"),
        largest,
        small("450/s: a small c, 3, raises P99 against 6", "450", ["3", "6"], Expected::Positive, p99),
        small("450/s: a large c, 200, raises P99 against 6", "450", ["200", "6"], Expected::Positive, p99),
        small("600/s: c = 8 has more throughput than 3", "600", ["8", "3"], Expected::Positive, throughput),
        small(
            "600/s: c = 8 has more throughput than 200",
            "600",
            ["8", "200"],
            Expected::Positive,
            throughput,
        ),
    ];
    all.into_iter().flatten().collect()
}
