//! Figure 4: four disciplines at four workers, 80 %, 50 µs.

use super::exact::Exact;
use super::{at, chosen};
use crate::claim::{Claim, Expected, change, seconds, time};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Figure, Line, Plot};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-4.toml");

pub(super) fn run(context: &Context) -> Result<Figure, FigureError> {
    let runs = context.play(&embedded("tales-fig-4.toml", SCENARIO)?)?;
    let lines = runs.iter().map(|run| Line::ccdf(run.choice("discipline"), &run.report.response())).collect();
    Ok(Figure {
        reading: "Poisson arrivals. A tail is read as the 99.9th percentile. Medians are read to half a microsecond."
            .to_owned(),
        plots: vec![Plot::tails("Latency by discipline, 4 workers at 80 %", lines)],
        claims: claims(&runs).unwrap_or_default(),
    })
}

fn claims(runs: &[ScenarioRun]) -> Option<Vec<Claim>> {
    let of = |name| chosen(runs, "discipline", name);
    let (fifo, lifo) = (of("FIFO")?, of("LIFO")?);
    let (worker, request) = (of("random worker")?, of("random request")?);
    let less = |said: &str, run: &ScenarioRun, than: &ScenarioRun, percent| {
        let found = run.report.change(&than.report, at(percent))?;
        Some(Claim::new(said, Expected::Negative, found, change))
    };
    let mut claims = vec![
        less("FIFO has a better tail than LIFO", fifo, lifo, 99.9)?,
        less("FIFO has a better tail than random worker", fifo, worker, 99.9)?,
        less("FIFO has a better tail than random request", fifo, request, 99.9)?,
        less("LIFO has a better median than FIFO", lifo, fifo, 50.0)?,
        less("random request has a better median than FIFO", request, fifo, 50.0)?,
    ];
    let median = |run: &ScenarioRun| run.report.estimate(at(50.0)).map(seconds);
    let read = |us: f64| Expected::About { value: us * 1e-6, within: 0.5 / us };
    let exact = Exact::new(4, 0.8).quantile(0.5);
    let remark = format!(
        "by the exact distribution of M/D/4 it is {}; 64 µs would be a utilisation of {:.1} %",
        time(exact),
        100.0 * load_of_median(64e-6)
    );
    claims.push(Claim::new("the median of LIFO is 50 µs", read(50.0), median(lifo)?, time));
    claims.push(Claim::new("the median of FIFO is 64 µs", read(64.0), median(fifo)?, time).remark(&remark));
    claims.push(Claim::exact(
        "the median of FIFO is 64 µs, by the exact distribution",
        read(64.0),
        exact,
        time,
    ));
    Some(claims)
}

/// The utilisation at which the median of four workers is this.
fn load_of_median(median: f64) -> f64 {
    let (mut low, mut high) = (0.8, 0.95);
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        if Exact::new(4, middle).quantile(0.5) < median {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
