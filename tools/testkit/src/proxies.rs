//! A hosts file, and clients with addresses of their own, for tests of the storage proxy.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait of a connection of a test: only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A front in a hosts file: its protocol, where it listens, and the server behind it.
pub type HostsFront<'a> = (&'a str, SocketAddr, SocketAddr);

/// Returns the text of a hosts file with the server `ssd` on the host `here`. Its storage has these
/// fronts and `fields`; `clients` is inserted as it is.
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

/// Opens a connection from the local address `from`, by which the proxy identifies the client.
///
/// # Errors
/// When the address does not belong to this machine, or no server listens.
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
