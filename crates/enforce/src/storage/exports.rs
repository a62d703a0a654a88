//! Which NFS export a file handle belongs to.
//!
//! A file handle is opaque, and yet servers put the export in front of the file. The kernel's server writes a version,
//! the type of the file system's identifier, the type of the file's, and then the two identifiers: handles of one export
//! have the same identifier of the file system. Other servers (nfs-ganesha) are taken to begin all handles of an export
//! alike: a handle belongs to the export with whose root it shares the longest beginning, unless it shares less than two
//! roots share with each other.
//!
//! Root handles are learned from the replies to MOUNT calls, the clients' and the proxy's own. A handle says what a
//! request is about and nothing about who sends it: the client's address is compared as well, and a handle that a
//! client has made up is refused by the server.

use std::collections::BTreeMap;

/// How many exports are known at most; further ones are not learned.
const EXPORTS_MAX: usize = 1024;
/// The shortest common beginning that says something: versions and flags are common to all handles of a server.
const COMMON_MIN: usize = 6;
/// The version of the handles of the kernel's server, and the type of authentication behind it.
const KERNEL_VERSION: [u8; 2] = [1, 0];
/// Length of the identifier of a file system in handles of the kernel's server, by its type.
const KERNEL_FILE_SYSTEM_LEN: [usize; 8] = [8, 4, 12, 8, 8, 8, 16, 24];

/// The exports of a server and the handles of their roots. An export has the number of its position.
#[derive(Debug, Default)]
pub(super) struct ExportTable {
    paths: Vec<Vec<u8>>,
    roots: Vec<Vec<u8>>,
    by_path: BTreeMap<Vec<u8>, u32>,
}

impl ExportTable {
    /// Learns the root handle of an export; whether that was new.
    pub(super) fn learn(&mut self, path: &[u8], root: &[u8]) -> bool {
        if let Some(&number) = self.by_path.get(path) {
            let known = &mut self.roots[number as usize];
            let is_new = known != root;
            root.clone_into(known);
            return is_new;
        }
        if self.paths.len() >= EXPORTS_MAX {
            return false;
        }
        let number = u32::try_from(self.paths.len()).expect("few exports");
        self.paths.push(path.to_vec());
        self.roots.push(root.to_vec());
        self.by_path.insert(path.to_vec(), number);
        true
    }

    /// The path of the export with this number.
    pub(super) fn path(&self, number: u32) -> &[u8] {
        &self.paths[number as usize]
    }

    /// The number of the export that a handle belongs to, if that can be said.
    pub(super) fn export_of(&self, handle: &[u8]) -> Option<u32> {
        let mut best: Option<(usize, u32)> = None;
        let mut is_unique = false;
        for (number, root) in (0..).zip(&self.roots) {
            let common = common_len(root, handle);
            match best {
                Some((most, _)) if common == most => is_unique = false,
                Some((most, _)) if common < most => {}
                _ => (best, is_unique) = (Some((common, number)), true),
            }
        }
        let (common, number) = best.filter(|(common, _)| is_unique && *common >= COMMON_MIN)?;
        // What differs from every root earlier than the roots differ from each other is in none of the exports.
        let root = &self.roots[number as usize];
        let mut others = (0..).zip(&self.roots).filter(|(other, _)| *other != number);
        let is_apart = others.all(|(_, other)| common_len(other, root) < common);
        is_apart.then_some(number)
    }
}

/// How many bytes two handles have in common, as far as these concern the export.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    match (kernel_file_system(one), kernel_file_system(other)) {
        // All or nothing: identifiers of file systems have no order.
        (Some(one), Some(other)) if one == other => one.1.len() + COMMON_MIN,
        (None, None) => one.iter().zip(other).take_while(|(a, b)| a == b).count(),
        _ => 0,
    }
}

/// The type and identifier of the file system in a handle of the kernel's server.
fn kernel_file_system(handle: &[u8]) -> Option<(u8, &[u8])> {
    let (version, rest) = handle.split_at_checked(2)?;
    let [file_system_type, _, identifiers @ ..] = rest else { return None };
    let len = *KERNEL_FILE_SYSTEM_LEN.get(usize::from(*file_system_type))?;
    let identifier = identifiers.get(..len).filter(|_| version == KERNEL_VERSION)?;
    Some((*file_system_type, identifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_belongs_to_the_export_whose_root_it_begins_like() {
        let mut table = ExportTable::default();
        assert_eq!(table.export_of(b"v1-fs-a-1234"), None);
        assert!(table.learn(b"/a", b"v1-fs-a-root"));
        assert!(!table.learn(b"/a", b"v1-fs-a-root"));
        assert!(table.learn(b"/b", b"v1-fs-b-root"));
        assert_eq!(table.export_of(b"v1-fs-a-1234").map(|number| table.path(number)), Some(&b"/a"[..]));
        assert_eq!(table.export_of(b"v1-fs-b-1234").map(|number| table.path(number)), Some(&b"/b"[..]));
        // Another file system, and garbage.
        assert_eq!(table.export_of(b"v1-fs-c-1234"), None);
        assert_eq!(table.export_of(b"v1"), None);
        assert_eq!(table.export_of(b""), None);
        // The server was reinstalled: the export has another root now.
        assert!(table.learn(b"/a", b"v2-fs-a-root"));
        assert_eq!(table.export_of(b"v2-fs-a-1234").map(|number| table.path(number)), Some(&b"/a"[..]));
    }

    #[test]
    fn the_kernel_puts_the_type_of_the_file_between() {
        let handle =
            |file_type: u8, system: &[u8], file: &[u8]| [&[1, 0, 6, file_type][..], system, file].concat();
        let mut table = ExportTable::default();
        table.learn(b"/a", &handle(0, b"0123456789abcdef", b""));
        table.learn(b"/b", &handle(0, b"0123456789abcdeF", b""));
        let file = handle(1, b"0123456789abcdef", b"inode");
        assert_eq!(table.export_of(&file).map(|number| table.path(number)), Some(&b"/a"[..]));
        assert_eq!(table.export_of(&handle(1, b"0123456789abcde_", b"inode")), None);
    }

    #[test]
    fn one_path_under_two_names_is_neither() {
        let mut table = ExportTable::default();
        table.learn(b"/a", b"handle-of-a");
        table.learn(b"/alias", b"handle-of-a");
        assert_eq!(table.export_of(b"handle-of-a"), None);
    }
}
