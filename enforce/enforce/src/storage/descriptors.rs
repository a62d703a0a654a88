//! File descriptors: the limit of the process, and a reserve for when there are no more.

use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Descriptors of one client: its connection, and the one to the server.
const PER_CLIENT: u64 = 2;
/// Descriptors kept for control requests, scrapers, recordings, and clients whose end the server has not
/// seen yet.
const OWN_SPARE: u64 = 16;
/// Descriptors in reserve: enough to accept and connect a client while another is closed.
const RESERVED: usize = 4;

/// Raises the limit of open files of the process as far as it may.
pub fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Without permission the limit stays, and the number of places follows from it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Returns the number of clients for which this process may open descriptors.
pub(super) fn clients_max() -> u64 {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return u64::MAX };
    limit.saturating_sub(own_files()) / PER_CLIENT
}

/// Returns the limit of open files that this many clients require.
pub(super) fn files_for(clients: u64) -> u64 {
    clients.saturating_mul(PER_CLIENT).saturating_add(own_files())
}

/// Returns the number of open files, and of those that are kept for other purposes than clients.
fn own_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64) + OWN_SPARE
}

/// Returns true if an error says that the process or the system may open no more files.
pub(super) fn has_run_out(error: &io::Error) -> bool {
    matches!(
        rustix::io::Errno::from_io_error(error),
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
    )
}

/// Descriptors in reserve.
///
/// A connection that cannot be accepted stays in the listener's backlog, and its client is unknown. With a
/// descriptor of the reserve released, it can be accepted and, if a workload has a guaranteed place for it,
/// served.
#[derive(Debug)]
pub(super) struct DescriptorReserve(Vec<OwnedFd>);

impl DescriptorReserve {
    /// Creates a reserve by duplicating any descriptor.
    pub(super) fn new(any: impl AsFd) -> Self {
        let mut reserve = Self(Vec::new());
        reserve.restore(any);
        reserve
    }

    /// Calls `open`, a second time with one descriptor of the reserve released if there are no others.
    pub(super) fn open<T>(&mut self, mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match open() {
            Err(error) if has_run_out(&error) && self.0.pop().is_some() => open(),
            opened => opened,
        }
    }

    /// Fills the reserve. Returns false if that is not possible.
    pub(super) fn restore(&mut self, any: impl AsFd) -> bool {
        while self.0.len() < RESERVED {
            match rustix::io::fcntl_dupfd_cloexec(&any, 0) {
                Ok(descriptor) => self.0.push(descriptor),
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_of_the_reserve_is_released_for_another() {
        let mut reserve = DescriptorReserve::new(io::stdin());
        let mut failures = 2;
        let mut open = || {
            failures -= 1;
            if failures == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(24)) }
        };
        assert!(reserve.open(&mut open).is_ok());
        assert_eq!(reserve.0.len(), RESERVED - 1);
        assert!(reserve.restore(io::stdin()));
        assert_eq!(reserve.0.len(), RESERVED);
        let refused = reserve.open(|| Err::<(), _>(io::ErrorKind::ConnectionRefused.into()));
        assert!(refused.is_err() && reserve.0.len() == RESERVED);
    }

    #[test]
    fn clients_fit_into_their_files() {
        let most = clients_max();
        assert!(files_for(most) <= getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX));
    }
}
