//! Owners of a file's requests, and the files of a trace.

use crate::error::TraceError;
use crate::read::{OpenOptions, open_place};
use crate::recording::segment_files;
use crate::selection::{SplitKey, TracePlace, TraceSelection};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the workloads or clients in a file or recording, with the number of their requests; reads all
/// of it. `None` if the format does not distinguish them.
///
/// # Errors
/// When the file cannot be read as a trace.
pub fn owners_of(
    path: &Path,
    key: SplitKey,
    options: &OpenOptions,
) -> Result<Option<BTreeMap<String, u64>>, TraceError> {
    let place = TracePlace { path: path.to_owned(), selection: TraceSelection::All(key) };
    let mut reader = open_place(&place, options)?;
    if reader.owners().is_none() {
        return Ok(None);
    }
    reader.by_ref().try_for_each(|request| request.map(drop))?;
    Ok(reader.owners().cloned())
}

/// Returns the files of the trace with this name: one, or the segments of a recording, the oldest first.
///
/// # Errors
/// When the folder of a recording cannot be listed.
pub fn files_of(name: &Path) -> io::Result<Vec<PathBuf>> {
    let path = TracePlace::of(name).path;
    if path.is_dir() { segment_files(&path) } else { Ok(vec![path]) }
}
