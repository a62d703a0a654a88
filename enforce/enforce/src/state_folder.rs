//! Folder in which programs that run as root record their changes.
//!
//! A planted link or file could make root write to any file, or undo changes that were never made. So every
//! ancestor folder belongs to root or to this user, and others may not write to it. A sticky folder such as
//! /tmp is allowed, because others cannot rename our entries there. Files are opened relative to the open
//! folder, without following links.

use model::OperationError;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between attempts to take a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(20);
/// Flags for opening folders; the last path component must not be a link.
const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NO_FOLDER: &str = "it is a link or a file, not a folder";

/// A folder that only root and this user can change.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    folder: File,
}

/// Lock of a folder. It is held until the value is dropped and every program started meanwhile has exited.
#[derive(Debug)]
pub struct StateFolderLock {
    _file: File,
}

impl StateFolder {
    /// Opens a folder, and creates it with its ancestors if it does not exist.
    ///
    /// # Errors
    /// If another user could change its contents, or it cannot be created.
    pub fn create(path: &Path) -> Result<Self, OperationError> {
        std::fs::create_dir_all(path).map_err(|error| unusable(path, &error))?;
        Self::open(path)?.ok_or_else(|| unusable(path, &io::ErrorKind::NotFound.into()))
    }

    /// Opens a folder; returns `None` if it does not exist.
    ///
    /// # Errors
    /// If another user could change its contents, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Option<Self>, OperationError> {
        if let Err(error) = std::fs::symlink_metadata(path) {
            let is_absent = error.kind() == io::ErrorKind::NotFound;
            return if is_absent { Ok(None) } else { Err(unusable(path, &error)) };
        }
        check_ancestors(path)?;
        let folder = match rustix::fs::open(path, FOLDER_FLAGS, Mode::empty()) {
            Ok(folder) => File::from(folder),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(unsafe_place(path, NO_FOLDER));
            }
            Err(error) => return Err(unusable(path, &error.into())),
        };
        check_owner(path, &stat(path, &folder)?)?;
        Ok(Some(Self { path: path.to_owned(), folder }))
    }

    /// Opens or creates the subfolder `name`, gives it to `owner`, and makes it accessible only to the owner
    /// and root.
    ///
    /// # Errors
    /// If `name` is not a folder, or the folder cannot be created or given away.
    pub(crate) fn private_folder(
        &self,
        name: &str,
        owner: Option<(u32, u32)>,
    ) -> Result<Self, OperationError> {
        let path = self.path.join(name);
        match rustix::fs::mkdirat(&self.folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(unusable(&path, &error.into())),
        }
        let Self { folder, .. } =
            self.existing_folder(name)?.ok_or_else(|| unusable(&path, &io::ErrorKind::NotFound.into()))?;
        if let Some((user, group)) = owner {
            std::os::unix::fs::fchown(&folder, Some(user), Some(group))
                .map_err(|error| unusable(&path, &error))?;
        }
        rustix::fs::fchmod(&folder, Mode::RWXU).map_err(|error| unusable(&path, &error.into()))?;
        Ok(Self { path, folder })
    }

    /// Opens the subfolder `name`, of any owner; returns `None` if it does not exist.
    ///
    /// # Errors
    /// If `name` is not a folder, or it cannot be opened.
    pub(crate) fn existing_folder(&self, name: &str) -> Result<Option<Self>, OperationError> {
        let path = self.path.join(name);
        match rustix::fs::openat(&self.folder, name, FOLDER_FLAGS, Mode::empty()) {
            Ok(folder) => Ok(Some(Self { path, folder: folder.into() })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(unsafe_place(&path, NO_FOLDER)),
            Err(error) => Err(unusable(&path, &error.into())),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the folder's entries, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>, OperationError> {
        let listing = std::fs::read_dir(&self.path).map_err(|error| unusable(&self.path, &error))?;
        let mut names: Vec<OsString> = listing.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the contents of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// If the file is a link, belongs to a user other than root, this user and the folder's owner, or cannot
    /// be read.
    pub fn read(&self, name: &str) -> Result<Option<String>, OperationError> {
        let path = self.path.join(name);
        let Some(mut file) = self.open_own(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| unusable(&path, &error))?;
        Ok(Some(text))
    }

    /// Opens or creates a file, mode 0600, for reading and appending.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn append(&self, name: &str) -> Result<File, OperationError> {
        let file = self.open_own(name, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
        file.ok_or_else(|| unusable(&self.path.join(name), &io::ErrorKind::NotFound.into()))
    }

    fn open_own(&self, name: &str, how: OFlags) -> Result<Option<File>, OperationError> {
        let path = self.path.join(name);
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(unsafe_place(&path, "it is a symbolic link")),
            Err(error) => return Err(unusable(&path, &error.into())),
        };
        let about = stat(&path, &file)?;
        let folder = stat(&self.path, &self.folder)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || about.st_nlink != 1 {
            return Err(unsafe_place(&path, "it is not a regular file with a single link"));
        }
        if about.st_uid != folder.st_uid && !is_trusted(about.st_uid) {
            return Err(unsafe_place(&path, "it belongs to another user"));
        }
        Ok(Some(file))
    }

    /// Replaces a file atomically; after a crash either the old or the new contents are there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, name: &str, text: &str, permissions: u32) -> Result<(), OperationError> {
        self.write_and_rename(name, text, permissions)
            .map_err(|error| unusable(&self.path.join(name), &error))
    }

    fn write_and_rename(&self, name: &str, text: &str, permissions: u32) -> io::Result<()> {
        let temporary = format!("{name}.new");
        // A run that was interrupted may have left one behind.
        self.unlink(&temporary)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(permissions);
        let mut file = File::from(rustix::fs::openat(&self.folder, temporary.as_str(), flags, mode)?);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(rustix::fs::renameat(&self.folder, temporary.as_str(), &self.folder, name)?)
    }

    /// Removes a file. Returns false if it did not exist.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, OperationError> {
        self.unlink(name).map_err(|error| unusable(&self.path.join(name), &error))
    }

    fn unlink(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the folder's lock, waiting for at most `wait_max`. `waiting` is called once if another process
    /// holds the lock. Child processes inherit the lock: if this process is killed, the next one waits until
    /// its children have exited.
    ///
    /// # Errors
    /// If another process keeps the lock, or the lock file cannot be created.
    pub fn lock(
        &self,
        wait_max: Duration,
        waiting: &mut dyn FnMut(),
    ) -> Result<StateFolderLock, OperationError> {
        let path = self.path.join("lock");
        // Without CLOEXEC, so that child processes inherit the lock.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&self.folder, "lock", flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| unusable(&path, &error.into()))?;
        let begun = Instant::now();
        let mut has_waited = false;
        while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if !std::mem::replace(&mut has_waited, true) {
                waiting();
            }
            if begun.elapsed() > wait_max {
                let message = format_args!("another run of `tailwright apply` holds {}", path.display());
                return Err(OperationError::machine(message).hint("wait until it is done"));
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(StateFolderLock { _file: file.into() })
    }
}

/// Returns true for root and this user, who can change everything anyway.
fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

fn stat(path: &Path, file: &File) -> Result<Stat, OperationError> {
    rustix::fs::fstat(file).map_err(|error| unusable(path, &error.into()))
}

/// Refuses a path in which another user could have replaced a component.
fn check_ancestors(path: &Path) -> Result<(), OperationError> {
    let absolute = std::path::absolute(path).map_err(|error| unusable(path, &error))?;
    let mut above = PathBuf::new();
    for component in absolute.parent().unwrap_or(Path::new("/")).components() {
        above.push(component);
        if component == Component::ParentDir {
            continue;
        }
        let link = rustix::fs::lstat(&above).map_err(|error| unusable(&above, &error.into()))?;
        if !is_trusted(link.st_uid) {
            return Err(unsafe_place(&above, "it belongs to another user"));
        }
        // The target, if the component is a link.
        let target = rustix::fs::stat(&above).map_err(|error| unusable(&above, &error.into()))?;
        // In a sticky folder only owners can rename or remove their entries.
        if target.st_mode & Mode::SVTX.as_raw_mode() == 0 {
            check_owner(&above, &target)?;
        }
    }
    Ok(())
}

/// Refuses a folder that another user may change.
fn check_owner(path: &Path, about: &Stat) -> Result<(), OperationError> {
    if !is_trusted(about.st_uid) {
        return Err(unsafe_place(path, "it belongs to another user"));
    }
    let user = rustix::process::geteuid();
    let has_own_group = !user.is_root() && about.st_gid == rustix::process::getegid().as_raw();
    let writers = if has_own_group { Mode::WOTH } else { Mode::WOTH | Mode::WGRP };
    if about.st_mode & writers.as_raw_mode() != 0 {
        return Err(unsafe_place(path, "others may write to it"));
    }
    Ok(())
}

fn unusable(path: &Path, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: {error}", path.display()))
        .hint("run as root, or choose another folder with --state")
}

fn unsafe_place(path: &Path, why: &str) -> OperationError {
    OperationError::machine(format_args!("{}: {why}, so its contents cannot be trusted", path.display()))
        .hint("choose a folder with --state that only root (or you) can change, such as /run/tailwright")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder can be made")
    }

    #[test]
    fn files_are_replaced_as_a_whole_and_private() {
        let place = folder();
        let state = StateFolder::create(&place.path().join("a/b")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(state.read("x.json"), Ok(None));
        state
            .write("x.json", "one", 0o644)
            .and_then(|()| state.write("x.json", "two", 0o600))
            .expect("it is ours");
        assert_eq!(state.read("x.json"), Ok(Some("two".into())));
        let mode = std::fs::metadata(state.path().join("x.json")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(state.names().map(|names| names.len()), Ok(1));
        for (part, whole) in [("a", "a"), ("b", "ab")] {
            let mut log = state.append("log").expect("it is ours");
            log.write_all(part.as_bytes()).expect("it is ours");
            assert_eq!(state.read("log"), Ok(Some(whole.into())));
        }
        state.remove("log").expect("it is ours");
        assert_eq!((state.remove("x.json"), state.remove("x.json")), (Ok(true), Ok(false)));
        assert!(StateFolder::open(&place.path().join("none")).is_ok_and(|state| state.is_none()));
    }

    #[test]
    fn links_are_not_followed() {
        let place = folder();
        let real = place.path().join("real");
        let victim = place.path().join("victim");
        let state = StateFolder::create(&real).unwrap_or_else(|error| panic!("{error}"));
        std::fs::write(&victim, "precious").expect("it is ours");
        for name in ["x.json", "x.json.new", "lock"] {
            symlink(&victim, real.join(name)).expect("it is ours");
        }
        assert!(state.read("x.json").is_err_and(|error| error.message.contains("symbolic link")));
        state.write("x.json", "mine", 0o600).expect("the link is replaced");
        assert!(state.lock(Duration::ZERO, &mut || ()).is_err());
        assert_eq!(std::fs::read_to_string(&victim).expect("it is there"), "precious");
        symlink(&real, place.path().join("link")).expect("it is ours");
        let linked = StateFolder::create(&place.path().join("link"));
        assert!(linked.is_err_and(|error| error.message.contains("not a folder")));
        assert!(state.append("lock").is_err_and(|error| error.message.contains("symbolic link")));
        std::fs::hard_link(&victim, real.join("y.json")).expect("it is ours");
        assert!(state.read("y.json").is_err_and(|error| error.message.contains("single link")));
    }

    #[test]
    fn folders_of_others_are_refused() {
        let place = folder();
        let open = place.path().join("open");
        std::fs::create_dir_all(open.join("inner")).expect("it is ours");
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("it is ours");
        for path in [open.clone(), open.join("inner")] {
            let refused = StateFolder::create(&path);
            assert!(refused.is_err_and(|error| error.message.contains("others may write to it")), "{path:?}");
        }
        // As in /tmp.
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).expect("it is ours");
        assert!(StateFolder::create(&open.join("inner")).is_ok());
    }

    #[test]
    fn programs_hold_the_lock_of_a_process_that_has_ended() {
        let place = folder();
        let state = StateFolder::create(place.path()).unwrap_or_else(|error| panic!("{error}"));
        let held = state.lock(Duration::ZERO, &mut || ()).expect("nobody else has it");
        let mut waited = 0;
        assert!(state.lock(Duration::ZERO, &mut || waited += 1).is_err());
        assert_eq!(waited, 1);
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("there is a cat");
        drop(held);
        assert!(state.lock(Duration::ZERO, &mut || ()).is_err(), "the program has inherited it");
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        // Programs that other tests have started at this moment hold it, too.
        assert!(state.lock(Duration::from_secs(60), &mut || ()).is_ok());
    }
}
