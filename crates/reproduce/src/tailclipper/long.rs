//! Figure 11: 99 % of the requests are long.

use super::grid::{Grid, p99, shortest_p99};
use super::said::{LIMITED, ROUND_ROBIN, Said, judged};
use super::{COSTS, SETTING};
use crate::claim::Expected;
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-11.toml");
const READING: &str = "Bimodal(99-100, 1-10) at half the times as everywhere, drawn by tier as the paper does: 60.5 \
    requests/s are a utilisation of 1. Ten minutes of arrivals. The shortest are those whose total demand is at most its \
    1 % quantile: as it has three values only, these are the 3 % that are short in at least one tier.";

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-11.toml", SCENARIO)?;
    let plot = |title: &str, measure| Plot {
        title: title.to_owned(),
        x: Axis::linear("requests/s", Quantity::PerSecond),
        y: Axis::log("99th percentile", Quantity::Seconds),
        lines: grid.lines(&[], "rate", "scheduler", measure),
    };
    let plots = vec![plot("All requests", p99), plot("The shortest", shortest_p99)];
    Ok(Figure { reading: format!("{SETTING} {READING}"), plots, claims: judged(&grid, &SAID) })
}

const SAID: [Said; 8] = [
    Said {
        said: "20/s: P99 −17 % against Shinjuku",
        expected: Expected::About { value: -0.17, within: 0.05 },
        at: &[("rate", "20")],
        pair: ROUND_ROBIN,
        measure: p99,
        open: Some(COSTS),
    },
    Said {
        said: "20/s: P99 lower than Shinjuku's",
        expected: Expected::Negative,
        at: &[("rate", "20")],
        pair: ROUND_ROBIN,
        measure: p99,
        open: None,
    },
    Said {
        said: "48/s: P99 lower than Shinjuku's",
        expected: Expected::Negative,
        at: &[("rate", "48")],
        pair: ROUND_ROBIN,
        measure: p99,
        open: None,
    },
    Said {
        said: "(ours) 48/s: age adds at most 5 % to the cap",
        expected: Expected::AtLeast(-0.05),
        at: &[("rate", "48")],
        pair: LIMITED,
        measure: p99,
        open: None,
    },
    Said {
        said: "30/s: the shortest have a higher P99 than with Shinjuku",
        expected: Expected::Positive,
        at: &[("rate", "30")],
        pair: ROUND_ROBIN,
        measure: shortest_p99,
        open: None,
    },
    Said {
        said: "30/s: higher P99 of the shortest, and yet not of all",
        expected: Expected::AtMost(0.0),
        at: &[("rate", "30")],
        pair: ROUND_ROBIN,
        measure: p99,
        open: None,
    },
    Said {
        said: "48/s: the shortest have a lower P99 than with Shinjuku",
        expected: Expected::Negative,
        at: &[("rate", "48")],
        pair: ROUND_ROBIN,
        measure: shortest_p99,
        open: None,
    },
    Said {
        said: "(ours) 48/s: the shortest are not worse off by age, to 5 %",
        expected: Expected::AtMost(0.05),
        at: &[("rate", "48")],
        pair: LIMITED,
        measure: shortest_p99,
        open: None,
    },
];
