//! [`Writer`]: requests into a file, whole or not at all.
//!
//! A file is written beside its final place under a name that begins with a dot and ends in `.partial`,
//! and renamed when complete; an error or a dropped writer removes it, and the file that was there
//! before stays as it was. A killed process cannot remove its file; the next writer of the same place does
//! (where `/proc` tells which processes live). Text formats are compressed when the name ends in `.gz` or `.zst`.

mod parquet;
mod text;

use crate::error::{ErrorKind, Place, TraceError};
use crate::format::Format;
use model::Request;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use units::Nanos;

/// Text is handed on in pieces of about this size.
const BUFFER_BYTES: usize = 1 << 16;

/// What a format loses: absent values that it cannot leave out become zero, and times are cut to its
/// resolution.
///
/// | format | times | offset | response |
/// |---|---|---|---|
/// | parquet, csv | ns | kept | kept |
/// | arrival-hex | ns | dropped | dropped |
/// | msr | 100 ns, from a fixed epoch | absent is 0 | 100 ns, absent is 0 |
/// | spc | ns | blocks of 512 bytes, absent is 0 | dropped |
/// | fio (version 3) | us | absent is 0 | dropped |
#[derive(Debug)]
pub struct Writer {
    target: PathBuf,
    encoder: Encoder,
    previous: Nanos,
    count: u64,
}

enum Encoder {
    Text { format: Format, buffer: Vec<u8>, sink: Sink, partial: Option<Partial> },
    Parquet { writer: Box<parquet::ParquetWriter>, partial: Partial },
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text { .. } => "Text",
            Self::Parquet { .. } => "Parquet",
        })
    }
}

/// Where text goes, compressed or not.
enum Sink {
    Plain(Box<dyn Write + Send>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

/// A file under its temporary name, removed unless it is kept.
pub(crate) struct Partial {
    path: PathBuf,
    pub(crate) file: File,
    kept: bool,
}

impl Writer {
    /// Begins a trace at `path`; `-` is the standard output (text formats only).
    ///
    /// # Errors
    /// When the format cannot be written or the file cannot be created.
    pub fn create(path: &Path, format: Format) -> Result<Self, TraceError> {
        let error = |kind| TraceError::new(path, Place::File, kind);
        if !format.is_writable() {
            return Err(error(ErrorKind::Unsupported(format, "can be read but not written")));
        }
        let to_stdout = path == Path::new("-");
        if to_stdout && format == Format::Parquet {
            return Err(error(ErrorKind::Unsupported(format, "is written to a file, not to a pipe")));
        }
        let io_error = |e| error(ErrorKind::Io(e));
        let encoder = if to_stdout {
            let sink = Sink::Plain(Box::new(io::stdout()));
            Encoder::Text { format, buffer: Vec::with_capacity(2 * BUFFER_BYTES), sink, partial: None }
        } else {
            let partial = Partial::create(path).map_err(io_error)?;
            let file = partial.file.try_clone().map_err(io_error)?;
            if format == Format::Parquet {
                let writer = parquet::ParquetWriter::new(file).map_err(error)?;
                Encoder::Parquet { writer: Box::new(writer), partial }
            } else {
                let sink = Sink::for_name(path, file).map_err(io_error)?;
                let buffer = Vec::with_capacity(2 * BUFFER_BYTES);
                Encoder::Text { format, buffer, sink, partial: Some(partial) }
            }
        };
        Ok(Self { target: path.to_owned(), encoder, previous: Nanos::ZERO, count: 0 })
    }

    /// Appends a request.
    ///
    /// # Errors
    /// When it arrives before its predecessor, when the format cannot hold its values, or when writing
    /// fails.
    pub fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        if request.arrival < self.previous {
            return Err(self
                .error(ErrorKind::Unsorted { previous_ns: self.previous.0, arrival_ns: request.arrival.0 }));
        }
        let result = match &mut self.encoder {
            Encoder::Parquet { writer, .. } => writer.write(request),
            Encoder::Text { format, buffer, sink, .. } => {
                if self.count == 0 {
                    text::header(*format, buffer);
                }
                text::line(*format, request, buffer).and_then(|()| flush(buffer, sink, BUFFER_BYTES))
            }
        };
        result.map_err(|kind| self.error(kind))?;
        self.previous = request.arrival;
        self.count += 1;
        Ok(())
    }

    /// Completes the file and puts it in its place; returns how many requests it holds.
    ///
    /// # Errors
    /// When there was no request ([`ErrorKind::Empty`]), or writing fails; there is then no new file.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        if self.count == 0 {
            return Err(self.error(ErrorKind::Empty));
        }
        let partial = match &mut self.encoder {
            Encoder::Text { format, buffer, sink, partial } => {
                text::footer(*format, self.previous, buffer);
                flush(buffer, sink, 0)
                    .and_then(|()| sink.finish().map_err(ErrorKind::Io))
                    .map(|()| partial.as_mut())
            }
            Encoder::Parquet { writer, partial } => writer.finish().map(|()| Some(partial)),
        };
        let kept = partial.and_then(|partial| match partial {
            Some(partial) => partial.keep(&self.target).map_err(ErrorKind::Io),
            None => Ok(()),
        });
        kept.map(|()| self.count).map_err(|kind| self.error(kind))
    }

    fn error(&self, kind: ErrorKind) -> TraceError {
        let place = if self.count == 0 { Place::File } else { Place::Record(self.count) };
        TraceError::new(&self.target, place, kind)
    }
}

/// Hands `buffer` on when it holds at least `threshold` bytes.
fn flush(buffer: &mut Vec<u8>, sink: &mut Sink, threshold: usize) -> Result<(), ErrorKind> {
    if buffer.len() < threshold {
        return Ok(());
    }
    sink.write(buffer).map_err(ErrorKind::Io)?;
    buffer.clear();
    Ok(())
}

impl Sink {
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

impl Partial {
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file to write")
        })?;
        if target.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a folder"));
        }
        remove_leftovers(target, &name.to_string_lossy());
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let path = target.with_file_name(hidden);
        let file = File::create(&path)?;
        Ok(Self { path, file, kept: false })
    }

    pub(crate) fn keep(&mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)?;
        self.kept = true;
        Ok(())
    }
}

/// Removes what killed writers of `target` left. Trouble is no reason to fail: leftovers only take room.
fn remove_leftovers(target: &Path, name: &str) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    let folder = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let process = file.to_str().and_then(|file| {
            file.strip_prefix('.')?
                .strip_prefix(name)?
                .strip_prefix('.')?
                .strip_suffix(".partial")?
                .parse::<u32>()
                .ok()
        });
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
