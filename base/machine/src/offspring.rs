//! Child processes that do not outlive their parents.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::io;

/// Has the kernel kill this process when the thread that started it ends, by a crash or otherwise. Who starts a process
/// that calls this must do so from a thread that lives as long as the process shall.
///
/// # Errors
/// When the kernel refuses.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}
