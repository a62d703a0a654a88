//! [`open`] and the [`TraceReader`] that every format comes out of.
//!
//! One place decides what is the same for all formats: order of arrivals, the origin of epoch formats,
//! what `lenient` forgives, and that an empty trace is an error.
//!
//! `lenient` passes over malformed lines and records, and over requests that arrive before their
//! predecessor, and counts both in [`TraceReader::skipped`]; of a damaged file it gives what comes before
//! the damage. One request with a time far in the future makes all behind it late, so a large count is a
//! reason to look at the file. Errors of the operating system are never forgiven.

mod blkparse;
pub(crate) mod detection;
mod lines;
mod parquet;
mod text;
mod vscsi;
mod window;

pub(crate) use lines::{LineParser, Parsed};
pub(crate) use text::op_of;
pub(crate) use text::{FILETIME_TICK_NS, FIO_HEADER_V3, SECTOR_BYTES};

use crate::error::{ErrorKind, Place, TraceError};
use crate::format::{self, Format};
use crate::source::{Buffered, decompress, read_error};
use model::Request;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;
use window::Window;

/// How to open a trace.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The format; `None` detects it from content, with the name as a tie-break.
    pub format: Option<Format>,
    /// Skip and count malformed and out-of-order requests instead of failing.
    pub lenient: bool,
    /// Restore the order of a nearly sorted trace: a request may come at most this many requests late.
    /// Memory grows with it (about 80 bytes each); zero expects a sorted trace.
    pub sort_window: usize,
}

/// What a format parser may hit.
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) kind: ErrorKind,
    /// Whether reading can go on behind it.
    pub(crate) resumes: bool,
}

/// A stream of requests in the order and origin of the file.
pub(crate) trait Source: Send {
    /// The next request, `None` at the end.
    fn next(&mut self) -> Result<Option<Request>, Fault>;
    /// Where the last request was.
    fn place(&self) -> Place;
    /// Records so far that are neither reads nor writes.
    fn ignored(&self) -> u64;
    /// The share of the input that is read, where the source itself knows it.
    fn fraction(&self) -> Option<f64> {
        None
    }
}

/// The requests of a trace in order of arrival.
///
/// Ends after the first error. A trace without a single request ends with [`ErrorKind::Empty`].
pub struct TraceReader {
    file: PathBuf,
    format: Format,
    lenient: bool,
    source: Box<dyn Source>,
    window: Option<Window>,
    progress: Progress,
    /// Arrival of the first request and of the last one, in the file's origin.
    first_and_last: Option<(Nanos, Nanos)>,
    skipped: u64,
    /// The source gives no more; the window may.
    source_ended: bool,
    ended: bool,
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader").field("file", &self.file).field("format", &self.format).finish()
    }
}

/// Bytes of the file that were read, out of how many.
#[derive(Debug, Clone, Default)]
struct Progress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

/// Opens the trace at `path`; `-` is the standard input (not for Parquet, which needs a file).
///
/// # Errors
/// When the file cannot be read, or its format cannot be told or does not support it.
pub fn open(path: &Path, options: &OpenOptions) -> Result<TraceReader, TraceError> {
    if path == Path::new("-") {
        return read_from(Box::new(io::stdin()), Path::new("<stdin>"), options);
    }
    let io_error = |error| TraceError::new(path, Place::File, ErrorKind::Io(error));
    let mut file = File::open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    if metadata.is_dir() {
        return Err(io_error(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a folder")));
    }
    let regular = metadata.is_file();
    if regular && parquet::has_magic(&mut file).map_err(io_error)? && accepts_parquet(options) {
        let source = parquet::ParquetSource::open(file, path)?;
        let progress = Progress { read: Arc::default(), total: Some(metadata.len()) };
        return Ok(TraceReader::new(path, Format::Parquet, Box::new(source), progress, options));
    }
    let total = regular.then_some(metadata.len());
    from_stream(Box::new(file), path, total, options)
}

/// Reads a trace from a stream; `name` stands for it in messages and may help to tell the format.
/// Parquet, which is read from its end, is not possible.
///
/// # Errors
/// As [`open`].
pub fn read_from(
    stream: Box<dyn Read + Send>,
    name: &Path,
    options: &OpenOptions,
) -> Result<TraceReader, TraceError> {
    from_stream(stream, name, None, options)
}

/// Reads a trace that is already in memory, in any format.
///
/// # Errors
/// As [`open`].
pub fn read_bytes(content: Vec<u8>, name: &Path, options: &OpenOptions) -> Result<TraceReader, TraceError> {
    if content.starts_with(parquet::MAGIC) && accepts_parquet(options) {
        let progress = Progress { read: Arc::default(), total: Some(content.len() as u64) };
        let source = parquet::ParquetSource::open(bytes::Bytes::from(content), name)?;
        return Ok(TraceReader::new(name, Format::Parquet, Box::new(source), progress, options));
    }
    let total = content.len() as u64;
    from_stream(Box::new(io::Cursor::new(content)), name, Some(total), options)
}

fn accepts_parquet(options: &OpenOptions) -> bool {
    options.format.is_none_or(|format| format == Format::Parquet)
}

fn from_stream(
    stream: Box<dyn Read + Send>,
    name: &Path,
    total: Option<u64>,
    options: &OpenOptions,
) -> Result<TraceReader, TraceError> {
    let progress = Progress { read: Arc::default(), total };
    let counted = Counted { inner: stream, read: Arc::clone(&progress.read) };
    let at_start = |error| read_error(name, Place::File, error);
    let mut input = Buffered::new(decompress(Box::new(counted)).map_err(at_start)?);
    // A damaged beginning is reported by the parser with its place, or forgiven; so not here.
    let head = input.peek_lossy(format::DETECT_BYTES).map_err(at_start)?;
    let error = |kind| TraceError::new(name, Place::File, kind);
    if head.is_empty() && options.format != Some(Format::Parquet) {
        // Nothing to see: an empty file, or one that is damaged from the start.
        input.peek(1).map_err(at_start)?;
        return Err(error(ErrorKind::Empty));
    }
    let format = options.format.or_else(|| format::detect(head, name));
    let format = format.ok_or_else(|| error(ErrorKind::UnknownFormat))?;
    if format == Format::Parquet {
        return Err(error(not_a_parquet_file(head)));
    }
    Ok(TraceReader::new(name, format, source(format, input, options), progress, options))
}

/// Why a stream is not read as Parquet, which is only read from plain files.
fn not_a_parquet_file(head: &[u8]) -> ErrorKind {
    if head.starts_with(parquet::MAGIC) {
        let why =
            "is compressed within and read from its end: it needs a plain file, not a pipe, not gzip or zstd";
        return ErrorKind::Unsupported(Format::Parquet, why);
    }
    let found = crate::error::excerpt(head);
    ErrorKind::Malformed { expected: "a Parquet file, which begins with PAR1", found }
}

/// The parser of a format that is read as a stream.
fn source(format: Format, input: Buffered, options: &OpenOptions) -> Box<dyn Source> {
    match format {
        Format::Parquet => unreachable!("Parquet is not read as a stream"),
        Format::Csv => Box::new(lines::LineSource::new(input, text::Csv::default())),
        Format::ArrivalHex => Box::new(lines::LineSource::new(input, text::ArrivalHex)),
        Format::Msr => Box::new(lines::LineSource::new(input, text::Msr)),
        Format::Spc => Box::new(lines::LineSource::new(input, text::Spc)),
        Format::Fio => Box::new(lines::LineSource::new(input, text::Fio::new(options.lenient))),
        Format::Blkparse => Box::new(blkparse::BlkparseSource::new(input)),
        Format::Vscsi => Box::new(vscsi::VscsiSource::new(input)),
    }
}

struct Counted {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl TraceReader {
    fn new(
        file: &Path,
        format: Format,
        source: Box<dyn Source>,
        progress: Progress,
        options: &OpenOptions,
    ) -> Self {
        let window = (options.sort_window > 0).then(|| Window::new(options.sort_window));
        Self {
            file: file.to_owned(),
            format,
            lenient: options.lenient,
            source,
            window,
            progress,
            first_and_last: None,
            skipped: 0,
            source_ended: false,
            ended: false,
        }
    }

    /// The format, given or detected.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The file as it was named when opened.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Malformed and out-of-order requests passed over so far; zero unless lenient.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Records so far that are neither reads nor writes (flush, trim, …); never errors.
    pub fn ignored(&self) -> u64 {
        self.source.ignored()
    }

    /// The share of the file that is read, 0 to 1; `None` for a stream of unknown length.
    pub fn fraction(&self) -> Option<f64> {
        self.source.fraction().or_else(|| {
            let total = self.progress.total.filter(|&total| total > 0)?;
            Some((self.progress.read.load(Ordering::Relaxed) as f64 / total as f64).min(1.0))
        })
    }

    /// The next request of the source, through the sorting window if there is one; faults are forgiven
    /// here when lenient.
    fn pull(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            if let Some(request) = self.window.as_mut().and_then(Window::pop) {
                return Ok(Some(request));
            }
            if self.source_ended {
                return Ok(None);
            }
            match self.source.next() {
                Ok(Some(request)) => match &mut self.window {
                    Some(window) => window.push(request),
                    None => return Ok(Some(request)),
                },
                Ok(None) => self.end_source(),
                Err(fault) if self.lenient && !matches!(fault.kind, ErrorKind::Io(_)) => {
                    self.skipped += 1;
                    if !fault.resumes {
                        self.end_source();
                    }
                }
                Err(fault) => return Err(TraceError::new(&self.file, fault.place, fault.kind)),
            }
        }
    }

    fn end_source(&mut self) {
        self.source_ended = true;
        if let Some(window) = &mut self.window {
            window.draining = true;
        }
    }

    fn advance(&mut self) -> Result<Option<Request>, TraceError> {
        while let Some(mut request) = self.pull()? {
            let arrival = request.arrival;
            let first = match self.first_and_last {
                None => arrival,
                Some((first, last)) if last <= arrival => first,
                Some(_) if self.lenient => {
                    self.skipped += 1;
                    continue;
                }
                Some((_, last)) => return Err(self.unsorted(last, arrival)),
            };
            self.first_and_last = Some((first, arrival));
            if self.format.has_epoch() {
                request.arrival = arrival - first;
            }
            return Ok(Some(request));
        }
        match self.first_and_last {
            Some(_) => Ok(None),
            None => Err(TraceError::new(&self.file, Place::File, ErrorKind::Empty)),
        }
    }

    fn unsorted(&self, previous: Nanos, arrival: Nanos) -> TraceError {
        let kind = ErrorKind::Unsorted { previous_ns: previous.0, arrival_ns: arrival.0 };
        TraceError::new(&self.file, self.source.place(), kind)
    }
}

impl Iterator for TraceReader {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let result = self.advance();
        self.ended = !matches!(result, Ok(Some(_)));
        result.transpose()
    }
}
