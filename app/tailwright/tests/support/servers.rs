//! Servers that a test starts, which end with it.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// A program that is killed in the end.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

impl Running {
    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.0, name);
    }

    /// Waits for the end; whether it was a good one.
    pub(crate) fn ends_well(mut self) -> bool {
        self.0.wait().expect("a child can be waited for").success()
    }
}

/// Sends a signal, such as `TERM`, to a program.
pub(crate) fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(done.expect("kill runs").success(), "kill -{name}");
}

/// A server that listens at a free address, with `PORT` in its arguments replaced; none where it is not installed.
pub(crate) fn server(program: &str, arguments: &str) -> Option<(Running, SocketAddr)> {
    server_at(testkit::free_address(), program, arguments)
}

/// A server that listens at this address.
pub(crate) fn server_at(
    address: SocketAddr,
    program: &str,
    arguments: &str,
) -> Option<(Running, SocketAddr)> {
    let path = testkit::program(program)?;
    let arguments = arguments.replace("PORT", &address.port().to_string());
    let child = Command::new(path).args(arguments.split(' ')).stdin(Stdio::null()).spawn();
    let mut running = Running(child.expect("the server starts"));
    testkit::connect_when_ready(&mut running.0, || TcpStream::connect(address));
    Some((running, address))
}

/// The arguments of a memcached for [`server`].
pub(crate) const MEMCACHED: &str = "-u root -l 127.0.0.1 -U 0 -p PORT";

/// A memcached, where it is installed.
pub(crate) fn memcached() -> Option<(Running, SocketAddr)> {
    server("memcached", MEMCACHED)
}
