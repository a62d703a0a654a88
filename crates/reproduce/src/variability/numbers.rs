//! The four means of section 2: 1.0, 1.7, 2.5 and 3.3 ms.

use crate::claim::{Claim, Expected, time};
use crate::context::{Context, Failure, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use scenario::Run;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/variability-numbers.toml");

/// By queue: the paper's mean in seconds, and Eq. 3 with a load of 0.6 and a mean service of 1 ms.
const SAID: [(&str, f64, f64); 4] = [
    ("D/D/1", 1.0e-3, 1.0e-3),
    ("M/D/1", 1.7e-3, 1.75e-3),
    ("M/M/1", 2.5e-3, 2.5e-3),
    ("M/H2/1", 3.3e-3, 3.25e-3),
];

pub(crate) fn run(context: &Context) -> Result<Figure, Failure> {
    let runs = context.play(&embedded("variability-numbers.toml", SCENARIO)?)?;
    let claims = runs.iter().zip(SAID).flat_map(|(run, said)| claims(run, said)).collect();
    let points = runs
        .iter()
        .enumerate()
        .filter_map(|(index, run)| Some((index as f64, run.report.mean()?.value / 1e9)));
    let plot = Plot {
        title: "Mean latency of D/D/1, M/D/1, M/M/1 and M/H2/1".to_owned(),
        x: Axis::linear(
            "squared coefficients of variation of arrivals and service, summed",
            Quantity::Number,
        ),
        y: Axis::linear("mean latency", Quantity::Seconds),
        lines: vec![Line::new("load 60 %", points)],
    };
    Ok(Figure {
        reading:
            "One worker, first come, first served, 600 requests/s, service of 1 ms on average. The paper \
            writes that the rate is 0.6 · E[ST]; it is 0.6 ÷ E[ST]."
                .to_owned(),
        plots: vec![plot],
        claims,
    })
}

/// The mean beside the paper's, to its rounding, and beside the formula.
fn claims(run: &Run, (queue, said, formula): (&str, f64, f64)) -> Vec<Claim> {
    debug_assert_eq!(run.choice("queue"), queue);
    let Some(mut mean) = run.report.mean() else { return Vec::new() };
    mean.value /= 1e9;
    mean.half_width /= 1e9;
    let printed = Expected::About { value: said, within: 0.051e-3 / said };
    let exact = Expected::About { value: formula, within: 0.0 };
    vec![
        Claim::new(&format!("the mean of {queue} is {}", time(said)), printed, mean, time),
        Claim::new(&format!("the mean of {queue} is {} by Eq. 3", time(formula)), exact, mean, time),
    ]
}
