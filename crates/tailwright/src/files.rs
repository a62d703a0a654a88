//! Writing files so that they are whole or not there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

/// Writes beside the place and renames, so that nobody ever sees half a file. What is not a regular file (a
/// terminal, a pipe) is written directly.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, content);
    }
    let aside = aside(path)?;
    let written = fs::write(&aside, content).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // The error that matters is the one returned.
        let _ = fs::remove_file(&aside);
    }
    written
}

/// Whether [`write_whole`] would find a place.
pub(crate) fn may_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ => {
            let aside = aside(path)?;
            fs::write(&aside, []).and_then(|()| fs::remove_file(&aside))
        }
    }
}

/// Beside the place, with a name that nobody else has.
fn aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    Ok(path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id())))
}

/// Tells apart the files that threads of this process write at the same time.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
