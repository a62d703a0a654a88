//! Real direct I/O on the disk below the build directory. Asserts only what holds on every machine.

use model::{Blame, OperationError};
use profile::{
    Measurement, MeasurementPlan, MeasurementSettings, ProfileProgress, StorageTarget, TargetAccess,
    WritesFrom, measure, measure_disk,
};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use units::{Bytes, Seconds};
use workload::device::DeviceModel;

const MIB: u64 = 1 << 20;

/// An empty directory of this test's own below the build directory, where /tmp would often be in memory.
fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

fn open(path: &Path, access: TargetAccess) -> Result<StorageTarget, OperationError> {
    StorageTarget::open(path, access, 1, &mut |_| {}, &AtomicBool::new(false))
}

/// As [`open`], or `None` with a loud skip where the build directory has no direct I/O.
fn open_or_skip(path: &Path, access: TargetAccess) -> Option<StorageTarget> {
    match open(path, access) {
        Err(error) if error.to_string().contains("O_DIRECT") || error.to_string().contains("in memory") => {
            testkit::skip(&error.to_string());
            None
        }
        result => Some(result.unwrap()),
    }
}

/// Short: every repeat completes at least one request per thread however little time it has.
fn short() -> MeasurementSettings {
    MeasurementSettings {
        sizes: vec![Bytes(4096), Bytes(MIB)],
        parallelism: vec![1, 3],
        per_cell: Seconds(0.02),
        repeats: 2,
        ..MeasurementSettings::default()
    }
}

fn run_short_plan(target: &StorageTarget, access: TargetAccess) -> Measurement {
    let plan = MeasurementPlan::new(&short(), access.ops(), target.block()).unwrap();
    let mut steps = Vec::new();
    let measurement = measure(target, &plan, &mut |step| steps.push(step), &AtomicBool::new(false)).unwrap();
    let total = (plan.cells().len() * plan.repeats()) as u64;
    assert!(steps.into_iter().eq((1..=total).map(|done| ProfileProgress::Measure { done, total })));
    measurement
}

#[test]
fn a_created_file_becomes_a_profile_and_vanishes() {
    let folder = scratch();
    let dir = folder.path();
    let access = TargetAccess::Create(Bytes(32 * MIB));
    let Some(target) = open_or_skip(dir, access) else { return };
    assert!(is_empty(dir), "the file has no name while it is measured");
    assert_eq!(target.length(), Bytes(32 * MIB));
    assert!(!target.is_sparse());

    let measurement = run_short_plan(&target, access);
    assert!(measurement.is_complete());
    for cell in measurement.cells() {
        assert!(cell.requests >= 2 * cell.cell.parallelism as u64, "{cell:?}");
        assert!(cell.bytes_per_s.iter().all(|&rate| rate > 0.0 && rate.is_finite()));
        assert_eq!(cell.latencies_ns.is_empty(), cell.cell.parallelism != 1);
    }
    let profile = measurement.profile("scratch", WritesFrom::Measured).unwrap();
    let DeviceModel::Ssd(table) = profile.device() else { panic!("an SSD") };
    for op in access.ops() {
        // 256 times the data cannot take less time, on any device.
        assert!(table.work(*op, Bytes(MIB)) > table.work(*op, Bytes(4096)));
        assert!(profile.base_latency(*op, Bytes(4096)).0 > 0.0);
    }
    assert!(is_empty(dir), "nothing is left behind");
}

#[test]
fn reading_changes_nothing_and_overwriting_does() {
    let folder = scratch();
    let dir = folder.path();
    let file = dir.join("data");
    let content: Vec<u8> = (0..16 * MIB).map(|at| at.to_le_bytes()[1]).collect();
    fs::write(&file, &content).unwrap();

    let Some(target) = open_or_skip(&file, TargetAccess::ReadOnly) else { return };
    let reads = run_short_plan(&target, TargetAccess::ReadOnly);
    assert!(fs::read(&file).unwrap() == content, "a read-only run left the file as it was");
    assert!(reads.by_size().iter().all(|row| row.read.is_some() && row.write.is_none()));

    let overwrite = TargetAccess::Overwrite { block_devices: false };
    run_short_plan(&open(&file, overwrite).unwrap(), overwrite);
    let after = fs::read(&file).unwrap();
    assert!(after.len() == content.len() && after != content, "same size, other content");
}

#[test]
fn holes_are_noticed() {
    let folder = scratch();
    let dir = folder.path();
    let file = dir.join("sparse");
    fs::File::create(&file).unwrap().set_len(16 * MIB).unwrap();
    if let Some(target) = open_or_skip(&file, TargetAccess::ReadOnly) {
        assert!(target.is_sparse());
    }
}

#[test]
fn refusals_name_the_remedy_and_leave_nothing() {
    let folder = scratch();
    let dir = folder.path();
    let small = dir.join("small");
    fs::write(&small, "four").unwrap();
    let overwrite = TargetAccess::Overwrite { block_devices: false };
    let input: [(&Path, TargetAccess, &str); 6] = [
        (&dir.join("absent"), TargetAccess::ReadOnly, "cannot inspect"),
        (dir, TargetAccess::ReadOnly, "is a directory"),
        (&small, TargetAccess::Create(Bytes(MIB)), "cannot create"),
        (&small, TargetAccess::ReadOnly, "holds only 4B"),
        (Path::new("/dev/null"), overwrite, "neither a regular file nor a block device"),
        (&dir.join("absent/file"), TargetAccess::Create(Bytes(MIB)), "cannot create"),
    ];
    if open_or_skip(dir, TargetAccess::Create(Bytes(MIB))).is_none() {
        return;
    }
    for (path, access, part) in input {
        let error = open(path, access).unwrap_err();
        assert_eq!(error.blame, Blame::Input, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = open(dir, TargetAccess::Create(Bytes(1 << 60))).unwrap_err();
    assert_eq!(error.blame, Blame::Machine);
    assert!(error.to_string().contains("free"), "{error}");
    fs::remove_file(&small).unwrap();
    assert!(is_empty(dir), "no refused file stays");
}

#[test]
fn memory_is_not_a_device() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        testkit::skip("there is no /dev/shm");
        return;
    }
    let error = open(memory, TargetAccess::Create(Bytes(MIB))).unwrap_err();
    assert_eq!(error.blame, Blame::Machine, "{error}");
    assert!(error.hint.is_some(), "{error}");
}

#[test]
fn a_target_needs_room_for_random_offsets() {
    let folder = scratch();
    let dir = folder.path();
    let access = TargetAccess::Create(Bytes(MIB));
    let Some(target) = open_or_skip(dir, access) else { return };
    let plan = MeasurementPlan::new(&short(), access.ops(), target.block()).unwrap();
    let error = measure(&target, &plan, &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error.blame, Blame::Input);
    assert!(error.hint.as_ref().unwrap().contains("16MiB"), "{error}");
    assert!(is_empty(dir), "nothing is left behind");
}

#[test]
fn seeks_are_measured_at_every_distance() {
    let folder = scratch();
    let dir = folder.path();
    let access = TargetAccess::Create(Bytes(16 * MIB));
    let Some(target) = open_or_skip(dir, access) else { return };
    let per_cell = Duration::from_millis(5);
    let stop = AtomicBool::new(false);
    let measured = measure_disk(&target, access.ops(), per_cell, 1, &mut |_| {}, &stop).unwrap().unwrap();
    let mut distances: Vec<u64> = measured.samples.iter().map(|sample| sample.distance.0 / MIB).collect();
    distances.dedup();
    assert_eq!(distances, [1, 4, 12]);
    assert!(measured.samples.iter().all(|sample| sample.response.0 > 0.0));
    assert!(measured.write.is_some());

    stop.store(true, Ordering::Relaxed);
    assert_eq!(measure_disk(&target, access.ops(), per_cell, 1, &mut |_| {}, &stop), Ok(None));
    assert!(is_empty(dir), "nothing is left behind");
}

#[test]
fn stopping_keeps_what_there_is() {
    let folder = scratch();
    let dir = folder.path();
    let access = TargetAccess::Create(Bytes(16 * MIB));
    let Some(target) = open_or_skip(dir, access) else { return };
    let plan = MeasurementPlan::new(&short(), access.ops(), target.block()).unwrap();
    let stop = AtomicBool::new(false);
    let mut finished = 0;
    let measurement = measure(
        &target,
        &plan,
        &mut |_| {
            finished += 1;
            stop.store(finished == 3, Ordering::Relaxed);
        },
        &stop,
    )
    .unwrap();
    let repeats: usize = measurement.cells().iter().map(|cell| cell.bytes_per_s.len()).sum();
    assert_eq!((repeats, measurement.is_complete()), (3, false));

    let filling = StorageTarget::open(dir, access, 1, &mut |_| {}, &stop).unwrap_err();
    assert!(filling.to_string().contains("interrupted"), "{filling}");
    assert!(is_empty(dir));
}
