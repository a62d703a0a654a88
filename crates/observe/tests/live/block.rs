//! Direct reads and writes of a loop device, counted by who sends them and measured by the same clock.

use machine::clock::now;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tailwright_observe::{
    AttachedBlockProbes, BlockDevice, BlockReport, BlockSettings, BlockTimes, observe_block,
};
use tempfile::TempDir;

const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 256;

/// A loop device on a file, which ends with the value.
struct LoopDevice {
    path: String,
    _folder: TempDir,
}

impl LoopDevice {
    /// `None`, loudly, where there are none.
    fn create() -> Option<Self> {
        testkit::program("losetup")?;
        if let Err(error) = AttachedBlockProbes::attach(None) {
            testkit::skip(&error.to_string());
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("disk");
        std::fs::write(&file, vec![7; BLOCK_BYTES * BLOCKS]).expect("files can be written");
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let output = output.expect("losetup can be run");
        if !output.status.success() {
            testkit::skip(&format!("loop devices: {}", String::from_utf8_lossy(&output.stderr)));
            return None;
        }
        let path = String::from_utf8(output.stdout).expect("paths are text").trim().to_owned();
        Some(Self { path, _folder: folder })
    }

    fn number(&self) -> BlockDevice {
        BlockDevice::named(self.path.trim_start_matches("/dev/")).expect("the device is there")
    }

    /// Open for requests that go to the device at once.
    fn open(&self) -> File {
        const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(O_DIRECT);
        options.open(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

/// Observes a device, or all, while something is done.
fn watch(device: Option<BlockDevice>, act: impl FnOnce() + Send) -> BlockReport {
    let stop = AtomicBool::new(false);
    let settings = BlockSettings { device, duration: Duration::from_secs(120) };
    std::thread::scope(|scope| {
        let attached = || {
            scope.spawn(|| {
                act();
                stop.store(true, Ordering::Relaxed);
            });
        };
        observe_block(&settings, &stop, attached).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// A part of a buffer that begins where direct requests may.
fn aligned(buffer: &mut [u8]) -> &mut [u8] {
    let offset = buffer.as_ptr().align_offset(BLOCK_BYTES);
    &mut buffer[offset..offset + BLOCK_BYTES]
}

/// The sums of this process for a device and an operation, all names together.
fn own(report: &BlockReport, device: BlockDevice, operation: &str) -> Vec<BlockTimes> {
    let all = report.statistics.by_device_time();
    let is_own = |who: &tailwright_observe::BlockRequester| {
        who.process == std::process::id() && who.device == device && who.operation.to_string() == operation
    };
    all.into_iter().filter(|(who, _)| is_own(who)).map(|(_, times)| times.clone()).collect()
}

#[test]
fn every_direct_request_is_seen_and_takes_no_longer_than_its_client_says() {
    let Some(disk) = LoopDevice::create() else { return };
    let (file, device) = (disk.open(), disk.number());
    for only in [Some(device), None] {
        let mut client_ns = 0;
        let report = watch(only, || {
            let mut buffer = vec![1; 2 * BLOCK_BYTES];
            let buffer = aligned(&mut buffer);
            let start = now();
            for number in 0..BLOCKS {
                let offset = (number * BLOCK_BYTES) as u64;
                file.read_exact_at(buffer, offset).expect("the device can be read");
                if number % 2 == 0 {
                    file.write_all_at(buffer, offset).expect("the device can be written");
                }
            }
            client_ns = now() - start;
        });
        let mut total = 0;
        for (operation, count) in [("read", BLOCKS as u64), ("write", BLOCKS as u64 / 2)] {
            let [times] = &own(&report, device, operation)[..] else { panic!("{operation}: {report:?}") };
            assert_eq!((times.requests, times.failed), (count, 0), "{operation}");
            assert_eq!(times.bytes, count * BLOCK_BYTES as u64);
            assert!(times.device_at(0.5) > 0 && times.device_at(1.0) <= client_ns);
            total += times.queue_ns + times.device_ns;
        }
        assert!(total <= client_ns, "{total} {client_ns}");
        assert_eq!(report.lost, 0);
        let devices = report.statistics.by_device_time();
        assert!(only.is_none() || devices.iter().all(|(who, _)| who.device == device), "{devices:?}");
    }
}

#[test]
fn other_devices_are_left_alone() {
    let Some(disk) = LoopDevice::create() else { return };
    let file = disk.open();
    let report = watch(Some(BlockDevice { major: 4000, minor: 0 }), || {
        let mut buffer = vec![0; 2 * BLOCK_BYTES];
        file.read_exact_at(aligned(&mut buffer), 0).expect("the device can be read");
    });
    assert!(report.statistics.by_device_time().is_empty());
}
