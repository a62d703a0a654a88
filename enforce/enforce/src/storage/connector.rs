//! Connections to the server behind a front, from the source address that the server expects.

use super::proxy_header;
use super::reserved_ports::{PortLease, ReservedPorts, is_port_taken};
use crate::deployment::{Front, SourceAddress};
use model::OperationError;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpTransparent;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_reuseaddr, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Ports below this one need privileges.
const RESERVED_END: u16 = 1024;
/// Documentation addresses (RFC 5737, RFC 3849), which belong to no host; used to try transparent binding.
const NOBODY: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Parameters of a front's connections to its server.
#[derive(Debug)]
pub(super) struct ServerConnector {
    /// Address of the server.
    pub(super) forward: SocketAddr,
    source: SourceAddress,
    /// Send the client's address to the server in a PROXY header.
    pub(super) announces: bool,
    /// The hosts file lets clients share connections.
    is_shared: bool,
    reserved: ReservedPorts,
}

/// Local end of a connection.
#[derive(Debug, Clone, Copy)]
struct LocalEnd {
    address: IpAddr,
    /// The address need not be one of this host (IP_TRANSPARENT).
    is_transparent: bool,
}

/// A connection in progress, and its lease of a local port.
#[derive(Debug)]
pub(super) struct BegunConnection {
    pub(super) socket: TcpStream,
    pub(super) port: Option<PortLease>,
}

impl ServerConnector {
    /// Creates a connector to the server's address behind a front.
    ///
    /// # Errors
    /// If the process may not use the required addresses or ports.
    pub(super) fn new(front: &Front, forward: SocketAddr) -> Result<Self, OperationError> {
        let reserved = ReservedPorts::beginning_at(std::process::id());
        let mut connector = Self {
            forward,
            source: front.source,
            announces: front.announce,
            is_shared: front.share,
            reserved,
        };
        connector.check_privileges()?;
        Ok(connector)
    }

    /// Returns true if clients may share connections: the server sees none of their addresses.
    pub(super) fn may_share(&self) -> bool {
        self.is_shared && self.source == SourceAddress::Proxy && !self.announces
    }

    /// Returns the lease of the port of a connection that another proxy has made, if the server requires one.
    pub(super) fn lease_again(&mut self, socket: &TcpStream) -> Option<PortLease> {
        let is_reserved = self.source == SourceAddress::Reserved;
        let address = socket.local_addr().ok().filter(|_| is_reserved)?;
        self.reserved.lease_of(address.port())
    }

    /// Returns the capabilities that connecting requires while the proxy runs.
    pub(super) fn capabilities(&self) -> &'static [&'static str] {
        match self.source {
            SourceAddress::Proxy => &[],
            SourceAddress::Reserved => &["CAP_NET_BIND_SERVICE"],
            SourceAddress::Client => &["CAP_NET_BIND_SERVICE", "CAP_NET_RAW"],
        }
    }

    /// Tries the operations that connections will need.
    fn check_privileges(&mut self) -> Result<(), OperationError> {
        let (source, what) = match self.source {
            SourceAddress::Proxy => return Ok(()),
            SourceAddress::Reserved => ("reserved", "ports below 1024"),
            SourceAddress::Client => ("client", "connections from the addresses of clients"),
        };
        let is_ipv6 = self.forward.is_ipv6();
        let from = match self.source {
            SourceAddress::Client => LocalEnd { address: NOBODY[usize::from(is_ipv6)], is_transparent: true },
            SourceAddress::Proxy | SourceAddress::Reserved => LocalEnd::any(is_ipv6),
        };
        let tried = self.reserved.try_ports(|port| from.bind(port));
        // A missing privilege fails before a port is found in use, so the latter proves the privilege.
        if tried.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
            return Ok(());
        }
        tried.map(drop).map_err(|error| {
            let needed = self.capabilities().join(" and ");
            let message = format!("source = \"{source}\" before {}: no {what}: {error}", self.forward);
            OperationError::machine(message).hint(format_args!(
                "they take root, or {needed} for as long as the proxy runs (docs/reference/proxy.md)"
            ))
        })
    }

    /// Begins a connection on behalf of a client, or of several, without waiting. The socket becomes writable when it is
    /// established.
    ///
    /// # Errors
    /// If it cannot be begun, for example because no port is left.
    pub(super) fn begin(&mut self, client: Option<SocketAddr>) -> io::Result<BegunConnection> {
        let to = self.forward;
        match self.source {
            SourceAddress::Proxy => {
                let socket = new_socket(to.is_ipv6(), SocketFlags::NONBLOCK)?;
                begin_connecting(&socket, to)?;
                Ok(BegunConnection { socket: socket.into(), port: None })
            }
            SourceAddress::Reserved => self.begin_reserved(LocalEnd::any(to.is_ipv6())),
            SourceAddress::Client => self.begin_as(client.ok_or(io::ErrorKind::AddrNotAvailable)?),
        }
    }

    /// Begins a connection from the client's address and, if it is free, its port. Otherwise it uses another
    /// port, below 1024 if the client's is.
    fn begin_as(&mut self, client: SocketAddr) -> io::Result<BegunConnection> {
        let to = self.forward;
        let address = client.ip().to_canonical();
        if address.is_ipv6() != to.is_ipv6() {
            let message =
                "source = \"client\": the client and the server have addresses of different families";
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        let from = LocalEnd { address, is_transparent: true };
        for port in [client.port(), 0] {
            if port == 0 && client.port() < RESERVED_END {
                return self.begin_reserved(from);
            }
            match from.begin(port, to) {
                Ok(socket) => return Ok(BegunConnection { socket: socket.into(), port: None }),
                Err(error) if is_port_taken(error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::ADDRINUSE.into())
    }

    /// Begins a connection from a port below 1024.
    fn begin_reserved(&mut self, from: LocalEnd) -> io::Result<BegunConnection> {
        let to = self.forward;
        let (socket, lease) = self.reserved.try_ports(|port| from.begin(port, to))?;
        Ok(BegunConnection { socket: socket.into(), port: Some(lease) })
    }
}

impl LocalEnd {
    /// Returns the proxy's own address, which the kernel chooses.
    fn any(is_ipv6: bool) -> Self {
        let address = if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Self { address, is_transparent: false }
    }

    /// Returns a socket that connects from a port of this address.
    fn begin(self, port: u16, to: SocketAddr) -> Result<OwnedFd, Errno> {
        let socket = self.bind(port)?;
        begin_connecting(&socket, to)?;
        Ok(socket)
    }

    /// Returns a socket bound to a port of this address.
    fn bind(self, port: u16) -> Result<OwnedFd, Errno> {
        let socket = new_socket(self.address.is_ipv6(), SocketFlags::NONBLOCK)?;
        // Connections to different servers may share a local port; connect(2) reports a conflict.
        set_socket_reuseaddr(&socket, true)?;
        if self.is_transparent {
            // The IPv4 option also applies to IPv6 sockets.
            setsockopt(&socket, IpTransparent, &true)
                .map_err(|error| Errno::from_raw_os_error(error as i32))?;
        }
        rustix::net::bind(&socket, &SocketAddr::new(self.address, port))?;
        Ok(socket)
    }
}

fn new_socket(is_ipv6: bool, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let family = if is_ipv6 { AddressFamily::INET6 } else { AddressFamily::INET };
    rustix::net::socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, Some(ipproto::TCP))
}

fn begin_connecting(socket: &OwnedFd, to: SocketAddr) -> Result<(), Errno> {
    match rustix::net::connect(socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a connection of the proxy itself, from a port below 1024 if permitted, since servers may require
/// one.
///
/// # Errors
/// If the server does not answer in time, or refuses.
pub(super) fn connect_for_itself(
    to: SocketAddr,
    announces: bool,
    timeout: Duration,
) -> io::Result<TcpStream> {
    /// Number of connections so far. Each has another port: a server that still knows the earlier connection of a
    /// port answers a new one only after a second, when it is asked again.
    static CONNECTIONS: AtomicU32 = AtomicU32::new(0);
    let earlier = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let mut ports = ReservedPorts::beginning_at(std::process::id().wrapping_add(earlier));
    let (mut stream, _) = ports.try_ports(|port| connect_from_port(to, port, timeout))?;
    if announces {
        stream.write_all(&proxy_header::own_connection())?;
    }
    Ok(stream)
}

/// Opens a connection from a port, or from any where the process may not use that one. A port of an earlier
/// connection to the same server is refused (TIME_WAIT) when it connects, not when it is bound.
fn connect_from_port(to: SocketAddr, port: u16, timeout: Duration) -> Result<TcpStream, Errno> {
    let socket = new_socket(to.is_ipv6(), SocketFlags::empty())?;
    for kind in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, kind, Some(timeout))?;
    }
    // Otherwise the port would be unusable for other servers for a minute (TIME_WAIT) after the connection.
    set_socket_reuseaddr(&socket, true)?;
    match rustix::net::bind(&socket, &SocketAddr::new(LocalEnd::any(to.is_ipv6()).address, port)) {
        Ok(()) | Err(Errno::ACCESS | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    rustix::net::connect(&socket, &to)?;
    Ok(socket.into())
}
