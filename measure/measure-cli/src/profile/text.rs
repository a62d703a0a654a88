//! A device that was measured: bandwidth and latency by request size, as a table and JSON.

use cli::terminal::{Align, TextTable};
use model::Op;
use operation::document::document;
use profile::{CellMeasurement, Measurement, MeasurementPlan, SizeMeasurement, StorageTarget};
use schemars::JsonSchema;
use serde::Serialize;

/// One line per request size, reads and writes side by side.
pub(crate) fn text(measurement: &Measurement) -> String {
    let rows = measurement.by_size();
    let ops: Vec<Op> = [Op::Read, Op::Write]
        .into_iter()
        .filter(|&op| rows.iter().any(|row| row.for_op(op).is_some()))
        .collect();
    let tail = format!("p{}", measurement.percentile().percent());
    let mut columns = vec![("size".to_owned(), Align::Right)];
    for op in &ops {
        let name = op_name(*op);
        columns.extend([name, "±", "IOPS", "at", tail.as_str()].map(|head| (head.to_owned(), Align::Right)));
    }
    let headings: Vec<(&str, Align)> = columns.iter().map(|(head, align)| (head.as_str(), *align)).collect();
    let mut table = TextTable::new(&headings);
    for row in &rows {
        table.row(
            std::iter::once(row.request.to_string())
                .chain(ops.iter().flat_map(|&op| cells(row, op)))
                .collect(),
        );
    }
    table.answered_by(&["read", "write", &tail]).render()
}

fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}

/// Bandwidth, noise, requests per second, outstanding requests, tail latency.
fn cells(row: &SizeMeasurement, op: Op) -> [String; 5] {
    let absent = || "-".to_owned();
    row.for_op(op).map_or_else(
        || std::array::from_fn(|_| absent()),
        |figures| {
            [
                figures.bandwidth.to_string(),
                format!("{:.1}%", 100.0 * figures.noise),
                format!("{:.0}", figures.requests_per_s),
                figures.parallelism.to_string(),
                figures.tail.map_or_else(absent, |tail| tail.to_string()),
            ]
        },
    )
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DeviceDocument<'run> {
    target: String,
    target_bytes: u64,
    block_bytes: u64,
    #[serde(flatten)]
    table: TableDocument<'run>,
}

// Not a doc comment, which would describe the documents that contain these fields.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TableDocument<'run> {
    seed: u64,
    repeats: usize,
    complete: bool,
    percentile: f64,
    warnings: Vec<String>,
    sizes: Vec<SizeMeasurement>,
    cells: &'run [CellMeasurement],
}

/// One object: figures by size, and every cell with all its repeats.
pub(crate) fn json(target: &StorageTarget, plan: &MeasurementPlan, measurement: &Measurement) -> String {
    document(&DeviceDocument {
        target: target.path().display().to_string(),
        target_bytes: target.length().0,
        block_bytes: target.block().0,
        table: TableDocument::new(plan, measurement, measurement.warnings()),
    })
}

impl<'run> TableDocument<'run> {
    pub(crate) fn new(plan: &MeasurementPlan, measurement: &'run Measurement, warnings: Vec<String>) -> Self {
        Self {
            seed: plan.seed(),
            repeats: plan.repeats(),
            complete: measurement.is_complete(),
            percentile: measurement.percentile().percent(),
            warnings,
            sizes: measurement.by_size(),
            cells: measurement.cells(),
        }
    }
}
