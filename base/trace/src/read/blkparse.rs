//! The default text output of `blkparse` (blktrace): `maj,min cpu seq seconds pid action rwbs sector + n [process]`.
//!
//! | action | meaning here |
//! |---|---|
//! | `Q` queued | an arrival |
//! | `D` dispatched | an arrival, on devices without `Q` events (`blktrace -a issue -a complete`) |
//! | `C` completed | completes these sectors of the pending requests of the same device and direction |
//! | `R` requeued | the next `D` of the request is no arrival |
//! | `A` remapped | the `Q` that follows repeats a request of the device above (device mapper, RAID) |
//!
//! A request is complete when all its sectors are: the block layer splits and merges requests. Of several
//! requests of the same sectors a completion is the latest one's, so that a completion that was lost is not
//! replaced by that of a much later request. Requests
//! are returned in order of arrival as soon as they have completed. At most [`PENDING_MAX`] are pending;
//! beyond that the oldest is returned without a response time. Other actions are ignored, and the summary
//! at the end is skipped.
//!
//! The workload of a request is its device, `8,16`, and its client the process. A request that reached a
//! lower device through a traced upper one counts once, on the upper device, unless the lower one is
//! selected by name.

mod index;
mod line;

use super::lines::unreadable_line;
use super::source::{SourceError, TraceSource};
use crate::error::{TraceErrorKind, TracePosition};
use crate::format::SECTOR_BYTES;
use crate::input::BufferedInput;
use crate::scan::decimal;
use crate::selection::{RequestParties, RequestSelector, SplitKey, TraceSelection};
use index::{SectorIndex, Sectors};
use line::{BlkparseLine, BlockIoEvent};
use model::Request;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use units::{Bytes, Nanos};

pub(super) use line::is_event;

/// Maximum number of requests that wait for their completion, or for that of an earlier request.
const PENDING_MAX: usize = 1 << 16;
/// Number of dispatches without a `Q` event after which a device counts as traced without them. A trace
/// that has them may begin with dispatches of earlier requests.
const DISPATCHES_WITHOUT_QUEUEING: u32 = 256;
/// Maximum number of remapped requests whose `Q` event on the lower device has not been read, and of
/// requeued ones that have not been dispatched.
const REMAPPED_MAX: usize = 1 << 16;
/// Maximum number of devices.
const DEVICES_MAX: usize = 1 << 12;

pub(super) struct BlkparseSource {
    input: BufferedInput,
    line: u64,
    requests: BlockRequests,
    at_end: bool,
    in_summary: bool,
}

/// The requests of the events so far.
struct BlockRequests {
    ignored: u64,
    selector: RequestSelector,
    /// Processes are kept if they select or divide the requests.
    keeps_processes: bool,
    /// Requests that have arrived and have not been returned, oldest first.
    pending: VecDeque<PendingBlockRequest>,
    /// Sequence number of the first request in `pending`.
    first_pending: u64,
    uncompleted: SectorIndex,
    devices: HashMap<u64, DeviceEvents>,
    /// Beginnings of requests that were remapped to a lower device.
    remapped: HashSet<Sectors>,
    /// Beginnings of requests that were requeued and not dispatched again.
    requeued: HashSet<Sectors>,
    /// Number of completions with an error.
    failed: u64,
    has_completions: bool,
    has_requests: bool,
}

struct PendingBlockRequest {
    request: Request,
    sectors: Sectors,
    /// Name of the process, empty if not needed.
    process: Box<[u8]>,
    /// Number of sectors that have not completed.
    uncompleted: u64,
    /// The arrival is a dispatch.
    is_dispatched: bool,
    /// Repeats a request of a traced upper device.
    is_repeated: bool,
}

/// Events of a device that decide which of them are arrivals.
#[derive(Default)]
struct DeviceEvents {
    has_queueing: bool,
    /// Dispatches taken as arrivals.
    dispatches: u32,
}

/// Decision about the oldest pending request.
enum Oldest {
    Wait,
    Drop,
    Return,
}

impl BlkparseSource {
    pub(super) fn new(input: BufferedInput, selection: &TraceSelection) -> Self {
        Self { input, line: 0, requests: BlockRequests::new(selection), at_end: false, in_summary: false }
    }

    /// Reads one line; returns false at the end.
    fn read_line(&mut self) -> Result<bool, SourceError> {
        self.line += 1;
        let position = TracePosition::Line(self.line);
        let line = match self.input.line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(error) => {
                let error = unreadable_line(&mut self.input, self.line, error);
                self.at_end |= !error.is_recoverable;
                return Err(error);
            }
        };
        if self.in_summary && !is_event(line) {
            return Ok(true);
        }
        // Events after a summary are those of another output behind it.
        self.in_summary = false;
        match line::parse_line(line) {
            Ok(BlkparseLine::Summary) => self.in_summary = true,
            parsed => {
                let taken = parsed.and_then(|event| self.requests.take(event));
                taken.map_err(|expected| SourceError::malformed(position, expected, line))?;
            }
        }
        Ok(true)
    }
}

impl BlockRequests {
    fn new(selection: &TraceSelection) -> Self {
        let key = match selection {
            TraceSelection::Sole => SplitKey::Workload,
            TraceSelection::All(key) | TraceSelection::Named(key, _) => *key,
        };
        Self {
            ignored: 0,
            selector: RequestSelector::new(selection),
            keeps_processes: key == SplitKey::Client,
            pending: VecDeque::new(),
            first_pending: 0,
            uncompleted: SectorIndex::default(),
            devices: HashMap::new(),
            remapped: HashSet::new(),
            requeued: HashSet::new(),
            failed: 0,
            has_completions: false,
            has_requests: false,
        }
    }

    fn oldest(&self, at_end: bool) -> Option<Oldest> {
        let oldest = self.pending.front()?;
        let is_forced = at_end || self.pending.len() > PENDING_MAX;
        if oldest.is_dispatched {
            let device = &self.devices[&oldest.sectors.device];
            let is_decided = device.dispatches >= DISPATCHES_WITHOUT_QUEUEING;
            if device.has_queueing && !is_decided {
                return Some(Oldest::Drop);
            }
            if !(is_decided || is_forced) {
                return Some(Oldest::Wait);
            }
        }
        Some(if oldest.uncompleted == 0 || is_forced { Oldest::Return } else { Oldest::Wait })
    }

    /// Takes the oldest pending request if it can be returned.
    fn pop_ready(&mut self, at_end: bool) -> Option<PendingBlockRequest> {
        loop {
            let decision = self.oldest(at_end)?;
            if matches!(decision, Oldest::Wait) {
                return None;
            }
            let oldest = self.pending.pop_front()?;
            self.uncompleted.forget(oldest.sectors, self.first_pending);
            self.first_pending += 1;
            if matches!(decision, Oldest::Return) {
                return Some(oldest);
            }
        }
    }

    fn enqueue(&mut self, event: &BlockIoEvent<'_>, is_dispatched: bool) -> Result<(), &'static str> {
        const EXPECTED: &str = "sectors within 2^64 bytes";
        let offset = event.sectors.first.checked_mul(SECTOR_BYTES).ok_or(EXPECTED)?;
        let size = event.blocks.checked_mul(SECTOR_BYTES).ok_or(EXPECTED)?;
        let number = self.first_pending + self.pending.len() as u64;
        let request = Request {
            arrival: Nanos(event.time_ns),
            size: Bytes(size),
            op: event.sectors.op,
            offset: Some(offset),
            response: None,
        };
        self.uncompleted.insert(event.sectors, event.end(), number);
        self.pending.push_back(PendingBlockRequest {
            request,
            sectors: event.sectors,
            process: if self.keeps_processes { event.process.into() } else { Box::default() },
            uncompleted: event.blocks,
            is_dispatched,
            is_repeated: !is_dispatched && self.remapped.remove(&event.sectors),
        });
        Ok(())
    }

    fn complete(&mut self, event: &BlockIoEvent<'_>) {
        let Self { uncompleted, pending, first_pending, .. } = self;
        uncompleted.complete(event.sectors, event.end(), |number, sectors| {
            let index = usize::try_from(number - *first_pending).expect("pending requests are few");
            let pending = &mut pending[index];
            pending.uncompleted = pending.uncompleted.saturating_sub(sectors);
            if pending.uncompleted == 0 {
                // The clocks of CPUs may differ slightly, but a response time is never negative.
                pending.request.response = Some(Nanos(event.time_ns).saturating_sub(pending.request.arrival));
            }
        });
    }

    fn take(&mut self, event: BlkparseLine<'_>) -> Result<(), &'static str> {
        match event {
            BlkparseLine::Queued(event) => {
                self.device_of(&event)?.has_queueing = true;
                self.enqueue(&event, false)?;
            }
            BlkparseLine::Dispatched(event) => {
                // A request that is requeued is dispatched again.
                let is_known = self.requeued.remove(&event.sectors);
                let device = self.device_of(&event)?;
                if !device.has_queueing && !is_known {
                    device.dispatches = device.dispatches.saturating_add(1);
                    self.enqueue(&event, true)?;
                }
            }
            BlkparseLine::Completed(event) => {
                self.has_completions = true;
                self.failed += u64::from(decimal(event.process).is_some_and(|error| error > 0));
                self.complete(&event);
            }
            BlkparseLine::Requeued(event) => {
                if self.requeued.len() == REMAPPED_MAX {
                    self.requeued.clear();
                }
                self.requeued.insert(event.sectors);
            }
            BlkparseLine::Remapped { to, blocks, from } => {
                // A partition between both devices has remaps alone.
                if self.remapped.remove(&from)
                    || self.uncompleted.overlaps(from, from.first.saturating_add(blocks))
                {
                    if self.remapped.len() == REMAPPED_MAX {
                        self.remapped.clear();
                    }
                    self.remapped.insert(to);
                }
            }
            BlkparseLine::OtherOperation => self.ignored += 1,
            BlkparseLine::NoOperation | BlkparseLine::Summary => {}
        }
        Ok(())
    }

    fn device_of(&mut self, event: &BlockIoEvent<'_>) -> Result<&mut DeviceEvents, &'static str> {
        let device = event.sectors.device;
        if self.devices.len() == DEVICES_MAX && !self.devices.contains_key(&device) {
            return Err("at most 4096 devices");
        }
        Ok(self.devices.entry(device).or_default())
    }

    /// Converts a pending request into a request of the trace, if selected.
    fn request_of(&mut self, pending: &PendingBlockRequest) -> Result<Option<Request>, TraceErrorKind> {
        let is_by_name = matches!(self.selector.selection(), TraceSelection::Named(SplitKey::Workload, _));
        if pending.is_repeated && !is_by_name {
            return Ok(None);
        }
        let device = pending.sectors.device;
        let device = format!("{},{}", device >> 32, device & u64::from(u32::MAX));
        let process = String::from_utf8_lossy(&pending.process);
        self.has_requests = true;
        let parties = RequestParties { workload: &device, client: &process, server: &device };
        Ok(self.selector.admits(parties)?.then_some(pending.request))
    }

    fn finish(&self) -> Result<(), TraceErrorKind> {
        if self.has_completions && !self.has_requests {
            return Err(TraceErrorKind::Unreadable {
                what: "it has completions (C) but neither queued (Q) nor dispatched (D) requests",
                remedy: "record arrivals, too: blktrace -a queue -a issue -a complete",
            });
        }
        self.selector.finish()
    }
}

impl TraceSource for BlkparseSource {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            if let Some(pending) = self.requests.pop_ready(self.at_end) {
                let request = self.requests.request_of(&pending);
                match request.map_err(|kind| SourceError::fatal(self.position(), kind))? {
                    Some(request) => return Ok(Some(request)),
                    None => continue,
                }
            }
            if self.at_end {
                let finished = self.requests.finish();
                return finished.map(|()| None).map_err(|kind| SourceError::fatal(TracePosition::File, kind));
            }
            self.at_end = !self.read_line()?;
        }
    }

    fn position(&self) -> TracePosition {
        TracePosition::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        self.requests.ignored
    }

    fn owners(&self) -> Option<&BTreeMap<String, u64>> {
        Some(self.requests.selector.counts())
    }

    fn remarks(&self) -> Vec<String> {
        let BlockRequests { devices, failed, .. } = &self.requests;
        let mut remarks = Vec::new();
        if *failed > 0 {
            remarks.push(format!(
                "completions with an error: {failed}; their response times are those of failures"
            ));
        }
        if !devices.values().any(|device| !device.has_queueing && device.dispatches > 0) {
            return remarks;
        }
        remarks.push(
            "it has no queued requests (Q): they arrive when they are dispatched (D), so response times lack \
             the wait before that; blktrace -a queue records it"
                .to_owned(),
        );
        remarks
    }
}
