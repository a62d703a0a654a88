//! fio iolog, version 2 and 3 (fio documentation, "Trace file format v2" and "v3").
//!
//! Version 3 begins each line with microseconds since the start of the log, as fio's own writer does.
//! Version 2 has no times but `wait` records, whose pauses add up to a clock; a version 2 log of several
//! requests and without one `wait` says nothing about arrivals and is an error ([`ErrorKind::Untimed`]),
//! unless lenient, where every request arrives at time zero. Files are not told apart.

use super::request;
use crate::error::ErrorKind;
use crate::read::{LineParser, Parsed};
use crate::scan::{decimal, trim, words};
use model::Op;
use units::Nanos;

pub(crate) const HEADER_V2: &[u8] = b"fio version 2 iolog";
pub(crate) const HEADER_V3: &[u8] = b"fio version 3 iolog";
const MICROSECOND_NS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V2,
    V3,
}

#[derive(Debug)]
pub(crate) struct Fio {
    /// `None` until the header is read.
    version: Option<Version>,
    accept_untimed: bool,
    /// Version 2: the sum of the waits so far.
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
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
        let line = trim(line);
        if line.is_empty() {
            return Ok(Parsed::Nothing);
        }
        let Some(version) = self.version else {
            self.version = Some(match line {
                HEADER_V2 => Version::V2,
                HEADER_V3 => Version::V3,
                _ => return Err("'fio version 2 iolog' or 'fio version 3 iolog'"),
            });
            return Ok(Parsed::Nothing);
        };
        match version {
            Version::V2 => self.version_2(line),
            Version::V3 => self.version_3(line),
        }
    }

    fn finish(&mut self) -> Result<(), ErrorKind> {
        let untimed = self.version == Some(Version::V2) && !self.waited && self.requests > 1;
        if untimed && !self.accept_untimed { Err(ErrorKind::Untimed) } else { Ok(()) }
    }
}

impl Fio {
    fn version_2(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
        const EXPECTED: &str = "filename action offset length";
        let mut words = words(line);
        let (_file, action) = words.next().zip(words.next()).ok_or(EXPECTED)?;
        if action == b"wait" {
            let pause = words.next().and_then(decimal).and_then(|us| us.checked_mul(MICROSECOND_NS));
            let clock = pause.and_then(|pause| self.clock_ns.checked_add(pause));
            self.clock_ns = clock.ok_or("filename wait microseconds")?;
            self.waited = true;
            return Ok(Parsed::Nothing);
        }
        let parsed = parse_action(Nanos(self.clock_ns), action, words, EXPECTED)?;
        self.requests += u64::from(matches!(parsed, Parsed::Request(_)));
        Ok(parsed)
    }

    fn version_3(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
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
) -> Result<Parsed, &'static str> {
    let op = match action {
        b"read" => Op::Read,
        b"write" => Op::Write,
        b"add" | b"open" | b"close" => return Ok(Parsed::Nothing),
        b"sync" | b"datasync" | b"sync_file_range" | b"trim" => return Ok(Parsed::Other),
        _ => return Err("read, write, sync, datasync, trim, add, open or close (wait only in version 2)"),
    };
    let (offset, length) = words.next().zip(words.next()).ok_or(expected)?;
    let (offset, length) = decimal(offset).zip(decimal(length)).ok_or(expected)?;
    if words.next().is_some() {
        return Err(expected);
    }
    Ok(request(arrival, length, op, Some(offset), None))
}
