//! A folder locked by one process.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// An exclusive lock on a folder, until the value is dropped or the process ends in any way.
#[derive(Debug)]
pub struct FolderLock(#[allow(dead_code, reason = "the lock goes when the file is closed")] File);

impl FolderLock {
    /// Locks an existing folder. On file systems without locks it succeeds and excludes no other process.
    ///
    /// # Errors
    /// When the folder cannot be opened; [`io::ErrorKind::ResourceBusy`] when it is locked.
    pub fn take(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "something else writes to this folder"))
            }
            Ok(()) | Err(_) => Ok(Self(file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_one_at_a_time() {
        let folder = std::env::temp_dir().join(format!("tailwright-folder-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lock = FolderLock::take(&folder).unwrap();
        assert_eq!(FolderLock::take(&folder).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        drop(lock);
        FolderLock::take(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
    }
}
