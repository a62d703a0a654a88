//! Reads the lines of a recording: of all segments in a folder, or of one segment given as a file or
//! stream.

use super::line::{EXPECTED, RecordedLine, is_header};
use super::segments::segment_files;
use crate::error::{TraceErrorKind, TracePosition, excerpt};
use crate::input::{BufferedInput, LINE_BYTES_MAX, ReadLineError, damage, decompress};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A line that could not be read.
#[derive(Debug)]
pub(crate) struct RowError {
    /// Segment of the line; none for a stream.
    pub(crate) segment: Option<PathBuf>,
    pub(crate) position: TracePosition,
    pub(crate) kind: TraceErrorKind,
    pub(crate) is_recoverable: bool,
}

/// The lines of a recording, segment by segment.
pub(crate) struct RecordingRows {
    segments: VecDeque<PathBuf>,
    segment_count: usize,
    /// Current segment, with its path if it has one.
    open: Option<(BufferedInput, Option<PathBuf>)>,
    line: u64,
    /// Number of segments that end in the middle of a frame: their writer was killed.
    cut: u64,
}

impl RecordingRows {
    /// Opens all segments of a folder.
    pub(crate) fn of_folder(folder: &Path) -> io::Result<Self> {
        let segments = VecDeque::from(segment_files(folder)?);
        if segments.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "expected a file, found a folder without the segments of a recording (00000001.csv.zst)",
            ));
        }
        Ok(Self { segment_count: segments.len(), segments, open: None, line: 0, cut: 0 })
    }

    /// Opens a single segment.
    pub(crate) fn of_input(input: BufferedInput) -> Self {
        Self { segments: VecDeque::new(), segment_count: 1, open: Some((input, None)), line: 0, cut: 0 }
    }

    /// Returns the number of segments that end in the middle of a frame.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    /// Returns the share of the segments read so far; `None` for a stream.
    pub(crate) fn fraction(&self) -> Option<f64> {
        let left = self.segments.len() + usize::from(self.open.is_some());
        (self.segment_count > 1).then(|| 1.0 - left as f64 / self.segment_count as f64)
    }

    pub(crate) fn position(&self) -> TracePosition {
        TracePosition::Line(self.line)
    }

    /// Returns the path of the current segment, if it has one.
    pub(crate) fn segment(&self) -> Option<PathBuf> {
        self.open.as_ref().and_then(|(_, path)| path.clone())
    }

    /// Passes the next line to `visit`; `None` at the end of the last segment.
    pub(crate) fn next<T>(
        &mut self,
        mut visit: impl FnMut(&RecordedLine<'_>) -> Result<T, TraceErrorKind>,
    ) -> Result<Option<T>, RowError> {
        loop {
            let Some((input, _)) = &mut self.open else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            self.line += 1;
            match input.line() {
                Ok(Some(line)) if is_header(line) || is_remains_of_frame(line) => {}
                Ok(Some(line)) => {
                    let visited = match RecordedLine::parse(line) {
                        Some(row) => visit(&row),
                        None => Err(malformed(EXPECTED, line)),
                    };
                    return visited.map(Some).map_err(|kind| self.error(kind, true));
                }
                Ok(None) => self.open = None,
                // A frame that a killed process did not finish.
                Err(ReadLineError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    (self.open, self.cut) = (None, self.cut + 1);
                }
                Err(error) => return Err(self.unreadable(error)),
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, RowError> {
        while let Some(path) = self.segments.pop_front() {
            self.line = 0;
            match File::open(&path).and_then(|file| decompress(Box::new(file))) {
                Ok(input) => {
                    self.open = Some((BufferedInput::new(input), Some(path)));
                    return Ok(true);
                }
                // Its writer has removed it meanwhile to make room.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let kind = damage(error);
                    let position = TracePosition::File;
                    return Err(RowError { segment: Some(path), position, kind, is_recoverable: true });
                }
            }
        }
        Ok(false)
    }

    fn unreadable(&mut self, error: ReadLineError) -> RowError {
        const { assert!(LINE_BYTES_MAX == 65_536) };
        let kind = match error {
            ReadLineError::TooLong => malformed("a line of at most 65536 bytes", b""),
            ReadLineError::Io(error) => damage(error),
        };
        let error = self.error(kind, true);
        // The rest of a damaged segment is not trusted; the next segment is a separate file.
        self.open = None;
        error
    }

    fn error(&self, kind: TraceErrorKind, is_recoverable: bool) -> RowError {
        RowError { segment: self.segment(), position: self.position(), kind, is_recoverable }
    }
}

/// Returns true for the beginning of an incompletely written magic number of a first frame.
fn is_remains_of_frame(line: &[u8]) -> bool {
    matches!(line, [0x28] | [0x28, 0xb5] | [0x28, 0xb5, 0x2f])
}

fn malformed(expected: &'static str, found: &[u8]) -> TraceErrorKind {
    TraceErrorKind::Malformed { expected, found: excerpt(found) }
}
