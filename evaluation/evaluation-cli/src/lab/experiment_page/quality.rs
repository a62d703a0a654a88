//! Possible reasons why runs are invalid, and if they applied.

use crate::lab::experiment_text::{ExperimentView, PlayedCase, case_name};
use cli::page_table::table;
use operation::text::{percent, time};
use plot::Block;

const HEADINGS: [&str; 8] = [
    "case",
    "policy",
    "sent late by, at the percentile",
    "of the SLO",
    "latest",
    "CPU pressure",
    "connections lost",
    "no answer",
];

pub(super) fn blocks(view: &ExperimentView) -> Vec<Block> {
    let rows = view.done.iter().map(|done| row(view, done)).collect();
    let mut blocks = vec![
        Block::paragraph(
            "A verdict is invalid, and left open, when the generator sent requests late by more than 10% of the SLO at \
             its percentile: then the latency is that of the generator. CPU pressure is the share of the run in which some task of the \
             machine was ready and had no CPU. It does no harm as long as generator, proxy and device have priority; \
             where they run as ordinary threads, verdicts are doubtful.",
        ),
        Block::paragraph(if view.settings.realtime {
            "Generator, proxy and device ran under SCHED_FIFO."
        } else {
            "Generator, proxy and device ran as ordinary threads: latencies are also those of the scheduler."
        }),
        table(&HEADINGS, 2, rows).into(),
    ];
    for done in view.done {
        let name = case_name(view.planned, &view.planned.cases[done.case]);
        let warnings = done.played.report.warnings.iter();
        blocks.extend(
            warnings.map(|said| Block::paragraph(format!("{name}, {}: {said}.", done.policy.name()))),
        );
        if done.played.report.observed_duration < view.settings.duration {
            let seconds = time(done.played.report.observed_duration.as_secs());
            let text = format!("{name}, {}: stopped when {seconds} had been observed.", done.policy.name());
            blocks.push(Block::paragraph(text));
        }
    }
    blocks
}

/// The worst of all workloads.
fn row(view: &ExperimentView, done: &PlayedCase) -> Vec<String> {
    let lags = || done.rows.iter().filter_map(|row| Some((row.finding.lag?, row.judgement.slo_s)));
    let worst = |of: &dyn Fn((verify::LagFinding, f64)) -> f64| lags().map(of).fold(0.0, f64::max);
    let ran = &done.played.report;
    let unanswered = ran.observations.requests.iter().filter(|request| request.latency().is_none()).count();
    vec![
        case_name(view.planned, &view.planned.cases[done.case]).to_owned(),
        done.policy.name().to_owned(),
        time(worst(&|(lag, _)| lag.at_percentile_s)),
        percent(worst(&|(lag, slo)| lag.at_percentile_s / slo)),
        time(worst(&|(lag, _)| lag.max_s)),
        ran.cpu_pressure.map_or_else(|| "–".to_owned(), percent),
        ran.reconnects().to_string(),
        unanswered.to_string(),
    ]
}
