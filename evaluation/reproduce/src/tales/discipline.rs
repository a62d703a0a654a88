//! Figure 4: four disciplines at four workers, 80 %, 50 µs.

use super::mdc_distribution::MdcDistribution;
use super::runs::{find_run, response_percentile};
use crate::claim::{Claim, Expected, format_change, format_time, to_seconds};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{FigurePlot, FigureSeries, ReproducedFigure};
use scenario::ScenarioRun;
use sim::engine::Estimate;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-4.toml");

pub(super) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = context.run_variants(&embedded_scenario("tales-fig-4.toml", SCENARIO)?)?;
    let mut lines = Vec::new();
    for run in &runs {
        lines.push(FigureSeries::ccdf(run.choice("discipline"), &run.report.response()));
    }
    let mut claims = comparison_claims(&runs).unwrap_or_default();
    claims.extend(median_claims(&runs).unwrap_or_default());
    Ok(ReproducedFigure {
        reading:
            "Poisson arrivals. A tail is read as the 99.9th percentile. Medians are read to a twentieth."
                .to_owned(),
        plots: vec![FigurePlot::tails("Latency by discipline, 4 workers at 80 %", lines)],
        claims,
    })
}

/// A claim that a percentile is lower under the first discipline than under the second.
struct DisciplineClaim {
    statement: &'static str,
    pair: [&'static str; 2],
    percent: f64,
}

const DISCIPLINE_CLAIMS: [DisciplineClaim; 5] = [
    DisciplineClaim { statement: "FIFO has a better tail than LIFO", pair: ["FIFO", "LIFO"], percent: 99.9 },
    DisciplineClaim {
        statement: "FIFO has a better tail than random worker",
        pair: ["FIFO", "random worker"],
        percent: 99.9,
    },
    DisciplineClaim {
        statement: "FIFO has a better tail than random request",
        pair: ["FIFO", "random request"],
        percent: 99.9,
    },
    DisciplineClaim {
        statement: "LIFO has a better median than FIFO",
        pair: ["LIFO", "FIFO"],
        percent: 50.0,
    },
    DisciplineClaim {
        statement: "random request has a better median than FIFO",
        pair: ["random request", "FIFO"],
        percent: 50.0,
    },
];

fn comparison_claims(runs: &[ScenarioRun]) -> Option<Vec<Claim>> {
    let mut claims = Vec::new();
    for DisciplineClaim { statement, pair: [better, worse], percent } in DISCIPLINE_CLAIMS {
        let better = find_run(runs, "discipline", better)?;
        let worse = find_run(runs, "discipline", worse)?;
        let change = better.report.change(&worse.report, response_percentile(percent))?;
        claims.push(Claim::new(statement, Expected::Negative, change, format_change));
    }
    Some(claims)
}

fn median_claims(runs: &[ScenarioRun]) -> Option<Vec<Claim>> {
    let lifo = median(find_run(runs, "discipline", "LIFO")?)?;
    let fifo = median(find_run(runs, "discipline", "FIFO")?)?;
    let exact = MdcDistribution::new(4, 0.8).quantile(0.5);
    let remark = format!(
        "by the exact distribution of M/D/4 it is {}; 64 µs would be a utilisation of {:.1} %",
        format_time(exact),
        100.0 * load_of_median(64e-6)
    );
    Some(vec![
        Claim::new("the median of LIFO is 50 µs", median_of_us(50.0), lifo, format_time),
        Claim::new("the median of FIFO is 64 µs", median_of_us(64.0), fifo, format_time).remark(&remark),
        Claim::exact(
            "the median of FIFO is 64 µs, by the exact distribution",
            median_of_us(64.0),
            exact,
            format_time,
        )
        .remark("known without simulation: the reading of the figure is not that of the paper, or its number is not"),
    ])
}

/// The median response time of a run, seconds.
fn median(run: &ScenarioRun) -> Option<Estimate> {
    run.report.estimate(response_percentile(50.0)).map(to_seconds)
}

/// A median that is printed in microseconds, read to a twentieth.
fn median_of_us(us: f64) -> Expected {
    Expected::About { value: us * 1e-6, within: 0.05 }
}

/// The utilisation at which the median response time of four workers is this, seconds; by bisection.
fn load_of_median(median: f64) -> f64 {
    let mut low = 0.8;
    let mut high = 0.95;
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        if MdcDistribution::new(4, middle).quantile(0.5) < median {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
