//! A server that reports the options of its own sockets: a test sets them from outside and compares.

use crate::{free_address, program};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Command, Stdio};

/// Answers each line of a connection with the TCP_NODELAY and TCP_CONGESTION that it has; `nodelay 0` or `congestion reno`
/// sets it before. With a third argument, it is a child of the process that has made the listening socket.
const SCRIPT: &str = r"
import os, socket, sys, threading

def serve(connection):
    with connection, connection.makefile('rwb') as lines:
        for line in lines:
            words = line.decode().split()
            if words[0] == 'nodelay':
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(words[1]))
            if words[0] == 'congestion':
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, words[1].encode())
            lines.write(options(connection))
            lines.flush()

def options(connection):
    no_delay = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    congestion = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    name = congestion.split(b'\0')[0].decode()
    return f'{int(no_delay)} {name}\n'.encode()

host, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ':' in host else socket.AF_INET
listener = socket.create_server((host, port), family=family, backlog=512, reuse_port=True)
if len(sys.argv) > 3 and os.fork():
    os.wait()
    sys.exit()
print(os.getpid(), flush=True)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
";

/// The place at which the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionServerPlace {
    /// A process that listens on the loopback interface, by IPv4.
    Loopback,
    /// The same by IPv6.
    LoopbackOfIpv6,
    /// On the loopback interface of a network namespace of its own, which requires root.
    OwnNamespace,
    /// A child accepts and serves; the process that was started has the listening socket, too.
    Child,
}

/// The server, which ends with the value.
#[derive(Debug)]
pub struct OptionServer {
    server: Child,
    /// The process that serves.
    serving: u32,
    /// The address that it listens at.
    pub address: SocketAddr,
}

/// The options of the server's side of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenOptions {
    /// True if small segments are sent at once (TCP_NODELAY).
    pub no_delay: bool,
    /// The name of the congestion control.
    pub congestion_control: String,
}

/// A connection to the server.
#[derive(Debug)]
pub struct OptionClient(BufReader<TcpStream>);

impl OptionServer {
    /// Starts the server; skips and returns `None` without Python.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(place: OptionServerPlace) -> Option<Self> {
        let python = program("python3")?;
        let mut address = free_address();
        if place == OptionServerPlace::LoopbackOfIpv6 {
            address.set_ip(Ipv6Addr::LOCALHOST.into());
        }
        let mut command = Command::new(&python);
        if place == OptionServerPlace::OwnNamespace {
            program("unshare")?;
            program("ip")?;
            command = Command::new("unshare");
            command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(&python);
        }
        command.args(["-c", SCRIPT, &address.ip().to_string(), &address.port().to_string()]);
        if place == OptionServerPlace::Child {
            command.arg("child");
        }
        let mut server =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut said = String::new();
        let output = server.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut said).expect("it is text");
        let serving = said.trim().parse().expect("it says its number when it listens");
        Some(Self { server, serving, address })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Another connection, which the server has accepted, from within its network namespace.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn connect(&self) -> OptionClient {
        let namespace = File::open(format!("/proc/{}/ns/net", self.id())).expect("the server runs");
        let own = File::open("/proc/self/ns/net").expect("this process runs");
        let number = |file: &File| file.metadata().expect("it is open").ino();
        let connected = match number(&own) == number(&namespace) {
            true => TcpStream::connect(self.address),
            false => machine::netns::inside(&namespace, || TcpStream::connect(self.address))
                .expect("the namespace can be entered"),
        };
        let mut client = OptionClient(BufReader::new(connected.expect("the server listens")));
        client.ask("options").expect("the server answers");
        client
    }

    /// Ends the process that was started with SIGKILL, and not its child.
    ///
    /// # Panics
    /// When it cannot be waited for.
    pub fn kill_first_process(&mut self) {
        self.server.kill().expect("a child can be killed");
        self.server.wait().expect("a killed child ends");
    }
}

impl Drop for OptionServer {
    fn drop(&mut self) {
        // The serving process is either `server`, whose PID is still reserved because it has not been
        // waited for, or its child, which no other process ends.
        let _ = Command::new("kill").args(["-s", "KILL", &self.serving.to_string()]).status();
        let _ = (self.server.kill(), self.server.wait());
    }
}

impl OptionClient {
    /// Makes the server do something with its side of the connection and report the options; `None` after
    /// the server has ended.
    pub fn ask(&mut self, what: &str) -> Option<SeenOptions> {
        self.0.get_mut().write_all(format!("{what}\n").as_bytes()).ok()?;
        let mut line = String::new();
        self.0.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let no_delay = words.next()? == "1";
        Some(SeenOptions { no_delay, congestion_control: words.next()?.to_owned() })
    }

    /// The options that the server's side has.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn seen(&mut self) -> SeenOptions {
        self.ask("options").expect("the server answers")
    }
}
