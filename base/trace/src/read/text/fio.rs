//! fio iolog, version 2 and 3 (fio documentation, "Trace file format v2" and "v3").
//!
//! Version 3 begins each line with microseconds since the start of the log, as fio's own writer does.
//! Version 2 has no times but `wait` records. fio replays what follows one that many milliseconds after
//! the start of the job, or at once if that has passed (measured with fio 3.33, and so in its `iolog.c`).
//! Its manual says microseconds since the previous `wait`; a log is read as it is replayed. A version 2
//! log of several requests without a single `wait` says nothing about arrivals and is an error
//! ([`TraceErrorKind::Untimed`]), unless the reader is lenient: then every request arrives at time zero.
//! Files are not distinguished.

use crate::error::TraceErrorKind;
use crate::format::FIO_HEADER_V3;
use crate::read::lines::{LineParser, ParsedLine};
use crate::scan::{decimal, words};
use model::{Op, Request};
use units::{Bytes, Nanos};

const FIO_HEADER_V2: &[u8] = b"fio version 2 iolog";
const MICROSECOND_NS: u64 = 1000;
const MILLISECOND_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IologVersion {
    V2,
    V3,
}

#[derive(Debug)]
pub(crate) struct Fio {
    /// Version; `None` until the header is read.
    version: Option<IologVersion>,
    accept_untimed: bool,
    /// Latest instant for which a version 2 log waited.
    clock_ns: u64,
    waited: bool,
    requests: u64,
}

impl Fio {
    pub(crate) fn new(accept_untimed: bool) -> Self {
        Self { version: None, accept_untimed, clock_ns: 0, waited: false, requests: 0 }
    }
}

impl LineParser for Fio {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(ParsedLine::NoOperation);
        }
        let Some(version) = self.version else {
            self.version = Some(match line {
                FIO_HEADER_V2 => IologVersion::V2,
                FIO_HEADER_V3 => IologVersion::V3,
                _ => return Err("'fio version 2 iolog' or 'fio version 3 iolog'"),
            });
            return Ok(ParsedLine::NoOperation);
        };
        match version {
            IologVersion::V2 => self.parse_version_2(line),
            IologVersion::V3 => self.parse_version_3(line),
        }
    }

    fn finish(&mut self) -> Result<(), TraceErrorKind> {
        let is_untimed = self.version == Some(IologVersion::V2) && !self.waited && self.requests > 1;
        if is_untimed && !self.accept_untimed { Err(TraceErrorKind::Untimed) } else { Ok(()) }
    }
}

impl Fio {
    fn parse_version_2(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        const EXPECTED: &str = "filename action offset length";
        let mut words = words(line);
        let (_file, action) = words.next().zip(words.next()).ok_or(EXPECTED)?;
        if action == b"wait" {
            let until = words.next().and_then(decimal).and_then(|ms| ms.checked_mul(MILLISECOND_NS));
            self.clock_ns = self.clock_ns.max(until.ok_or("filename wait milliseconds")?);
            self.waited = true;
            return Ok(ParsedLine::NoOperation);
        }
        let parsed = parse_action(Nanos(self.clock_ns), action, words, EXPECTED)?;
        self.requests += u64::from(matches!(parsed, ParsedLine::Request(_)));
        Ok(parsed)
    }

    fn parse_version_3(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        const EXPECTED: &str = "microseconds filename action offset length";
        let mut words = words(line);
        let arrival = words.next().and_then(decimal).and_then(|us| us.checked_mul(MICROSECOND_NS));
        let arrival = arrival.ok_or(EXPECTED)?;
        let (_file, action) = words.next().zip(words.next()).ok_or(EXPECTED)?;
        parse_action(Nanos(arrival), action, words, EXPECTED)
    }
}

fn parse_action<'a>(
    arrival: Nanos,
    action: &[u8],
    mut words: impl Iterator<Item = &'a [u8]>,
    expected: &'static str,
) -> Result<ParsedLine, &'static str> {
    let op = match action {
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"add" | b"open" | b"close" => return Ok(ParsedLine::NoOperation),
        b"sync" | b"datasync" | b"sync_file_range" | b"trim" => return Ok(ParsedLine::OtherOperation),
        _ => return Err("read, write, sync, datasync, trim, add, open or close (wait only in version 2)"),
    };
    let (offset, length) = words.next().zip(words.next()).ok_or(expected)?;
    let (offset, length) = decimal(offset).zip(decimal(length)).ok_or(expected)?;
    if words.next().is_some() {
        return Err(expected);
    }
    let size = Bytes(length);
    Ok(ParsedLine::Request(Request { arrival, size, op, offset: Some(offset), response: None }))
}
