//! The standard output, unless it was closed when the program started (`>&-`).
//!
//! Before `main`, Rust's runtime opens /dev/null in place of a closed standard stream, so writes would be
//! lost without an error. This module checks earlier: the C library calls the functions of `.init_array`
//! before `main`.
#![allow(unsafe_code, reason = "the place of a function in the program is a promise, and so is a descriptor")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section has pointers to functions like this one, which needs nothing that the runtime prepares.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: this only reads a flag, and fails where nothing is open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// The standard output.
///
/// # Errors
/// EBADF where it was closed when the program started.
pub fn standard_output() -> io::Result<Stdout> {
    if WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(io::stdout())
}

/// Returns true if output can still reach a reader: false once the reading end of the pipe, or the terminal,
/// is gone.
pub fn has_output_reader() -> bool {
    let stdout = io::stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
    // If poll fails, writing will report the error.
    let _ = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    !asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
