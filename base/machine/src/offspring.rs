//! Child processes that do not outlive their parents.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::io;

/// Makes the kernel kill this process when the *thread* that started it ends, by a crash or otherwise. So
/// that thread must live as long as the child should.
///
/// # Errors
/// When the kernel refuses.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}
