//! A server that says which options its own sockets have: what was set from outside is seen by whom it was set for.

use crate::{connect_when_ready, free_address, program};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// Answers each line of a connection with its TCP_NODELAY, SO_BUSY_POLL and TCP_CONGESTION.
const SCRIPT: &str = r"
import socket, sys, threading

def serve(connection):
    with connection, connection.makefile('rwb') as lines:
        for _ in lines:
            lines.write(options(connection))
            lines.flush()

def options(connection):
    no_delay = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    busy_poll = connection.getsockopt(socket.SOL_SOCKET, 46)
    congestion = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    name = congestion.split(b'\0')[0].decode()
    return f'{int(no_delay)} {busy_poll} {name}\n'.encode()

listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
";

/// The server, which ends with the value.
#[derive(Debug)]
pub struct OptionServer {
    server: Child,
    /// The first connection, open as long as the server: none closes unless a test does so.
    _first: TcpStream,
    /// The address that it listens at.
    pub address: SocketAddr,
}

/// The options of the server's side of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenOptions {
    /// Whether small segments are sent at once (TCP_NODELAY).
    pub no_delay: bool,
    /// For how long receiving polls (SO_BUSY_POLL).
    pub busy_poll_us: u32,
    /// The name of the congestion control.
    pub congestion_control: String,
}

/// A connection to the server.
#[derive(Debug)]
pub struct OptionClient(BufReader<TcpStream>);

impl OptionServer {
    /// Starts it; none, aloud, without Python.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Option<Self> {
        let python = program("python3")?;
        let address = free_address();
        let mut server = Command::new(python)
            .args(["-c", SCRIPT, &address.port().to_string()])
            .stdin(Stdio::null())
            .spawn()
            .expect("python starts");
        let first = connect_when_ready(&mut server, || TcpStream::connect(address));
        Some(Self { server, _first: first, address })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Another connection, which the server has accepted.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn connect(&self) -> OptionClient {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        let mut client = OptionClient(BufReader::new(stream));
        client.ask().expect("the server answers");
        client
    }
}

impl Drop for OptionServer {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
}

impl OptionClient {
    /// Has the server look at its side of the connection; none when it has ended.
    pub fn ask(&mut self) -> Option<SeenOptions> {
        self.0.get_mut().write_all(b"options\n").ok()?;
        let mut line = String::new();
        self.0.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (no_delay, busy_poll) = (words.next()? == "1", words.next()?.parse().ok()?);
        let congestion_control = words.next()?.to_owned();
        Some(SeenOptions { no_delay, busy_poll_us: busy_poll, congestion_control })
    }

    /// As [`Self::ask`] of a server that runs.
    ///
    /// # Panics
    /// When the server has ended.
    pub fn seen(&mut self) -> SeenOptions {
        self.ask().expect("the server answers")
    }
}
