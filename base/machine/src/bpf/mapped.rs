//! The values of a map in the memory of a process.
#![allow(unsafe_code, reason = "memory is mapped by the kernel")]

use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Memory that is shared with the kernel, as words. The kernel and other processes may access it at any time.
#[derive(Debug)]
pub struct MappedWords {
    begin: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory stays mapped until this is dropped, and atomic words may be shared.
unsafe impl Send for MappedWords {}
// SAFETY: as above.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// Maps this many bytes of a descriptor, from its beginning.
    pub(super) fn map(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let begin = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        Self::of(begin, bytes)
    }

    /// Maps a page of zeros that is zeroed again in a forked child.
    ///
    /// # Errors
    /// When memory is short, or the kernel is older than Linux 4.14.
    pub fn wiped_on_fork() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let begin = unsafe { libc::mmap(std::ptr::null_mut(), PAGE_BYTES, protection, flags, -1, 0) };
        let page = Self::of(begin, PAGE_BYTES)?;
        // SAFETY: the page was just mapped, and nothing else refers to it.
        let answer = unsafe { libc::madvise(begin, PAGE_BYTES, libc::MADV_WIPEONFORK) };
        if answer == 0 { Ok(page) } else { Err(io::Error::last_os_error()) }
    }

    fn of(begin: *mut libc::c_void, bytes: usize) -> io::Result<Self> {
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { begin, words: bytes / size_of::<AtomicU64>() })
    }
}

const PAGE_BYTES: usize = 4096;

impl Deref for MappedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the memory is mapped as long as this lives, starts at a page, and has this many words.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.words) }
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: no reference into the mapping is left.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}
