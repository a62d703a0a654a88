//! A scenario that varies something: a row per variant, as JSON and as a table.

use crate::simulate::figure;
use crate::simulate::figure::{interval, plain};
use crate::simulate::text::window;
use crate::simulate::workloads;
use cli::terminal::{Align, TextTable};
use simulate::simulation::{SimulatedVariant, VariedDocument, change};
use units::plural;

/// All variants of a scenario.
pub(crate) struct VariedView<'a> {
    pub(crate) variants: &'a [SimulatedVariant],
    pub(crate) seed: u64,
}

impl VariedView<'_> {
    /// Returns the names of the varied axes.
    pub(crate) fn axes(&self) -> impl Iterator<Item = &str> {
        self.variants
            .iter()
            .take(1)
            .flat_map(|first| first.run.choices.iter().map(|choice| choice.axis.as_str()))
    }
}

/// Formats one object: a list of the results of [`crate::simulate::text::json`], each with its choices.
pub(crate) fn json(view: &VariedView) -> String {
    operation::document::document(&VariedDocument::new(view.variants, view.seed))
}

/// Describes the run in a sentence.
pub(crate) fn lead(view: &VariedView) -> String {
    let Some(first) = view.variants.first() else { return String::new() };
    let plan = &first.run.case.plan;
    format!(
        "{}: {}, each {} or more replications of {} of warm-up, seed {}; ± are {} % confidence intervals.",
        first.run.case.name,
        plural(view.variants.len(), "variant"),
        plan.replications,
        window(plan),
        view.seed,
        100.0 * plan.confidence
    )
}

/// Headings and a row per variant.
pub(crate) fn rows(view: &VariedView) -> (Vec<String>, Vec<Vec<String>>) {
    let mut headings: Vec<String> = view.axes().map(str::to_owned).collect();
    let figures = [
        "busiest",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "p99 change",
        "slowdown p99",
        "reordering",
        "per second",
        "",
    ];
    headings.extend(figures.map(str::to_owned));
    (headings, view.variants.iter().map(|played| row(view, played)).collect())
}

/// A row per variant and workload of a storage server: choices, then the cells of [`workloads::row`].
pub(crate) fn workload_rows(view: &VariedView) -> Vec<Vec<String>> {
    let of_variant = |played: &SimulatedVariant| {
        let choices: Vec<String> = played.run.choices.iter().map(|choice| choice.value.clone()).collect();
        let outcomes = played.run.workload_outcomes();
        outcomes.iter().map(|outcome| [choices.clone(), workloads::row(outcome)].concat()).collect::<Vec<_>>()
    };
    view.variants.iter().flat_map(of_variant).collect()
}

fn row(view: &VariedView, played: &SimulatedVariant) -> Vec<String> {
    let one = played.figures(view.seed);
    let figures = one.end_to_end();
    let mut cells: Vec<String> = played.run.choices.iter().map(|choice| choice.value.clone()).collect();
    cells.push(format!("{:.1} %", 100.0 * played.run.case.busiest().1));
    cells.extend([figures.mean_s, figures.p50_s, figures.p99_s, figures.p99_9_s].map(interval));
    cells.push(figure::change(change(view.variants, played, 99.0)));
    cells.push(plain(figures.slowdown_p99.map(|e| e.value), ""));
    cells.push(plain(figures.reordering_pct.map(|e| e.value), " %"));
    cells.push(plain(figures.throughput_per_s.map(|e| e.value), ""));
    cells.push(match one.verdict() {
        "done" => String::new(),
        "transient" => "transient".to_owned(),
        _ => one.message(),
    });
    cells
}

/// The table for people.
pub(crate) fn text(view: &VariedView) -> String {
    let (headings, rows) = rows(view);
    let axes = view.axes().count();
    let align = |(index, heading): (usize, &String)| {
        // Names of choices and the message.
        let left = index < axes || heading.is_empty();
        (heading.clone(), if left { Align::Left } else { Align::Right })
    };
    let columns: Vec<(String, Align)> = headings.iter().enumerate().map(align).collect();
    let columns: Vec<(&str, Align)> = columns.iter().map(|(name, align)| (name.as_str(), *align)).collect();
    let mut table = TextTable::new(&columns);
    rows.into_iter().for_each(|row| table.row(row));
    let mut broken: Vec<&str> =
        view.variants.iter().filter_map(|variant| variant.broken_bounds.as_deref()).collect();
    broken.dedup();
    let broken: String = broken.iter().map(|broken| format!("{broken}\n")).collect();
    let answer: Vec<&str> = view.axes().chain(["p99", "mean"]).collect();
    let table = table.answered_by(&answer);
    let mut text = format!("{broken}{}\n\n{}", lead(view), table.render());
    let of_workloads = workload_rows(view);
    if !of_workloads.is_empty() {
        let axes: Vec<&str> = view.axes().collect();
        text += &format!("\n{}", workloads::table(&axes, of_workloads));
    }
    text
}
