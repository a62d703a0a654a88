//! Measurements of a simulation besides latencies: by class, and evenness among requests.

use crate::simulate::figure::{interval, percent_interval, plain};
use cli::terminal::TextTable;
use operation::text::time;
use simulate::simulation::{ClassFigures, VariantFigures};

/// Headings and rows by class.
pub(crate) fn class_rows(view: &VariantFigures) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let classes = view.classes();
    let has_slos = classes.iter().any(|class| class.slo_s.is_some());
    let mut headings = vec!["class"];
    headings.extend(has_slos.then_some(["slo", "late"]).into_iter().flatten());
    headings.extend(["mean", "p50", "p90", "p99", "p99.9", "slowdown p99", "per second"]);
    (headings, classes.iter().map(|class| class_row(class, has_slos)).collect())
}

fn class_row(class: &ClassFigures, has_slos: bool) -> Vec<String> {
    let mut cells = vec![class.name.to_owned()];
    if has_slos {
        cells.push(class.slo_s.map_or_else(|| "-".to_owned(), time));
        cells.push(percent_interval(class.late_pct));
    }
    cells.extend(class.figures.times().map(interval));
    cells.push(plain(class.figures.slowdown_p99.map(|figure| figure.value), ""));
    cells.push(plain(class.figures.throughput_per_s.map(|figure| figure.value), ""));
    cells
}

/// Returns the table of classes as text; empty if there is only one.
pub(crate) fn class_table(view: &VariantFigures) -> String {
    let (headings, rows) = class_rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let details = ["per second", "slowdown p99", "p90", "p50"];
    let table = TextTable::of_rows(&headings, 1, rows).without_first(&details);
    format!("\n{}", table.answered_by(&["p99", "late", "mean"]).render())
}

/// Returns a sentence about the evenness among requests; empty for an unstable system.
pub(crate) fn evenness(view: &VariantFigures) -> String {
    let found = view.evenness();
    let (Some(overtaken), Some(wait)) = (found.overtaken_pct, found.longest_wait_s) else {
        return String::new();
    };
    let mut text = format!("Overtaken {:.1} %; longest wait {}", overtaken.value, time(wait));
    if let Some(fairness) = found.fairness {
        text.push_str(&format!("; fairness (Jain, of slowdowns) {:.3}", fairness.value));
    }
    if let Some(shortest) = found.shortest_p99_s {
        text.push_str(&format!("; p99 of the shortest 1 % {}", interval(Some(shortest))));
    }
    text.push('.');
    text
}
