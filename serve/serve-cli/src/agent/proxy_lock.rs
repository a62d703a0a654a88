//! Files whose locks last as long as the proxies that agents start.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const BEGIN: &str = "proxy-";
const END: &str = ".lock";

/// Returns the file whose lock the proxy before a server holds.
pub(super) fn path_of(state: &Path, server: &str) -> PathBuf {
    state.join(format!("{BEGIN}{server}{END}"))
}

/// Returns the server that a file with this name is for.
pub(super) fn server_of(name: &str) -> Option<&str> {
    name.strip_prefix(BEGIN)?.strip_suffix(END)
}

/// Locks a file; `None` if a process holds the lock.
pub(super) fn take(path: &Path) -> io::Result<Option<File>> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        // On a file system without locks it excludes no other process.
        Ok(()) | Err(_) => Ok(Some(file)),
    }
}

/// Returns true if a process holds the lock.
pub(super) fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}
