//! What tests of the storage proxy begin with: a hosts file, and clients at addresses of their own.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a connection of a test waits at most: only so that everything ends.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A front in a hosts file: its protocol, where it listens, and the server behind it.
pub type HostsFront<'a> = (&'a str, SocketAddr, SocketAddr);

/// The text of a hosts file with the server `ssd` on the host `here`, whose storage has these fronts and `fields`, and with
/// `clients` as they are written there.
pub fn one_server_hosts(fronts: &[HostsFront<'_>], fields: &str, clients: &str) -> String {
    let mut lines = String::new();
    for (protocol, listen, forward) in fronts {
        let _ = writeln!(
            lines,
            "{{ protocol = \"{protocol}\", listen = \"{listen}\", forward = \"{forward}\" }},"
        );
    }
    format!(
        r#"
        [[host]]
        name = "here"
        device.lo = "1Gbps"
        [[server]]
        name = "ssd"
        host = "here"
        address = ["127.0.0.1"]
        [server.storage]
        profile = "none"
        {fields}
        front = [
            {lines}
        ]
        {clients}"#
    )
}

/// A connection from the local address `from`, which says whose it is.
///
/// # Errors
/// When the address is not this machine's, or nobody listens.
pub fn connect_from(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddr::from((from, 0)))?;
    connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}
