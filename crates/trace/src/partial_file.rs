//! A file that appears whole or not at all.
//!
//! It is written beside its final place under a name that begins with a dot and ends in `.partial`, and renamed when
//! it is complete. An error or a dropped writer removes it, and the file that was there before stays as it was. A
//! killed process cannot remove its file; the next writer of the same place does, where `/proc` tells which processes
//! are alive.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file under its temporary name; dropping it removes the file unless it was kept.
pub(crate) struct PartialFile {
    path: PathBuf,
    pub(crate) file: File,
    kept: bool,
}

impl PartialFile {
    /// Creates the temporary file for `target`.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file to write")
        })?;
        if target.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a folder"));
        }
        remove_leftovers(target, &name.to_string_lossy());
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let path = target.with_file_name(hidden);
        let file = File::create(&path)?;
        Ok(Self { path, file, kept: false })
    }

    /// Renames the file to `target`, after its content has reached the disk.
    pub(crate) fn keep(&mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, target)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes what killed writers of `target` left behind. Failures are ignored: leftovers only take space.
fn remove_leftovers(target: &Path, name: &str) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    let folder = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let process = file.to_str().and_then(|file| process_of_partial(file, name));
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The process that writes `file`, if that is a partial file for `name`.
fn process_of_partial(file: &str, name: &str) -> Option<u32> {
    let rest = file.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?;
    rest.strip_suffix(".partial")?.parse().ok()
}
