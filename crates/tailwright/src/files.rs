//! Writing files so that they are whole or not there.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

/// Writes beside the place and renames, so that nobody ever sees half a file. What is not a regular file (a
/// terminal, a pipe) is written directly.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, content);
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()));
    let written = fs::write(&aside, content).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // The error that matters is the one returned.
        let _ = fs::remove_file(&aside);
    }
    written
}

/// Tells apart the files that threads of this process write at the same time.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
