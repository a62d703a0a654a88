//! Attribution of file handles to NFS exports.
//!
//! A file handle is opaque, but servers put the export before the file. The kernel's server writes a
//! version, the type of the file system's identifier, the type of the file's, and then the two
//! identifiers: handles of one export have the same file-system identifier. Other servers are assumed to
//! begin all handles of an export alike, as nfs-ganesha does (a version, flags, the number of the export
//! in two bytes). A handle belongs to the export whose root has the longest common prefix with it, unless
//! that is shorter than the common prefix of two roots.
//!
//! Root handles are learned from the replies to MOUNT calls, the clients' and the proxy's own, for
//! exports that the hosts file names. A handle identifies the target of a request, not its sender: the
//! client's address does that. A handle that a client has made up is up to the server to refuse.

use std::collections::BTreeMap;

/// Maximum number of known exports; further ones are not learned.
const EXPORTS_MAX: usize = 1024;
/// Minimum length of a significant common prefix: versions and flags are common to all handles of a
/// server.
const COMMON_MIN: usize = 6;
/// Version of the handles of the kernel's server, and the authentication type behind it.
const KERNEL_VERSION: [u8; 2] = [1, 0];
/// Length of the identifier of a file system in handles of the kernel's server, by its type.
const KERNEL_FILE_SYSTEM_LEN: [usize; 8] = [8, 4, 12, 8, 8, 8, 16, 24];

/// Exports of a server and the handles of their roots. An export is identified by its position.
#[derive(Debug, Default)]
pub(super) struct ExportTable {
    paths: Vec<Vec<u8>>,
    roots: Vec<Vec<u8>>,
    by_path: BTreeMap<Vec<u8>, u32>,
}

impl ExportTable {
    /// Records the root handle of an export. Returns true if it was new.
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

    /// Returns the number of the export with this path.
    pub(super) fn number_of(&self, path: &[u8]) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// Returns the paths and the handles of the roots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.paths.iter().map(Vec::as_slice).zip(self.roots.iter().map(Vec::as_slice))
    }

    /// Returns the path of the export with this number.
    pub(super) fn path(&self, number: u32) -> &[u8] {
        &self.paths[number as usize]
    }

    /// Returns the number of the export that a handle belongs to, if that is certain.
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
        // A handle that differs from every root earlier than the roots differ from each other is in none
        // of the exports.
        let root = &self.roots[number as usize];
        let mut others = (0..).zip(&self.roots).filter(|(other, _)| *other != number);
        let is_apart = others.all(|(_, other)| common_len(other, root) < common);
        is_apart.then_some(number)
    }
}

/// Returns the length of the common prefix of two handles, restricted to the export's part.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    match (kernel_file_system(one), kernel_file_system(other)) {
        // All or nothing: the bytes of file-system identifiers have no hierarchy.
        (Some(one), Some(other)) if one == other => one.1.len() + COMMON_MIN,
        (None, None) => one.iter().zip(other).take_while(|(a, b)| a == b).count(),
        _ => 0,
    }
}

/// Returns the type and identifier of the file system in a handle of the kernel's server.
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
        // The server was reinstalled: the export has a different root now.
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
    fn exports_inside_a_file_system_have_its_identifier_and_their_inode() {
        // Type 7: a UUID of 16 bytes, and the inode of the export's root.
        let handle = |file_type: u8, inode: u8, file: &[u8]| {
            [&[1, 0, 7, file_type][..], &[inode, 0, 0, 0, 0, 0, 0, 0], &[0xab; 16], file].concat()
        };
        let mut table = ExportTable::default();
        table.learn(b"/disk/a", &handle(0, 3, b""));
        table.learn(b"/disk/b", &handle(0, 4, b""));
        let of = |handle: &[u8]| table.export_of(handle).map(|number| table.path(number).to_vec());
        assert_eq!(of(&handle(0x81, 4, b"inode, generation")), Some(b"/disk/b".to_vec()));
        assert_eq!(of(&handle(2, 3, b"inode, generation")), Some(b"/disk/a".to_vec()));
        // Another file system mounted below one of them is a separate export.
        assert_eq!(of(&handle(1, 5, b"inode, generation")), None);
        // Truncated, and of an unknown type.
        assert_eq!(of(&handle(0, 3, b"")[..12]), None);
        assert_eq!(of(&[&[1, 0, 200, 0][..], &[3; 24]].concat()), None);
    }

    /// Handles from nfs-ganesha 4.3, of exports 1, 2 and 258 in one file system, the last two of one
    /// folder.
    #[test]
    fn handles_of_ganesha_have_the_number_of_their_export() {
        let system = [0x16, 0x44, 0x48, 0xd4, 0xee, 0x03, 0x51, 0x97, 0xb6, 0x59, 0x01];
        let handle = |export: [u8; 2], file: [u8; 5], padding: usize| {
            [&[0x43, 0][..], &export, &system, &file, &vec![0; padding]].concat()
        };
        let folder = [0x2d, 0x07, 0xc6, 0x9f, 5];
        let file = [0xa6, 0xa3, 0x2b, 0xe2, 0x0e];
        let mut table = ExportTable::default();
        table.learn(b"/gold", &handle([0, 2], folder, 8));
        // The only known export, which still does not claim every handle.
        assert_eq!(table.export_of(&handle([0, 1], file, 8)), None);
        table.learn(b"/export", &handle([0, 1], [0x88, 0x20, 0x7a, 0x67, 3], 8));
        table.learn(b"/again", &handle([1, 2], folder, 8));
        for (number, path) in [([0, 2], b"/gold" as &[u8]), ([0, 1], b"/export"), ([1, 2], b"/again")] {
            // NFSv4 has one byte of padding less.
            for padding in [8, 7] {
                let found = table.export_of(&handle(number, file, padding));
                assert_eq!(found.map(|number| table.path(number)), Some(path));
            }
        }
    }

    #[test]
    fn one_path_under_two_names_is_neither() {
        let mut table = ExportTable::default();
        table.learn(b"/a", b"handle-of-a");
        table.learn(b"/alias", b"handle-of-a");
        assert_eq!(table.export_of(b"handle-of-a"), None);
    }
}
