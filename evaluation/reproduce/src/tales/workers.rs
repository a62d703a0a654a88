//! Figure 3: more workers at 70 %, with one queue or with a queue each.

use super::mdc_distribution::MdcDistribution;
use super::runs::{EXACT, find_run, percentile_ratio, response_percentile};
use crate::claim::{Claim, Expected, format_change, format_factor, format_time, to_seconds};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{FigurePlot, FigureSeries, ReproducedFigure};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-3.toml");

pub(super) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = context.run_variants(&embedded_scenario("tales-fig-3.toml", SCENARIO)?)?;
    let mut lines = Vec::new();
    for run in &runs {
        lines.push(FigureSeries::ccdf(run.choice("workers"), &run.report.response()));
    }
    Ok(ReproducedFigure {
        reading: "Service of 50 µs, Poisson arrivals, first come, first served. \"4x\" is read as 3.5 to 4.5. With a \
                  queue each, a request joins any of them, equally likely."
            .to_owned(),
        plots: vec![FigurePlot::tails("Latency by number of workers at 70 %", lines)],
        claims: claims(&runs).unwrap_or_default(),
    })
}

fn claims(runs: &[ScenarioRun]) -> Option<Vec<Claim>> {
    let [one, eight, apart] = ["1", "8", "8, a queue each"].map(|value| find_run(runs, "workers", value));
    let one = one?;
    let eight = eight?;
    let apart = apart?;
    let fourfold = Expected::About { value: 4.0, within: 0.125 };
    let [exact_one, exact_eight] = [1, 8].map(|workers| MdcDistribution::new(workers, 0.7).quantile(0.99));
    let mut claims = vec![
        Claim::new(
            "with 8 workers the p99 drops 4x",
            fourfold,
            percentile_ratio(one, eight, 99.0)?,
            format_factor,
        ),
        Claim::exact(
            "the same by the exact distributions of M/D/1 and M/D/8",
            fourfold,
            exact_one / exact_eight,
            format_factor,
        )
        .remark(&format!("{} and {}", format_time(exact_one), format_time(exact_eight))),
    ];
    for percent in [50.0, 99.0, 99.9] {
        let single = MdcDistribution::new(1, 0.7).quantile(percent / 100.0);
        let same = Expected::About { value: single, within: EXACT };
        let statement = format!(
            "with a queue each, p{percent} is that of a single worker, {} by M/D/1",
            format_time(single)
        );
        let found = to_seconds(apart.report.estimate(response_percentile(percent))?);
        claims.push(Claim::new(&statement, same, found, format_time).ours());
    }
    let shared_queue: Vec<&ScenarioRun> =
        runs.iter().filter(|run| run.choice("workers").parse::<u32>().is_ok()).collect();
    for pair in shared_queue.windows(2) {
        let [fewer, more] = [pair[0], pair[1]];
        let statement = format!(
            "the p99 of {} workers is below that of {}",
            more.choice("workers"),
            fewer.choice("workers")
        );
        let change = more.report.change(&fewer.report, response_percentile(99.0))?;
        claims.push(Claim::new(&statement, Expected::Negative, change, format_change));
    }
    Some(claims)
}
