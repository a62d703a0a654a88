//! The derivation of a prediction for people.

use cli::terminal::{Align, TextTable};
use model::Stage;
use operation::text::{percent, time};
use plan::prediction::PredictionDerivation;

/// Maximum number of the workloads served before that are listed.
const SHOWN_MAX: usize = 12;

/// The derivation for people: whose work may come first, then step by step.
pub(crate) fn text(derivation: &PredictionDerivation) -> String {
    let mut text = match derivation.bound_s {
        Some(bound) => format!(
            "{} by {}: {}% < {}; its SLO is {}, {} of it is used.\n",
            derivation.workload,
            derivation.model.name(),
            derivation.percentile,
            time(bound),
            time(derivation.slo_s),
            percent(bound / derivation.slo_s)
        ),
        None => format!(
            "{} has no bound by {}: {}.\n",
            derivation.workload,
            derivation.model.name(),
            derivation.reason.as_deref().unwrap_or("unknown")
        ),
    };
    text.push_str(&format!("{}: {}.\n\n", derivation.model.name(), derivation.assumption));
    text.push_str(&ahead(derivation));
    if !derivation.steps.is_empty() {
        text.push_str(&format!("{}\n\n{}", derivation.method, steps(derivation)));
    }
    text
}

fn ahead(derivation: &PredictionDerivation) -> String {
    if derivation.ahead.is_empty() {
        return format!(
            "Priority {}; no other workload has the same or a higher one.\n\n",
            derivation.priority
        );
    }
    let mut columns = vec![("served before or with it", Align::Left), ("prio", Align::Right)];
    columns.extend(Stage::ALL.map(|stage| (stage.name(), Align::Right)));
    let mut table = TextTable::new(&columns);
    for other in derivation.ahead.iter().take(SHOWN_MAX) {
        let mut cells = vec![other.name.clone(), other.priority.to_string()];
        cells.extend(other.load.map(percent));
        table.row(cells);
    }
    let sum = |stage: usize| derivation.ahead.iter().map(|other| other.load[stage]).sum::<f64>();
    let mut cells = vec![format!("all {}", derivation.ahead.len()), String::new()];
    cells.extend([0, 1, 2].map(|stage| percent(sum(stage))));
    table.row(cells);
    format!(
        "Priority {}; mean loads of those of the same or higher priority:\n\n{}\n",
        derivation.priority,
        table.answered_by(&Stage::ALL.map(Stage::name)).render()
    )
}

fn steps(derivation: &PredictionDerivation) -> String {
    let mut table = TextTable::new(&[("step", Align::Left), ("how", Align::Left), ("ms", Align::Right)]);
    let ms = |seconds: f64| format!("{:.4}", seconds * 1e3);
    for step in &derivation.steps {
        table.row(vec![step.what.clone(), step.how.clone(), step.seconds.map_or_else(String::new, ms)]);
    }
    if let Some(bound) = derivation.bound_s {
        table.row(vec!["bound".to_owned(), String::new(), ms(bound)]);
    }
    table.answered_by(&["ms"]).render()
}
