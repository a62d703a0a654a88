//! The default text output of `blkparse` (blktrace): `maj,min cpu seq seconds pid action rwbs sector + n [who]`.
//!
//! A `Q` event (queued) is an arrival. A `C` event (completed) completes every pending request of the
//! same device and direction that begins inside its sectors, so merged requests share their completion.
//! Requests are returned in order of arrival as soon as they have completed. At most [`PENDING_MAX`] are
//! pending; beyond that the oldest is returned without a response time. Other actions are ignored, and
//! the summary at the end is skipped.

use super::lines::unreadable_line;
use super::source::{SourceError, TraceSource};
use crate::error::TracePosition;
use crate::format::SECTOR_BYTES;
use crate::input::BufferedInput;
use crate::scan::{decimal, fixed_point, words};
use model::{Op, Request};
use std::collections::{BTreeSet, VecDeque};
use units::{Bytes, Nanos};

/// Maximum number of requests that wait for their completion, or for that of an earlier request.
const PENDING_MAX: usize = 1 << 16;
const EXPECTED: &str = "device cpu sequence seconds pid action rwbs sector + blocks [process]";

pub(super) struct BlkparseSource {
    input: BufferedInput,
    line: u64,
    ignored: u64,
    /// Requests that have arrived and have not been returned, oldest first.
    pending: VecDeque<PendingBlockRequest>,
    /// Sequence number of the first request in `pending`.
    first_pending: u64,
    uncompleted: BTreeSet<UncompletedKey>,
    at_end: bool,
    in_summary: bool,
}

struct PendingBlockRequest {
    request: Request,
    key: UncompletedKey,
    completed: bool,
}

/// Orders requests so that those covered by one completion are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UncompletedKey {
    device: u64,
    op: Op,
    sector: u64,
    arrival_number: u64,
}

/// Meaning of one line of the output.
pub(super) enum BlkparseLine {
    Queued(BlockIoEvent),
    Completed(BlockIoEvent),
    /// A queued operation that is neither a read nor a write.
    OtherOperation,
    NoOperation,
    /// The first line of the summary; no events follow it.
    Summary,
}

/// The queueing or completion of a read or write.
pub(super) struct BlockIoEvent {
    device: u64,
    time_ns: u64,
    op: Op,
    sector: u64,
    blocks: u64,
}

impl BlkparseSource {
    pub(super) fn new(input: BufferedInput) -> Self {
        Self {
            input,
            line: 0,
            ignored: 0,
            pending: VecDeque::new(),
            first_pending: 0,
            uncompleted: BTreeSet::new(),
            at_end: false,
            in_summary: false,
        }
    }

    /// Takes the oldest pending request if it can be returned.
    fn pop_ready(&mut self) -> Option<Request> {
        let oldest = self.pending.front()?;
        if !(oldest.completed || self.at_end || self.pending.len() > PENDING_MAX) {
            return None;
        }
        let oldest = self.pending.pop_front()?;
        self.first_pending += 1;
        self.uncompleted.remove(&oldest.key);
        Some(oldest.request)
    }

    fn enqueue(&mut self, event: &BlockIoEvent, offset: u64, size: u64) {
        let arrival_number = self.first_pending + self.pending.len() as u64;
        let key = UncompletedKey { device: event.device, op: event.op, sector: event.sector, arrival_number };
        let request = Request {
            arrival: Nanos(event.time_ns),
            size: Bytes(size),
            op: event.op,
            offset: Some(offset),
            response: None,
        };
        self.pending.push_back(PendingBlockRequest { request, key, completed: false });
        self.uncompleted.insert(key);
    }

    fn complete(&mut self, event: &BlockIoEvent) {
        let end = event.sector.saturating_add(event.blocks);
        let from =
            UncompletedKey { device: event.device, op: event.op, sector: event.sector, arrival_number: 0 };
        let to = UncompletedKey { sector: end, ..from };
        while let Some(&key) = self.uncompleted.range(from..to).next() {
            self.uncompleted.remove(&key);
            let index =
                usize::try_from(key.arrival_number - self.first_pending).expect("pending requests are few");
            let pending = &mut self.pending[index];
            // The clocks of CPUs may differ slightly, but a response time is never negative.
            pending.request.response = Some(Nanos(event.time_ns).saturating_sub(pending.request.arrival));
            pending.completed = true;
        }
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
        if self.in_summary {
            return Ok(true);
        }
        match parse_line(line) {
            Ok(BlkparseLine::Queued(event)) => {
                let offset = event.sector.checked_mul(SECTOR_BYTES);
                match offset.zip(event.blocks.checked_mul(SECTOR_BYTES)) {
                    Some((offset, size)) => self.enqueue(&event, offset, size),
                    None => return Err(SourceError::malformed(position, "sectors within 2^64 bytes", line)),
                }
            }
            Ok(BlkparseLine::Completed(event)) => self.complete(&event),
            Ok(BlkparseLine::OtherOperation) => self.ignored += 1,
            Ok(BlkparseLine::NoOperation) => {}
            Ok(BlkparseLine::Summary) => self.in_summary = true,
            Err(expected) => return Err(SourceError::malformed(position, expected, line)),
        }
        Ok(true)
    }
}

impl TraceSource for BlkparseSource {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            if let Some(request) = self.pop_ready() {
                return Ok(Some(request));
            }
            if self.at_end {
                return Ok(None);
            }
            self.at_end = !self.read_line()?;
        }
    }

    fn position(&self) -> TracePosition {
        TracePosition::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// Returns the meaning of `line`; an error completes "expected …".
pub(super) fn parse_line(line: &[u8]) -> Result<BlkparseLine, &'static str> {
    let mut words = words(line);
    let Some(first) = words.next() else { return Ok(BlkparseLine::NoOperation) };
    let Some(device) = parse_device(first) else {
        return if begins_summary(first) { Ok(BlkparseLine::Summary) } else { Err(EXPECTED) };
    };
    let _cpu = words.next().ok_or(EXPECTED)?;
    let _sequence = words.next().ok_or(EXPECTED)?;
    let time_ns = words.next().and_then(|seconds| fixed_point(seconds, 9)).ok_or(EXPECTED)?;
    let _pid = words.next().ok_or(EXPECTED)?;
    let queued = match words.next().ok_or(EXPECTED)? {
        b"Q" => true,
        b"C" => false,
        _ => return Ok(BlkparseLine::NoOperation),
    };
    let without_data = if queued { BlkparseLine::OtherOperation } else { BlkparseLine::NoOperation };
    let rwbs = words.next().ok_or(EXPECTED)?;
    let Some(op) = direction(rwbs) else { return Ok(without_data) };
    let sector = words.next().ok_or(EXPECTED)?;
    if sector.starts_with(b"[") {
        // A flush has the write flag but no data.
        return Ok(without_data);
    }
    let sector = decimal(sector).ok_or(EXPECTED)?;
    // A completion without data, or of a length that was not recorded, has no "+ blocks".
    let blocks =
        if words.next() == Some(b"+") { words.next().and_then(decimal).ok_or(EXPECTED)? } else { 0 };
    let event = BlockIoEvent { device, time_ns, op, sector, blocks };
    match (queued, blocks) {
        (true, 0) => Ok(BlkparseLine::OtherOperation),
        (true, _) => Ok(BlkparseLine::Queued(event)),
        (false, _) => Ok(BlkparseLine::Completed(event)),
    }
}

fn begins_summary(word: &[u8]) -> bool {
    let beginnings = [&b"CPU"[..], b"Total", b"Events", b"Throughput", b"Reads", b"Input", b"Skips"];
    beginnings.iter().any(|beginning| word.starts_with(beginning))
}

/// Encodes a device such as `8,0` as one number.
fn parse_device(word: &[u8]) -> Option<u64> {
    let comma = word.iter().position(|&byte| byte == b',')?;
    let major = decimal(&word[..comma])?;
    let minor = decimal(&word[comma + 1..])?;
    (major < 1 << 32 && minor < 1 << 32).then_some(major << 32 | minor)
}

/// Returns the direction in flags such as `R`, `WS`, `RA`, `FWFS`; `None` for discards, flushes and
/// messages.
fn direction(rwbs: &[u8]) -> Option<Op> {
    if rwbs.contains(&b'D') {
        None
    } else if rwbs.contains(&b'R') {
        Some(Op::Read)
    } else if rwbs.contains(&b'W') {
        Some(Op::Write)
    } else {
        None
    }
}
