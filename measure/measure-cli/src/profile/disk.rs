//! A magnetic disk that was measured: transfer and seek time by distance, as a table and JSON.

use cli::terminal::{Align, TextTable};
use operation::document::document;
use profile::{DiskMeasurement, StorageTarget};
use schemars::JsonSchema;
use serde::Serialize;
use units::Seconds;
use workload::device::{DiskParameters, SeekPoint};

/// How many seeks a point of the fit stands for.
fn probes(measured: &DiskMeasurement, point: &SeekPoint) -> usize {
    measured.samples.iter().filter(|sample| sample.distance == point.distance).count()
}

/// The table for people, a row per figure.
pub(crate) fn text(measured: &DiskMeasurement, disk: &DiskParameters) -> String {
    let mut table =
        TextTable::new(&[("figure", Align::Left), ("value", Align::Right), ("probes", Align::Right)]);
    let mut row = |figure: String, value: String, probes: String| table.row(vec![figure, value, probes]);
    row("sequential read".into(), measured.read.to_string(), String::new());
    if let Some(write) = measured.write {
        row("sequential write".into(), write.to_string(), String::new());
    }
    row("half a revolution".into(), disk.rotational_latency.to_string(), String::new());
    for point in &disk.seek {
        let probes = probes(measured, point).to_string();
        row(format!("seek over {}", point.distance), point.seek.to_string(), probes);
    }
    table.answered_by(&["value"]).render()
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DiskDocument {
    target: String,
    target_bytes: u64,
    read_bytes_per_s: f64,
    write_bytes_per_s: Option<f64>,
    rotational_latency_s: f64,
    seek: Vec<SeekDocument>,
}

#[derive(Serialize, JsonSchema)]
struct SeekDocument {
    distance_bytes: u64,
    seek_s: f64,
    probes: usize,
}

/// One object of all figures.
pub(crate) fn json(target: &StorageTarget, measured: &DiskMeasurement, disk: &DiskParameters) -> String {
    let seek = |point: &SeekPoint| {
        let Seconds(seek_s) = point.seek;
        SeekDocument { distance_bytes: point.distance.0, seek_s, probes: probes(measured, point) }
    };
    let measured = DiskDocument {
        target: target.path().display().to_string(),
        target_bytes: target.length().0,
        read_bytes_per_s: measured.read.bytes_per_sec(),
        write_bytes_per_s: measured.write.map(units::ByteRate::bytes_per_sec),
        rotational_latency_s: disk.rotational_latency.0,
        seek: disk.seek.iter().map(seek).collect(),
    };
    document(&measured)
}
