//! Figure 3: more workers at 70 %, with one queue or with a queue each.

use super::exact::Exact;
use super::{at, chosen, ratio};
use crate::claim::{Claim, Expected, seconds, time, times};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Figure, Line, Plot};
use scenario::ScenarioRun;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tales-fig-3.toml");

pub(super) fn run(context: &Context) -> Result<Figure, FigureError> {
    let runs = context.play(&embedded("tales-fig-3.toml", SCENARIO)?)?;
    let lines = runs.iter().map(|run| Line::ccdf(run.choice("workers"), &run.report.response())).collect();
    Ok(Figure {
        reading: "Service of 50 µs, Poisson arrivals, first come, first served. \"4x\" is read as 3.5 to 4.5. With a \
                  queue each, a request joins any of them, equally likely."
            .to_owned(),
        plots: vec![Plot::tails("Latency by number of workers at 70 %", lines)],
        claims: claims(&runs).unwrap_or_default(),
    })
}

fn claims(runs: &[ScenarioRun]) -> Option<Vec<Claim>> {
    let [one, eight, apart] = ["1", "8", "8, a queue each"].map(|value| chosen(runs, "workers", value));
    let (one, eight, apart) = (one?, eight?, apart?);
    let fourfold = Expected::About { value: 4.0, within: 0.125 };
    let [exact_one, exact_eight] = [1, 8].map(|workers| Exact::new(workers, 0.7).quantile(0.99));
    let mut claims = vec![
        Claim::new("with 8 workers the p99 drops 4x", fourfold, ratio(one, eight, 99.0)?, times),
        Claim::exact(
            "the same by the exact distributions of M/D/1 and M/D/8",
            fourfold,
            exact_one / exact_eight,
            times,
        )
        .remark(&format!("{} and {}", time(exact_one), time(exact_eight))),
    ];
    for percent in [50.0, 99.0, 99.9] {
        let single = Exact::new(1, 0.7).quantile(percent / 100.0);
        let same = Expected::About { value: single, within: 0.002 };
        let said =
            format!("with a queue each, p{percent} is that of a single worker, {} by M/D/1", time(single));
        let found = seconds(apart.report.estimate(at(percent))?);
        claims.push(Claim::new(&said, same, found, time));
    }
    for pair in
        runs.iter().filter(|run| run.choice("workers").parse::<u32>().is_ok()).collect::<Vec<_>>().windows(2)
    {
        let said = format!(
            "the p99 of {} workers is below that of {}",
            pair[1].choice("workers"),
            pair[0].choice("workers")
        );
        let change = pair[1].report.change(&pair[0].report, at(99.0))?;
        claims.push(Claim::new(&said, Expected::Negative, change, crate::claim::change));
    }
    Some(claims)
}
