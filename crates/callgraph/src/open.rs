//! Span files: gzip is transparent, and the format is seen from the first bytes.

use crate::{Assembler, Errors, Format, ReadError, Span, read};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Traces that are open at once while a file is read.
const OPEN_MAX: usize = 10_000;
/// Bytes that say what a file is.
const LOOK: usize = 1 << 16;

impl Format {
    /// What begins like this, if it is one of the formats.
    pub fn detect(beginning: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(beginning);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with(['{', '[']) {
            return Some(if text.contains("\"resourceSpans\"") { Self::Otlp } else { Self::Jaeger });
        }
        let header = text.lines().next()?.to_ascii_lowercase();
        let has = |name: &str| header.split(',').any(|field| field.trim().trim_matches('"') == name);
        if has("span_id") && has("trace_id") {
            Some(Self::Spans)
        } else if has("traceid") && has("rpctype") {
            Some(Self::Alibaba)
        } else {
            None
        }
    }
}

/// Hands the spans of each trace of a file over; gives the number of records that were left out. Without a format it
/// is detected.
///
/// # Errors
/// When the file cannot be read, is in no known format, or has a bad record in strict reading.
pub fn traces(
    path: &Path,
    format: Option<Format>,
    errors: Errors,
    mut trace: impl FnMut(Vec<Span>),
) -> Result<u64, ReadError> {
    let file = path.display().to_string();
    let fault = |message: String| ReadError { file: file.clone(), line: 1, message };
    let cannot = |error: io::Error| fault(format!("cannot be read: {error}"));
    let (beginning, from) = open(path).map_err(cannot)?;
    let format = format.or_else(|| Format::detect(&beginning)).ok_or_else(|| {
        fault(
            "expected spans: span CSV, JSON of Jaeger or OpenTelemetry, or CSV of Alibaba's call graphs"
                .into(),
        )
    })?;
    let mut assembler = Assembler::new(OPEN_MAX);
    let unreadable =
        read(&file, format, errors, from, |span| assembler.push(span).into_iter().for_each(&mut trace))?;
    assembler.finish().for_each(trace);
    Ok(unreadable)
}

/// The beginning of what a file holds, and all of it.
fn open(path: &Path) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let mut content: Box<dyn BufRead> =
        if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
    let mut beginning = Vec::new();
    content.by_ref().take(LOOK as u64).read_to_end(&mut beginning)?;
    let all = io::Cursor::new(beginning.clone()).chain(content);
    Ok((beginning, Box::new(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_seen_from_the_beginning() {
        for (text, format) in [
            ("trace_id,span_id,parent_id,service\n", Some(Format::Spans)),
            ("timestamp,traceid,rpcid,um,rpctype,dm,interface,rt\n", Some(Format::Alibaba)),
            (" {\"data\": []}", Some(Format::Jaeger)),
            ("{\"resourceSpans\": []}", Some(Format::Otlp)),
            ("arrival_ns,size\n", None),
            ("", None),
        ] {
            assert_eq!(Format::detect(text.as_bytes()), format, "{text}");
        }
    }
}
