//! Files that appear whole or not at all.
//!
//! A [`WholeFile`] is written beside its target under a name that begins with a dot and ends in `.partial`,
//! and renamed once complete. An error or a dropped value removes it and leaves the existing file unchanged.
//! A killed process cannot remove its temporary file; the next writer of the same target does, if `/proc`
//! shows that the process is gone.
//!
//! - A symbolic link stays, and its target is replaced.
//! - The new file takes over owner, group and mode of the replaced one, but neither access lists nor extended
//!   attributes. If the owner cannot be preserved, the content is overwritten in place once the new one is
//!   complete.
//! - A file that is not writable is not replaced either.
//! - Anything but a regular file (a device, a pipe) is written directly, without atomicity. A named pipe
//!   without a reader is refused after some seconds, or at once in calls that must not block: opening it
//!   would wait for ever.
//! - A file that this process has open already (`/dev/stdout`, `/dev/fd/3`) is written directly, after the
//!   existing content.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most symbolic links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// A file that is being written.
#[derive(Debug)]
pub struct WholeFile {
    /// File to write to.
    pub file: File,
    target: PathBuf,
    /// The path of the temporary file; `None` where the target is written directly.
    temporary: Option<PathBuf>,
}

impl WholeFile {
    /// Begins to write the file at `path`.
    ///
    /// # Errors
    /// When `path` is a folder, a pipe without a reader, or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_within(path, READER_PATIENCE)
    }

    /// As [`Self::create`], where the reader of a pipe may take this long to open it.
    fn create_within(path: &Path, patience: Duration) -> io::Result<Self> {
        let found = writable(path)?;
        let target = follow_links(path)?;
        if let Some(descriptor) = own_descriptor(path) {
            return Ok(Self { file: opened(path, descriptor)?, target, temporary: None });
        }
        if found.as_ref().is_some_and(|found| !is_replaceable(found, &target)) {
            let is_pipe = found.as_ref().is_some_and(|found| found.file_type().is_fifo());
            let file = match is_pipe {
                true => pipe_with_reader(path, patience)?,
                false => OpenOptions::new().write(true).truncate(true).open(path)?,
            };
            return Ok(Self { file, target, temporary: None });
        }
        let name = file_name(&target)?;
        remove_leftovers(&target, &name.to_string_lossy());
        let temporary = temporary_path(&target, &name);
        // A file with this name is left over from a dead process.
        remove(&temporary);
        // The replacement of a private file is private from its first byte.
        let mode = if found.is_some() { 0o600 } else { 0o666 };
        let file =
            begin(&temporary, |path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path))?;
        let made = Self { file, target, temporary: Some(temporary) };
        if let Some(found) = found {
            made.file.set_permissions(found.permissions())?;
        }
        Ok(made)
    }

    /// Moves the file to its place, after its content has reached the disk.
    ///
    /// # Errors
    /// When it cannot be moved; the temporary file is then removed. If the existing file had to be
    /// overwritten in place and that failed, the temporary file is kept, and the error gives its path.
    pub fn keep(self) -> io::Result<()> {
        if self.temporary.is_some() {
            self.file.sync_all()?;
        }
        self.keep_unsynced()
    }

    /// Moves the file to its place without waiting for the disk. If the machine crashes soon after, an
    /// older, an empty or no file may remain.
    ///
    /// # Errors
    /// As [`Self::keep`].
    pub(crate) fn keep_unsynced(mut self) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let mut unfinished = unfinished();
        if self.inherit_owner()? {
            fs::rename(temporary, &self.target)?;
            unfinished.retain(|other| other != temporary);
            self.temporary = None;
            return Ok(());
        }
        let mut content = File::open(temporary)?;
        let mut place = OpenOptions::new().write(true).truncate(true).open(&self.target)?;
        // The old content is lost already, so the new content has to reach the disk.
        let overwritten = io::copy(&mut content, &mut place).and_then(|_| place.sync_all());
        // The lock is released before the temporary file is removed, when `self` is dropped.
        let Err(error) = overwritten else { return Ok(()) };
        let kept = self.temporary.take().unwrap_or_default();
        unfinished.retain(|other| *other != kept);
        Err(io::Error::new(error.kind(), format!("{error}; what was to be written is in {}", kept.display())))
    }

    /// Gives the file the owner and group of the file that it replaces. Returns false if this process may
    /// not.
    fn inherit_owner(&self) -> io::Result<bool> {
        let Some(found) = existing(&self.target)? else { return Ok(true) };
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) == (found.uid(), found.gid()) {
            return Ok(true);
        }
        if fchown(&self.file, Some(found.uid()), Some(found.gid())).is_err() {
            return Ok(false);
        }
        // chown clears the set-user-ID and set-group-ID bits; restore the mode after it.
        self.file.set_permissions(found.permissions())?;
        Ok(true)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            remove(temporary);
            forget(temporary);
        }
    }
}

/// A temporary folder beside the targets of files that belong together: files are written to it, and
/// moved to their places when all are complete. Dropping it removes it with the files still in it.
#[derive(Debug)]
pub struct UnfinishedFolder(PathBuf);

impl UnfinishedFolder {
    /// Creates a temporary folder in `parent` for the files of this name.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(parent: &Path, name: &str) -> io::Result<Self> {
        let target = parent.join(name);
        remove_leftovers(&target, name);
        let temporary = temporary_path(&target, &OsString::from(name));
        remove(&temporary);
        begin(&temporary, |path| fs::create_dir(path))?;
        Ok(Self(temporary))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        remove(&self.0);
        forget(&self.0);
    }
}

/// Removes a file, or a folder with its content. Errors are ignored: nothing more can be done.
fn remove(path: &Path) {
    if path.is_dir() {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Temporary files and folders of this process. Locked while one is created or moved to its place.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a temporary file or folder.
fn begin<T>(temporary: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut unfinished = unfinished();
    let made = make(temporary)?;
    unfinished.push(temporary.to_owned());
    Ok(made)
}

fn forget(temporary: &Path) {
    unfinished().retain(|other| other != temporary);
}

/// Changes several files without interruption: [`remove_unfinished`] waits for it. `change` may not use
/// this module.
pub fn uninterrupted<T>(change: impl FnOnce() -> T) -> T {
    let _unfinished = unfinished();
    change()
}

/// Removes all unfinished files of this process, just before it ends without dropping its values. From
/// then on, a thread that creates or completes a file blocks until the process ends.
pub fn remove_unfinished() {
    let unfinished = unfinished();
    for temporary in unfinished.iter() {
        remove(temporary);
    }
    std::mem::forget(unfinished);
}

/// Time within which the reader of a pipe must open it.
pub const READER_PATIENCE: Duration = Duration::from_secs(5);
/// Interval between attempts to open the pipe.
const READER_POLL: Duration = Duration::from_millis(20);

/// Opens a pipe for writing once it has a reader, with a time limit: a non-blocking open fails until then.
fn pipe_with_reader(pipe: &Path, patience: Duration) -> io::Result<File> {
    let deadline = Instant::now() + patience;
    loop {
        match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(pipe) {
            // Keep the non-blocking descriptor open until the blocking one is open too, so the reader
            // never sees an end of file.
            Ok(_open) => return OpenOptions::new().write(true).open(pipe),
            Err(error) if error.raw_os_error() != Some(libc::ENXIO) => return Err(error),
            Err(_) if Instant::now() >= deadline => {
                let message = "nobody reads this pipe; start its reader first";
                return Err(io::Error::new(io::ErrorKind::NotConnected, message));
            }
            Err(_) => std::thread::sleep(READER_POLL),
        }
    }
}

/// Writes a whole file at once.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut whole = WholeFile::create(path)?;
    io::Write::write_all(&mut whole.file, content)?;
    whole.keep()
}

/// As [`write()`], for files that are rewritten often or can be regenerated: see
/// `WholeFile::keep_unsynced`.
///
/// # Errors
/// When it cannot be written.
pub fn write_unsynced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut whole = WholeFile::create(path)?;
    io::Write::write_all(&mut whole.file, content)?;
    whole.keep_unsynced()
}

/// As [`write_unsynced`], without waiting for the reader of a pipe.
///
/// # Errors
/// When it cannot be written: [`io::ErrorKind::NotConnected`] for a pipe without a reader.
pub fn write_unsynced_now(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut whole = WholeFile::create_within(path, Duration::ZERO)?;
    io::Write::write_all(&mut whole.file, content)?;
    whole.keep_unsynced()
}

/// Checks that a file could be written at `path` now. Opens regular files only.
///
/// # Errors
/// The reason why it could not.
pub fn check(path: &Path) -> io::Result<()> {
    match writable(path)? {
        _ if own_descriptor(path).is_some() => Ok(()),
        Some(found) if !is_replaceable(&found, &follow_links(path)?) => Ok(()),
        _ => WholeFile::create(path).map(drop),
    }
}

/// Returns true for a regular file whose name is `target`. Links below `/proc` may lead to unnamed or
/// renamed files.
fn is_replaceable(found: &Metadata, target: &Path) -> bool {
    let is_same = |named: Metadata| (named.dev(), named.ino()) == (found.dev(), found.ino());
    found.is_file() && fs::metadata(target).is_ok_and(is_same)
}

/// Returns the metadata of `path`; `None` if it does not exist.
fn existing(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the metadata of a writable `path`; `None` if it does not exist.
fn writable(path: &Path) -> io::Result<Option<Metadata>> {
    let found = existing(path)?;
    match &found {
        Some(found) if found.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a folder"));
        }
        Some(found) if found.is_file() => drop(OpenOptions::new().write(true).open(path)?),
        _ => {}
    }
    Ok(found)
}

/// Follows all symbolic links of a path, which need not exist.
///
/// # Errors
/// When there are more symbolic links than are followed.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let steps: Vec<PathBuf> = link_steps(path).collect();
    let is_end = |_: &PathBuf| steps.len() <= LINKS_MAX + 1;
    steps.last().cloned().filter(is_end).ok_or_else(|| io::Error::other("too many symbolic links"))
}

/// Yields a path and the target of each symbolic link on from there, up to one more than allowed.
fn link_steps(path: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |path: &PathBuf| fs::read_link(path).ok().map(|next| folder_of(path).join(next));
    std::iter::successors(Some(path.to_owned()), next).take(LINKS_MAX + 2)
}

/// Returns the parent folder of a path, `.` if it names none.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Returns the number of this process's descriptor that a path leads to.
fn own_descriptor(path: &Path) -> Option<u32> {
    let descriptors = Path::new("/proc/self").canonicalize().ok()?.join("fd");
    let is_there = |path: &PathBuf| folder_of(path).canonicalize().is_ok_and(|folder| folder == descriptors);
    link_steps(path).find(is_there)?.file_name()?.to_str()?.parse().ok()
}

/// Duplicates an open descriptor of this process, to write after the existing content.
fn opened(path: &Path, descriptor: u32) -> io::Result<File> {
    match descriptor {
        1 => crate::standard_output()?.as_fd().try_clone_to_owned().map(File::from),
        2 => io::stderr().as_fd().try_clone_to_owned().map(File::from),
        _ => OpenOptions::new().append(true).open(path),
    }
}

fn file_name(target: &Path) -> io::Result<OsString> {
    let name = target.file_name().map(OsString::from);
    name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file to write"))
}

/// Returns a path beside the target that no other writer on this machine uses.
fn temporary_path(target: &Path, name: &OsString) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{}.partial", std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed)));
    target.with_file_name(hidden)
}

/// Removes what killed writers of `target` left behind. Failures are ignored: leftovers only take space.
fn remove_leftovers(target: &Path, name: &str) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(folder_of(target)).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let process = file.to_str().and_then(|file| process_of_partial(file, name));
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            remove(&entry.path());
        }
    }
}

/// Returns the id of the process that writes `file`, if that is a temporary file for `name`.
fn process_of_partial(file: &str, name: &str) -> Option<u32> {
    let rest = file.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?;
    let (process, number) = rest.strip_suffix(".partial")?.split_once('-')?;
    number.parse::<u64>().ok()?;
    process.parse().ok()
}
