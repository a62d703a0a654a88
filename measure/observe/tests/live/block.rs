//! Direct reads and writes of a loop device, or of a null device in guests, counted by who sends them and measured by the
//! same clock.

use crate::{MISSING_SHARE_MAX, watch_with};
use machine::clock::now;
use observe::{
    AttachedBlockProbes, BlockDevice, BlockReport, BlockRequester, BlockSettings, BlockTimes, Cause,
    ClientRequest, TimeBehind, observe_block,
};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 256;

/// The scheduler of the queue in which requests wait, where it is no part of the kernel.
pub(crate) const SCHEDULER: &str = "block/mq-deadline";

/// The module of the null device, which serves at most two requests at a time, each by a timer.
pub(crate) const MODULES: [&str; 2] = [
    "fs/configfs/configfs",
    "drivers/block/null_blk/null_blk nr_devices=1 gb=1 bs=4096 queue_mode=2 submit_queues=1 irqmode=2 \
     completion_nsec=1000000 hw_queue_depth=2",
];

/// The null device of guests.
const NULL_DEVICE: &str = "/dev/nullb0";

/// A disk for tests: a loop device on a file, which ends with the value, or the null device of a guest.
struct TestDisk {
    path: String,
    folder: Option<TempDir>,
}

impl TestDisk {
    /// `None`, loudly, where there are none.
    fn create() -> Option<Self> {
        if Path::new(NULL_DEVICE).exists() && std::process::id() == 1 {
            return Some(Self { path: NULL_DEVICE.to_owned(), folder: None });
        }
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
        Some(Self { path, folder: Some(folder) })
    }

    fn number(&self) -> BlockDevice {
        BlockDevice::named(self.path.trim_start_matches("/dev/")).expect("the device is there")
    }

    /// The file with a setting of its queue.
    fn setting(&self, name: &str) -> String {
        format!("/sys/block/{}/queue/{name}", self.path.trim_start_matches("/dev/"))
    }

    /// So that requests wait in the queue of the device, where they are seen, and not for a place in it. Only a scheduler
    /// has more places than the device.
    fn lengthen_queue(&self) {
        if self.folder.is_none() {
            std::fs::write(self.setting("scheduler"), "mq-deadline").expect("the kernel has this scheduler");
            std::fs::write(self.setting("nr_requests"), "64").expect("a scheduler has a queue");
        } else {
            std::fs::write(self.setting("nr_requests"), "64").ok();
        }
    }

    /// Open for requests that go to the device at once.
    fn open(&self) -> File {
        const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(O_DIRECT);
        options.open(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }
}

impl Drop for TestDisk {
    fn drop(&mut self) {
        if self.folder.is_none() {
            return;
        }
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
    let all = report.seen.statistics.by_device_time();
    let is_own = |who: &BlockRequester| {
        who.process == std::process::id() && who.device == device && who.operation.to_string() == operation
    };
    all.into_iter().filter(|(who, _)| is_own(who)).map(|(_, times)| times.clone()).collect()
}

/// Every request was seen; but for a few where the kernel skipped runs of programs.
#[track_caller]
fn expect_count(found: u64, sent: u64, report: &BlockReport) {
    let missing_max = if report.skipped_runs == 0 { 0.0 } else { sent as f64 * MISSING_SHARE_MAX };
    let is_right = found <= sent && (sent - found) as f64 <= missing_max;
    assert!(is_right, "{found} of {sent}, {} runs skipped", report.skipped_runs);
}

#[test]
pub(crate) fn every_direct_request_is_seen_and_takes_no_longer_than_its_client_says() {
    let Some(disk) = TestDisk::create() else { return };
    let file = disk.open();
    let device = disk.number();
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
            expect_count(times.requests, count, &report);
            assert_eq!(times.failed, 0, "{operation}");
            assert_eq!(times.bytes, times.requests * BLOCK_BYTES as u64);
            assert!(times.device_at(0.5) > 0 && times.device_at(1.0) <= client_ns);
            total += times.queue_ns + times.device_ns;
        }
        assert!(total <= client_ns, "{total} {client_ns}");
        assert_eq!(report.lost, 0);
        let devices = report.seen.statistics.by_device_time();
        assert!(only.is_none() || devices.iter().all(|(who, _)| who.device == device), "{devices:?}");
    }
}

#[test]
fn other_devices_are_left_alone() {
    let Some(disk) = TestDisk::create() else { return };
    let file = disk.open();
    let report = watch(Some(BlockDevice { major: 4000, minor: 0 }), || {
        let mut buffer = vec![0; 2 * BLOCK_BYTES];
        file.read_exact_at(aligned(&mut buffer), 0).expect("the device can be read");
    });
    assert!(report.seen.statistics.by_device_time().is_empty());
}

/// Threads that write to a disk without a pause, each with a request at a time.
const HOGS: usize = 6;
const READS: usize = 60;

/// Reads of the disk by a thread of its own, while others write if `has_hog`.
fn read_beside(file: &File, has_hog: bool) {
    let is_over = &AtomicBool::new(false);
    let written = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for hog in 0..if has_hog { HOGS } else { 0 } {
            let write = move || {
                let mut buffer = vec![1; 2 * BLOCK_BYTES];
                let buffer = aligned(&mut buffer);
                let offset = (hog * BLOCK_BYTES) as u64;
                while !is_over.load(Ordering::Relaxed) {
                    file.write_all_at(buffer, offset).expect("the device can be written");
                    written.fetch_add(1, Ordering::Relaxed);
                }
            };
            std::thread::Builder::new().name("hog".to_owned()).spawn_scoped(scope, write).expect("a thread");
        }
        let read = || {
            let mut buffer = vec![1; 2 * BLOCK_BYTES];
            for number in 0..READS {
                // On a busy machine all reads may be over before a hog gets a CPU.
                let before = written.load(Ordering::Relaxed);
                let is_written = || !has_hog || written.load(Ordering::Relaxed) > before;
                testkit::wait_until(Duration::from_secs(60), "the hogs write", is_written);
                let offset = ((HOGS + number) * BLOCK_BYTES) as u64;
                file.read_exact_at(aligned(&mut buffer), offset).expect("the device can be read");
            }
            is_over.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new().name("reader".to_owned()).spawn_scoped(scope, read).expect("a thread");
    });
}

/// What the reads waited for behind threads of this name, and their times.
fn behind(report: &BlockReport, device: BlockDevice, name: &str) -> (TimeBehind, BlockTimes) {
    let all = report.seen.statistics.by_device_time();
    let is_reader = |who: &BlockRequester| who.name == "reader" && who.device == device;
    let reads = all.into_iter().find(|(who, _)| is_reader(who)).expect("somebody read").1;
    let at_device = report.seen.contention.requesters(device);
    let mut sum = TimeBehind::default();
    for (place, time) in &reads.waits.all().behind {
        if at_device[*place].name == name {
            sum.queued += time.queued;
            sum.shared += time.shared;
        }
    }
    (sum, reads.clone())
}

#[test]
pub(crate) fn who_keeps_reads_waiting_is_named() {
    let Some(disk) = TestDisk::create() else { return };
    let file = disk.open();
    let device = disk.number();
    disk.lengthen_queue();
    for has_hog in [true, false] {
        let report = watch(Some(device), || read_beside(&file, has_hog));
        for (who, times) in report.seen.statistics.by_device_time() {
            let sums = times.waits.all();
            assert_eq!(
                (sums.requests, sums.total()),
                (times.requests, times.queue_ns + times.device_ns),
                "{who:?}"
            );
            assert!(sums.unseen == 0 || report.skipped_runs > 0, "{who:?}");
        }
        let (by_hog, reads) = behind(&report, device, "hog");
        let own = reads.waits.all().own;
        let total = reads.waits.all().total();
        let skipped = report.skipped_runs;
        println!("reads: {own} ns their own of {total}, behind the hog {by_hog:?}, {skipped} runs skipped");
        expect_count(reads.requests, READS as u64, &report);
        if has_hog {
            // With two requests at a time at most, it is half of it at most.
            assert!(4 * by_hog.total() > total, "much of their time is the hog's: {by_hog:?} of {total}");
            // A loop device takes all of them at once.
            let is_queued = disk.folder.is_some() || 10 * by_hog.queued > total;
            assert!(is_queued && by_hog.queued <= reads.queue_ns, "in the queue: {by_hog:?} of {total}");
            let slowest = reads.waits.slowest();
            assert!(slowest.requests >= 1 && slowest.total() <= total);
        } else {
            assert_eq!(by_hog, TimeBehind::default(), "nobody is blamed who is not there");
        }
        // The null device has two requests at most, so that half of its time is theirs.
        if disk.folder.is_none() {
            assert!(2 * own + 2 * reads.requests >= reads.device_ns, "{own} {}", reads.device_ns);
        }
    }
}

/// Answers each request of a connection after a direct read of the disk.
fn serve_from(listener: &TcpListener, file: &File) {
    let (mut client, _) = listener.accept().expect("a client comes");
    client.set_nodelay(true).expect("a TCP socket has this option");
    let mut question = [0; 8];
    let mut buffer = vec![0; 2 * BLOCK_BYTES];
    while client.read_exact(&mut question).is_ok() {
        file.read_exact_at(aligned(&mut buffer), 0).expect("the device can be read");
        client.write_all(b"answered").expect("the client waits");
    }
}

fn ask(address: SocketAddr) -> Vec<ClientRequest> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let client = stream.local_addr().expect("it is connected");
    let mut answer = [0; 8];
    let mut request = |_| {
        let sent = now();
        stream.write_all(b"question").expect("the server reads");
        stream.read_exact(&mut answer).expect("the server answers");
        ClientRequest { client, sent, received: now() }
    };
    (0..300).map(&mut request).collect()
}

/// The time in which a worker waits for a disk is not the same as other time in which it is blocked.
#[test]
fn a_server_that_reads_from_a_disk_waits_for_it() {
    let Some(disk) = TestDisk::create() else { return };
    let file = disk.open();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let watched = std::thread::scope(|scope| {
        scope.spawn(|| serve_from(&listener, &file));
        watch_with(address, || ask(address))
    });
    watched.expect_all();
    let near = &watched.report.causes.percentiles;
    for near in near {
        let [waits, blocked] = [Cause::WaitingForIo, Cause::Blocked].map(|cause| near.mean(cause));
        println!("{}: {waits:.0} ns waiting for I/O, {blocked:.0} ns blocked otherwise", near.name);
    }
    let with = |cause: Cause| near.iter().map(|near| near.with[cause as usize]).sum::<u64>();
    let requests: u64 = near.iter().map(|near| near.requests).sum();
    assert!(2 * with(Cause::WaitingForIo) > requests, "most requests wait for the disk");
    assert!(2 * with(Cause::Blocked) < requests, "and for nothing else");
}
