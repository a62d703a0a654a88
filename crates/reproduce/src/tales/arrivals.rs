//! Figure 1: one worker that takes 50 µs, at 70 %, under several arrival processes.

use super::{SERVICE, at, chosen, measured};
use crate::claim::{Claim, Expected, seconds, time};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Figure, Line, Plot};
use scenario::ScenarioRun;
use sim::engine::Estimate;
use sim::ideal::Summary;
use units::Percentile;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-1.toml");

pub(super) fn run(context: &Context) -> Result<Figure, FigureError> {
    let runs = context.play(&embedded("tales-fig-1.toml", SCENARIO)?)?;
    let measured = measured::streams(context)?;
    let mut lines: Vec<Line> =
        runs.iter().map(|run| Line::ccdf(run.choice("arrivals"), &run.report.response())).collect();
    lines.extend(measured.iter().map(|(name, summary)| Line::ccdf(*name, &summary.latencies())));
    let left_out = if measured.is_empty() { " They are left out here: --data was not given." } else { "" };
    Ok(Figure {
        reading: format!(
            "The legend of the figure is not in the text, which says \"several analytically defined arrival processes\" \
             and the requests of Wikipedia. Read as equal gaps, Poisson, and renewal processes with uniform, lognormal \
             (squared variation 4) and Pareto (shape 1.5) gaps. The requests of Wikipedia are not to be had; in their \
             place are real arrivals of two inference services and two block devices, with time compressed or \
             stretched to 70 %.{left_out}"
        ),
        plots: vec![Plot::tails("Latency by arrival process", lines)],
        claims: claims(&runs, &measured),
    })
}

fn claims(runs: &[ScenarioRun], measured: &[(&str, Summary)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    if let Some(p99) = chosen(runs, "arrivals", "equal gaps").and_then(|run| run.report.estimate(at(99.0))) {
        // The histogram's error is all that a latency without chance has.
        let service = Expected::About { value: SERVICE, within: 0.002 };
        claims.push(Claim::new(
            "with equal gaps nobody waits: the p99 is 50 µs",
            service,
            seconds(p99),
            time,
        ));
    }
    for run in runs.iter().filter(|run| run.choice("arrivals") != "equal gaps") {
        let p99 = run.report.estimate(at(99.0)).map(seconds);
        claims.extend(p99.map(|p99| tail(run.choice("arrivals"), p99)));
    }
    for (name, summary) in measured {
        let p99 = Percentile::new(99.0).and_then(|p| summary.percentile(p)).map(seconds);
        claims.extend(p99.map(|p99| tail(name, p99)));
    }
    claims.push(
        Claim::exact(
            "equal gaps at 70 % are 70 µs",
            Expected::About { value: 70e-6, within: 0.5 / 70.0 },
            SERVICE / 0.7,
            time,
        )
        .remark("50 µs ÷ 0.7 are 71.4 µs; gaps of 70 µs are 71.4 %"),
    );
    claims
}

/// "Despite each request taking a deterministic amount of time, the latency tail is high".
fn tail(name: &str, p99: Estimate) -> Claim {
    let beyond = Estimate { value: p99.value - SERVICE, ..p99 };
    let said = format!("{name}: the tail (p99) is above the 50 µs of service");
    Claim::new(&said, Expected::Positive, beyond, |more| format!("+{}", time(more)))
}
