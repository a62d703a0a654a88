//! Servers that a test starts: a port for each, and the first connection to it.

use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Child;

/// Returns a loopback address for a server that this process starts. No other process gets the port while
/// this one lives.
///
/// The kernel chooses the port for a socket that stays bound, without listening, until this process ends.
/// It then gives the port to no other socket, neither to bind nor to connect from: two test programs that
/// run at the same time never start servers at one address. A server that sets `SO_REUSEADDR`, as all
/// servers of the tests do, may bind the port beside it and listen.
///
/// # Panics
/// When the machine has no free port, or this process has no free file descriptor.
pub fn free_address() -> SocketAddr {
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .expect("a socket can be made");
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    net::bind(&socket, &any_port).expect("a loopback port is free");
    // Set after binding: the port was chosen exclusively, and the server is let in beside this socket.
    sockopt::set_socket_reuseaddr(&socket, true).expect("a TCP socket has this option");
    let address = net::getsockname(&socket).expect("a bound socket has an address");
    // The socket reserves the port until the process ends.
    std::mem::forget(socket);
    SocketAddr::try_from(address).expect("an IPv4 socket has an IPv4 address")
}

/// Connects to a server that was just started, as soon as it accepts connections.
///
/// # Panics
/// When the server ends instead.
pub fn connect_when_ready<S>(server: &mut Child, connect: impl Fn() -> io::Result<S>) -> S {
    loop {
        let connection = connect();
        // Checked even after a successful connection: another server may have answered.
        let ended = server.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the server ended: {ended:?}");
        if let Ok(connection) = connection {
            return connection;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::free_address;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    #[test]
    fn a_free_address_is_given_once_and_a_server_may_listen_there() {
        let addresses: Vec<SocketAddr> = std::iter::repeat_with(free_address).take(50).collect();
        for (index, address) in addresses.iter().enumerate() {
            assert!(!addresses[..index].contains(address), "{address} was given twice");
            assert!(TcpStream::connect(address).is_err(), "nobody listens at {address} yet");
            let _server = TcpListener::bind(address).expect("a listener of std sets SO_REUSEADDR");
            assert!(TcpStream::connect(address).is_ok(), "the server listens at {address}");
        }
    }
}
