//! The file or block device that is measured: opens it for direct I/O, and refuses what must not or cannot be measured.

use crate::aligned_buffer::{ALIGNMENT, AlignedBuffer};
use crate::progress::ProfileProgress;
use model::{Op, OperationError};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use units::Bytes;

/// Minimum number of requests of the largest size that fit into a target, so that offsets are random.
pub const MIN_REQUESTS: u64 = 16;
/// The size of the writes that fill a created file.
const FILL_CHUNK: u64 = 1 << 20;
/// The `f_type` of file systems that live in memory (linux/magic.h): tmpfs and ramfs.
const MEMORY_FILE_SYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Permitted access of a measurement to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetAccess {
    /// Only read the existing contents.
    ReadOnly,
    /// Overwrite the contents of the target with random data.
    Overwrite {
        /// True if the target may be a block device; false for regular files only.
        block_devices: bool,
    },
    /// Create a file of this size, rounded up to whole MiB, which no other process sees and which vanishes when it is
    /// closed. The path is the directory for it, or does not exist.
    Create(Bytes),
}

impl TargetAccess {
    /// The operations that can be measured.
    pub fn ops(self) -> &'static [Op] {
        match self {
            Self::ReadOnly => &[Op::Read],
            Self::Overwrite { .. } | Self::Create(_) => &[Op::Read, Op::Write],
        }
    }
}

/// An open file or block device that accepts direct I/O.
#[derive(Debug)]
pub struct StorageTarget {
    file: File,
    path: PathBuf,
    length: u64,
    block: Bytes,
    is_sparse: bool,
}

impl StorageTarget {
    /// Opens `path` for direct I/O. For [`TargetAccess::Create`], creates the file and fills it with
    /// random data; reports to `progress`, and stops once `stop` is set.
    ///
    /// # Errors
    /// When the file is missing or permission is denied; when the path is a directory, pipe or the like,
    /// or a block device that is in use or that the user has not agreed to overwrite; when the file
    /// system is in memory or does not support direct I/O; when there is too little space; and when
    /// filling was stopped.
    pub fn open(
        path: &Path,
        access: TargetAccess,
        seed: u64,
        progress: &mut dyn FnMut(ProfileProgress),
        stop: &AtomicBool,
    ) -> Result<Self, OperationError> {
        let (file, path) = match access {
            TargetAccess::Create(size) => create(path, size)?,
            TargetAccess::ReadOnly | TargetAccess::Overwrite { .. } => {
                (open_existing(path, access)?, path.to_owned())
            }
        };
        refuse_memory(&file, &path)?;
        if let TargetAccess::Create(size) = access {
            fill(&file, &path, size, seed, progress, stop)?;
        }
        let length =
            (&file).seek(SeekFrom::End(0)).map_err(|error| io_failure("find the end of", &path, &error))?;
        let block = direct_block(&file, &path, length)?;
        let metadata = file.metadata().map_err(|error| io_failure("inspect", &path, &error))?;
        let is_sparse = metadata.is_file() && metadata.blocks() * 512 < length;
        Ok(Self { file, path, length, block, is_sparse })
    }

    /// The number of bytes that can be read.
    pub fn length(&self) -> Bytes {
        Bytes(self.length)
    }

    /// The size that all offsets and lengths of requests must be multiples of.
    pub fn block(&self) -> Bytes {
        self.block
    }

    /// True if part of the file occupies no space: reads of that part do not reach the device.
    pub fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    /// The file or device that is measured.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads or writes all of `buffer` at `offset`.
    pub(crate) fn transfer(&self, op: Op, buffer: &mut [u8], offset: u64) -> Result<(), OperationError> {
        let (verb, result) = match op {
            Op::Read => ("read", self.file.read_exact_at(buffer, offset)),
            Op::Write => ("write", self.file.write_all_at(buffer, offset)),
        };
        result.map_err(|error| {
            io_failure(&format!("{verb} {} bytes at {offset} of", buffer.len()), &self.path, &error)
        })
    }
}

/// O_DIRECT, as the standard library takes it.
fn direct_flag() -> i32 {
    OFlags::DIRECT.bits().cast_signed()
}

fn open_existing(path: &Path, access: TargetAccess) -> Result<File, OperationError> {
    let metadata = std::fs::metadata(path).map_err(|error| io_failure("inspect", path, &error))?;
    refuse_type(path, &metadata, access)?;
    let mut flags = direct_flag();
    let write = access != TargetAccess::ReadOnly;
    if write && metadata.file_type().is_block_device() {
        // For block devices, O_EXCL means exclusive use: the kernel refuses it while the device is mounted, swapped to or
        // part of another device, and refuses those uses while we hold it.
        flags |= OFlags::EXCL.bits().cast_signed();
    }
    let opened = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    opened.map_err(|error| io_failure("open", path, &error))
}

fn refuse_type(path: &Path, metadata: &Metadata, access: TargetAccess) -> Result<(), OperationError> {
    let shown = path.display();
    if metadata.is_dir() {
        return Err(OperationError::input(format!("{shown} is a directory"))
            .hint("with --create SIZE, a temporary file in that directory is measured"));
    }
    if metadata.file_type().is_block_device() {
        if access == (TargetAccess::Overwrite { block_devices: false }) {
            return Err(OperationError::input(format!(
                "{shown} is a block device: writing destroys all data on it"
            ))
            .hint(
                "to measure the file system on it, use --create; to destroy the data, say so with \
                     --destroy-device-data",
            ));
        }
        return Ok(());
    }
    if metadata.is_file() {
        Ok(())
    } else {
        Err(OperationError::input(format!("{shown} is neither a regular file nor a block device")))
    }
}

/// Creates a file and removes its name at once, so that the kernel frees the space however the program ends.
fn create(path: &Path, size: Bytes) -> Result<(File, PathBuf), OperationError> {
    let file_path = if path.is_dir() {
        path.join(format!(".tailwright-profile-{}", std::process::id()))
    } else {
        path.to_owned()
    };
    let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&file_path);
    let file = opened.map_err(|error| io_failure("create", &file_path, &error))?;
    std::fs::remove_file(&file_path).map_err(|error| io_failure("unlink", &file_path, &error))?;
    // The flag is set only now, because opening with O_CREAT | O_DIRECT fails after it has created the file where direct
    // I/O is not supported.
    rustix::fs::fcntl_getfl(&file)
        .and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT))
        .map_err(|error| io_failure("open", &file_path, &error.into()))?;
    let space = rustix::fs::fstatvfs(&file)
        .map_err(|error| io_failure("find the free space of", &file_path, &error.into()))?;
    let free = Bytes(space.f_bavail.saturating_mul(space.f_frsize));
    if size >= free {
        return Err(OperationError::machine(format!(
            "{}: {size} asked for, {free} free",
            file_path.display()
        ))
        .hint("choose a smaller --create or another directory"));
    }
    Ok((file, file_path))
}

fn fill(
    file: &File,
    path: &Path,
    size: Bytes,
    seed: u64,
    progress: &mut dyn FnMut(ProfileProgress),
    stop: &AtomicBool,
) -> Result<(), OperationError> {
    let chunks = size.0.div_ceil(FILL_CHUNK);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut buffer = AlignedBuffer::random(1 << 20, &mut rng);
    for chunk in 0..chunks {
        if stop.load(Ordering::Relaxed) {
            return Err(OperationError::machine(
                "interrupted while filling the file; nothing is left behind",
            ));
        }
        // A stamp makes every block distinct, so that no layer deduplicates them. The rest of each block may stay the same:
        // it is random, which is enough against compression.
        for block in buffer.bytes_mut().chunks_exact_mut(512) {
            let stamp = rng.next_u64().to_le_bytes();
            block[..stamp.len()].copy_from_slice(&stamp);
        }
        file.write_all_at(buffer.bytes_mut(), chunk * FILL_CHUNK)
            .map_err(|error| io_failure("fill", path, &error))?;
        progress(ProfileProgress::Fill { done: chunk + 1, total: chunks });
    }
    file.sync_all().map_err(|error| io_failure("flush", path, &error))
}

fn refuse_memory(file: &File, path: &Path) -> Result<(), OperationError> {
    let system = rustix::fs::fstatfs(file).map_err(|error| io_failure("inspect", path, &error.into()))?;
    if MEMORY_FILE_SYSTEMS.contains(&system.f_type) && !is_block_device(file) {
        return Err(OperationError::machine(format!(
            "{} is on a file system in memory, not on a device",
            path.display()
        ))
        .hint("choose a path on the storage to be measured"));
    }
    Ok(())
}

/// True if `file` is a block device. The file system of its node does not matter then.
fn is_block_device(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// The smallest unit in which `file` can be read with direct I/O, found by trying.
fn direct_block(file: &File, path: &Path, length: u64) -> Result<Bytes, OperationError> {
    let mut buffer = AlignedBuffer::random(ALIGNMENT, &mut StdRng::seed_from_u64(0));
    for block in [512, 1024, 2048, ALIGNMENT] {
        if length < 2 * block as u64 {
            return Err(OperationError::input(format!("{} holds only {}", path.display(), Bytes(length))));
        }
        match file.read_exact_at(&mut buffer.bytes_mut()[..block], block as u64) {
            Ok(()) => return Ok(Bytes(block as u64)),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            Err(error) => return Err(io_failure("read", path, &error)),
        }
    }
    Err(no_direct_io(path))
}

fn no_direct_io(path: &Path) -> OperationError {
    OperationError::machine(format!("{}: the file system has no direct I/O (O_DIRECT)", path.display())).hint(
        "without it the page cache would be measured; choose a file on ext4, xfs, btrfs or a block device",
    )
}

/// Makes the error for a failure to do `doing` with `path`, with the remedy where one is known.
fn io_failure(doing: &str, path: &Path, error: &io::Error) -> OperationError {
    let message = format!("cannot {doing} {}: {error}", path.display());
    match error.kind() {
        ErrorKind::NotFound => OperationError::input(message)
            .hint("TARGET is an existing file or device, or with --create a directory"),
        ErrorKind::AlreadyExists => OperationError::input(message).hint(
            "--create makes a new file and never touches an existing one: give a directory or a new name",
        ),
        ErrorKind::PermissionDenied => {
            OperationError::machine(message).hint("block devices usually need root")
        }
        ErrorKind::ResourceBusy => OperationError::machine(message)
            .hint("the device is mounted or in use; measure its file system with --create instead"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            OperationError::machine(message).hint("choose a smaller --create")
        }
        ErrorKind::InvalidInput if doing == "open" => no_direct_io(path),
        _ => OperationError::machine(message),
    }
}
