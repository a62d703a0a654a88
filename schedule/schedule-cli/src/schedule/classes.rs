//! Late requests of each class in each mode, as a table.

use chain::{BenchReport, ClassMeasures};
use cli::terminal::TextTable;
use operation::text::time;

/// Returns a row for each class of each mode, after an empty line; empty if no class has an SLO.
pub(crate) fn class_table(report: &BenchReport) -> String {
    let headings = ["mode", "class", "slo", "requests", "late", "simulated", "p99", "mean"];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for mode in &report.modes {
        for (measured, simulated) in mode.measured.classes.iter().zip(&mode.simulated.classes) {
            let mut row = vec![mode.mode.to_string()];
            row.extend(class_cells(measured, simulated));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", TextTable::of_rows(&headings, 2, rows).answered_by(&["class", "late", "p99"]).render())
}

fn class_cells(measured: &ClassMeasures, simulated: &ClassMeasures) -> [String; 7] {
    [
        measured.class.clone(),
        seconds(measured.slo_s),
        measured.requests.to_string(),
        share(measured.late_pct),
        share(simulated.late_pct),
        seconds(measured.p99_s),
        seconds(measured.mean_s),
    ]
}

fn seconds(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), time)
}

fn share(percent: Option<f64>) -> String {
    percent.map_or("-".to_owned(), |percent| format!("{percent:.1} %"))
}
