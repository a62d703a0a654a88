//! Files that are recognised and are no traces: what they are, and the command that makes a trace of them.

use crate::error::TraceErrorKind;

/// A kind of file by its beginning.
struct ForeignFile {
    beginning: &'static [u8],
    what: &'static str,
    remedy: &'static str,
}

const CAPTURE: &str = "it is a binary capture of packets (pcap)";
const CAPTURE_REMEDY: &str = "print it first: tcpdump -tt -n -r FILE > capture.txt";
const BLKTRACE: &str = "it is the binary output of blktrace";
const BLKTRACE_REMEDY: &str = "print it first: blkparse -i FILE > blkparse.txt";
const UTF_16: &str = "it is text in UTF-16";
const UTF_16_REMEDY: &str = "convert it first: iconv -f UTF-16 -t UTF-8 FILE > trace.csv";

const FOREIGN: [ForeignFile; 12] = [
    ForeignFile { beginning: b"\xd4\xc3\xb2\xa1", what: CAPTURE, remedy: CAPTURE_REMEDY },
    ForeignFile { beginning: b"\xa1\xb2\xc3\xd4", what: CAPTURE, remedy: CAPTURE_REMEDY },
    ForeignFile { beginning: b"\x4d\x3c\xb2\xa1", what: CAPTURE, remedy: CAPTURE_REMEDY },
    ForeignFile { beginning: b"\xa1\xb2\x3c\x4d", what: CAPTURE, remedy: CAPTURE_REMEDY },
    ForeignFile { beginning: b"\x0a\x0d\x0d\x0a", what: CAPTURE, remedy: CAPTURE_REMEDY },
    // The magic number 0x65617400 with the version 7 in its lowest byte, in both byte orders.
    ForeignFile { beginning: b"\x07tae", what: BLKTRACE, remedy: BLKTRACE_REMEDY },
    ForeignFile { beginning: b"eat\x07", what: BLKTRACE, remedy: BLKTRACE_REMEDY },
    ForeignFile { beginning: b"\xff\xfe", what: UTF_16, remedy: UTF_16_REMEDY },
    ForeignFile { beginning: b"\xfe\xff", what: UTF_16, remedy: UTF_16_REMEDY },
    ForeignFile {
        beginning: b"PK\x03\x04",
        what: "it is a zip archive (or a spreadsheet)",
        remedy: "unpack it, or export the sheet as CSV",
    },
    ForeignFile {
        beginning: b"BZh",
        what: "it is compressed with bzip2",
        remedy: "decompress it into a pipe: bzcat FILE | tailwright … -",
    },
    ForeignFile {
        beginning: b"\xfd7zXZ",
        what: "it is compressed with xz",
        remedy: "decompress it into a pipe: xzcat FILE | tailwright … -",
    },
];

/// Number of bytes in which the first lines of a capture are looked for.
const VERBOSE_BYTES: usize = 1000;
/// Words in the first lines of captures that are printed with more than requests need.
const VERBOSE_CAPTURES: [(&str, &str, &str); 2] = [
    (
        ", ethertype IP",
        "it is printed with the headers of the link (tcpdump -e)",
        "print it without -e: tcpdump -tt -n -r FILE > capture.txt",
    ),
    (
        " (tos 0x",
        "it is printed with details of each packet in several lines (tcpdump -v)",
        "print it without -v: tcpdump -tt -n -r FILE > capture.txt",
    ),
];

/// Keys at the beginning of JSON documents, the document, and the command that reads it.
const DOCUMENTS: [(&str, &str, &str); 5] = [
    ("\"resourceSpans\"", SPANS, SPANS_REMEDY),
    ("\"batches\"", SPANS, SPANS_REMEDY),
    ("\"traceId\"", SPANS, SPANS_REMEDY),
    ("\"traceID\"", SPANS, SPANS_REMEDY),
    ("\"spans\"", SPANS, SPANS_REMEDY),
];
const SPANS: &str = "it has the spans of distributed traces, not the requests of one server";
const SPANS_REMEDY: &str = "tailwright trace callgraph FILE reads spans";

/// Returns true for lines of `write_lat_log` and its like: `milliseconds, value, direction, block size[, offset[, …]]`.
fn is_fio_log(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(8).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
            let is_number = |field: &&[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
            let is_separated = line.windows(2).any(|pair| pair == b", ");
            (4..=6).contains(&fields.len())
                && is_separated
                && fields[..4].iter().all(is_number)
                && matches!(fields[2], b"0" | b"1" | b"2")
        })
}

/// Returns the error for a file that is known to be something else.
pub(super) fn recognise(head: &[u8]) -> Option<TraceErrorKind> {
    let unreadable = |what, remedy| Some(TraceErrorKind::Unreadable { what, remedy });
    if let Some(found) = FOREIGN.iter().find(|foreign| head.starts_with(foreign.beginning)) {
        return unreadable(found.what, found.remedy);
    }
    if is_fio_log(head) {
        return unreadable(
            "it is a log of fio's latencies or rates",
            "record the requests themselves with fio --write_iolog=FILE",
        );
    }
    let beginning = String::from_utf8_lossy(&head[..head.len().min(VERBOSE_BYTES)]);
    if let Some(&(_, what, remedy)) = VERBOSE_CAPTURES.iter().find(|(words, ..)| beginning.contains(words)) {
        return unreadable(what, remedy);
    }
    let text = head.trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    match DOCUMENTS.iter().find(|(key, ..)| text.contains(key)) {
        Some(&(_, what, remedy)) => unreadable(what, remedy),
        None => unreadable(
            "it is a JSON document",
            "a trace is a table, a log or a capture; see docs/reference/trace-formats.md",
        ),
    }
}
