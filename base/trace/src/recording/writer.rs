//! Writes a recording: lines into frames, frames into segments, as the plan of the segments says.

use super::RecordableRequest;
use super::line::{HEADER, write_line};
use super::segments::{RecordingSettings, SegmentPlan, find_segments, segment_path};
use crate::error::{TraceError, TraceErrorKind, TracePosition};
use machine::folder_lock::FolderLock;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use units::Nanos;

/// Text that is written before its time: more would be a long pause, and much to lose.
const BUFFERED_MAX: usize = 1 << 20;
/// Fast, and about a sixth of the text; higher levels gain little on columns of numbers.
const ZSTD_LEVEL: i32 = 1;

/// Writes answered requests to a folder, in segments; see [`RecordingSettings`].
#[derive(Debug)]
pub struct RecordingWriter {
    folder: PathBuf,
    /// Keeps others from writing to it.
    _lock: FolderLock,
    plan: SegmentPlan,
    /// The segment that is written to.
    file: Option<File>,
    /// Lines that are not written yet, and since when.
    text: Vec<u8>,
    text_since: Nanos,
    /// The lines in `text`.
    waiting: u64,
    count: u64,
    lost: u64,
}

impl RecordingWriter {
    /// Begins, or goes on with, the recording in `folder`, which is made if it is not there. Nothing is written before the
    /// first request.
    ///
    /// # Errors
    /// When the folder cannot be made, read or written, or another writer has it.
    pub fn create(folder: &Path, settings: RecordingSettings) -> Result<Self, TraceError> {
        let wrong =
            |error: io::Error| TraceError::new(folder, TracePosition::File, TraceErrorKind::Io(error));
        fs::create_dir_all(folder).map_err(wrong)?;
        let lock = FolderLock::take(folder).map_err(wrong)?;
        let segments = find_segments(folder).map_err(wrong)?;
        check_writable(folder).map_err(wrong)?;
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
            plan: SegmentPlan::new(settings, segments),
            file: None,
            text: Vec::new(),
            text_since: Nanos::ZERO,
            waiting: 0,
            count: 0,
            lost: 0,
        })
    }

    /// Takes a request, and writes what has waited long enough. `now` is of a clock that never goes back.
    ///
    /// # Errors
    /// When the recording cannot be written; what was to be written is lost, and later requests are tried again.
    pub fn write(&mut self, request: &RecordableRequest<'_>, now: Nanos) -> Result<(), TraceError> {
        if self.text.is_empty() {
            self.text_since = now;
        }
        write_line(request, &mut self.text);
        self.count += 1;
        self.waiting += 1;
        self.tick(now)
    }

    /// Writes what has waited long enough.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn tick(&mut self, now: Nanos) -> Result<(), TraceError> {
        let is_due = now.saturating_sub(self.text_since) >= self.plan.settings().flush_every;
        if self.text.is_empty() || !(is_due || self.text.len() >= BUFFERED_MAX) {
            return Ok(());
        }
        self.flush(now)
    }

    /// Writes all that waits; how many requests were taken, the lost ones included.
    ///
    /// # Errors
    /// As of [`Self::write`].
    pub fn finish(mut self, now: Nanos) -> Result<u64, TraceError> {
        if !self.text.is_empty() {
            self.flush(now)?;
        }
        if let Some(file) = &self.file {
            file.sync_all().map_err(|error| self.error(error))?;
        }
        Ok(self.count)
    }

    /// How many of the requests taken could not be written.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The folder that is written to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn flush(&mut self, now: Nanos) -> Result<(), TraceError> {
        let text = std::mem::take(&mut self.text);
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write_frame(&text, now);
        if written.is_err() {
            self.lost += waiting;
            // Half of a frame may be there: the next one goes to another segment.
            self.file = None;
            self.plan.close();
        }
        written.map_err(|error| self.error(error))
    }

    fn write_frame(&mut self, text: &[u8], now: Nanos) -> io::Result<()> {
        let frame = compress(text)?;
        let header = compress(format!("{HEADER}\n").as_bytes())?;
        // The header counts for every frame, so that the space is never exceeded.
        let steps = self.plan.write((frame.len() + header.len()) as u64, now);
        for number in steps.remove {
            match fs::remove_file(segment_path(&self.folder, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if let Some(number) = steps.begin {
            let mut file = self.begin_segment(number)?;
            file.write_all(&header)?;
            self.file = Some(file);
        }
        self.file.as_mut().expect("a segment is open").write_all(&frame)
    }

    fn begin_segment(&mut self, mut number: u64) -> io::Result<File> {
        loop {
            let path = segment_path(&self.folder, number);
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number = self.plan.skip_number();
                }
                other => return other,
            }
        }
    }

    fn error(&self, error: io::Error) -> TraceError {
        TraceError::new(&self.folder, TracePosition::File, TraceErrorKind::Io(error))
    }
}

/// A whole frame, with a checksum.
fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.compress(text)
}

/// Fails before the recording begins where no file can be made.
fn check_writable(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".writable-{}", std::process::id()));
    File::create(&path)?;
    fs::remove_file(path)
}
