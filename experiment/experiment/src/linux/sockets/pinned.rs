//! Pinned socket records, which outlive this program: one directory in bpffs per experiment.

use super::bpf_mounts;
use crate::open_sockets::{NetworkNamespace, ServerSockets, SocketOption};
use crate::setting::ProcessIdentity;
use model::OperationError;
use rustix::fs::{Access, AtFlags, CWD, accessat, statfs};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Usual mount point of bpffs.
const MOUNT: &str = "/sys/fs/bpf";
/// File system type of bpffs (BPF_FS_MAGIC).
const MAGIC: u64 = 0xcafe_4a11;
/// File of the records; the number is the version of their layout.
const RECORDS: &str = "records-1";

/// Returns the directory of this program's records for an option and the server's first port.
pub(super) fn folder(option: SocketOption, namespace: NetworkNamespace, port: u16) -> PathBuf {
    let ProcessIdentity { id, start } = crate::linux::identity(std::process::id())
        .unwrap_or(ProcessIdentity { id: std::process::id(), start: 0 });
    Path::new(MOUNT).join(format!("tailwright-{option}-{id}-{start}-{}-{port}", namespace.inode))
}

/// Returns the path of the records in a directory.
pub(super) fn records(folder: &Path) -> PathBuf {
    folder.join(RECORDS)
}

/// Returns true if a directory has records, so that sockets may have been changed.
pub(super) fn has_records(folder: &Path) -> bool {
    records(folder).exists()
}

/// Returns the device number of the file system of a path.
pub(super) fn device_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|about| about.dev())
}

/// Returns the directory of records left by another program. If another bpffs is mounted at the recorded
/// path, it is reached through a process that still has the original mount. `None` if the records are gone.
///
/// # Errors
/// If no process can reach that file system, because something is mounted over it.
pub(super) fn find(sockets: &ServerSockets) -> Result<Option<PathBuf>, OperationError> {
    let ServerSockets { folder, device, .. } = sockets;
    if has_records(folder) {
        return Ok(Some(folder.clone()));
    }
    let (Some(device), Some(mount), Some(name)) = (*device, folder.parent(), folder.file_name()) else {
        return Ok(None);
    };
    if device_of(mount) == Some(device) {
        return Ok(None);
    }
    let points = bpf_mounts::points_of(device);
    if let Some(point) = points.iter().find(|point| device_of(point) == Some(device)) {
        return Ok(Some(point.join(name)).filter(|folder| has_records(folder)));
    }
    // No mount is left, and the records disappeared with the last one.
    let Some(point) = points.first() else { return Ok(None) };
    let message =
        format_args!("{}: another file system is mounted over the records of sockets", point.display());
    Err(OperationError::machine(message).hint("unmount the upper one: umount /sys/fs/bpf"))
}

/// Removes a directory, records last: until then, an undo can be repeated.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    paths.sort_by_key(|path| path.ends_with(RECORDS));
    paths.iter().try_for_each(fs::remove_file)?;
    fs::remove_dir(folder)
}

/// Returns the reason why this process cannot keep records there.
pub(super) fn unusable(folder: &Path) -> Option<OperationError> {
    unusable_mount(folder.parent()?)
}

/// Returns the reason why this process cannot keep records at the usual mount point.
pub(super) fn mount_unusable() -> Option<OperationError> {
    unusable_mount(Path::new(MOUNT))
}

fn unusable_mount(mount: &Path) -> Option<OperationError> {
    let is_bpf = statfs(mount).is_ok_and(|about| u64::try_from(about.f_type) == Ok(MAGIC));
    if !is_bpf {
        let message = format_args!("{}: no file system of BPF is mounted there", mount.display());
        return Some(OperationError::machine(message).hint(format_args!(
            "what sockets had before is kept there: mount -t bpf bpf {}",
            mount.display()
        )));
    }
    let error = accessat(CWD, mount, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).err()?;
    let message = format_args!("{}: {}", mount.display(), io::Error::from(error));
    Some(OperationError::machine(message).hint("what sockets had before is kept there: run as root"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_keep_nothing_are_told() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let error = unusable(&folder.path().join("tailwright")).expect("it is on a disk");
        assert!(error.message.contains("no file system of BPF"), "{error}");
        assert!(error.hint.is_some_and(|hint| hint.contains("mount -t bpf bpf")));
    }

    #[test]
    fn records_are_removed_at_last() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let inner = folder.path().join("inner");
        remove(&inner).expect("there is nothing to remove");
        fs::create_dir(&inner).expect("it is ours");
        fs::write(records(&inner), "").expect("it is ours");
        // An entry that cannot be removed stops the removal before the records.
        fs::create_dir(inner.join("watcher-0")).expect("it is ours");
        assert!(remove(&inner).is_err() && has_records(&inner));
        fs::remove_dir(inner.join("watcher-0")).expect("it is ours");
        remove(&inner).expect("it is ours");
        assert!(!inner.exists());
    }
}
