//! Whether a server is ready, seen from inside its namespace.

use super::service::Ready;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use wire::rpc::client::{CallEncoder, Credentials};
use wire::rpc::{MOUNT, decode};

const PATIENCE: Duration = Duration::from_millis(500);
/// A reply to GETPORT has some 30 bytes.
const REPLY_MAX: u32 = 4096;

/// Asks once; nothing is wrong with a server that is not ready.
pub(super) fn is_ready(ready: &Ready, netns: Option<&str>) -> bool {
    match netns {
        None => ask(ready).is_some(),
        // A thread that entered a namespace stays there.
        Some(netns) => std::thread::scope(|scope| {
            let asked = scope.spawn(|| machine::netns::enter(netns).ok().and_then(|()| ask(ready)));
            asked.join().is_ok_and(|answer| answer.is_some())
        }),
    }
}

fn ask(ready: &Ready) -> Option<()> {
    match *ready {
        Ready::Listens(address) => connect(address).map(drop),
        Ready::Registered(portmapper) => (mount_port(portmapper)? != 0).then_some(()),
    }
}

fn connect(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

/// The port of MOUNT; zero if it is not registered.
fn mount_port(portmapper: SocketAddr) -> Option<u32> {
    let mut stream = connect(portmapper)?;
    let mut out = Vec::new();
    CallEncoder::new(&mut out, Credentials::None).getport(1, MOUNT, 3);
    stream.write_all(&out).ok()?;
    let mut record = vec![0; 4];
    stream.read_exact(&mut record).ok()?;
    let len = u32::from_be_bytes(record[..4].try_into().ok()?) & !(1 << 31);
    record.resize(4 + usize::try_from(len.min(REPLY_MAX)).ok()?, 0);
    stream.read_exact(&mut record[4..]).ok()?;
    decode::getport(&decode::record_body(&record).ok()?).ok()
}
