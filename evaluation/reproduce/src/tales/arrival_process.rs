//! Figure 1: one worker that takes 50 µs, at 70 %, under several arrival processes.

use super::recorded_arrivals;
use super::runs::{SERVICE, response_percentile};
use crate::claim::{Claim, Expected, format_time, to_seconds};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{FigurePlot, FigureSeries, ReproducedFigure};
use scenario::ScenarioRun;
use sim::engine::Estimate;
use sim::ideal::Summary;
use units::Percentile;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-1.toml");

pub(super) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = context.run_variants(&embedded_scenario("tales-fig-1.toml", SCENARIO)?)?;
    let measured = recorded_arrivals::summaries(context)?;
    let mut lines = Vec::new();
    for run in &runs {
        lines.push(FigureSeries::ccdf(run.choice("arrivals"), &run.report.response()));
    }
    for (name, summary) in &measured {
        lines.push(FigureSeries::ccdf(*name, &summary.latencies()));
    }
    let left_out = if measured.is_empty() { " They are left out here: --data was not given." } else { "" };
    Ok(ReproducedFigure {
        reading: format!(
            "The legend of the figure is not in the text, which says \"several analytically defined arrival processes\" \
             and the requests of Wikipedia. Read as equal gaps, Poisson, and renewal processes with uniform, lognormal \
             (squared variation 4) and Pareto (shape 1.5) gaps. The requests of Wikipedia are not to be had; in their \
             place are real arrivals of two inference services and two block devices, with time compressed or \
             stretched to 70 %.{left_out}"
        ),
        plots: vec![FigurePlot::tails("Latency by arrival process", lines)],
        claims: claims(&runs, &measured),
    })
}

fn claims(runs: &[ScenarioRun], measured: &[(&str, Summary)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for run in runs {
        let Some(p99) = run.report.estimate(response_percentile(99.0)).map(to_seconds) else { continue };
        match run.choice("arrivals") {
            "equal gaps" => claims.push(equal_gaps_claim(p99)),
            name => claims.push(tail_claim(name, p99)),
        }
    }
    for (name, summary) in measured {
        let p99 = Percentile::new(99.0).and_then(|p| summary.percentile(p)).map(to_seconds);
        claims.extend(p99.map(|p99| tail_claim(name, p99)));
    }
    claims.push(
        Claim::exact(
            "equal gaps at 70 % are 70 µs",
            // Printed to the tens.
            Expected::About { value: 70e-6, within: 5.0 / 70.0 },
            SERVICE / 0.7,
            format_time,
        )
        .remark("50 µs ÷ 0.7 are 71.4 µs; gaps of 70 µs are 71.4 %"),
    );
    claims
}

fn equal_gaps_claim(p99: Estimate) -> Claim {
    // A latency without chance is still rounded by the histogram.
    let service = Expected::About { value: SERVICE, within: 0.002 };
    Claim::new("with equal gaps no request waits: the p99 is 50 µs", service, p99, format_time)
}

/// The claim "Despite each request taking a deterministic amount of time, the latency tail is high".
fn tail_claim(name: &str, p99: Estimate) -> Claim {
    let statement = format!("{name}: the tail (p99) is high: at least twice the 50 µs of service");
    Claim::new(&statement, Expected::AtLeast(2.0 * SERVICE), p99, format_time)
}
