//! The system call bpf(2). Its attributes are structures whose layout is part of the kernel's stable ABI; the
//! kernel zero-extends shorter ones.

use rustix::fd::{FromRawFd, OwnedFd, RawFd};
use std::io;

/// Commands of bpf(2), `enum bpf_cmd` of `linux/bpf.h`.
#[derive(Debug, Clone, Copy)]
pub(super) enum BpfCommand {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgramLoad = 5,
    ObjectPin = 6,
    ObjectGet = 7,
    ObjectInfo = 15,
    TypesLoad = 18,
    MapFreeze = 22,
    LinkCreate = 28,
}

/// Attribute structure of a command.
///
/// # Safety
/// The layout is the one that the kernel expects for the command, without padding between fields. Pointers
/// in it stay valid for the duration of the call.
#[allow(unsafe_code, reason = "implementors promise a layout")]
pub(super) unsafe trait BpfAttributes {}

#[allow(unsafe_code, reason = "there is no safe wrapper of this system call")]
pub(super) fn call<A: BpfAttributes>(command: BpfCommand, attributes: &mut A) -> io::Result<i64> {
    let place = std::ptr::from_mut(attributes);
    // SAFETY: `place` has the stated number of bytes, and the trait guarantees their layout.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command as i64, place, size_of::<A>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Makes a call that returns a new descriptor.
#[allow(unsafe_code, reason = "the kernel hands over the descriptor as a number")]
pub(super) fn call_for_fd<A: BpfAttributes>(command: BpfCommand, attributes: &mut A) -> io::Result<OwnedFd> {
    let number = call(command, attributes)?;
    let number = RawFd::try_from(number).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    // SAFETY: the kernel has just created it, and there is no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A name as the kernel keeps it: at most 15 bytes.
pub(super) fn short_name(name: &str) -> [u8; 16] {
    let mut short = [0; 16];
    for (into, byte) in short.iter_mut().take(15).zip(name.bytes()) {
        *into = byte;
    }
    short
}

/// An address as the kernel takes it.
pub(super) fn address<T>(bytes: &[T]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

/// The length of a buffer for the kernel.
pub(super) fn length<T>(buffer: &[T]) -> io::Result<u32> {
    u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
