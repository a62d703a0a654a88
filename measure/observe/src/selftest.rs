//! Checks on this machine that observing works: echo requests over loopback, with threads for clients and server, seen
//! from both sides.

use crate::causes::IntendedWaits;
use crate::nesting::{ClientRequest, RequestNesting, nesting};
use crate::observing::{ObservationReport, ObservationSettings};
use crate::probe::ProbeSettings;
use crate::run::observe;
use machine::clock::now;
use model::OperationError;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of a request and of its answer: the null RPC of *Tales of the Tail* has 128.
const MESSAGE_BYTES: usize = 128;

/// Clients with a connection each, and a thread of the server for each.
const CLIENTS: usize = 4;

/// How long the events of the last request may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What the check found.
#[derive(Debug, Clone)]
pub struct SelfTestReport {
    /// What the observation came to.
    pub observed: ObservationReport,
    /// How it fits what the clients saw.
    pub nesting: RequestNesting,
    /// The number of requests that the clients sent.
    pub sent: u64,
}

impl SelfTestReport {
    /// Whether every request was observed, once, inside of what its client saw.
    pub fn is_right(&self) -> bool {
        self.nesting == RequestNesting { nested: self.sent, outside: 0, missing: 0 }
    }
}

/// Sends `requests` echo requests from each of four clients, and observes them.
///
/// # Errors
/// As [`observe`]; and when the machine has no loopback.
pub fn self_test(requests: usize) -> Result<SelfTestReport, OperationError> {
    let failed = |error: io::Error| OperationError::machine(format_args!("echo over loopback: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let settings = ObservationSettings {
        probes: ProbeSettings::of_ports([address.port()]),
        duration: LIMIT,
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
        cost_limit: None,
    };
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    let (observed, clients) = thread::scope(|scope| {
        let mut clients = None;
        let begin = || clients = Some(scope.spawn(|| drive(&listener, address, requests, &stop)));
        let observed = observe(&settings, &stop, begin, &mut |request| seen.push(*request));
        let clients = clients.map_or(Ok(Vec::new()), |clients| clients.join().expect("clients do not panic"));
        (observed, clients)
    });
    let observed = observed?;
    let clients = clients.map_err(failed)?;
    let nesting = nesting(&seen, &clients);
    Ok(SelfTestReport { observed, nesting, sent: clients.len() as u64 })
}

/// Runs server and clients, and stops the observation when all is done.
fn drive(
    listener: &TcpListener,
    address: SocketAddr,
    requests: usize,
    stop: &AtomicBool,
) -> io::Result<Vec<ClientRequest>> {
    let done = exchange(listener, address, requests);
    stop.store(true, Ordering::Relaxed);
    done
}

fn exchange(listener: &TcpListener, address: SocketAddr, requests: usize) -> io::Result<Vec<ClientRequest>> {
    let mut servers: Vec<JoinHandle<io::Result<()>>> = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = TcpStream::connect(address)?;
        client.set_nodelay(true)?;
        let (mut server, _) = listener.accept()?;
        server.set_nodelay(true)?;
        servers.push(thread::spawn(move || echo(&mut server)));
        clients.push(thread::spawn(move || ask(&mut client, requests)));
    }
    let mut sent = Vec::new();
    for client in clients {
        sent.extend(client.join().expect("a client does not panic")?);
    }
    for server in servers {
        server.join().expect("a server does not panic")?;
    }
    Ok(sent)
}

/// Answers until the client is gone.
fn echo(stream: &mut TcpStream) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&message)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Sends requests one after the other.
fn ask(stream: &mut TcpStream, requests: usize) -> io::Result<Vec<ClientRequest>> {
    let client = stream.local_addr()?;
    let mut message = [1; MESSAGE_BYTES];
    let mut asked = Vec::with_capacity(requests);
    for _ in 0..requests {
        let sent = now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        asked.push(ClientRequest { client, sent, received: now() });
    }
    Ok(asked)
}
