//! Figure 10: throughput at 600 requests/s.

use super::grid::{Grid, throughput};
use super::said::{FAIR, LIMITED, ROUND_ROBIN, Said, judged};
use super::{COSTS, SETTING};
use crate::claim::{Claim, Expected, change};
use crate::context::{Context, FigureError};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-10.toml");

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let grid = Grid::play(context, "tailclipper-fig-10.toml", SCENARIO)?;
    let laws = grid.values("law");
    let line = |scheduler: &str| {
        let points = laws.iter().enumerate().filter_map(|(index, law)| {
            let found = grid.estimate(&[("law", law), ("scheduler", scheduler)], throughput)?;
            Some((index as f64 + 1.0, found.value))
        });
        Line::new(scheduler, points)
    };
    let plot = Plot {
        title: "Throughput at 600 requests/s".to_owned(),
        x: Axis::linear(&laws.join(", "), Quantity::Number),
        y: Axis::linear("completions", Quantity::PerSecond),
        lines: grid.values("scheduler").into_iter().map(line).collect(),
    };
    let mut claims = judged(&grid, &SAID);
    claims.extend(laws.iter().flat_map(|law| highest(&grid, law)));
    Ok(Figure {
        reading: format!("{SETTING} 60 s of arrivals from an empty system."),
        plots: vec![plot],
        claims,
    })
}

const SAID: [Said; 4] = [
    Said {
        said: "exponential: throughput +29 % against Shinjuku",
        expected: Expected::About { value: 0.29, within: 0.05 },
        at: &[("law", "exponential")],
        pair: ROUND_ROBIN,
        measure: throughput,
        open: Some(COSTS),
    },
    Said {
        said: "exponential: 2.2 × the throughput of CFS",
        expected: Expected::About { value: 1.2, within: 0.05 },
        at: &[("law", "exponential")],
        pair: FAIR,
        measure: throughput,
        open: Some(COSTS),
    },
    Said {
        said: "(ours) exponential: the cap without age has the same throughput, to 1 %",
        expected: Expected::AtMost(0.01),
        at: &[("law", "exponential")],
        pair: LIMITED,
        measure: throughput,
        open: None,
    },
    Said {
        said: "(ours) log-normal: the cap without age has the same throughput, to 1 %",
        expected: Expected::AtMost(0.01),
        at: &[("law", "log-normal")],
        pair: LIMITED,
        measure: throughput,
        open: None,
    },
];

/// That ORF has the highest throughput.
fn highest(grid: &Grid, law: &str) -> Vec<Claim> {
    let against = |pair: [&str; 2], name| {
        let found = grid.change(&[("law", law)], "scheduler", pair, throughput)?;
        Some(Claim::new(
            &format!("{law}: throughput highest, against {name}"),
            Expected::Positive,
            found,
            change,
        ))
    };
    [against(ROUND_ROBIN, "Shinjuku"), against(FAIR, "CFS")].into_iter().flatten().collect()
}
