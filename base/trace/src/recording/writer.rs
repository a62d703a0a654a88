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

/// Size of the buffered text at which it is written early: more would cause a long pause, and lose much
/// on a kill.
const BUFFERED_MAX: usize = 1 << 20;
/// Fast, and compresses to about a sixth; higher levels gain little on columns of numbers.
const ZSTD_LEVEL: i32 = 1;

/// Writes answered requests to a folder, in segments; see [`RecordingSettings`].
#[derive(Debug)]
pub struct RecordingWriter {
    folder: PathBuf,
    /// Excludes other writers.
    _lock: FolderLock,
    plan: SegmentPlan,
    /// Current segment.
    file: Option<File>,
    /// Lines not yet written, and the time of the oldest.
    text: Vec<u8>,
    text_since: Nanos,
    /// Number of lines in `text`.
    waiting: u64,
    count: u64,
    lost: u64,
}

impl RecordingWriter {
    /// Begins or continues the recording in `folder`, which is created if missing. Nothing is written
    /// before the first request.
    ///
    /// # Errors
    /// When the folder cannot be created, read or written, or another writer has locked it.
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

    /// Takes a request, and writes lines that have waited long enough. `now` is from a clock that never
    /// goes back.
    ///
    /// # Errors
    /// When the recording cannot be written; the buffered lines are lost, and later requests are tried
    /// again.
    pub fn write(&mut self, request: &RecordableRequest<'_>, now: Nanos) -> Result<(), TraceError> {
        if self.text.is_empty() {
            self.text_since = now;
        }
        write_line(request, &mut self.text);
        self.count += 1;
        self.waiting += 1;
        self.tick(now)
    }

    /// Writes lines that have waited long enough.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn tick(&mut self, now: Nanos) -> Result<(), TraceError> {
        let is_due = now.saturating_sub(self.text_since) >= self.plan.settings().flush_every;
        if self.text.is_empty() || !(is_due || self.text.len() >= BUFFERED_MAX) {
            return Ok(());
        }
        self.flush(now)
    }

    /// Writes all buffered lines. Returns the number of requests taken, including lost ones.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(&mut self, now: Nanos) -> Result<u64, TraceError> {
        if !self.text.is_empty() {
            self.flush(now)?;
        }
        if let Some(file) = &self.file {
            file.sync_all().map_err(|error| self.error(error))?;
        }
        Ok(self.count)
    }

    /// Returns the number of requests taken, including lost ones.
    pub fn taken(&self) -> u64 {
        self.count
    }

    /// Returns the number of requests that could not be written.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the folder of the recording.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn flush(&mut self, now: Nanos) -> Result<(), TraceError> {
        let text = std::mem::take(&mut self.text);
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write_frame(&text, now);
        if written.is_err() {
            self.lost += waiting;
            // Half a frame may have been written: the next one goes to another segment.
            self.file = None;
            self.plan.close();
        }
        written.map_err(|error| self.error(error))
    }

    fn write_frame(&mut self, text: &[u8], now: Nanos) -> io::Result<()> {
        let frame = compress(text)?;
        let header = compress(format!("{HEADER}\n").as_bytes())?;
        // The header's length is counted for every frame, so that the space is never exceeded.
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

/// Compresses text into a whole frame, with a checksum.
fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.compress(text)
}

/// Checks, before the recording begins, that files can be created in the folder.
fn check_writable(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".writable-{}", std::process::id()));
    File::create(&path)?;
    fs::remove_file(path)
}
