//! Network namespaces: found by their nsfs file, and entered.

use crate::open_sockets::NetworkNamespace;
use model::OperationError;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Namespace link in the directory of a process or thread.
const NAMESPACE: &str = "ns/net";
/// Namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// Access to a network namespace.
#[derive(Debug)]
pub(super) enum NamespaceDoor {
    /// The namespace of this program.
    Own,
    /// Another namespace, by its open file.
    Other(File),
}

fn identity(about: &Metadata) -> NetworkNamespace {
    NetworkNamespace { device: about.dev(), inode: about.ino() }
}

/// Returns the network namespace of a process.
pub(super) fn namespace_of(process: u32) -> io::Result<NetworkNamespace> {
    fs::metadata(living_folder(process).join(NAMESPACE)).map(|about| identity(&about))
}

/// Returns the `/proc` directory with a process's descriptors and namespaces. If its main thread has ended,
/// that is the directory of another thread.
pub(super) fn living_folder(process: u32) -> PathBuf {
    let folder = Path::new("/proc").join(process.to_string());
    let is_gone = |folder: &Path| {
        fs::metadata(folder.join(NAMESPACE)).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    if !is_gone(&folder) {
        return folder;
    }
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path()).find(|thread| !is_gone(thread)).unwrap_or(folder)
}

impl NamespaceDoor {
    /// Opens a namespace: that of this program, of any process, or one mounted as a file, as `ip netns` does.
    /// `None` if it is gone.
    pub(super) fn find(namespace: NetworkNamespace) -> Result<Option<Self>, OperationError> {
        let is_it = |path: &Path| fs::metadata(path).is_ok_and(|about| identity(&about) == namespace);
        if is_it(Path::new(OWN)) {
            return Ok(Some(Self::Own));
        }
        let found = of_processes().chain(mounted(namespace)).find(|path| is_it(path));
        let opened = found.map(|path| {
            let failed =
                |error: io::Error| OperationError::machine(format_args!("{}: {error}", path.display()));
            let file = File::open(&path).map_err(failed)?;
            // The process may have ended, and its PID may have been reused.
            let about = file.metadata().map_err(failed)?;
            Ok((identity(&about) == namespace).then_some(Self::Other(file)))
        });
        opened.transpose().map(Option::flatten)
    }

    /// Runs `work` in the namespace, on a new thread unless it is this program's: setns(2) would move the
    /// calling thread.
    pub(super) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, OperationError> {
        match self {
            Self::Own => Ok(work()),
            Self::Other(file) => machine::netns::inside(file, work).map_err(|error| {
                OperationError::machine(format_args!("the server's network namespace: {error}"))
                    .hint("to enter it takes CAP_SYS_ADMIN: run as root")
            }),
        }
    }
}

/// Lists the visible processes.
pub(super) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn of_processes() -> impl Iterator<Item = PathBuf> {
    processes().map(|process| living_folder(process).join(NAMESPACE))
}

/// Returns the paths at which a namespace is mounted.
fn mounted(namespace: NetworkNamespace) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(|line| mount_point(line, namespace.inode)).collect()
}

/// Returns the mount point in a line `ID PARENT DEVICE ROOT POINT …`, if its root is the namespace.
fn mount_point(line: &str, inode: u64) -> Option<PathBuf> {
    let mut fields = line.split(' ').skip(3);
    let root = fields.next()?;
    let point = fields.next()?;
    if root == format!("net:[{inode}]") { Some(PathBuf::from(point)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_of_this_program_is_its_own() {
        let own = namespace_of(std::process::id()).expect("it runs");
        assert!(matches!(NamespaceDoor::find(own), Ok(Some(NamespaceDoor::Own))));
        let gone = NetworkNamespace { inode: 1, ..own };
        assert!(matches!(NamespaceDoor::find(gone), Ok(None)));
    }

    #[test]
    fn mounted_namespaces_are_known_by_their_number() {
        let line = "620 24 0:4 net:[4026532288] /run/netns/blue rw shared:309 - nsfs nsfs rw";
        assert_eq!(mount_point(line, 4_026_532_288), Some(PathBuf::from("/run/netns/blue")));
        assert_eq!(mount_point(line, 4_026_532_289), None);
        assert_eq!(mount_point("620 24", 4_026_532_288), None);
    }
}
