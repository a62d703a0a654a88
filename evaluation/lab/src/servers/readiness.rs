//! Probes the readiness of a server from inside its namespace.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use wire::rpc::client::{CallEncoder, Credentials};
use wire::rpc::{MOUNT, decode};

/// Time that a probe waits for a connection or an answer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest reply that is read, in bytes; one to GETPORT has some 30.
const REPLY_MAX: u32 = 4096;
/// The version of the MOUNT protocol that belongs to NFS version 3.
const MOUNT_VERSION: u32 = 3;

/// Evidence that a server is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadinessProbe {
    /// It accepts connections at this address.
    AcceptsConnections(SocketAddr),
    /// The portmapper at this address knows the port of MOUNT, which a file server registers last.
    MountRegistered(SocketAddr),
}

impl ReadinessProbe {
    /// Probes once, from inside a network namespace if one is given. Errors mean that the server is not ready.
    pub(super) fn succeeds(&self, netns: Option<&str>) -> bool {
        match netns {
            None => self.try_once().is_some(),
            // A thread that entered a namespace stays there, so a new one does it.
            Some(netns) => std::thread::scope(|scope| {
                let probe = scope.spawn(|| machine::netns::enter(netns).ok().and_then(|()| self.try_once()));
                probe.join().is_ok_and(|answer| answer.is_some())
            }),
        }
    }

    fn try_once(&self) -> Option<()> {
        match *self {
            Self::AcceptsConnections(address) => connect(address).map(drop),
            Self::MountRegistered(portmapper) => (mount_port(portmapper)? != 0).then_some(()),
        }
    }
}

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
    Some(stream)
}

/// The port of MOUNT according to the portmapper; zero if it is not registered.
fn mount_port(portmapper: SocketAddr) -> Option<u32> {
    let mut stream = connect(portmapper)?;
    let mut out = Vec::new();
    CallEncoder::new(&mut out, Credentials::None).getport(1, MOUNT, MOUNT_VERSION);
    stream.write_all(&out).ok()?;
    let mut record = vec![0; 4];
    stream.read_exact(&mut record).ok()?;
    // The highest bit of a record mark says that this is the last fragment; the others are its length.
    let len = u32::from_be_bytes(record[..4].try_into().ok()?) & !(1 << 31);
    record.resize(4 + usize::try_from(len.min(REPLY_MAX)).ok()?, 0);
    stream.read_exact(&mut record[4..]).ok()?;
    decode::getport(&decode::record_body(&record).ok()?).ok()
}
