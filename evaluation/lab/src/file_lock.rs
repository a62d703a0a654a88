//! Locks that keep two processes from changing the same part of the machine at once.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::Path;

/// Creates a file if need be and locks it until the returned value is dropped. `None` while another process has it
/// locked.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::create(path)?;
    Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
}
