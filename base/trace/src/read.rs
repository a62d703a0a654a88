//! Opens traces: [`open`] and its relatives return a [`TraceReader`] for any format.
//!
//! The reader handles everything that is common to the formats: arrivals do not decrease, formats with an
//! epoch are rebased, `lenient` tolerates some errors, and an empty trace is an error.
//!
//! With `lenient`, the reader skips malformed lines and records and requests that arrive before their predecessor,
//! and counts both in [`TraceReader::skipped`]; of a damaged file it returns what precedes the damage. A single
//! request with a time far in the future makes every later one out of order, so a large count is a reason to look
//! at the file. Errors of the operating system are never skipped.

mod blkparse;
mod detect;
mod foreign;
mod limits;
mod lines;
mod parquet;
mod progress;
mod recording;
mod reorder;
mod source;
mod tcpdump;
mod text;
mod vscsi;

use crate::error::{TraceError, TraceErrorKind, TracePosition, excerpt};
use crate::format::{PARQUET_MAGIC, TraceFormat};
use crate::input::{BufferedInput, damage, decompress};
use crate::recording::RecordingRows;
use crate::selection::{TracePlace, TraceSelection};
use model::Request;
use progress::ReadProgress;
use reorder::ReorderBuffer;
use source::TraceSource;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use units::Nanos;

/// Options for opening a trace.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The format; with `None` it is detected from the content, and the file's name breaks ties.
    pub format: Option<TraceFormat>,
    /// Skip and count malformed and out-of-order requests instead of reporting errors.
    pub lenient: bool,
    /// Number of requests by which a request of a nearly sorted trace may be late and still be sorted in.
    /// Costs about 80 bytes of memory each; zero requires a sorted trace.
    pub sort_window: usize,
}

/// The requests of a trace in order of arrival.
///
/// The iterator ends after the first error. A trace without a single request ends with [`TraceErrorKind::Empty`].
pub struct TraceReader {
    file: PathBuf,
    format: TraceFormat,
    lenient: bool,
    source: Box<dyn TraceSource>,
    reorder: Option<ReorderBuffer>,
    progress: ReadProgress,
    /// Arrivals of the first and the latest request, since the file's own origin.
    first_and_last: Option<(Nanos, Nanos)>,
    skipped: u64,
    /// True once the source has ended; the reorder buffer may still contain requests.
    source_ended: bool,
    ended: bool,
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader").field("file", &self.file).field("format", &self.format).finish()
    }
}

/// Opens the trace with this name: a file, the folder of a recording, or `-` for standard input (not for
/// Parquet, which needs a file). A suffix `#` with the name of a workload selects its requests; see
/// [`TracePlace`].
///
/// # Errors
/// When the file cannot be read, its format cannot be detected, or the format cannot be read this way.
pub fn open(name: &Path, options: &OpenOptions) -> Result<TraceReader, TraceError> {
    open_place(&TracePlace::of(name), options)
}

/// Opens a trace whose name has been parsed.
///
/// # Errors
/// See [`open`].
pub fn open_place(place: &TracePlace, options: &OpenOptions) -> Result<TraceReader, TraceError> {
    let TracePlace { path, selection } = place;
    if path == Path::new("-") {
        return from_stream(Box::new(io::stdin()), Path::new("<stdin>"), None, options, selection);
    }
    let wrong = |error| TraceError::new(path, TracePosition::File, TraceErrorKind::Io(error));
    if path.is_dir() && options.format.is_none_or(|format| format == TraceFormat::Recording) {
        let source =
            recording::RecordingSource::new(RecordingRows::of_folder(path).map_err(wrong)?, selection);
        let progress = ReadProgress::out_of(None);
        return Ok(TraceReader::new(path, TraceFormat::Recording, Box::new(source), progress, options));
    }
    open_file(path, options).map_err(wrong)?.into_reader(path, options, selection)
}

/// Reads a trace that is already in memory, in any format.
///
/// # Errors
/// See [`open`].
pub fn read_bytes(content: Vec<u8>, name: &Path, options: &OpenOptions) -> Result<TraceReader, TraceError> {
    let total = content.len() as u64;
    if content.starts_with(PARQUET_MAGIC) && accepts_parquet(options) {
        let content = bytes::Bytes::from(content);
        let source = parquet::ParquetSource::open(content, name, &TraceSelection::Sole)?;
        return Ok(TraceReader::of_parquet(name, Box::new(source), total, options));
    }
    from_stream(Box::new(io::Cursor::new(content)), name, Some(total), options, &TraceSelection::Sole)
}

/// An opened file: Parquet is read in place, every other format as a stream.
enum OpenedFile {
    Parquet { file: File, total: u64 },
    Stream { file: File, total: Option<u64> },
}

fn open_file(path: &Path, options: &OpenOptions) -> io::Result<OpenedFile> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a folder"));
    }
    if metadata.is_file() && parquet::has_magic(&mut file)? && accepts_parquet(options) {
        return Ok(OpenedFile::Parquet { file, total: metadata.len() });
    }
    Ok(OpenedFile::Stream { file, total: metadata.is_file().then_some(metadata.len()) })
}

impl OpenedFile {
    fn into_reader(
        self,
        path: &Path,
        options: &OpenOptions,
        selection: &TraceSelection,
    ) -> Result<TraceReader, TraceError> {
        match self {
            Self::Parquet { file, total } => {
                let source = parquet::ParquetSource::open(file, path, selection)?;
                Ok(TraceReader::of_parquet(path, Box::new(source), total, options))
            }
            Self::Stream { file, total } => from_stream(Box::new(file), path, total, options, selection),
        }
    }
}

fn accepts_parquet(options: &OpenOptions) -> bool {
    options.format.is_none_or(|format| format == TraceFormat::Parquet)
}

fn from_stream(
    stream: Box<dyn Read + Send>,
    name: &Path,
    total: Option<u64>,
    options: &OpenOptions,
    selection: &TraceSelection,
) -> Result<TraceReader, TraceError> {
    let progress = ReadProgress::out_of(total);
    let (input, format) = detect_stream(progress.count(stream), name, options)
        .map_err(|kind| TraceError::new(name, TracePosition::File, kind))?;
    let source = source_of_stream(format, input, options, selection);
    if source.owners().is_none() && matches!(selection, TraceSelection::Named(..)) {
        return Err(TraceError::new(name, TracePosition::File, TraceErrorKind::NotSplit(format)));
    }
    Ok(TraceReader::new(name, format, source, progress, options))
}

/// Decompresses a stream and detects the format of its content.
fn detect_stream(
    stream: Box<dyn Read + Send>,
    name: &Path,
    options: &OpenOptions,
) -> Result<(BufferedInput, TraceFormat), TraceErrorKind> {
    let mut input = BufferedInput::new(decompress(stream).map_err(damage)?);
    input.skip_byte_order_mark().map_err(damage)?;
    // A damaged beginning is not an error here: the parser reaches it again and knows its position, or
    // skips it.
    let head = input.peek_lossy(detect::DETECT_BYTES).map_err(damage)?;
    if head.is_empty() && options.format != Some(TraceFormat::Parquet) {
        // The file is empty, or damaged from its first byte; in that case this call reports the damage.
        input.peek(1).map_err(damage)?;
        return Err(TraceErrorKind::Empty);
    }
    if let Some(foreign) = foreign::recognise(head) {
        return Err(foreign);
    }
    let format = options.format.or_else(|| detect::detect(head, name));
    match format.ok_or(TraceErrorKind::UnknownFormat)? {
        TraceFormat::Parquet => Err(not_a_parquet_file(head)),
        format => Ok((input, format)),
    }
}

/// Returns the error for a stream in Parquet format, which can only be read from plain files.
fn not_a_parquet_file(head: &[u8]) -> TraceErrorKind {
    if head.starts_with(PARQUET_MAGIC) {
        let why =
            "is compressed within and read from its end: it needs a plain file, not a pipe, not gzip or zstd";
        return TraceErrorKind::Unsupported(TraceFormat::Parquet, why);
    }
    TraceErrorKind::Malformed { expected: "a Parquet file, which begins with PAR1", found: excerpt(head) }
}

/// Returns the parser of a format that is read as a stream.
fn source_of_stream(
    format: TraceFormat,
    input: BufferedInput,
    options: &OpenOptions,
    selection: &TraceSelection,
) -> Box<dyn TraceSource> {
    match format {
        TraceFormat::Parquet => unreachable!("Parquet is not read as a stream"),
        TraceFormat::Csv => Box::new(lines::LineSource::new(input, text::Csv::default())),
        TraceFormat::ArrivalHex => Box::new(lines::LineSource::new(input, text::ArrivalHex)),
        TraceFormat::Msr => Box::new(lines::LineSource::new(input, text::Msr)),
        TraceFormat::Spc => Box::new(lines::LineSource::new(input, text::Spc)),
        TraceFormat::Fio => Box::new(lines::LineSource::new(input, text::Fio::new(options.lenient))),
        TraceFormat::Blkparse => Box::new(blkparse::BlkparseSource::new(input, selection)),
        TraceFormat::Vscsi => Box::new(vscsi::VscsiSource::new(input)),
        TraceFormat::Recording => {
            Box::new(recording::RecordingSource::new(RecordingRows::of_input(input), selection))
        }
        TraceFormat::Tcpdump => Box::new(tcpdump::TcpdumpSource::new(input, selection)),
        TraceFormat::Limits => Box::new(limits::LimitsSource::new(input)),
    }
}

impl TraceReader {
    fn new(
        file: &Path,
        format: TraceFormat,
        source: Box<dyn TraceSource>,
        progress: ReadProgress,
        options: &OpenOptions,
    ) -> Self {
        let reorder = (options.sort_window > 0).then(|| ReorderBuffer::new(options.sort_window));
        Self {
            file: file.to_owned(),
            format,
            lenient: options.lenient,
            source,
            reorder,
            progress,
            first_and_last: None,
            skipped: 0,
            source_ended: false,
            ended: false,
        }
    }

    /// A Parquet source reports its own progress, by the number of rows read.
    fn of_parquet(file: &Path, source: Box<dyn TraceSource>, total: u64, options: &OpenOptions) -> Self {
        Self::new(file, TraceFormat::Parquet, source, ReadProgress::out_of(Some(total)), options)
    }

    /// Returns the given or detected format.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// Returns the path of the file, as given when the file was opened.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the number of malformed and out-of-order requests skipped so far; zero unless the reader
    /// is lenient.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the number of records so far that were neither reads nor writes (flush, trim, …). They are
    /// never errors.
    pub fn ignored(&self) -> u64 {
        self.source.ignored()
    }

    /// Returns the number of requests of each workload or client so far, including those outside the
    /// trace; `None` if the format does not distinguish them.
    pub fn owners(&self) -> Option<&BTreeMap<String, u64>> {
        self.source.owners()
    }

    /// Returns remarks on the file for the user, a sentence each, once it has been read.
    pub fn remarks(&self) -> Vec<String> {
        self.source.remarks()
    }

    /// Returns the share of the file read so far, from 0 to 1; `None` for a stream of unknown length.
    pub fn fraction(&self) -> Option<f64> {
        self.source.fraction().or_else(|| self.progress.fraction())
    }

    /// Returns the next request of the source, or of the reorder buffer if there is one. A lenient reader
    /// skips malformed requests here.
    fn pull(&mut self) -> Result<Option<Request>, TraceError> {
        loop {
            if let Some(request) = self.reorder.as_mut().and_then(ReorderBuffer::pop) {
                return Ok(Some(request));
            }
            if self.source_ended {
                return Ok(None);
            }
            match self.source.next() {
                Ok(Some(request)) => match &mut self.reorder {
                    Some(reorder) => reorder.push(request),
                    None => return Ok(Some(request)),
                },
                Ok(None) => self.end_source(),
                Err(error) if self.lenient && !matches!(error.kind, TraceErrorKind::Io(_)) => {
                    self.skipped += 1;
                    if !error.is_recoverable {
                        self.end_source();
                    }
                }
                Err(error) => {
                    let file = error.file.as_deref().unwrap_or(&self.file);
                    return Err(TraceError::new(file, error.position, error.kind));
                }
            }
        }
    }

    fn end_source(&mut self) {
        self.source_ended = true;
        if let Some(reorder) = &mut self.reorder {
            reorder.drain();
        }
    }

    /// Returns the next request in order of arrival, counted from the first one if the format has an
    /// epoch.
    fn next_in_order(&mut self) -> Result<Option<Request>, TraceError> {
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
            None => Err(TraceError::new(&self.file, TracePosition::File, TraceErrorKind::Empty)),
        }
    }

    fn unsorted(&self, previous: Nanos, arrival: Nanos) -> TraceError {
        let kind = TraceErrorKind::Unsorted { previous_ns: previous.0, arrival_ns: arrival.0 };
        TraceError::new(&self.file, self.source.position(), kind)
    }
}

impl Iterator for TraceReader {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let result = self.next_in_order();
        self.ended = !matches!(result, Ok(Some(_)));
        result.transpose()
    }
}
