//! Ports below 1024 for connections to a server that trusts only root.

use rustix::io::Errno;
use std::io;
use std::sync::{Arc, Weak};

/// Lowest port used: services have most of those below.
const FIRST: u16 = 512;
/// Number of ports used.
const COUNT: u16 = 512;
/// Maximum number of ports tried; one may be in use or in TIME_WAIT.
const ATTEMPTS: usize = 64;

/// Ports in use by connections of this proxy to one server.
///
/// A returned port is reused last: the server may still expect packets of its previous connection.
#[derive(Debug)]
pub(super) struct ReservedPorts {
    holders: Vec<Weak<()>>,
    next: usize,
}

/// A port that no other connection gets while this exists.
#[derive(Debug)]
pub(super) struct PortLease {
    pub(super) port: u16,
    _holder: Arc<()>,
}

impl ReservedPorts {
    /// Creates the set of ports, starting at one derived from `choice`: programs on one host that start
    /// at the same port would collide.
    pub(super) fn beginning_at(choice: u32) -> Self {
        Self {
            holders: std::iter::repeat_with(Weak::new).take(COUNT.into()).collect(),
            next: (choice % u32::from(COUNT)) as usize,
        }
    }

    /// Takes a port that a connection has already. Returns `None` for one that is not among these.
    pub(super) fn lease_of(&mut self, port: u16) -> Option<PortLease> {
        let place = usize::from((FIRST + COUNT - 1).checked_sub(port)?);
        let holder = Arc::new(());
        *self.holders.get_mut(place)? = Arc::downgrade(&holder);
        Some(PortLease { port, _holder: holder })
    }

    /// Returns what `attempt` makes of the first port that is not taken, with that port.
    ///
    /// # Errors
    /// If an attempt fails otherwise, or all ports are taken.
    pub(super) fn try_ports<T>(
        &mut self,
        mut attempt: impl FnMut(u16) -> Result<T, Errno>,
    ) -> io::Result<(T, PortLease)> {
        for _ in 0..ATTEMPTS {
            let Some(lease) = self.lease() else { break };
            match attempt(lease.port) {
                Ok(made) => return Ok((made, lease)),
                Err(error) if is_port_taken(error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "no port below 1024 is free"))
    }

    /// Returns the next free port.
    pub(super) fn lease(&mut self) -> Option<PortLease> {
        let count = self.holders.len();
        let mut line = (self.next..self.next + count).map(|place| place % count);
        let place = line.find(|place| self.holders[*place].strong_count() == 0)?;
        self.next = place + 1;
        let holder = Arc::new(());
        self.holders[place] = Arc::downgrade(&holder);
        // From the top: programs that bind unassigned ports below 1024 prefer low ones.
        let below_top = u16::try_from(place).expect("fewer than ports");
        Some(PortLease { port: FIRST + COUNT - 1 - below_top, _holder: holder })
    }
}

/// Returns true if a connection from another port may succeed.
pub(super) fn is_port_taken(error: Errno) -> bool {
    matches!(error, Errno::ADDRINUSE | Errno::ADDRNOTAVAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_lent_once_and_come_back_last() {
        let mut ports = ReservedPorts::beginning_at(512);
        let mut leases: Vec<PortLease> = std::iter::from_fn(|| ports.lease()).collect();
        let mut numbers: Vec<u16> = leases.iter().map(|lease| lease.port).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[511]), (512, 1023, 512));
        numbers.dedup();
        assert_eq!(numbers.len(), 512);
        let first = leases.remove(0);
        let second = leases.remove(0);
        assert_eq!((first.port, second.port), (1023, 1022));
        drop(second);
        let again = ports.lease().expect("it was given back");
        drop(first);
        let last = ports.lease().expect("it was given back");
        assert_eq!((again.port, last.port), (1022, 1023));
        assert!(ports.lease().is_none());
        drop((leases, again));
        assert_eq!(ports.lease().map(|lease| lease.port), Some(1022));
    }
}
