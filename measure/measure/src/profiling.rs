//! Measuring a file or block device, and writing its device profile.
//!
//! Decides that a profile is only written from a complete measurement that fits it, and what the profile says of
//! its origin. Measuring itself is the `profile` crate's.

use machine::whole_file;
use model::OperationError;
use operation::{Notice, ProgressObserver};
use profile::{
    DiskMeasurement, Measurement, MeasurementPlan, MeasurementSettings, ProfileProgress, StorageTarget,
    TargetAccess, WritesFrom, fit_disk, measure, measure_disk,
};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{Bytes, Seconds, plural};
use workload::device::{DeviceModel, Disk, StorageProfile};

/// What is measured, and what becomes of it.
#[derive(Debug, Clone)]
pub struct ProfilingSettings {
    /// A file or block device; with [`TargetAccess::Create`] a directory or the path of a new file.
    pub target: PathBuf,
    /// What may be done to the target.
    pub access: TargetAccess,
    /// Sizes, parallelism, times and seed of the measurement.
    pub measurement: MeasurementSettings,
    /// The speed of a magnetic disk, revolutions per minute, whose seeks and transfer are measured instead of a
    /// table.
    pub spindle_rpm: Option<f64>,
    /// Where the profile is written.
    pub output: Option<PathBuf>,
    /// The name in the profile; by default that of the output file.
    pub name: Option<String>,
    /// Count writes like reads in the profile.
    pub writes_like_reads: bool,
}

/// A device that was measured.
#[derive(Debug)]
pub struct MeasuredDevice {
    /// The file or device that was measured.
    pub target: StorageTarget,
    /// What came of it.
    pub result: DeviceMeasurement,
}

/// What came of a measurement.
#[derive(Debug)]
pub enum DeviceMeasurement {
    /// Bandwidth by request size, and base latency.
    Table {
        /// What was to be measured.
        plan: MeasurementPlan,
        /// What was measured of it, perhaps not all.
        measurement: Measurement,
    },
    /// Sequential transfer, and seek time by distance.
    Disk {
        /// Single seeks and the bandwidth.
        measurement: DiskMeasurement,
        /// The disk that the measurement fits.
        disk: Disk,
        /// The speed of its spindle, revolutions per minute.
        spindle_rpm: f64,
    },
}

/// Measures a device. When `stop` becomes true, the measurement ends with what there is.
///
/// # Errors
///
/// When the settings contradict each other, or the device cannot be measured.
pub fn measure_device(
    settings: &ProfilingSettings,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ProfileProgress),
    observer: &dyn ProgressObserver,
) -> Result<MeasuredDevice, OperationError> {
    check(settings)?;
    let access = settings.access;
    let seed = settings.measurement.seed;
    // A plan that no target can satisfy should fail before gigabytes are written; no block is smaller.
    MeasurementPlan::new(&settings.measurement, access.ops(), Bytes(512))?;
    let target = StorageTarget::open(&settings.target, access, seed, progress, stop)?;
    if target.is_sparse() {
        let path = target.path().display();
        observer.notice(Notice::Warning(format!(
            "{path} has holes; reading them does not reach the device and looks too fast"
        )));
    }
    let result = match settings.spindle_rpm {
        Some(rpm) => measure_seeks(settings, rpm, &target, stop, progress)?,
        None => measure_table(settings, &target, stop, progress, observer)?,
    };
    Ok(MeasuredDevice { target, result })
}

/// Refuses settings whose measurement could not become the profile that is asked for.
fn check(settings: &ProfilingSettings) -> Result<(), OperationError> {
    let only_reads = settings.access == TargetAccess::ReadOnly;
    if settings.output.is_some() && only_reads && !settings.writes_like_reads {
        return Err(OperationError::input("a profile needs write measurements, and this run only reads").hint(
            "measure a temporary file with --create SIZE, overwrite TARGET with --write, or, if no workload \
             writes, say --writes-like-reads",
        ));
    }
    if settings.output.is_none() && settings.writes_like_reads {
        return Err(OperationError::input("--writes-like-reads is about the profile that -o FILE writes"));
    }
    Ok(())
}

fn measure_table(
    settings: &ProfilingSettings,
    target: &StorageTarget,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ProfileProgress),
    observer: &dyn ProgressObserver,
) -> Result<DeviceMeasurement, OperationError> {
    let plan = MeasurementPlan::new(&settings.measurement, settings.access.ops(), target.block())?;
    observer.notice(announcement(&target.path().display(), &plan));
    let measurement = measure(target, &plan, progress, stop)?;
    Ok(DeviceMeasurement::Table { plan, measurement })
}

fn measure_seeks(
    settings: &ProfilingSettings,
    spindle_rpm: f64,
    target: &StorageTarget,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ProfileProgress),
) -> Result<DeviceMeasurement, OperationError> {
    let per_cell = Duration::try_from_secs_f64(settings.measurement.per_cell.0)
        .map_err(|_| OperationError::input("--time-per-cell is too long"))?;
    let ops = settings.access.ops();
    let seed = settings.measurement.seed;
    let measurement = measure_disk(target, ops, per_cell, seed, progress, stop)?.ok_or_else(|| {
        OperationError::machine("interrupted: a disk's figures need every distance, nothing is kept")
    })?;
    let disk = fit_disk(&measurement, spindle_rpm)?;
    Ok(DeviceMeasurement::Disk { measurement, disk, spindle_rpm })
}

/// Tells the observer what is doubtful about a measurement, and writes the profile that was asked for.
///
/// # Errors
///
/// When the measurement is not complete, or the profile cannot be made of it or written.
pub fn write_profile(
    settings: &ProfilingSettings,
    device: &MeasuredDevice,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    if let DeviceMeasurement::Table { measurement, .. } = &device.result {
        check_table(measurement, observer)?;
    }
    let Some(output) = &settings.output else { return Ok(()) };
    let name = profile_name(settings.name.as_deref(), output);
    save_profile(output, &device_profile(settings, &device.result, &name)?, observer)
}

/// Tells the observer what is doubtful about a measurement, and refuses a partial one.
pub(crate) fn check_table(
    measurement: &Measurement,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    for warning in measurement.warnings() {
        observer.notice(Notice::Warning(warning));
    }
    if measurement.is_complete() {
        return Ok(());
    }
    Err(OperationError::machine("interrupted: the result is partial and no profile was written"))
}

/// The name that was chosen for a profile, or that of its file.
pub(crate) fn profile_name(chosen: Option<&str>, output: &Path) -> String {
    let stem = output.file_stem().map_or("device".into(), |stem| stem.to_string_lossy());
    chosen.unwrap_or(&stem).to_owned()
}

pub(crate) fn save_profile(
    output: &Path,
    profile: &StorageProfile,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    whole_file::write(output, profile.to_json().as_bytes()).map_err(|error| {
        OperationError::machine(format!("cannot write {}: {error}", output.display()))
            .hint("choose another file with -o; --json prints the measurement instead")
    })?;
    let name = profile.name();
    observer.notice(Notice::Done(format!("profile '{name}' written to {}", output.display())));
    Ok(())
}

/// Returns the notice that says how long a measurement of `target` takes.
pub(crate) fn announcement(target: &dyn Display, plan: &MeasurementPlan) -> Notice {
    let time = Seconds(plan.duration().as_secs_f64());
    let cells = plural(plan.cells().len(), "cell");
    let repeats = plural(plan.repeats(), "repeat");
    let seed = plan.seed();
    Notice::Done(format!("{target}: {cells}, {repeats}, about {time}, seed {seed}"))
}

/// The profile of a complete measurement, with where it comes from.
fn device_profile(
    settings: &ProfilingSettings,
    result: &DeviceMeasurement,
    name: &str,
) -> Result<StorageProfile, OperationError> {
    let target = settings.target.display();
    let note = if settings.writes_like_reads { "; writes counted like reads" } else { "" };
    Ok(match result {
        DeviceMeasurement::Table { plan, measurement } => {
            let writes = if settings.writes_like_reads { WritesFrom::Reads } else { WritesFrom::Measured };
            let source = format!(
                "direct I/O at random offsets on {target}, {} of {} per cell, seed {}{note}",
                plural(plan.repeats(), "repeat"),
                Seconds(plan.per_repeat().as_secs_f64()),
                plan.seed()
            );
            measurement.profile(name, writes)?.with_source(source)
        }
        DeviceMeasurement::Disk { disk, spindle_rpm, .. } => {
            let per_cell = settings.measurement.per_cell;
            let seed = settings.measurement.seed;
            let source = format!(
                "sequential transfer and seeks with direct I/O on {target}, {per_cell} each, {spindle_rpm} revolutions per \
                 minute, seed {seed}{note}"
            );
            StorageProfile::new(name, DeviceModel::Disk(disk.clone())).with_source(source)
        }
    })
}
