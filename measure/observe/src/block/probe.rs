//! The programs of `bpf/block.bpf.c` in the kernel, and an observation with them from its beginning to its end.

use super::event::{BlockDevice, BlockEvent};
use super::observer::BlockObserver;
use crate::observing::ObservationEnd;
use crate::probe::{attach_if_there, lacks, refused, skipped_runs, take, types_of_kernel};
use aya::maps::{Array, MapData, RingBuf};
use aya::{Ebpf, EbpfLoader};
use machine::clock::now;
use model::OperationError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `bpf/block.bpf.c`, compiled by `base/machine/bpf/build.sh`. A static of its own type gives it the alignment of an ELF file.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/block.bpf.o");

/// The programs with the tracepoints that they are attached to, and whether observing is pointless without them. First
/// those that end a request, so that none stays open for that it was not seen to end.
const PROGRAMS: [(&str, &str, bool); 4] = [
    ("tw_block_complete", "block_rq_complete", true),
    ("tw_block_merge", "block_rq_merge", false),
    ("tw_block_return", "block_rq_requeue", false),
    ("tw_block_issue", "block_rq_issue", true),
];

/// The programs that see requests begin: the first one whose tracepoint there is.
const BEGINNINGS: [(&str, &str); 2] = [("tw_block_begin", "block_io_start"), ("tw_block_bio", "block_getrq")];

/// The time between two looks at the events.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// The most events that are taken at once.
const DRAINED_MAX: usize = 1 << 16;

/// What is observed of block devices, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockSettings {
    /// The only device, if not all.
    pub device: Option<BlockDevice>,
    /// How long it lasts at most.
    pub duration: Duration,
}

/// What an observation of block devices came to.
#[derive(Debug, Clone)]
pub struct BlockReport {
    /// What was seen of requests.
    pub seen: BlockObserver,
    /// Requests that could not be reported.
    pub lost: u64,
    /// How often the kernel passed over a run of the programs: up to as many events are missing.
    pub skipped_runs: u64,
    /// How long it took.
    pub duration: Duration,
    /// Why the observation ended.
    pub end: ObservationEnd,
}

/// The programs, attached until the value is dropped.
pub struct AttachedBlockProbes {
    object: Ebpf,
    events: RingBuf<MapData>,
    counts: Array<MapData, u64>,
}

impl AttachedBlockProbes {
    /// Loads and attaches the programs, for one device or all.
    ///
    /// # Errors
    /// When capabilities are missing, or the kernel is too old; the message names which.
    pub fn attach(device: Option<BlockDevice>) -> Result<Self, OperationError> {
        let btf = types_of_kernel()?;
        let device_only = device.map_or(u32::MAX, BlockDevice::number);
        let mut object = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("device_only", &device_only, true)
            .load(OBJECT)
            .map_err(|error| refused("the observing programs cannot be loaded", &error))?;
        for (name, tracepoint, is_needed) in PROGRAMS {
            if !attach_if_there(&mut object, name, tracepoint, &btf)? && is_needed {
                return Err(lacks(tracepoint));
            }
        }
        for (name, tracepoint) in BEGINNINGS {
            if attach_if_there(&mut object, name, tracepoint, &btf)? {
                break;
            }
        }
        let events = take(&mut object, "block_events", RingBuf::try_from)?;
        let counts = take(&mut object, "block_counts", Array::try_from)?;
        Ok(Self { object, events, counts })
    }

    /// Takes what has happened to requests since the last call.
    ///
    /// # Panics
    /// When the programs and this crate do not agree on the form of events.
    pub fn drain(&mut self, mut take: impl FnMut(BlockEvent)) {
        for _ in 0..DRAINED_MAX {
            let Some(bytes) = self.events.next() else { break };
            take(BlockEvent::decode(&bytes).expect("the programs and their reader are built together"));
        }
    }

    /// The number of requests that could not be reported until now.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn lost(&self) -> Result<u64, OperationError> {
        self.count(0)
    }

    /// How often the kernel passed over a program until now, as [`crate::AttachedProbes::skipped_runs`].
    pub fn skipped_runs(&self) -> u64 {
        skipped_runs(&self.object)
    }

    /// The number of events of all phases that are missing until now, at most.
    fn missing_events(&self) -> Result<u64, OperationError> {
        Ok(self.count(0)? + self.count(1)? + self.skipped_runs())
    }

    fn count(&self, which: u32) -> Result<u64, OperationError> {
        self.counts
            .get(&which, 0)
            .map_err(|error| refused("the count of lost requests cannot be read", &error))
    }
}

/// Observes block devices until the time is over or `stop` is set. `attached` is called once, when nothing is missed
/// any more.
///
/// # Errors
/// As [`AttachedBlockProbes::attach`].
pub fn observe_block(
    settings: &BlockSettings,
    stop: &AtomicBool,
    attached: impl FnOnce(),
) -> Result<BlockReport, OperationError> {
    let mut probes = AttachedBlockProbes::attach(settings.device)?;
    let mut seen = BlockObserver::default();
    let start = Instant::now();
    attached();
    let end = loop {
        let is_over = start.elapsed() >= settings.duration;
        let is_stopped = stop.load(Ordering::Relaxed);
        let begun = now();
        probes.drain(|event| seen.take(event));
        seen.advance(begun, probes.missing_events()?);
        if is_stopped {
            break ObservationEnd::Stopped;
        }
        if is_over {
            break ObservationEnd::Over;
        }
        std::thread::park_timeout(DRAIN_INTERVAL);
    };
    seen.advance(u64::MAX, probes.missing_events()?);
    let lost = probes.lost()?;
    let skipped_runs = probes.skipped_runs();
    Ok(BlockReport { seen, lost, skipped_runs, duration: start.elapsed(), end })
}
