//! Segments of a recording: their names, rotation, and removal to make room.

use std::io;
use std::path::{Path, PathBuf};
use units::{Bytes, Nanos};

/// Suffix of a segment's name, behind its number.
const ENDING: &str = ".csv.zst";
/// Minimum number of segments in the disk space, so that most of the recording stays when the oldest is
/// removed.
const SEGMENTS_MIN: u64 = 16;

/// Settings of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingSettings {
    /// Maximum disk space of all segments together; the oldest are removed for newer ones.
    pub disk_max: Bytes,
    /// Maximum size of a segment, compressed; never more than a sixteenth of `disk_max`.
    pub segment_max: Bytes,
    /// Maximum time for which a segment is written to.
    pub segment_time: Nanos,
    /// Maximum time that an answered request waits in memory: the loss of a kill, beside unanswered
    /// requests.
    pub flush_every: Nanos,
}

impl RecordingSettings {
    /// Minimum of `disk_max`.
    pub const DISK_MIN: Bytes = Bytes(1 << 20);
}

impl Default for RecordingSettings {
    /// 1 GiB in segments of 64 MiB or an hour; a kill loses a second.
    fn default() -> Self {
        Self {
            disk_max: Bytes(1 << 30),
            segment_max: Bytes(64 << 20),
            segment_time: Nanos(3_600_000_000_000),
            flush_every: Nanos(1_000_000_000),
        }
    }
}

/// A segment found in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSegment {
    pub(crate) number: u64,
    pub(crate) len: u64,
}

/// Returns the segments in a folder, the oldest first; other files are ignored.
pub(crate) fn find_segments(folder: &Path) -> io::Result<Vec<FoundSegment>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(number_of) else { continue };
        match entry.metadata() {
            Ok(metadata) if metadata.is_file() => found.push(FoundSegment { number, len: metadata.len() }),
            Ok(_) => {}
            // A writer has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by_key(|segment| segment.number);
    Ok(found)
}

/// Returns the paths of the segments in a folder, the oldest first.
///
/// # Errors
/// When the folder cannot be read.
pub fn segment_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = find_segments(folder)?;
    Ok(found.iter().map(|segment| segment_path(folder, segment.number)).collect())
}

/// Returns the path of the segment with this number.
pub(crate) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}{ENDING}"))
}

fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(ENDING)?;
    let is_number = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// Plans rotation and removal from the segments in the folder, without any I/O.
#[derive(Debug)]
pub(super) struct SegmentPlan {
    settings: RecordingSettings,
    /// Existing segments, the oldest first; the last one is written to, if `is_open`.
    segments: Vec<FoundSegment>,
    opened_at: Nanos,
    is_open: bool,
}

/// Steps to take before bytes are written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentSteps {
    /// Segments to remove, the oldest first.
    pub(super) remove: Vec<u64>,
    /// Number of the segment to begin, if the open one is full or old.
    pub(super) begin: Option<u64>,
}

impl SegmentPlan {
    pub(super) fn new(settings: RecordingSettings, segments: Vec<FoundSegment>) -> Self {
        let disk_max = Bytes(settings.disk_max.0.max(RecordingSettings::DISK_MIN.0));
        let segment_max = Bytes(settings.segment_max.0.clamp(1, disk_max.0 / SEGMENTS_MIN));
        let settings = RecordingSettings { disk_max, segment_max, ..settings };
        Self { settings, segments, opened_at: Nanos::ZERO, is_open: false }
    }

    pub(super) fn settings(&self) -> &RecordingSettings {
        &self.settings
    }

    /// Returns the steps to take before `len` bytes are written at `now`; the bytes count as written
    /// then.
    pub(super) fn write(&mut self, len: u64, now: Nanos) -> SegmentSteps {
        let mut steps = SegmentSteps::default();
        let open = self.segments.last().map_or(0, |segment| segment.len);
        let is_full = open > 0 && open + len > self.settings.segment_max.0;
        let is_old = now.saturating_sub(self.opened_at) >= self.settings.segment_time;
        if !self.is_open || is_full || is_old {
            let number = self.segments.last().map_or(1, |segment| segment.number + 1);
            self.segments.push(FoundSegment { number, len: 0 });
            (self.is_open, self.opened_at, steps.begin) = (true, now, Some(number));
        }
        let mut total: u64 = self.segments.iter().map(|segment| segment.len).sum();
        while total + len > self.settings.disk_max.0 && self.segments.len() > 1 {
            let oldest = self.segments.remove(0);
            total -= oldest.len;
            steps.remove.push(oldest.number);
        }
        if let Some(last) = self.segments.last_mut() {
            last.len += len;
        }
        steps
    }

    /// Returns the next number, because another writer has already created the planned segment.
    pub(super) fn skip_number(&mut self) -> u64 {
        let last = self.segments.last_mut().expect("one was to be begun");
        last.number += 1;
        last.number
    }

    /// Closes the open segment after a write failure.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn settings() -> RecordingSettings {
        let disk_max = Bytes(16 * MIB);
        let segment_max = Bytes(64 * MIB);
        RecordingSettings { disk_max, segment_max, segment_time: Nanos(100), flush_every: Nanos(1) }
    }

    #[test]
    fn segments_end_by_size_and_by_time() {
        let mut plan = SegmentPlan::new(settings(), Vec::new());
        let begin = |number| SegmentSteps { begin: Some(number), ..SegmentSteps::default() };
        assert_eq!(plan.write(MIB / 2, Nanos(0)), begin(1));
        assert_eq!(plan.write(MIB / 2, Nanos(1)), SegmentSteps::default(), "a sixteenth of the space");
        assert_eq!(plan.write(1, Nanos(2)), begin(2));
        assert_eq!(plan.write(1, Nanos(102)), begin(3));
        plan.close();
        assert_eq!(plan.write(1, Nanos(103)), begin(4));
    }

    #[test]
    fn the_oldest_make_room_and_the_space_is_never_exceeded() {
        let old = (5..8).map(|number| FoundSegment { number, len: 5 * MIB }).collect();
        let mut plan = SegmentPlan::new(settings(), old);
        let mut held: u64 = 15 * MIB;
        let mut lens: std::collections::BTreeMap<u64, u64> = (5..8).map(|n| (n, 5 * MIB)).collect();
        let mut open = 0;
        for now in 0..5000 {
            let len = MIB / 7 + now % 1000;
            let steps = plan.write(len, Nanos(now));
            open = steps.begin.unwrap_or(open);
            for gone in &steps.remove {
                assert_ne!(*gone, open, "what is written to stays");
                held -= lens.remove(gone).expect("it was there");
            }
            *lens.entry(open).or_insert(0) += len;
            held += len;
            assert!(held <= 16 * MIB, "{held} at {now}");
            assert!(lens[&open] <= MIB, "a segment is a sixteenth at most");
        }
        assert!(held > 14 * MIB, "and most of it is used");
    }

    #[test]
    fn names_are_numbers_of_eight_digits_and_more() {
        for (name, number) in [
            ("00000001.csv.zst", Some(1)),
            ("123456789.csv.zst", Some(123_456_789)),
            ("1.csv.zst", None),
            ("+0000001.csv.zst", None),
            ("00000001.csv", None),
            (".00000001.csv.zst", None),
        ] {
            assert_eq!(number_of(name), number, "{name}");
        }
    }
}
