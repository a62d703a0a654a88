//! Figure 13b: more and more tiers.

use super::SETTING;
use super::grid::{Grid, p99};
use super::said::{FAIR, LIMITED, ROUND_ROBIN};
use crate::claim::{Claim, Expected, number, time};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Plot, Quantity};
use sim::engine::Estimate;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-13b.toml");
const READING: &str = "100 requests/s, one to six tiers, with half the mean and with the mean as printed (a \
    utilisation of one third). Up to six requests at a tier are served alike by round-robin, limited and ORF.";

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-13b.toml", SCENARIO)?;
    let plot = |mean: &str| Plot {
        title: format!("99th percentile, mean of {mean} by tier"),
        x: Axis::linear("tiers", Quantity::Number),
        y: Axis::linear("99th percentile", Quantity::Seconds),
        lines: grid.lines(&[("mean", mean)], "tiers", "scheduler", p99),
    };
    let plots = grid.values("mean").into_iter().map(plot).collect();
    let claims = grid.values("mean").into_iter().flat_map(|mean| claims(&grid, mean)).collect();
    Ok(Figure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn claims(grid: &Grid, mean: &str) -> Vec<Claim> {
    let linear = ["round-robin", "fair", "orf"].into_iter().map(|scheduler| {
        let points = grid.points(&[("mean", mean), ("scheduler", scheduler)], "tiers", p99);
        let said = format!("mean {mean}, {scheduler}: P99 grows linearly with the tiers (R² of a line)");
        Some(Claim::exact(&said, Expected::AtLeast(0.99), line_fits(&points), number))
    });
    let grows = |pair: [&str; 2], against: &str| {
        let said = format!("mean {mean}: six tiers have a larger margin to {against} than two");
        Some(Claim::new(&said, Expected::Positive, margin_grows(grid, mean, pair)?, time))
    };
    let ours = || {
        let said = format!("(ours) mean {mean}, six tiers: age adds at most 5 % to the cap");
        let at = [("mean", mean), ("tiers", "6")];
        let found = grid.change(&at, "scheduler", LIMITED, p99)?;
        Some(Claim::new(&said, Expected::AtLeast(-0.05), found, crate::claim::change))
    };
    let margins = [grows(ROUND_ROBIN, "Shinjuku"), grows(FAIR, "CFS"), ours()];
    linear.chain(margins).flatten().collect()
}

/// By how much more ORF's P99 is below another's with six tiers than with two, seconds. The intervals of the two
/// margins, which are independent but for common arrivals, add up.
fn margin_grows(grid: &Grid, mean: &str, [orf, other]: [&str; 2]) -> Option<Estimate> {
    let margin = |tiers| {
        let at = [("mean", mean), ("tiers", tiers)];
        let with = [&at[..], &[("scheduler", other)]].concat();
        let (base, change) = (grid.estimate(&with, p99)?, grid.change(&at, "scheduler", [orf, other], p99)?);
        Some((-change.value * base.value, change.half_width * base.value))
    };
    let (six, two) = (margin("6")?, margin("2")?);
    Some(Estimate { value: six.0 - two.0, half_width: six.1 + two.1 })
}

/// R² of the straight line with the least squares.
fn line_fits(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x - mx, y - my)).sum::<f64>();
    sum(|x, y| x * y).powi(2) / (sum(|x, _| x * x) * sum(|_, y| y * y))
}

#[cfg(test)]
mod tests {
    use super::line_fits;

    #[test]
    fn a_line_fits_itself_and_not_a_parabola() {
        assert!((line_fits(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]) - 1.0).abs() < 1e-12);
        assert!(line_fits(&[(-1.0, 1.0), (0.0, 0.0), (1.0, 1.0)]) < 1e-12);
    }
}
