//! Writes traces: [`TraceWriter`] creates a file that appears whole or not at all.
//!
//! Text formats are compressed when the file's name ends in `.gz` or `.zst`.

mod parquet;
mod text;

use crate::error::{TraceError, TraceErrorKind, TracePosition};
use crate::format::TraceFormat;
use machine::whole_file::WholeFile;
use model::Request;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use units::Nanos;

/// Approximate size of the pieces of text passed to the operating system or compressor.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes requests to a file.
///
/// Most formats lose something: absent values that a format cannot omit become zero, and times are
/// truncated to its resolution.
///
/// | format | times | offset | response |
/// |---|---|---|---|
/// | parquet, csv | ns | kept | kept |
/// | arrival-hex | ns | dropped | dropped |
/// | msr | 100 ns, from a fixed epoch | absent is 0 | 100 ns, absent is 0 |
/// | spc | ns | blocks of 512 bytes, absent is 0 | dropped |
/// | fio (version 3) | us | absent is 0 | dropped |
#[derive(Debug)]
pub struct TraceWriter {
    target: PathBuf,
    encoder: Encoder,
    previous: Nanos,
    count: u64,
}

enum Encoder {
    Text { format: TraceFormat, buffer: Vec<u8>, sink: TextSink, whole: Option<WholeFile> },
    Parquet { writer: Box<parquet::ParquetWriter>, whole: WholeFile },
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text { .. } => "Text",
            Self::Parquet { .. } => "Parquet",
        })
    }
}

/// The destination of text, with or without compression.
enum TextSink {
    Plain(Box<dyn Write + Send>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl TraceWriter {
    /// Begins a trace at `path`; `-` is the standard output (text formats only).
    ///
    /// # Errors
    /// When the format cannot be written or the file cannot be created.
    pub fn create(path: &Path, format: TraceFormat) -> Result<Self, TraceError> {
        let encoder =
            Encoder::create(path, format).map_err(|kind| TraceError::new(path, TracePosition::File, kind))?;
        Ok(Self { target: path.to_owned(), encoder, previous: Nanos::ZERO, count: 0 })
    }

    /// Appends a request to the trace.
    ///
    /// # Errors
    /// When the request arrives before its predecessor, the format cannot represent its values, or writing
    /// fails.
    pub fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        if request.arrival < self.previous {
            let previous_ns = self.previous.0;
            let arrival_ns = request.arrival.0;
            return Err(self.error(TraceErrorKind::Unsorted { previous_ns, arrival_ns }));
        }
        let is_first = self.count == 0;
        self.encoder.write(request, is_first).map_err(|kind| self.error(kind))?;
        self.previous = request.arrival;
        self.count += 1;
        Ok(())
    }

    /// Completes the file and moves it to its place. Returns the number of its requests.
    ///
    /// # Errors
    /// When there was no request ([`TraceErrorKind::Empty`]) or writing fails; no new file appears then.
    pub fn finish(self) -> Result<u64, TraceError> {
        if self.count == 0 {
            return Err(self.error(TraceErrorKind::Empty));
        }
        let Self { target, encoder, previous, count } = self;
        encoder
            .finish(previous)
            .map_err(|kind| TraceError::new(&target, TracePosition::Record(count), kind))?;
        Ok(count)
    }

    fn error(&self, kind: TraceErrorKind) -> TraceError {
        let position = if self.count == 0 { TracePosition::File } else { TracePosition::Record(self.count) };
        TraceError::new(&self.target, position, kind)
    }
}

impl Encoder {
    fn create(path: &Path, format: TraceFormat) -> Result<Self, TraceErrorKind> {
        if !format.is_writable() {
            return Err(TraceErrorKind::Unsupported(format, "can be read but not written"));
        }
        let to_stdout = path == Path::new("-");
        if to_stdout && format == TraceFormat::Parquet {
            return Err(TraceErrorKind::Unsupported(format, "is written to a file, not to a pipe"));
        }
        let buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        if to_stdout {
            let stdout = machine::standard_output().map_err(TraceErrorKind::Io)?;
            let sink = TextSink::Plain(Box::new(stdout));
            return Ok(Self::Text { format, buffer, sink, whole: None });
        }
        let whole = WholeFile::create(path).map_err(TraceErrorKind::Io)?;
        let file = whole.file.try_clone().map_err(TraceErrorKind::Io)?;
        if format == TraceFormat::Parquet {
            let writer = Box::new(parquet::ParquetWriter::new(file)?);
            return Ok(Self::Parquet { writer, whole });
        }
        let sink = TextSink::for_name(path, file).map_err(TraceErrorKind::Io)?;
        Ok(Self::Text { format, buffer, sink, whole: Some(whole) })
    }

    fn write(&mut self, request: &Request, is_first: bool) -> Result<(), TraceErrorKind> {
        match self {
            Self::Parquet { writer, .. } => writer.write(request),
            Self::Text { format, buffer, sink, .. } => {
                if is_first {
                    text::write_header(*format, buffer);
                }
                text::write_line(*format, request, buffer)?;
                flush(buffer, sink, BUFFER_BYTES)
            }
        }
    }

    /// Completes the file, whose last request arrived at `last`, and moves it to its place.
    fn finish(self, last: Nanos) -> Result<(), TraceErrorKind> {
        let whole = match self {
            Self::Text { format, mut buffer, mut sink, whole } => {
                text::write_footer(format, last, &mut buffer);
                flush(&mut buffer, &mut sink, 0)?;
                sink.finish().map_err(TraceErrorKind::Io)?;
                whole
            }
            Self::Parquet { mut writer, whole } => {
                writer.finish()?;
                Some(whole)
            }
        };
        whole.map_or(Ok(()), WholeFile::keep).map_err(TraceErrorKind::Io)
    }
}

/// Passes `buffer` on if it holds at least `threshold` bytes.
fn flush(buffer: &mut Vec<u8>, sink: &mut TextSink, threshold: usize) -> Result<(), TraceErrorKind> {
    if buffer.len() < threshold {
        return Ok(());
    }
    sink.write(buffer).map_err(TraceErrorKind::Io)?;
    buffer.clear();
    Ok(())
}

impl TextSink {
    fn for_name(path: &Path, file: File) -> io::Result<Self> {
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(buffered, flate2::Compression::default())),
            Some("zst") => Self::Zstd(zstd::stream::write::Encoder::new(buffered, 3)?),
            _ => Self::Plain(Box::new(buffered)),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.write_all(bytes),
            Self::Gzip(sink) => sink.write_all(bytes),
            Self::Zstd(sink) => sink.write_all(bytes),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(sink) => sink.flush(),
            Self::Gzip(sink) => {
                sink.try_finish()?;
                sink.get_mut().flush()
            }
            Self::Zstd(sink) => {
                sink.do_finish()?;
                sink.get_mut().flush()
            }
        }
    }
}
