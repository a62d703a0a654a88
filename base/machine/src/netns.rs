//! Network namespaces of this machine, as `ip netns` makes them.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Moves the calling thread into a network namespace. Sockets that it opens and threads that it starts
/// from then on belong there.
///
/// # Errors
/// When there is no such namespace, or the process may not enter it (requires root).
pub fn enter(name: &str) -> io::Result<()> {
    let path = format!("/run/netns/{name}");
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    let file = File::open(&path).map_err(named)?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| named(error.into()))
}

/// Runs `work` in the network namespace of an open file, on a separate thread.
///
/// # Errors
/// When the process may not enter it (requires root).
///
/// # Panics
/// When `work` panics, or no thread can be started.
pub fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        });
        worker.join().expect("what is done there does not panic")
    })
}
