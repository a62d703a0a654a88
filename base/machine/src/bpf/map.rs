//! Creating, opening, pinning, reading and writing maps.
#![allow(unsafe_code, reason = "the layouts of attributes are promised to the system call")]

use super::call::{BpfAttributes, BpfCommand, address, call, call_for_fd, length, short_name};
use super::mapped::MappedWords;
use super::program::OperationProgram;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Parameters of a new map.
#[derive(Debug, Clone, Copy)]
pub struct MapDefinition<'a> {
    /// Name in listings of maps, at most 15 bytes.
    pub name: &'a str,
    /// `enum bpf_map_type` of `linux/bpf.h`.
    pub kind: u32,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// The most entries, or 0 where the kernel wants none.
    pub entries: u32,
    /// Flags that BPF_MAP_CREATE takes.
    pub flags: u32,
    /// The types of key and value, which storage of threads needs.
    pub types: Option<MapTypes<'a>>,
}

/// The types of a map's keys and values.
#[derive(Debug, Clone, Copy)]
pub struct MapTypes<'a> {
    /// Types that were loaded by [`load_types`].
    pub types: BorrowedFd<'a>,
    /// The number of the key's type there.
    pub key: u32,
    /// The number of the value's type there.
    pub value: u32,
}

#[repr(C)]
#[derive(Default)]
struct CreateAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
    inner_map: u32,
    node: u32,
    name: [u8; 16],
    interface: u32,
    types: u32,
    key_type: u32,
    value_type: u32,
    kernel_value_type: u32,
    unused: u32,
}

#[repr(C)]
struct ElementAttributes {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct PathAttributes {
    path: u64,
    object: u32,
    flags: u32,
}

#[repr(C)]
struct InfoAttributes {
    object: u32,
    bytes: u32,
    info: u64,
}

/// The beginning of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct TypesAttributes {
    types: u64,
    log: u64,
    types_bytes: u32,
    log_bytes: u32,
    log_level: u32,
    unused: u32,
}

#[repr(C)]
struct FreezeAttributes {
    map: u32,
    unused: u32,
}

#[repr(C)]
struct LinkAttributes {
    map: u32,
    target: u32,
    kind: u32,
    flags: u32,
}

// SAFETY: the layouts of linux/bpf.h. Addresses are those of slices that outlive the call. Their lengths
// are passed beside them, or are the map's own, which `BpfMap` checks beforehand.
unsafe impl BpfAttributes for CreateAttributes {}
// SAFETY: as above.
unsafe impl BpfAttributes for ElementAttributes {}
// SAFETY: as above.
unsafe impl BpfAttributes for PathAttributes {}
// SAFETY: as above.
unsafe impl BpfAttributes for InfoAttributes {}
// SAFETY: as above.
unsafe impl BpfAttributes for TypesAttributes {}
// SAFETY: as above.
unsafe impl BpfAttributes for FreezeAttributes {}
// SAFETY: as above.
unsafe impl BpfAttributes for LinkAttributes {}

/// The attach type BPF_STRUCT_OPS.
const STRUCT_OPS_LINK: u32 = 44;
/// The map type BPF_MAP_TYPE_STRUCT_OPS.
const STRUCT_OPS_MAP: u32 = 26;
/// Map flag BPF_F_LINK: the map's operations are registered for as long as a link to it exists.
const HELD_BY_LINK: u32 = 1 << 13;

/// Loads types in the BPF type format.
///
/// # Errors
/// When the kernel refuses them, or the right is missing.
pub fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    let mut attributes = TypesAttributes {
        types: address(types),
        log: 0,
        types_bytes: length(types)?,
        log_bytes: 0,
        log_level: 0,
        unused: 0,
    };
    call_for_fd(BpfCommand::TypesLoad, &mut attributes)
}

/// A map of the kernel.
#[derive(Debug)]
pub struct BpfMap {
    fd: OwnedFd,
    info: MapInfo,
}

impl std::fmt::Debug for MapInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "map {} of kind {}", self.id, self.kind)
    }
}

impl AsFd for BpfMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl BpfMap {
    /// Makes a map.
    ///
    /// # Errors
    /// When the kernel refuses it, or the right is missing.
    pub fn create(definition: &MapDefinition<'_>) -> io::Result<Self> {
        let types = definition.types;
        let mut attributes = CreateAttributes {
            kind: definition.kind,
            key_bytes: definition.key_bytes,
            value_bytes: definition.value_bytes,
            entries: definition.entries,
            flags: definition.flags,
            name: short_name(definition.name),
            types: types.map_or(0, |types| types.types.as_raw_fd().unsigned_abs()),
            key_type: types.map_or(0, |types| types.key),
            value_type: types.map_or(0, |types| types.value),
            ..CreateAttributes::default()
        };
        Self::of(call_for_fd(BpfCommand::MapCreate, &mut attributes)?)
    }

    /// Opens a map that was pinned.
    ///
    /// # Errors
    /// When there is no map at the path, or it may not be read and written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut attributes = PathAttributes { path: address(path.as_bytes_with_nul()), object: 0, flags: 0 };
        Self::of(call_for_fd(BpfCommand::ObjectGet, &mut attributes)?)
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        let mut info = [MapInfo::default()];
        let mut attributes = InfoAttributes {
            object: fd.as_raw_fd().unsigned_abs(),
            bytes: u32::try_from(size_of::<MapInfo>()).unwrap_or(0),
            info: info.as_mut_ptr().expose_provenance() as u64,
        };
        call(BpfCommand::ObjectInfo, &mut attributes)?;
        let [info] = info;
        Ok(Self { fd, info })
    }

    /// Returns the kernel's number of the map, unique among existing maps.
    pub fn number(&self) -> u32 {
        self.info.id
    }

    /// Returns the maximum number of entries.
    pub fn entries(&self) -> u32 {
        self.info.entries
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> u32 {
        self.info.value_bytes
    }

    /// Pins the map in bpffs, at a path by which other programs open it.
    ///
    /// # Errors
    /// When the path is not in bpffs or already exists.
    pub fn pin(&self, path: &Path) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let object = self.fd.as_raw_fd().unsigned_abs();
        let mut attributes = PathAttributes { path: address(path.as_bytes_with_nul()), object, flags: 0 };
        call(BpfCommand::ObjectPin, &mut attributes).map(drop)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// When key or value does not have the map's length, or the kernel refuses.
    pub fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key, value)?;
        let mut attributes = ElementAttributes {
            map: self.fd.as_raw_fd().unsigned_abs(),
            unused: 0,
            key: address(key),
            value: address(value),
            flags: 0,
        };
        call(BpfCommand::MapUpdate, &mut attributes).map(drop)
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// When key or value does not have the map's length, there is no such key, or the kernel refuses.
    pub fn look_up(&self, key: &[u8], value: &mut [u8]) -> io::Result<()> {
        self.check(key, value)?;
        let mut attributes = ElementAttributes {
            map: self.fd.as_raw_fd().unsigned_abs(),
            unused: 0,
            key: address(key),
            value: value.as_mut_ptr().expose_provenance() as u64,
            flags: 0,
        };
        call(BpfCommand::MapLookup, &mut attributes).map(drop)
    }

    fn check(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        // Maps of other kinds have values of one size for each CPU.
        let fits = length(key)? == self.info.key_bytes && length(value)? == self.info.value_bytes;
        if fits && [ARRAY, TASK_STORAGE].contains(&self.info.kind) {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    /// Makes the map read-only for user space, so that the verifier treats its values as constants.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn freeze(&self) -> io::Result<()> {
        let mut attributes = FreezeAttributes { map: self.fd.as_raw_fd().unsigned_abs(), unused: 0 };
        call(BpfCommand::MapFreeze, &mut attributes).map(drop)
    }

    /// Maps the values of an array created with BPF_F_MMAPABLE, or the pages of an arena, into this
    /// process.
    ///
    /// # Errors
    /// When the map is neither, or memory is short.
    pub fn map_memory(&self) -> io::Result<MappedWords> {
        let value_bytes = if self.info.kind == ARENA {
            rustix::param::page_size()
        } else {
            usize::try_from(self.info.value_bytes).unwrap_or(usize::MAX).next_multiple_of(8)
        };
        let entries = usize::try_from(self.info.entries).unwrap_or(usize::MAX);
        let bytes = value_bytes.checked_mul(entries).ok_or(io::ErrorKind::InvalidInput)?;
        MappedWords::map(self.fd.as_fd(), bytes)
    }
}

const ARRAY: u32 = 2;
const TASK_STORAGE: u32 = 29;
const ARENA: u32 = 33;

/// A map of struct_ops: the programs and other fields of one of the kernel's structures of operations.
#[derive(Debug)]
pub struct OperationsMap {
    fd: OwnedFd,
    value_bytes: usize,
}

impl OperationsMap {
    /// Creates a map for a structure of the kernel whose value has this kernel type and size. The kernel
    /// requires types that were loaded by [`load_types`], regardless of their content.
    ///
    /// # Errors
    /// When the kernel does not know operations of this type, or the privilege is missing.
    pub fn create(
        name: &str,
        types: BorrowedFd<'_>,
        kernel_value_type: u32,
        value_bytes: u32,
    ) -> io::Result<Self> {
        let mut attributes = CreateAttributes {
            kind: STRUCT_OPS_MAP,
            key_bytes: 4,
            value_bytes,
            entries: 1,
            flags: HELD_BY_LINK,
            name: short_name(name),
            types: types.as_raw_fd().unsigned_abs(),
            kernel_value_type,
            ..CreateAttributes::default()
        };
        let fd = call_for_fd(BpfCommand::MapCreate, &mut attributes)?;
        Ok(Self { fd, value_bytes: usize::try_from(value_bytes).unwrap_or(usize::MAX) })
    }

    /// Registers the operations with the kernel until the last copy of the returned descriptor is closed.
    ///
    /// `value` is the whole structure without programs; each program is inserted at its offset in bytes.
    ///
    /// # Errors
    /// When the value does not have the size of the map, an offset is beyond it, or the kernel refuses
    /// the operations.
    pub fn attach(&self, mut value: Vec<u8>, programs: &[(usize, &OperationProgram)]) -> io::Result<OwnedFd> {
        for (offset, program) in programs {
            let place = value.get_mut(*offset..*offset + 8).ok_or(io::ErrorKind::InvalidInput)?;
            place.copy_from_slice(&u64::from(program.as_fd().as_raw_fd().unsigned_abs()).to_ne_bytes());
        }
        if value.len() != self.value_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = self.fd.as_raw_fd().unsigned_abs();
        let key = [0_u8; 4];
        let mut update =
            ElementAttributes { map, unused: 0, key: address(&key), value: address(&value), flags: 0 };
        call(BpfCommand::MapUpdate, &mut update)?;
        let mut link = LinkAttributes { map, target: 0, kind: STRUCT_OPS_LINK, flags: 0 };
        call_for_fd(BpfCommand::LinkCreate, &mut link)
    }
}
