//! Footprints that were made elsewhere, such as by a cluster of machines, and stand in the place of a trace.

use model::OperationError;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use workload::device::StorageProfile;
use workload::{Footprint, StoredFootprint};

/// Maximum size of a file, bytes: thousands of times that of real curves.
const SIZE_MAX: u64 = 64 << 20;

/// Reads a stored footprint; `None` if the file is something else or cannot be opened, which readers of traces say
/// better.
///
/// # Errors
/// When the file is damaged or made for another device.
pub(super) fn read(path: &Path, profile: &StorageProfile) -> Result<Option<Footprint>, OperationError> {
    if !path.is_file() {
        return Ok(None);
    }
    let Ok(file) = File::open(path) else { return Ok(None) };
    let mut bytes = Vec::new();
    let begin = file.take(4).read_to_end(&mut bytes);
    if begin.is_err() || !StoredFootprint::is_meant(&bytes) {
        return Ok(None);
    }
    let wrong = |error: &dyn std::fmt::Display| {
        OperationError::input(format_args!("{}: {error}", path.display()))
            .hint("make it again from the requests and this device profile: docs/guides/fleets.md")
    };
    bytes.clear();
    let whole = File::open(path).and_then(|file| file.take(SIZE_MAX).read_to_end(&mut bytes));
    whole.map_err(|error| wrong(&error))?;
    let stored = StoredFootprint::from_bytes(&bytes).map_err(|error| wrong(&error))?;
    stored.on(profile).map(Some).map_err(|error| wrong(&error))
}
