//! Format detection from the beginning of a file: first by marks unique to a format, then by the number
//! of the first lines that parse, then by the file's name.

use super::blkparse;
use super::limits;
use super::lines::{LineParser, ParsedLine};
use super::tcpdump;
use super::text::{ArrivalHex, Msr, Spc, is_csv_header};
use super::vscsi;
use crate::format::{PARQUET_MAGIC, TraceFormat};
use crate::recording::is_header;
use std::path::Path;

/// Number of bytes of a file that are examined, after decompression.
pub(super) const DETECT_BYTES: usize = 1 << 14;
const LINES: usize = 64;
/// Formats without a mark at the beginning. Of two that parse equally many lines, the later one wins.
const LINE_FORMATS: [TraceFormat; 5] = [
    TraceFormat::ArrivalHex,
    TraceFormat::Msr,
    TraceFormat::Spc,
    TraceFormat::Blkparse,
    TraceFormat::Tcpdump,
];

/// Returns the format of a file that begins with `head`; `None` if nothing matches.
pub(super) fn detect(head: &[u8], name: &Path) -> Option<TraceFormat> {
    let by_name = name.file_name().and_then(|name| TraceFormat::from_file_name(&name.to_string_lossy()));
    if head.starts_with(PARQUET_MAGIC) {
        return Some(TraceFormat::Parquet);
    }
    if head.starts_with(b"fio version ") {
        return Some(TraceFormat::Fio);
    }
    if vscsi::is_vscsi(head) {
        return Some(TraceFormat::Vscsi);
    }
    detect_by_lines(head, by_name).or(by_name)
}

/// Returns the line format that parses most of the first lines; among equals the one that the name
/// suggests.
fn detect_by_lines(head: &[u8], by_name: Option<TraceFormat>) -> Option<TraceFormat> {
    let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let lines: Vec<&[u8]> = lines.take(LINES).collect();
    if lines.first().is_some_and(|first| is_header(first)) {
        return Some(TraceFormat::Recording);
    }
    if lines.first().is_some_and(|first| limits::is_header(first)) {
        return Some(TraceFormat::Limits);
    }
    if lines.first().is_some_and(|first| is_csv_header(first)) {
        return Some(TraceFormat::Csv);
    }
    let scores = LINE_FORMATS.map(|format| {
        let understood = lines.iter().filter(|line| is_record(format, line)).count();
        (understood, by_name == Some(format), format)
    });
    let best = scores.into_iter().max_by_key(|&(understood, is_named, _)| (understood, is_named));
    best.filter(|&(understood, ..)| understood > 0).map(|(.., format)| format)
}

/// Returns true if `line` is a record of `format`, one of [`LINE_FORMATS`].
fn is_record(format: TraceFormat, line: &[u8]) -> bool {
    match format {
        TraceFormat::ArrivalHex => is_request(&ArrivalHex.parse(line)),
        TraceFormat::Msr => is_request(&Msr.parse(line)),
        TraceFormat::Spc => is_request(&Spc.parse(line)),
        TraceFormat::Blkparse => blkparse::is_event(line),
        TraceFormat::Tcpdump => tcpdump::is_packet(line),
        TraceFormat::Parquet
        | TraceFormat::Csv
        | TraceFormat::Fio
        | TraceFormat::Vscsi
        | TraceFormat::Recording
        | TraceFormat::Limits => false,
    }
}

fn is_request(parsed: &Result<ParsedLine, &'static str>) -> bool {
    matches!(parsed, Ok(ParsedLine::Request(_)))
}
