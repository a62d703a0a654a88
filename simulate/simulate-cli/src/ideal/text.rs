//! The ideal latencies of a stream, by discipline, as a table.

use crate::simulate::figure::{interval, plain};
use cli::terminal::TextTable;
use operation::text::percent;
use simulate::ideal::{IdealAnswer, IdealOutcome, IdealSettings};
use simulate::simulation::PERCENTILES;
use units::plural;

/// Latencies, with the settings that they answer.
pub(crate) struct IdealView<'a> {
    pub(crate) settings: &'a IdealSettings,
    pub(crate) answer: &'a IdealAnswer,
}

/// Describes the simulation in a sentence.
pub(crate) fn lead(view: &IdealView) -> String {
    let workers = plural(view.settings.workers.get(), "worker");
    let some = view.answer.outcomes.iter().any(|outcome| !outcome.figures.ci.is_empty());
    let too_few = view.answer.requests_needed.map_or_else(String::new, |needed| {
        format!(" Too few requests to tell: this load takes --requests {needed} or more.")
    });
    let infinite = match view.answer.outcomes.iter().any(|outcome| outcome.mean_is_infinite) {
        true => " Service times without a variance make the mean infinite; percentiles exist.",
        // Latencies have a mean but no variance.
        false if view.settings.service.tail_exponent() <= 3.0 => {
            " Service times without a third moment: the mean of a sample varies so much that its interval is too narrow."
        }
        false => "",
    };
    let intervals = if some { " ± are 95 % confidence intervals." } else { "" };
    format!(
        "{} of {}, service {}, {workers}: utilisation {}.{intervals}{infinite}{too_few}",
        requests(view.answer.outcomes[0].figures.requests),
        view.answer.name,
        view.settings.service,
        percent(view.answer.utilisation)
    )
}

fn requests(count: u64) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// Headings and a row per discipline.
pub(crate) fn rows(view: &IdealView) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut headings = vec!["discipline", "mean"];
    headings.extend(PERCENTILES.map(|(name, _)| name));
    headings.extend(["slowdown p99", "reordering"]);
    let row = |at: &IdealOutcome| {
        let f = &at.figures;
        let mut cells = vec![at.order.to_string()];
        let times = [f.mean_s, f.p50_s, f.p90_s, f.p99_s, f.p99_9_s];
        cells.extend(times.map(interval));
        if at.mean_is_infinite {
            cells[1] = "infinite".to_owned();
        }
        cells.push(plain(f.slowdown_p99.map(|e| e.value), ""));
        cells.push(plain(f.reordering_pct.map(|e| e.value), " %"));
        cells
    };
    (headings, view.answer.outcomes.iter().map(row).collect())
}

/// The table for people.
pub(crate) fn text(view: &IdealView) -> String {
    let (headings, rows) = rows(view);
    let table =
        TextTable::of_rows(&headings, 1, rows).without_first(&["reordering", "p90", "slowdown p99", "p50"]);
    let table = table.answered_by(&["p99", "mean"]);
    format!("{}\n\n{}", lead(view), table.render())
}
