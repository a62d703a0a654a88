use crate::run::Step;
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

/// A target holds at least this many requests of the largest size, so that offsets are random.
pub const MIN_REQUESTS: u64 = 16;
/// Memory addresses that direct I/O accepts everywhere.
const ALIGNMENT: usize = 4096;
const FILL_CHUNK: u64 = 1 << 20;
/// `f_type` of file systems that live in memory (linux/magic.h): tmpfs and ramfs.
const MEMORY_FILE_SYSTEMS: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// What may be done to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Measure reads of what is there.
    ReadOnly,
    /// Overwrite what is there with random data.
    Overwrite {
        /// Block devices, too, and not only regular files.
        block_devices: bool,
    },
    /// Make a new file of this size, rounded up to whole MiB, which nobody else sees and which is gone
    /// afterwards. The target is the directory for it, or a path that does not exist.
    Create(Bytes),
}

impl Access {
    /// The operations that can be measured.
    pub fn ops(self) -> &'static [Op] {
        match self {
            Self::ReadOnly => &[Op::Read],
            Self::Overwrite { .. } | Self::Create(_) => &[Op::Read, Op::Write],
        }
    }
}

/// An open file or block device that takes direct I/O.
#[derive(Debug)]
pub struct Target {
    file: File,
    path: PathBuf,
    length: u64,
    block: Bytes,
    sparse: bool,
}

impl Target {
    /// Opens `path` for direct I/O; for [`Access::Create`] makes the file and fills it with random data,
    /// telling `progress` and giving up when `stop` is set.
    ///
    /// # Errors
    /// No such file or no permission; a directory, pipe or the like; a block device without consent or in
    /// use; a file system in memory or without direct I/O; too little space; interrupted.
    pub fn open(
        path: &Path,
        access: Access,
        seed: u64,
        progress: &mut dyn FnMut(Step),
        stop: &AtomicBool,
    ) -> Result<Self, OperationError> {
        let (file, path) = match access {
            Access::Create(size) => create(path, size)?,
            Access::ReadOnly | Access::Overwrite { .. } => (open_existing(path, access)?, path.to_owned()),
        };
        refuse_memory(&file, &path)?;
        if let Access::Create(size) = access {
            fill(&file, &path, size, seed, progress, stop)?;
        }
        let length =
            (&file).seek(SeekFrom::End(0)).map_err(|error| failed("find the end of", &path, &error))?;
        let block = direct_block(&file, &path, length)?;
        let metadata = file.metadata().map_err(|error| failed("inspect", &path, &error))?;
        let sparse = metadata.is_file() && metadata.blocks() * 512 < length;
        Ok(Self { file, path, length, block, sparse })
    }

    /// Bytes that can be read.
    pub fn length(&self) -> Bytes {
        Bytes(self.length)
    }

    /// Offsets and sizes are multiples of this.
    pub fn block(&self) -> Bytes {
        self.block
    }

    /// Whether part of the file occupies no space, so that reading it does not reach the device.
    pub fn sparse(&self) -> bool {
        self.sparse
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
            failed(&format!("{verb} {} bytes at {offset} of", buffer.len()), &self.path, &error)
        })
    }
}

/// Memory that direct I/O accepts: `len` bytes at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Filled with seeded random data, which neither compresses nor deduplicates.
    pub(crate) fn random(len: usize, rng: &mut StdRng) -> Self {
        let mut memory = vec![0; len + ALIGNMENT];
        let start = memory.as_ptr().addr().next_multiple_of(ALIGNMENT) - memory.as_ptr().addr();
        rng.fill_bytes(&mut memory[start..start + len]);
        Self { memory, start, len }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

fn direct_flag() -> i32 {
    OFlags::DIRECT.bits().cast_signed()
}

fn open_existing(path: &Path, access: Access) -> Result<File, OperationError> {
    let metadata = std::fs::metadata(path).map_err(|error| failed("inspect", path, &error))?;
    refuse_type(path, &metadata, access)?;
    let mut flags = direct_flag();
    let write = access != Access::ReadOnly;
    if write && metadata.file_type().is_block_device() {
        // The kernel refuses exclusive opens of block devices that are mounted, swapped to or part of
        // another device, and keeps others from starting so while we hold it.
        flags |= OFlags::EXCL.bits().cast_signed();
    }
    let opened = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    opened.map_err(|error| failed("open", path, &error))
}

fn refuse_type(path: &Path, metadata: &Metadata, access: Access) -> Result<(), OperationError> {
    let shown = path.display();
    if metadata.is_dir() {
        return Err(OperationError::input(format!("{shown} is a directory"))
            .hint("with --create SIZE, a temporary file in that directory is measured"));
    }
    if metadata.file_type().is_block_device() {
        if access == (Access::Overwrite { block_devices: false }) {
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

/// A new file that has no name any more: whatever ends the program also frees the space.
fn create(path: &Path, size: Bytes) -> Result<(File, PathBuf), OperationError> {
    let file_path = if path.is_dir() {
        path.join(format!(".tailwright-profile-{}", std::process::id()))
    } else {
        path.to_owned()
    };
    let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&file_path);
    let file = opened.map_err(|error| failed("create", &file_path, &error))?;
    std::fs::remove_file(&file_path).map_err(|error| failed("unlink", &file_path, &error))?;
    // Only now: where direct I/O is refused, opening with O_CREAT | O_DIRECT fails and leaves a file.
    rustix::fs::fcntl_getfl(&file)
        .and_then(|flags| rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT))
        .map_err(|error| failed("open", &file_path, &error.into()))?;
    let space = rustix::fs::fstatvfs(&file)
        .map_err(|error| failed("find the free space of", &file_path, &error.into()))?;
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
    progress: &mut dyn FnMut(Step),
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
        // Distinct blocks, so that no layer stores one of them once; all of it random once per run.
        for block in buffer.bytes().chunks_exact_mut(512) {
            let stamp = rng.next_u64().to_le_bytes();
            block[..stamp.len()].copy_from_slice(&stamp);
        }
        file.write_all_at(buffer.bytes(), chunk * FILL_CHUNK)
            .map_err(|error| failed("fill", path, &error))?;
        progress(Step::Fill { done: chunk + 1, total: chunks });
    }
    file.sync_all().map_err(|error| failed("flush", path, &error))
}

fn refuse_memory(file: &File, path: &Path) -> Result<(), OperationError> {
    let system = rustix::fs::fstatfs(file).map_err(|error| failed("inspect", path, &error.into()))?;
    if MEMORY_FILE_SYSTEMS.contains(&system.f_type) && !is_block_device(file) {
        return Err(OperationError::machine(format!(
            "{} is on a file system in memory, not on a device",
            path.display()
        ))
        .hint("choose a path on the storage to be measured"));
    }
    Ok(())
}

/// The file system of a device node says nothing about the device.
fn is_block_device(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// The smallest unit in which `file` can be read directly.
fn direct_block(file: &File, path: &Path, length: u64) -> Result<Bytes, OperationError> {
    let mut buffer = AlignedBuffer::random(ALIGNMENT, &mut StdRng::seed_from_u64(0));
    for block in [512, 1024, 2048, ALIGNMENT] {
        if length < 2 * block as u64 {
            return Err(OperationError::input(format!("{} holds only {}", path.display(), Bytes(length))));
        }
        match file.read_exact_at(&mut buffer.bytes()[..block], block as u64) {
            Ok(()) => return Ok(Bytes(block as u64)),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            Err(error) => return Err(failed("read", path, &error)),
        }
    }
    Err(no_direct_io(path))
}

fn no_direct_io(path: &Path) -> OperationError {
    OperationError::machine(format!("{}: the file system has no direct I/O (O_DIRECT)", path.display())).hint(
        "without it the page cache would be measured; choose a file on ext4, xfs, btrfs or a block device",
    )
}

/// An operating system error in the user's words.
fn failed(doing: &str, path: &Path, error: &io::Error) -> OperationError {
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
