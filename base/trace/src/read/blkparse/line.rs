//! A line of `blkparse`.

use super::index::Sectors;
use crate::scan::{decimal, fixed_point, words};
use model::Op;

const EXPECTED: &str = "device cpu sequence seconds pid action rwbs sector + blocks [process]";

/// Meaning of one line of the output.
pub(super) enum BlkparseLine<'a> {
    Queued(BlockIoEvent<'a>),
    Dispatched(BlockIoEvent<'a>),
    /// The process of a completion is its error, `0` without.
    Completed(BlockIoEvent<'a>),
    Requeued(BlockIoEvent<'a>),
    /// `blocks` sectors of an upper device, from `from`, became those of a lower one, from `to`.
    Remapped {
        to: Sectors,
        blocks: u64,
        from: Sectors,
    },
    /// A queued operation that is neither a read nor a write.
    OtherOperation,
    NoOperation,
    /// The first line of the summary; no events follow it.
    Summary,
}

/// The queueing, dispatch or completion of a read or write.
pub(super) struct BlockIoEvent<'a> {
    pub(super) time_ns: u64,
    pub(super) sectors: Sectors,
    pub(super) blocks: u64,
    /// Name of the process; empty if the line has none.
    pub(super) process: &'a [u8],
}

impl BlockIoEvent<'_> {
    /// Returns the first sector behind the request.
    pub(super) fn end(&self) -> u64 {
        self.sectors.first.saturating_add(self.blocks)
    }
}

/// Returns true if `line` is an event of the output.
pub(in crate::read) fn is_event(line: &[u8]) -> bool {
    !matches!(parse_line(line), Err(_) | Ok(BlkparseLine::Summary))
}

/// Returns the meaning of `line`; an error completes "expected …".
pub(super) fn parse_line(line: &[u8]) -> Result<BlkparseLine<'_>, &'static str> {
    let mut words = words(line);
    let Some(first) = words.next() else { return Ok(BlkparseLine::NoOperation) };
    let Some(device) = parse_device(first) else {
        return if begins_summary(first, line) { Ok(BlkparseLine::Summary) } else { Err(EXPECTED) };
    };
    let _cpu = words.next().ok_or(EXPECTED)?;
    let _sequence = words.next().ok_or(EXPECTED)?;
    let time_ns = words.next().and_then(|seconds| fixed_point(seconds, 9)).ok_or(EXPECTED)?;
    let _pid = words.next().ok_or(EXPECTED)?;
    let action = words.next().ok_or(EXPECTED)?;
    if !matches!(action, b"Q" | b"D" | b"C" | b"R" | b"A") {
        return Ok(BlkparseLine::NoOperation);
    }
    let without_data = if action == b"Q" { BlkparseLine::OtherOperation } else { BlkparseLine::NoOperation };
    let rwbs = words.next().ok_or(EXPECTED)?;
    let Some(op) = direction(rwbs) else { return Ok(without_data) };
    let sector = words.next().ok_or(EXPECTED)?;
    if sector.starts_with(b"[") || sector.starts_with(b"(") {
        // A flush has the write flag but no data; a passthrough command shows its bytes instead.
        return Ok(without_data);
    }
    let first = decimal(sector).ok_or(EXPECTED)?;
    let sectors = Sectors { device, op, first };
    // A completion without data, a passthrough command, or a length that was not recorded has no "+ blocks".
    let blocks =
        if words.next() == Some(b"+") { words.next().and_then(decimal).ok_or(EXPECTED)? } else { 0 };
    let process = process_of(line);
    let event = BlockIoEvent { time_ns, sectors, blocks, process };
    Ok(match action {
        _ if blocks == 0 => without_data,
        b"Q" => BlkparseLine::Queued(event),
        b"D" => BlkparseLine::Dispatched(event),
        b"C" => BlkparseLine::Completed(event),
        b"R" => BlkparseLine::Requeued(event),
        _ => match remapped_from(words) {
            Some((device, first)) => {
                BlkparseLine::Remapped { to: sectors, blocks, from: Sectors { device, op, first } }
            }
            None => BlkparseLine::NoOperation,
        },
    })
}

/// Parses the origin of a remapped request, `<- (253,0) 2048`.
fn remapped_from<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<(u64, u64)> {
    if words.next() != Some(b"<-") {
        return None;
    }
    let device = words.next()?.strip_prefix(b"(")?.strip_suffix(b")")?;
    Some((parse_device(device)?, decimal(words.next()?)?))
}

/// Returns the text in the last brackets; names of processes may contain blanks and brackets.
fn process_of(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let Some(line) = line.strip_suffix(b"]") else { return &[] };
    line.iter().position(|&byte| byte == b'[').map_or(&[], |start| &line[start + 1..])
}

/// Returns true if a line without a device belongs to a summary, that of a process (`fio (1507)`, with `-s`)
/// included, or to the list of input files.
fn begins_summary(word: &[u8], line: &[u8]) -> bool {
    let beginnings = [&b"CPU"[..], b"Total", b"Events", b"Throughput", b"Reads", b"Input", b"Skips"];
    let is_process = || {
        let line = line.trim_ascii_end();
        let open = line.iter().rposition(|&byte| byte == b'(');
        let pid = open.and_then(|open| line[open + 1..].strip_suffix(b")"));
        pid.is_some_and(|pid| decimal(pid).is_some())
    };
    beginnings.iter().any(|beginning| word.starts_with(beginning)) || is_process()
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
