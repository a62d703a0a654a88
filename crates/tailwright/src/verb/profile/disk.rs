//! Magnetic disks: sequential transfer and seek time by distance instead of a bandwidth table.

use super::{Bars, ProfileArgs, write_profile};
use crate::exit::Answer;
use crate::terminal::{self, Align, Table};
use model::OperationError;
use profile::{DiskMeasurement, StorageTarget, fit_disk, measure_disk};
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::Seconds;
use workload::device::{DeviceModel, Disk, DiskParameters, SeekPoint, StorageProfile};

/// Measures `target` as a disk whose spindle turns `spindle_rpm` times a minute.
pub(super) fn run(
    args: &ProfileArgs,
    spindle_rpm: f64,
    target: &StorageTarget,
    bars: &mut Bars,
    stop: &AtomicBool,
) -> Result<Answer, OperationError> {
    let per_cell = Duration::try_from_secs_f64(args.seconds_per_cell.0)
        .map_err(|_| OperationError::input("--seconds-per-cell is too long"))?;
    let ops = args.access().ops();
    let measured = measure_disk(target, ops, per_cell, args.seed, &mut |step| bars.show(step), stop);
    bars.finish();
    let measured = measured?.ok_or_else(|| {
        OperationError::machine("interrupted: a disk's figures need every distance, nothing is kept")
    })?;
    let fitted: Result<Disk, OperationError> = fit_disk(&measured, spindle_rpm);
    let disk = fitted?;
    let found = disk.parameters();
    terminal::print(&if args.json { json(target, &measured, found) } else { table(&measured, found) });
    match &args.output {
        Some(output) => {
            let writes = if args.writes_like_reads { "; writes counted like reads" } else { "" };
            let source = format!(
                "sequential transfer and seeks with direct I/O on {}, {} each, {spindle_rpm} revolutions per minute, seed {}{writes}",
                args.target.display(),
                args.seconds_per_cell,
                args.seed
            );
            write_profile(args, output, |name| {
                Ok(StorageProfile::new(name, DeviceModel::Disk(disk.clone())).with_source(&source))
            })
        }
        None => Ok(Answer::Yes),
    }
}

fn probes(measured: &DiskMeasurement, point: &SeekPoint) -> usize {
    measured.samples.iter().filter(|sample| sample.distance == point.distance).count()
}

fn table(measured: &DiskMeasurement, disk: &DiskParameters) -> String {
    let mut table = Table::new(&[("figure", Align::Left), ("value", Align::Right), ("probes", Align::Right)]);
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
    table.render()
}

#[derive(Serialize)]
struct DiskAnswer {
    target: String,
    target_bytes: u64,
    read_bytes_per_s: f64,
    write_bytes_per_s: Option<f64>,
    rotational_latency_s: f64,
    seek: Vec<SeekAnswer>,
}

#[derive(Serialize)]
struct SeekAnswer {
    distance_bytes: u64,
    seek_s: f64,
    probes: usize,
}

fn json(target: &StorageTarget, measured: &DiskMeasurement, disk: &DiskParameters) -> String {
    let seek = |point: &SeekPoint| {
        let Seconds(seek_s) = point.seek;
        SeekAnswer { distance_bytes: point.distance.0, seek_s, probes: probes(measured, point) }
    };
    let answer = DiskAnswer {
        target: target.path().display().to_string(),
        target_bytes: target.length().0,
        read_bytes_per_s: measured.read.bytes_per_sec(),
        write_bytes_per_s: measured.write.map(units::ByteRate::bytes_per_sec),
        rotational_latency_s: disk.rotational_latency.0,
        seek: disk.seek.iter().map(seek).collect(),
    };
    let mut text = serde_json::to_string_pretty(&answer).expect("plain data serialises");
    text.push('\n');
    text
}
