//! Summary of a trace file.

use crate::trace_files::error::TraceFileError;
use crate::trace_files::reader::ObservedReader;
use model::OperationError;
use operation::ProgressObserver;
use std::path::Path;
use trace::stats::{self, TraceStatistics};
use trace::{OpenOptions, TraceFormat};

/// A trace and what was found in it.
#[derive(Debug)]
pub struct InspectedTrace {
    /// The path of the trace as it was given.
    pub file: String,
    /// The format that it was read as.
    pub format: TraceFormat,
    /// Malformed or out-of-order records that were skipped.
    pub skipped: u64,
    /// Records that are neither reads nor writes.
    pub ignored: u64,
    /// Rates, sizes and burstiness of its requests.
    pub stats: TraceStatistics,
}

/// Reads a trace for its statistics.
///
/// # Errors
///
/// When the trace cannot be read or is empty.
pub fn inspect_trace(
    path: &Path,
    options: &OpenOptions,
    observer: &dyn ProgressObserver,
) -> Result<InspectedTrace, TraceFileError> {
    let mut observed = ObservedReader::open(path, options, "reading", observer)?;
    let stats = stats::collect(&mut observed)?;
    let reader = &observed.reader;
    let stats =
        stats.ok_or_else(|| OperationError::input(format!("{}: the trace is empty", path.display())))?;
    Ok(InspectedTrace {
        file: path.display().to_string(),
        format: reader.format(),
        skipped: reader.skipped(),
        ignored: reader.ignored(),
        stats,
    })
}
