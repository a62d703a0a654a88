//! Network namespaces of this machine, as `ip netns` makes them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Moves the calling thread into a network namespace: what it opens from now on belongs there, and so do threads that
/// it starts.
///
/// # Errors
/// When there is no such namespace, or the process may not enter it (it takes root).
pub fn enter(name: &str) -> io::Result<()> {
    let path = format!("/run/netns/{name}");
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    let file = File::open(&path).map_err(named)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| named(error.into()))
}
