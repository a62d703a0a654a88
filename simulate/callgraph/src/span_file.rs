//! Files of spans, trace by trace: gzip is transparent, and the format is detected from the first bytes.

use crate::read::{BadRecords, SpanFormat, SpanReadError, read};
use crate::span::Span;
use crate::trace_assembler::TraceAssembler;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Traces that are open at once while a file is read.
const OPEN_MAX: usize = 10_000;
/// The mark of UTF-8, which some exports begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes by which the format is detected.
const DETECTION_BYTES: usize = 1 << 16;

/// Hands the spans of each trace of a file over and returns the number of records that were left out. Without a format
/// it is detected.
///
/// # Errors
/// When the file cannot be read, is in no known format, or has a bad record where this is fatal.
pub fn traces(
    path: &Path,
    format: Option<SpanFormat>,
    bad_records: BadRecords,
    mut trace: impl FnMut(Vec<Span>),
) -> Result<u64, SpanReadError> {
    let file = path.display().to_string();
    let error = |message: String| SpanReadError { file: file.clone(), line: 1, message };
    let (beginning, from) = open(path).map_err(|io| error(format!("cannot be read: {io}")))?;
    let format = format.or_else(|| SpanFormat::detect(&beginning)).ok_or_else(|| {
        error(
            "expected spans: span CSV, JSON of Jaeger, OpenTelemetry, Tempo or Zipkin, or CSV of Alibaba's call graphs"
                .into(),
        )
    })?;
    let mut assembler = TraceAssembler::new(OPEN_MAX);
    let unreadable = read(&file, format, bad_records, from, |span| {
        assembler.push(span).into_iter().for_each(&mut trace);
    })?;
    assembler.finish().for_each(trace);
    Ok(unreadable)
}

/// Opens a file. Returns the beginning of its decompressed content, and all of it as a reader.
fn open(path: &Path) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let mut content: Box<dyn BufRead> =
        if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
    let mut beginning = Vec::new();
    content.by_ref().take(DETECTION_BYTES as u64).read_to_end(&mut beginning)?;
    if beginning.starts_with(BYTE_ORDER_MARK) {
        beginning.drain(..BYTE_ORDER_MARK.len());
    }
    let all = io::Cursor::new(beginning.clone()).chain(content);
    Ok((beginning, Box::new(all)))
}
