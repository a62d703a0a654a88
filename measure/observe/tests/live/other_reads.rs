//! Servers that take bytes out of connections by other means than plain reads, look at them first, or answer with many
//! bytes: every request is found as its client saw it, or counted as one that is not seen.

use crate::clients::{Dialogue, Exchange, answer};
use crate::protocols::{at_the_same_time, watch_protocol};
use crate::{CLIENTS, Watched, may_observe, observe_while, probes, watch, watch_with};
use machine::clock::now;
use observe::{ClientRequest, IntendedWaits, ObservedRequest, ProbeSettings, Protocol, RequestQuality};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread::park_timeout;
use std::time::Duration;
use tempfile::TempDir;
use testkit::live_servers::{RunningServer, memcached, nginx};

/// A server of HTTP with a thread for each connection, whose first argument says how it reads, and the second one how many
/// bytes its answers have. It prints its port when it listens.
const SERVER: &str = r"
import os, socket, sys, threading
how, size = sys.argv[1], int(sys.argv[2])
answer = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % size + b'x' * size
def read(c, pipe):
    if how == 'plain': return c.recv(4096)
    if how == 'bytes': return c.recv(1)
    if how == 'vector':
        parts = [bytearray(16), bytearray(4096)]
        count = c.recvmsg_into(parts)[0]
        return (bytes(parts[0]) + bytes(parts[1]))[:count]
    if how == 'splice':
        count = os.splice(c.fileno(), pipe[1], 4096)
        return os.read(pipe[0], count) if count else b''
    seen = c.recv(4096, socket.MSG_PEEK)
    if not seen: return seen
    if how == 'peek': return c.recv(4096)
    if how == 'peek-trunc':
        c.recv(len(seen), socket.MSG_TRUNC)
        return seen
    if how == 'peek-splice':
        os.read(pipe[0], os.splice(c.fileno(), pipe[1], len(seen)))
        return seen
def serve(c):
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pipe, got = os.pipe(), b''
    while True:
        some = read(c, pipe)
        if not some: break
        got += some
        while b'\r\n\r\n' in got:
            head, got = got.split(b'\r\n\r\n', 1)
            if os.environ.get('PARTS'):
                at = answer.index(b'\r\n\r\n') + 4
                c.sendall(answer[:at])
                for begin in range(at, len(answer), 16384): c.sendall(answer[begin:begin + 16384])
            else:
                c.sendall(answer)
            if b'Connection: close' in head: some = b''
        if not some: break
    c.close(); os.close(pipe[0]); os.close(pipe[1])
protocol = 262 if os.environ.get('MPTCP') else 0
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
s.bind(('127.0.0.1', 0)); s.listen(64)
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
";

/// Sends this many requests by MPTCP, one after the other, and prints how many were answered.
const MULTIPATH_CLIENT: &str = r"
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.connect(('127.0.0.1', int(sys.argv[1])))
for n in range(int(sys.argv[2])):
    s.sendall(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    got = b''
    while not got.endswith(b'\r\n\r\nxx'): got += s.recv(4096)
print(n + 1)
";

/// Answers datagrams, which it looks at before it takes them.
const DATAGRAM_SERVER: &str = r"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.1', 0))
print(s.getsockname()[1], flush=True)
while True:
    s.recvfrom(4, socket.MSG_PEEK | socket.MSG_TRUNC)
    s.sendto(b'answer', s.recvfrom(4)[1])
";

/// Whether this Python has `os.splice`.
fn has_splice() -> bool {
    let asked = Command::new("python3").args(["-c", "import os; os.splice"]).stderr(Stdio::null()).status();
    let has = asked.is_ok_and(|status| status.success());
    if !has {
        testkit::skip("a Python with os.splice (3.10)");
    }
    has
}

fn python(script: &str, arguments: &[&str], variable: Option<&str>) -> Option<RunningServer> {
    testkit::program("python3").filter(|_| may_observe())?;
    let mut command = Command::new("python3");
    command.args(["-c", script]).args(arguments).stdout(Stdio::piped());
    if let Some(name) = variable {
        command.env(name, "1");
    }
    let mut child = command.spawn().expect("python3 was found");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it prints");
    let Ok(port) = line.trim().parse() else {
        testkit::skip(&format!("a server of Python: {arguments:?} {variable:?}"));
        let _ = child.wait();
        return None;
    };
    Some(RunningServer::new(child, port, None))
}

fn http_server(how: &str, size: usize, variable: Option<&str>) -> Option<RunningServer> {
    python(SERVER, &[how, &size.to_string()], variable)
}

fn address(server: &RunningServer) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()))
}

/// Requests with a pause between them, which no latency may contain.
fn pausing() -> Exchange {
    Exchange::new(Dialogue::Http, 50).every(Duration::from_millis(4))
}

/// A connection for each request.
fn one_request_each(server: SocketAddr, count: usize) -> Vec<ClientRequest> {
    let ask = |_| {
        let mut stream = TcpStream::connect(server).expect("the server listens");
        let client = stream.local_addr().expect("it is connected");
        let sent = now();
        stream.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").expect("the server reads");
        stream.read_to_end(&mut Vec::new()).expect("the server answers");
        ClientRequest { client, sent, received: now() }
    };
    (0..count).map(ask).collect()
}

pub(crate) fn servers_that_look_before_they_read() {
    for how in ["plain", "bytes", "vector", "peek"] {
        let Some(server) = http_server(how, 2, None) else { return };
        let address = address(&server);
        println!("{how}");
        let clients = || crate::clients::run(address, &pausing(), 2);
        watch_protocol(address, Protocol::Http1, clients);
        watch(address, &pausing()).expect_all();
        let clients = || one_request_each(address, 50);
        watch_protocol(address, Protocol::Http1, clients);
    }
}

#[test]
fn what_stays_in_the_socket_is_not_read() {
    servers_that_look_before_they_read();
}

#[test]
fn what_is_thrown_away_is_read() {
    let Some(server) = http_server("peek-trunc", 2, None) else { return };
    let address = address(&server);
    watch_protocol(address, Protocol::Http1, || crate::clients::run(address, &pausing(), 2));
    watch(address, &pausing()).expect_all();
}

#[test]
fn what_is_spliced_is_read() {
    if !has_splice() {
        return;
    }
    let Some(server) = http_server("splice", 2, None) else { return };
    watch(address(&server), &pausing()).expect_all();
    let Some(server) = http_server("peek-splice", 2, None) else { return };
    let address = address(&server);
    watch_protocol(address, Protocol::Http1, || crate::clients::run(address, &pausing(), 2));
}

#[test]
fn a_proxy_that_splices() {
    let Some(proxy) = testkit::program("haproxy") else { return };
    let Some(server) = http_server("plain", 2, None) else { return };
    let folder = TempDir::new().expect("a folder");
    let front = testkit::free_address();
    let file = folder.path().join("haproxy.cfg");
    let settings = format!(
        "defaults\n  mode tcp\n  timeout connect 2s\n  timeout client 30s\n  timeout server 30s\n  option splice-auto\n  \
         option splice-request\n  option splice-response\nfrontend f\n  bind {front}\n  default_backend b\nbackend b\n  \
         server s 127.0.0.1:{}\n",
        server.port()
    );
    std::fs::write(&file, settings).expect("the folder is ours");
    let mut child = Command::new(proxy)
        .arg("-db")
        .arg("-f")
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()
        .expect("it was found");
    drop(testkit::connect_when_ready(&mut child, || TcpStream::connect(front)));
    let _proxy = RunningServer::new(child, front.port(), Some(folder));
    watch(front, &pausing()).expect_all();
}

#[test]
fn what_comes_by_mptcp_is_counted() {
    let Some(server) = http_server("plain", 2, Some("MPTCP")) else { return };
    let count = 40_u64;
    let port = server.port().to_string();
    let mut answered = Vec::new();
    let watched = watch_with(address(&server), || {
        let arguments = ["-c", MULTIPATH_CLIENT, &port, &count.to_string()];
        answered = Command::new("python3").args(arguments).output().expect("python3 was found").stdout;
        Vec::new()
    });
    assert_eq!(String::from_utf8_lossy(&answered).trim(), count.to_string());
    let counts = watched.report.counts;
    assert_eq!(
        (watched.requests.len(), counts.multipath, counts.unseen_reads),
        (0, count, count),
        "{counts:?}"
    );
    // Clients without MPTCP have plain connections at the same port.
    watch(address(&server), &pausing()).expect_all();
}

#[test]
fn datagrams_that_are_looked_at_first() {
    let Some(server) = python(DATAGRAM_SERVER, &[], None) else { return };
    let address = address(&server);
    let watched = watch_with(address, || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        socket.connect(address).expect("the server has an address");
        let client = socket.local_addr().expect("it is bound");
        let ask = |_| {
            park_timeout(Duration::from_millis(4));
            let sent = now();
            socket.send(b"question").expect("a datagram can be sent");
            socket.recv(&mut [0; 16]).expect("the server answers");
            ClientRequest { client, sent, received: now() }
        };
        (0..100).map(ask).collect()
    });
    watched.expect_all();
}

/// Asks for a page of 4 MB and reads it in goes with pauses between them.
fn slow_reader(server: SocketAddr, count: usize) -> Vec<ClientRequest> {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    let client = stream.local_addr().expect("it is connected");
    let mut buffer = vec![0; 128 << 10];
    let ask = |_| {
        let sent = now();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the server reads");
        let mut bytes = Vec::new();
        while answer(Dialogue::Http, &bytes).is_none() {
            let count = stream.read(&mut buffer).expect("the server answers");
            assert!(count > 0, "the server has closed the connection");
            bytes.extend(&buffer[..count]);
            park_timeout(Duration::from_micros(500));
        }
        ClientRequest { client, sent, received: now() }
    };
    (0..count).map(ask).collect()
}

const LARGE: usize = 4 << 20;

fn expect_nothing_lost(watched: &Watched) {
    assert_eq!((watched.report.lost_events, watched.report.counts.gaps), (0, 0));
    let is_whole = |request: &&ObservedRequest| request.answer_bytes > LARGE as u64;
    assert_eq!(watched.requests.iter().filter(is_whole).count(), watched.requests.len());
}

/// The first ring has no room for copies of all parts of the bodies; the second one has room for the beginnings of writes.
#[test]
fn large_answers_lose_no_events() {
    for (variable, ring_bytes) in [(None, 1 << 23), (Some("PARTS"), 1 << 26)] {
        let Some(server) = http_server("plain", LARGE, variable) else { return };
        let address = address(&server);
        let settings = ProbeSettings { protocol: Some(Protocol::Http1), ring_bytes, ..probes(server.port()) };
        let exchange = Exchange::new(Dialogue::Http, 5);
        let clients = || crate::clients::run(address, &exchange, CLIENTS);
        let watched = observe_while(settings.clone(), IntendedWaits::Included, clients);
        watched.expect_all();
        expect_nothing_lost(&watched);
        let clients = || at_the_same_time(3, || slow_reader(address, 4));
        let watched = observe_while(settings, IntendedWaits::Included, clients);
        watched.expect_all();
        expect_nothing_lost(&watched);
    }
}

/// An answer in a head and a body is as certain as one in a single write, where the protocol says where it ends.
#[test]
fn several_writes_of_an_answer_are_ordinary() {
    let Some(server) = may_observe().then(nginx).flatten() else { return };
    let address = address(&server);
    let clients = || crate::clients::run(address, &Exchange::new(Dialogue::Http, 100), 2);
    let watched = watch_protocol(address, Protocol::Http1, clients);
    let doubts = RequestQuality::ALL.map(|(flag, _)| flag);
    let is_certain = |request: &&ObservedRequest| !doubts.iter().any(|flag| request.quality.has(*flag));
    let certain = watched.requests.iter().filter(is_certain).count();
    // The first read of each worker is not certain.
    assert!(certain * 10 >= watched.requests.len() * 9, "{certain} of {}", watched.requests.len());
}

/// Several commands with large values in one read, and their answers in one write.
fn large_values_at_once(server: SocketAddr, memcached: bool) -> Vec<ClientRequest> {
    const VALUE: usize = 6000;
    let value = vec![b'v'; VALUE];
    let (set, stored, get, got) = if memcached {
        let head = format!("set k 0 0 {VALUE}\r\n").into_bytes();
        let got = format!("VALUE k 0 {VALUE}\r\n").len() + VALUE + 2 + 5;
        ([&head, &value[..], b"\r\n"].concat(), 8, b"get k\r\n".to_vec(), got)
    } else {
        let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE}\r\n").into_bytes();
        let got = format!("${VALUE}\r\n").len() + VALUE + 2;
        ([&head, &value[..], b"\r\n"].concat(), 5, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".to_vec(), got)
    };
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let client = stream.local_addr().expect("it is connected");
    let mut all = Vec::new();
    for (command, answer, times) in [(&set, stored, 2), (&set, stored, 1), (&get, got, 1), (&get, got, 2)] {
        for _ in 0..30 {
            let sent = now();
            stream.write_all(&command.repeat(times)).expect("the server reads");
            let mut answers = vec![0; answer * times];
            stream.read_exact(&mut answers).expect("the server answers");
            all.extend((0..times).map(|_| ClientRequest { client, sent, received: now() }));
        }
    }
    all
}

/// The ring has room for what comes while others have the CPUs of the machine.
fn expect_values_told_apart(server: SocketAddr, protocol: Protocol) {
    let settings = ProbeSettings { protocol: Some(protocol), ring_bytes: 1 << 26, ..probes(server.port()) };
    let is_memcached = protocol == Protocol::Memcached;
    let watched = observe_while(settings, IntendedWaits::Included, || {
        at_the_same_time(2, || large_values_at_once(server, is_memcached))
    });
    watched.expect_all();
    assert_eq!(watched.report.counts.untold, 0);
    let by_packets = |request: &&ObservedRequest| request.quality.has(RequestQuality::WITHOUT_PROTOCOL);
    assert_eq!(watched.requests.iter().find(by_packets), None);
}

fn redis() -> Option<RunningServer> {
    let program = testkit::program("redis-server")?;
    let address = testkit::free_address();
    let port = address.port().to_string();
    let arguments = ["--port", &port, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"];
    let mut child =
        Command::new(program).args(arguments).stdout(Stdio::null()).spawn().expect("it was found");
    drop(testkit::connect_when_ready(&mut child, || TcpStream::connect(address)));
    Some(RunningServer::new(child, address.port(), None))
}

#[test]
fn resp_with_large_values_at_once() {
    let Some(server) = may_observe().then(redis).flatten() else { return };
    let address = address(&server);
    expect_values_told_apart(address, Protocol::Resp);
}

#[test]
fn memcached_with_large_values_at_once() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let address = address(&server);
    expect_values_told_apart(address, Protocol::Memcached);
}
