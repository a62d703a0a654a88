//! Default text output of `blkparse` (blktrace): `maj,min cpu seq seconds pid action rwbs sector + n [who]`.
//!
//! A `Q` event (queued) is an arrival. A `C` event (completed) answers every waiting request of the same
//! device and direction that begins inside its sectors, so merged requests share their completion.
//! Requests leave in order of arrival as soon as they are answered; at most [`WAITING_MAX`] wait, after
//! which the oldest leaves without a response time. Other actions say nothing that is needed here, and
//! the summary at the end is passed over.

use super::lines::{line_fault, malformed};
use super::text::SECTOR_BYTES;
use super::{Fault, Source};
use crate::error::Place;
use crate::scan::{decimal, fixed, words};
use crate::source::Buffered;
use model::{Op, Request};
use std::collections::{BTreeMap, VecDeque};
use units::{Bytes, Nanos};

/// Requests that may wait for their completion.
const WAITING_MAX: usize = 1 << 16;
const EXPECTED: &str = "device cpu sequence seconds pid action rwbs sector + blocks [process]";

/// Device, direction, first sector, arrival number.
type Key = (u64, Op, u64, u64);

pub(crate) struct BlkparseSource {
    input: Buffered,
    line: u64,
    ignored: u64,
    /// Arrived and not yet given out, oldest first.
    waiting: VecDeque<(Request, Key, bool)>,
    /// Number of the oldest in `waiting`.
    oldest: u64,
    unanswered: BTreeMap<Key, ()>,
    at_end: bool,
    in_summary: bool,
}

/// What one line says.
pub(crate) enum Event {
    Queued(Action),
    Completed(Action),
    /// Queued, but neither read nor write.
    Other,
    Nothing,
    /// The first line of the summary: no events follow.
    Summary,
}

/// A queue or completion event of a read or write.
pub(crate) struct Action {
    device: u64,
    time_ns: u64,
    op: Op,
    sector: u64,
    blocks: u64,
}

impl BlkparseSource {
    pub(crate) fn new(input: Buffered) -> Self {
        Self {
            input,
            line: 0,
            ignored: 0,
            waiting: VecDeque::new(),
            oldest: 0,
            unanswered: BTreeMap::new(),
            at_end: false,
            in_summary: false,
        }
    }

    fn ready(&mut self) -> Option<Request> {
        let (_, _, answered) = self.waiting.front()?;
        if !(*answered || self.at_end || self.waiting.len() > WAITING_MAX) {
            return None;
        }
        let (request, key, _) = self.waiting.pop_front()?;
        self.oldest += 1;
        self.unanswered.remove(&key);
        Some(request)
    }

    fn queue(&mut self, action: &Action, offset: u64, size: u64) {
        let number = self.oldest + self.waiting.len() as u64;
        let key = (action.device, action.op, action.sector, number);
        let request = Request {
            arrival: Nanos(action.time_ns),
            size: Bytes(size),
            op: action.op,
            offset: Some(offset),
            response: None,
        };
        self.waiting.push_back((request, key, false));
        self.unanswered.insert(key, ());
    }

    fn complete(&mut self, action: &Action) {
        let end = action.sector.saturating_add(action.blocks);
        let from = (action.device, action.op, action.sector, 0);
        let to = (action.device, action.op, end, 0);
        while let Some((&key, ())) = self.unanswered.range(from..to).next() {
            self.unanswered.remove(&key);
            let index = usize::try_from(key.3 - self.oldest).expect("waiting requests are few");
            let (request, _, answered) = &mut self.waiting[index];
            // Clocks of different CPUs may disagree by a little: never negative.
            request.response = Some(Nanos(action.time_ns).saturating_sub(request.arrival));
            *answered = true;
        }
    }

    /// Reads one line; `Ok(false)` at the end.
    fn advance(&mut self) -> Result<bool, Fault> {
        self.line += 1;
        let line = match self.input.line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(error) => {
                let fault = line_fault(&mut self.input, self.line, error);
                self.at_end |= !fault.resumes;
                return Err(fault);
            }
        };
        if self.in_summary {
            return Ok(true);
        }
        match event(line) {
            Ok(Event::Queued(action)) => {
                let offset = action.sector.checked_mul(SECTOR_BYTES);
                match offset.zip(action.blocks.checked_mul(SECTOR_BYTES)) {
                    Some((offset, size)) => self.queue(&action, offset, size),
                    None => return Err(malformed(self.line, "sectors within 2^64 bytes", line)),
                }
            }
            Ok(Event::Completed(action)) => self.complete(&action),
            Ok(Event::Other) => self.ignored += 1,
            Ok(Event::Nothing) => {}
            Ok(Event::Summary) => self.in_summary = true,
            Err(expected) => return Err(malformed(self.line, expected, line)),
        }
        Ok(true)
    }
}

impl Source for BlkparseSource {
    fn next(&mut self) -> Result<Option<Request>, Fault> {
        loop {
            if let Some(request) = self.ready() {
                return Ok(Some(request));
            }
            if self.at_end {
                return Ok(None);
            }
            self.at_end = !self.advance()?;
        }
    }

    fn place(&self) -> Place {
        Place::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// What `line` says.
pub(crate) fn event(line: &[u8]) -> Result<Event, &'static str> {
    let mut words = words(line);
    let Some(first) = words.next() else { return Ok(Event::Nothing) };
    let Some(device) = device(first) else {
        let summary = [&b"CPU"[..], b"Total", b"Events", b"Throughput", b"Reads", b"Input", b"Skips"];
        let known = summary.iter().any(|start| first.starts_with(start));
        return if known { Ok(Event::Summary) } else { Err(EXPECTED) };
    };
    let mut word = || words.next().ok_or(EXPECTED);
    let (_cpu, _sequence) = (word()?, word()?);
    let time_ns = fixed(word()?, 9).ok_or(EXPECTED)?;
    let _pid = word()?;
    let queued = match word()? {
        b"Q" => true,
        b"C" => false,
        _ => return Ok(Event::Nothing),
    };
    let rwbs = word()?;
    let Some(op) = direction(rwbs) else {
        return Ok(if queued { Event::Other } else { Event::Nothing });
    };
    let sector = word()?;
    if sector.starts_with(b"[") {
        // A flush rides on the write flag without data.
        return Ok(if queued { Event::Other } else { Event::Nothing });
    }
    let sector = decimal(sector).ok_or(EXPECTED)?;
    // A completion without data, or of a length that was not recorded, has no "+ blocks".
    let blocks =
        if words.next() == Some(b"+") { words.next().and_then(decimal).ok_or(EXPECTED)? } else { 0 };
    let action = Action { device, time_ns, op, sector, blocks };
    match (queued, blocks) {
        (true, 0) => Ok(Event::Other),
        (true, _) => Ok(Event::Queued(action)),
        (false, _) => Ok(Event::Completed(action)),
    }
}

/// `8,0` as one number.
fn device(word: &[u8]) -> Option<u64> {
    let comma = word.iter().position(|&byte| byte == b',')?;
    let (major, minor) = (decimal(&word[..comma])?, decimal(&word[comma + 1..])?);
    (major < 1 << 32 && minor < 1 << 32).then_some(major << 32 | minor)
}

/// The direction in flags such as `R`, `WS`, `RA`, `FWFS`; `None` for discards, flushes and messages.
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
