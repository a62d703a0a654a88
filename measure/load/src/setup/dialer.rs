//! Sockets from a chosen address: blocking TCP connections within a time limit, and UDP sockets that are connected.

use crate::workload::ClientHost;
use model::OperationError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// The longest wait for a connection, and for each reply while it is set up.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Size of the receive buffer of datagrams in bytes; the kernel may allow less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Opens connections from the host of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    client: ClientHost,
}

impl Dialer {
    pub(crate) fn new(client: ClientHost) -> Self {
        Self { client }
    }

    pub(super) fn netns(&self) -> Option<&str> {
        self.client.netns.as_deref()
    }

    /// Opens a blocking connection with timeouts for reads and writes. The calling thread has to be in
    /// the namespace of the client.
    pub(crate) fn dial(&self, server: SocketAddr) -> Result<TcpStream, OperationError> {
        connect_from(self.client.bind, server).map_err(|error| self.unreachable(server, &error))
    }

    /// Opens a UDP socket that exchanges datagrams with one server only. An absent server is noticed with
    /// the first datagram.
    pub(super) fn dial_udp(&self, server: SocketAddr) -> Result<UdpSocket, OperationError> {
        udp_from(self.client.bind, server).map_err(|error| self.unreachable(server, &error))
    }

    fn unreachable(&self, server: SocketAddr, error: &io::Error) -> OperationError {
        let from = self.client.bind.map(|bind| format!(" from {bind}")).unwrap_or_default();
        let place = self.netns().map(|name| format!(" in namespace {name}")).unwrap_or_default();
        OperationError::machine(format_args!("{server} cannot be reached{from}{place}: {error}"))
            .hint(unreachable_hint(error))
    }
}

/// Returns advice about a socket that cannot be opened or connected.
fn unreachable_hint(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => {
            "each connection takes an open file: raise the limit (`ulimit -n`), or use fewer connections"
        }
        Some(Errno::NFILE) => {
            "the whole machine has too many open files: raise `fs.file-max`, or use fewer connections"
        }
        _ => "is the server running, and does it listen on this address?",
    }
}

/// The standard library can neither bind before connecting nor limit the time of a connection attempt from a bound
/// socket, so that the socket is made by hand: non-blocking while it connects, blocking afterwards.
fn connect_from(source: Option<IpAddr>, server: SocketAddr) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(address) = source {
        bind(&socket, &SocketAddr::new(address, 0))?;
    }
    match connect(&socket, &server) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let timeout = Timespec::try_from(TIMEOUT).expect("a few seconds");
            if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&timeout))? == 0 {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {TIMEOUT:?}")));
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

fn udp_from(source: Option<IpAddr>, server: SocketAddr) -> io::Result<UdpSocket> {
    let any = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((source.unwrap_or(any), 0))?;
    socket.connect(server)?;
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
    Ok(socket)
}

/// Sends all of `bytes`.
pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).map_err(|error| describe(&error))
}

/// Waits for bytes and appends them to `input`. The end of the stream is an error.
pub(crate) fn receive(stream: &mut TcpStream, input: &mut Vec<u8>) -> Result<(), String> {
    let mut chunk = [0; 16 << 10];
    match stream.read(&mut chunk) {
        Ok(0) => Err("the server hung up".to_owned()),
        Ok(count) => {
            input.extend_from_slice(&chunk[..count]);
            Ok(())
        }
        Err(error) => Err(describe(&error)),
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no answer within {TIMEOUT:?}"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_is_not_the_servers_fault() {
        for (error, part) in [
            (Errno::MFILE, "ulimit -n"),
            (Errno::NFILE, "fs.file-max"),
            (Errno::CONNREFUSED, "is the server"),
        ] {
            let hint = unreachable_hint(&error.into());
            assert!(hint.contains(part), "{error}: {hint}");
        }
    }
}
