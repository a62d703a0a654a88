//! A server with a client in network namespaces of their own.

use crate::live_servers::{RunningServer, memcached_arguments};
use crate::{connect_when_ready, program, skip};
use machine::virtual_network::{DEVICE, VirtualHost, VirtualNetwork};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Two hosts of a virtual network, which is removed with the value.
#[derive(Debug)]
pub struct ServerAndClient(VirtualNetwork);

impl ServerAndClient {
    /// Makes the network; skips and returns `None` where networks cannot be made.
    pub fn create() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        program("ip")?;
        let prefix = format!("two-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match VirtualNetwork::create(run, &prefix, &["server", "client"]) {
            Ok(network) => Some(Self(network)),
            Err(error) => {
                skip(&format!("network namespaces cannot be made: {error}"));
                None
            }
        }
    }

    fn server(&self) -> &VirtualHost {
        self.0.host("server").expect("it was made")
    }

    /// The namespace of the client.
    pub fn client(&self) -> &str {
        &self.0.host("client").expect("it was made").netns
    }

    /// The namespace of the server.
    pub fn server_netns(&self) -> &str {
        &self.server().netns
    }

    /// The addresses of the server by IPv4 and IPv6, with a port.
    pub fn addresses(&self, port: u16) -> [SocketAddr; 2] {
        let server = self.server();
        [IpAddr::V4(server.ipv4), IpAddr::V6(server.ipv6)].map(|address| SocketAddr::new(address, port))
    }

    /// Returns the command line that moves the receive work of the server's device to these CPUs, a
    /// hexadecimal mask; `0` leaves it to the CPU of the sender.
    pub fn receive_on_cpus_command(&self, mask: &str) -> String {
        steering_command(&self.server().netns, DEVICE, mask)
    }

    /// Moves the receive work of the server's device to these CPUs, a mask; false if that is refused.
    pub fn receive_on_cpus(&self, mask: &str) -> bool {
        is_done(&self.receive_on_cpus_command(mask))
    }

    /// Moves the work of receiving and forwarding the server's output to these CPUs, a mask, as if a wire
    /// and the client's machine began behind its device; false if that is refused.
    pub fn wire_on_cpus(&self, mask: &str) -> bool {
        is_done(&steering_command(&self.0.switch, &self.server().port, mask))
    }

    /// Starts a program on the server, and waits until it accepts connections at the port.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(&self, command: &[&str], port: u16, folder: Option<TempDir>) -> RunningServer {
        let mut server = RunningServer::new(self.spawn(command), port, folder);
        let address = self.addresses(port)[0];
        let client = self.client();
        let child = server.child();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                machine::netns::enter(client).unwrap_or_else(|error| panic!("{error}"));
                connect_when_ready(child, || TcpStream::connect(address));
            });
        });
        server
    }

    fn spawn(&self, program: &[&str]) -> std::process::Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.server().netns]).args(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("ip starts")
    }

    /// memcached with two threads on the server; `None` where it is not installed.
    pub fn memcached(&self) -> Option<RunningServer> {
        self.start_memcached(&[])
    }

    /// memcached with two threads on the server and on some CPUs; `None` where it is not installed.
    pub fn pinned_memcached(&self, cpus: &str) -> Option<RunningServer> {
        program("taskset")?;
        self.start_memcached(&["taskset", "-c", cpus])
    }

    fn start_memcached(&self, before: &[&str]) -> Option<RunningServer> {
        program("memcached")?;
        let arguments = memcached_arguments(MEMCACHED_PORT, 2);
        let line: Vec<&str> =
            before.iter().copied().chain(["memcached"]).chain(arguments.iter().map(String::as_str)).collect();
        Some(self.start(&line, MEMCACHED_PORT, None))
    }
}

/// The port of memcached, which is free in a namespace of its own.
const MEMCACHED_PORT: u16 = 11211;

impl Drop for ServerAndClient {
    fn drop(&mut self) {
        let _ = self.0.remove(run);
    }
}

/// Returns the command line that steers the input of a device of a namespace to these CPUs (RPS).
fn steering_command(netns: &str, device: &str, mask: &str) -> String {
    format!("ip netns exec {netns} sh -c 'echo {mask} > /sys/class/net/{device}/queues/rx-0/rps_cpus'")
}

fn is_done(line: &str) -> bool {
    Command::new("sh").args(["-c", line]).status().is_ok_and(|status| status.success())
}

/// Runs a command line with standard input.
fn run(line: &str, input: Option<&str>) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().expect("a command has a name"));
    command.args(words);
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), input.unwrap_or_default()).map_err(|error| error.to_string())?;
    command.stdin(open(file.path())?);
    let output = command.output().map_err(|error| format!("{line}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn open(path: &Path) -> Result<std::fs::File, String> {
    std::fs::File::open(path).map_err(|error| error.to_string())
}
