//! Figure 2: how much first come, first served reorders, and what that does to slowdowns.

use super::grid::{Grid, reordering, slowdown_p99};
use crate::claim::{Claim, Expected, change, share};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-2.toml");
const AT: [(&str, &str); 1] = [("rate", "300")];

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-2.toml", SCENARIO)?;
    let rate = || Axis::linear("requests/s", Quantity::PerSecond);
    let plot = |title: &str, y, measure| Plot {
        title: title.to_owned(),
        x: rate(),
        y,
        lines: grid.lines(&[], "rate", "law", measure),
    };
    let plots = vec![
        plot("Reordering", Axis::linear("reordered requests", Quantity::Share), reordering),
        plot("Slowdown", Axis::log("99th percentile of the slowdown", Quantity::Number), slowdown_p99),
    ];
    let reading = "Three tiers of three workers, first come, first served, mean 5 ms; 1 us to take a request up and \
        0.7 us of a dispatcher. The 1 % of long requests of the bimodal law are long in all tiers. Reordered is who is \
        complete in another position than without queueing. Other work takes each worker for 4 ms (a tick at 250 Hz) \
        every 50 ms on average; the 50 ms were chosen for the 40 % at a fixed demand and 300 requests/s, which \
        therefore judge nothing, and all other experiments have them too.";
    Ok(Figure { reading: reading.to_owned(), plots, claims: claims(&grid) })
}

fn claims(grid: &Grid) -> Vec<Claim> {
    let fixed = grid.estimate(&[AT[0], ("law", "fixed")], reordering);
    let forty = fixed.map(|found| {
        let expected = Expected::About { value: 0.4, within: 0.05 };
        Claim::new("40 % are reordered at 300 requests/s and fixed demands", expected, found, share)
            .underspecified("what else runs on the workers is not said, and was chosen for this")
    });
    let against_fixed = |law: &'static str, measure, said: &str| {
        let found = grid.change(&AT, "law", [law, "fixed"], measure)?;
        let said = format!("{said} at 300 requests/s with {law} demands than with fixed ones");
        Some(Claim::new(&said, Expected::Positive, found, change))
    };
    let with_the_rate = |law: &'static str| {
        let found = grid.change(&[("law", law)], "rate", ["500", "100"], reordering)?;
        let said = format!("reordering grows with the rate: {law} demands, 500 against 100 requests/s");
        Some(Claim::new(&said, Expected::Positive, found, change))
    };
    let all = [
        forty,
        against_fixed("exponential", reordering, "more are reordered"),
        against_fixed("bimodal", reordering, "more are reordered"),
        against_fixed("exponential", slowdown_p99, "the 99th percentile of slowdown is higher"),
        against_fixed("bimodal", slowdown_p99, "the 99th percentile of slowdown is higher"),
        with_the_rate("fixed"),
        with_the_rate("exponential"),
        with_the_rate("bimodal"),
    ];
    all.into_iter().flatten().collect()
}
