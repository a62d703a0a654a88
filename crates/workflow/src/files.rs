//! Reading texts that the user named, and writing files so that they are whole or not there.

use model::OperationError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

/// Reads a text file that the user named; `what` says what it should be.
///
/// # Errors
///
/// When the file cannot be read or is not UTF-8.
pub fn read_text(path: &Path, what: &str) -> Result<String, OperationError> {
    fs::read_to_string(path).map_err(|error| {
        OperationError::input(format_args!("{}: cannot read the {what}: {error}", path.display()))
            .hint("check the path and its permissions")
    })
}

/// Writes a result file, whole or not at all; `what` says what it is.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_result(path: &Path, text: &str, what: &str) -> Result<(), OperationError> {
    write_whole(path, text.as_bytes()).map_err(|error| cannot_write(path, what, &error))
}

/// Checks that a result file can be written, before it takes long to have a result.
///
/// # Errors
///
/// When the file could not be written now.
pub fn check_writable(path: &Path, what: &str) -> Result<(), OperationError> {
    may_write(path).map_err(|error| cannot_write(path, what, &error))
}

fn cannot_write(path: &Path, what: &str, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: cannot write the {what}: {error}", path.display()))
        .hint("check that the folder exists, its permissions and the space left")
}

/// Writes beside the place and renames, so that nobody ever sees half a file. What is not a regular file (a
/// terminal, a pipe) is written directly.
///
/// # Errors
///
/// When the file cannot be written or renamed.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, content);
    }
    let temporary = temporary_path(path)?;
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The error that matters is the one returned.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Checks that [`write_whole`] would find a place.
fn may_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ => {
            let temporary = temporary_path(path)?;
            fs::write(&temporary, []).and_then(|()| fs::remove_file(&temporary))
        }
    }
}

/// A path beside the place, with a name that no other writer of this machine has.
fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    Ok(path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id())))
}

/// Tells apart the files that threads of this process write at the same time.
static WRITES: AtomicU64 = AtomicU64::new(0);
