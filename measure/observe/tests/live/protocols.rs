//! Real servers whose protocol is known, with clients that make it hard to tell requests apart: in several goes, several
//! at once, answered in another order. Every request is found once, and inside of what its client saw.

use crate::clients::{Dialogue, answer};
use crate::{Watched, addresses, may_observe, observe_while, probes};
use machine::clock::now;
use observe::{
    ClientRequest, IntendedWaits, ObservedRequest, ProbeSettings, Protocol, RequestQuality, nesting,
};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::park_timeout;
use std::time::Duration;
use testkit::live_servers::{memcached, nginx, slow_reading_nbdkit};
use wire::nbd::client::{ClientHandshake, ExportOption, HandshakeStep, read, write};

/// Between two goes: long enough for a server to read the first.
const PAUSE: Duration = Duration::from_micros(500);

/// What a client sends in one or several goes, and how many answers that has.
struct Turn {
    goes: Vec<Vec<u8>>,
    answers: usize,
}

fn turn<const N: usize>(goes: [&[u8]; N], answers: usize) -> Turn {
    Turn { goes: goes.map(<[u8]>::to_vec).into(), answers }
}

pub(crate) fn watch_protocol(
    server: SocketAddr,
    protocol: Protocol,
    clients: impl FnOnce() -> Vec<ClientRequest> + Send,
) -> Watched {
    let settings = ProbeSettings { protocol: Some(protocol), ..probes(server.port()) };
    let watched = observe_while(settings, IntendedWaits::Included, clients);
    watched.expect_all();
    assert_eq!(watched.report.counts.untold, 0);
    let by_packets = |request: &&ObservedRequest| request.quality.has(RequestQuality::WITHOUT_PROTOCOL);
    assert_eq!(watched.requests.iter().find(by_packets), None);
    watched
}

/// Clients at a time, each of which takes its turns again and again.
fn converse(server: SocketAddr, dialogue: Dialogue, turns: &[Turn], times: usize) -> Vec<ClientRequest> {
    let client = || {
        let mut stream = TcpStream::connect(server).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP socket has this option");
        let turns = (0..times).flat_map(|_| turns);
        turns.flat_map(|turn| take_turn(&mut stream, dialogue, turn)).collect()
    };
    at_the_same_time(3, client)
}

pub(crate) fn at_the_same_time(
    clients: usize,
    client: impl Fn() -> Vec<ClientRequest> + Sync,
) -> Vec<ClientRequest> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|_| scope.spawn(&client)).collect();
        running.into_iter().flat_map(|client| client.join().expect("a client does not fail")).collect()
    })
}

fn take_turn(stream: &mut TcpStream, dialogue: Dialogue, turn: &Turn) -> Vec<ClientRequest> {
    let client = stream.local_addr().expect("a connected socket has an address");
    let sent = now();
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    for (number, go) in turn.goes.iter().enumerate() {
        if number > 0 {
            park_timeout(PAUSE);
        }
        stream.write_all(go).expect("the server reads");
    }
    let mut received = Vec::new();
    while received.len() < turn.answers {
        while let Some(length) = answer(dialogue, &bytes) {
            bytes.drain(..length);
            received.push(ClientRequest { client, sent, received: now() });
        }
        if received.len() < turn.answers {
            let count = stream.read(&mut buffer).expect("the server answers");
            assert!(count > 0, "the server has closed the connection");
            bytes.extend(&buffer[..count]);
        }
    }
    assert!(bytes.is_empty(), "as many answers as requests");
    received
}

#[test]
pub(crate) fn http_with_bodies_in_several_goes_and_several_requests_at_once() {
    let Some(server) = may_observe().then(nginx).flatten() else { return };
    let head = b"POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\n\r\n";
    let chunked = b"PUT /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let cookies = [b"GET / HTTP/1.1\r\nHost: x\r\nCookie: ", &[b'c'; 900][..], b"\r\n\r\n"].concat();
    let turns = [
        turn([head, &[b'x'; 3000]], 1),
        turn([&[head, &[b'x'; 3000][..]].concat()], 1),
        turn([chunked, b"0\r\n\r\n"], 1),
        turn([&get.repeat(4)], 4),
        turn([&cookies[..40], &cookies[40..]], 1),
        turn([&[&get[..], &get[..10]].concat(), &get[10..]], 2),
    ];
    for address in addresses(&server) {
        let watched =
            watch_protocol(address, Protocol::Http1, || converse(address, Dialogue::Http, &turns, 30));
        // Three of ten come in two goes that are at least a pause apart; those at once share their packet.
        let late = |request: &&ObservedRequest| u128::from(request.sending_time()) >= PAUSE.as_nanos();
        assert!(watched.requests.iter().filter(late).count() >= 3 * 30 * 3);
    }
}

#[test]
pub(crate) fn memcached_in_several_goes_and_several_at_once() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let address = addresses(&server)[0];
    let value = [b"set key 0 0 1000\r\n", &[b'x'; 1000][..], b"\r\n"].concat();
    converse(address, Dialogue::MemcachedSet(1000), &[turn([&value], 1)], 1);
    let turns = [
        turn([b"get ke", b"y\r\n"], 1),
        turn([&b"get key\r\n".repeat(8)], 8),
        turn([b"get key\r\nget k", b"ey\r\nget key\r\n"], 3),
        turn([b"get key key key\r\n"], 1),
    ];
    let watched =
        watch_protocol(address, Protocol::Memcached, || converse(address, Dialogue::Memcached, &turns, 50));
    assert_eq!(watched.report.counts.unanswered, 0);
}

#[test]
fn what_memcached_leaves_without_an_answer_is_counted() {
    let Some(server) = may_observe().then(|| memcached(1)).flatten() else { return };
    let address = addresses(&server)[0];
    // Nothing is stored: the quiet get has no answer, the set wants none.
    let quiet = turn([b"set other 0 0 2 noreply\r\nab\r\nmg none v q\r\nget none\r\n"], 1);
    let watched =
        watch_protocol(address, Protocol::Memcached, || converse(address, Dialogue::Memcached, &[quiet], 20));
    let counts = watched.report.counts;
    assert_eq!((counts.one_way, counts.silent, counts.unanswered), (3 * 20, 3 * 20, 0));
}

#[test]
fn memcached_over_udp_with_several_in_flight() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let address = addresses(&server)[0];
    let client = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        socket.connect(address).expect("the server has an address");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket has timeouts");
        let client = socket.local_addr().expect("a connected socket has an address");
        let mut buffer = [0; 2048];
        let ask = |burst: u16| {
            let datagram = |n: u16| {
                let id = (burst * 4 + n).to_be_bytes();
                [&id[..], &[0, 0, 0, 1, 0, 0], b"get none\r\n"].concat()
            };
            let sent: Vec<u64> = (0..4)
                .map(|n| {
                    let sent = now();
                    socket.send(&datagram(n)).expect("a datagram can be sent");
                    sent
                })
                .collect();
            let mut receive = |_| {
                socket.recv(&mut buffer).expect("the server answers");
                let number = usize::from(u16::from_be_bytes([buffer[0], buffer[1]]) - burst * 4);
                ClientRequest { client, sent: sent[number], received: now() }
            };
            (0..4).map(&mut receive).collect::<Vec<_>>()
        };
        (0..200).flat_map(ask).collect()
    };
    let watched = watch_protocol(address, Protocol::Memcached, || at_the_same_time(2, client));
    assert_eq!(watched.requests.len(), 2 * 200 * 4);
    let unseen = |request: &&ObservedRequest| request.quality.has(RequestQuality::WRITE_UNSEEN);
    assert_eq!(watched.requests.iter().find(unseen), None);
}

/// Reads take longer than writes, which nbdkit answers before them.
#[test]
fn nbd_answers_in_another_order() {
    let Some(server) = may_observe().then(slow_reading_nbdkit).flatten() else { return };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let watched = watch_protocol(address, Protocol::Nbd, || at_the_same_time(2, || talk_nbd(address, 40)));
    // Each burst has two reads, which arrive before its two writes and are answered behind them.
    let is_read = |request: &&ObservedRequest| request.answer_bytes == 16 + 4096;
    assert_eq!(watched.requests.iter().filter(is_read).count(), 2 * 40 * 2);
    let is_quick = |request: &&ObservedRequest| is_read(request) && request.latency_from_wire() < 2_000_000;
    assert_eq!(watched.requests.iter().find(is_quick), None);
    let overtakes = |write: &&ObservedRequest| {
        let is_overtaken = |read: &&ObservedRequest| {
            read.peer == write.peer && read.points[0] <= write.points[0] && read.points[7] > write.points[7]
        };
        !is_read(write) && watched.requests.iter().filter(is_read).any(|read| is_overtaken(&read))
    };
    assert!(watched.requests.iter().filter(overtakes).count() > 40);
}

/// Connections that were there before: all requests are sure, but for those of the first burst and the one after them.
#[test]
fn nbd_connections_from_before_the_observation() {
    let Some(server) = may_observe().then(slow_reading_nbdkit).flatten() else { return };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    let settings = ProbeSettings { protocol: Some(Protocol::Nbd), ..probes(server.port()) };
    let mut streams = [(), ()].map(|()| connect_nbd(address).0);
    let mut sent = Vec::new();
    let watched = observe_while(settings, IntendedWaits::Included, || {
        sent.extend(streams.iter_mut().flat_map(|stream| send_bursts(stream, 40)));
        sent.clone()
    });
    let doubtful = [RequestQuality::GUESSED, RequestQuality::WITHOUT_PROTOCOL];
    let is_sure = |request: &&ObservedRequest| !doubtful.iter().any(|flag| request.quality.has(*flag));
    let sure: Vec<ObservedRequest> = watched.requests.iter().filter(is_sure).copied().collect();
    let counts = watched.report.counts;
    assert_eq!((sure.len(), counts.untold), (2 * (39 * 4 - 1), 0), "{counts:?}");
    assert_eq!(nesting(&sure, &sent).outside, 0);
}

fn talk_nbd(server: SocketAddr, bursts: u64) -> Vec<ClientRequest> {
    let (mut stream, first) = connect_nbd(server);
    [first].into_iter().chain(send_bursts(&mut stream, bursts)).collect()
}

/// A connection after its handshake, with simple replies, and its last request.
fn connect_nbd(server: SocketAddr) -> (TcpStream, ClientRequest) {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let client = stream.local_addr().expect("a connected socket has an address");
    let mut handshake = ClientHandshake::new(b"", ExportOption::Go);
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut sent = now();
    loop {
        let mut out = Vec::new();
        let step = handshake.advance(&bytes, &mut out).expect("the server has the export");
        if !out.is_empty() {
            sent = now();
            stream.write_all(&out).expect("the server reads");
        }
        match step {
            HandshakeStep::Used(used) if used > 0 => drop(bytes.drain(..used)),
            HandshakeStep::Done { .. } => break,
            _ => {
                let count = stream.read(&mut buffer).expect("the server answers");
                bytes.extend(&buffer[..count]);
            }
        }
    }
    (stream, ClientRequest { client, sent, received: now() })
}

/// Two reads and two writes at once, again and again, each time when all is answered.
fn send_bursts(stream: &mut TcpStream, bursts: u64) -> Vec<ClientRequest> {
    let client = stream.local_addr().expect("a connected socket has an address");
    let mut requests = Vec::new();
    let mut buffer = vec![0; 4096];
    for burst in 0..bursts {
        let mut out = Vec::new();
        for number in 0..2 {
            read(&mut out, burst * 4 + number, 0, 4096);
        }
        for number in 2..4 {
            write(&mut out, burst * 4 + number, 8192, &[7; 512]);
        }
        let sent = now();
        stream.write_all(&out).expect("the server reads");
        for _ in 0..4 {
            let mut head = [0; 16];
            stream.read_exact(&mut head).expect("the server answers");
            let cookie = u64::from_be_bytes(head[8..].try_into().expect("eight bytes"));
            let data = if cookie % 4 < 2 { 4096 } else { 0 };
            stream.read_exact(&mut buffer[..data]).expect("the server sends the data");
            requests.push(ClientRequest { client, sent, received: now() });
        }
    }
    requests
}

/// A server that is asked for a protocol which it does not speak: its requests are told apart by packets, and it is said.
#[test]
fn another_protocol_than_the_named_one() {
    let Some(server) = may_observe().then(|| memcached(1)).flatten() else { return };
    let address = addresses(&server)[0];
    let settings = ProbeSettings { protocol: Some(Protocol::Http1), ..probes(server.port()) };
    let watched = observe_while(settings, IntendedWaits::Included, || {
        converse(address, Dialogue::Memcached, &[turn([b"get none\r\n"], 1)], 100)
    });
    assert!(watched.report.counts.untold >= 3, "{:?}", watched.report.counts);
    watched.expect_all();
    let by_packets = |request: &ObservedRequest| request.quality.has(RequestQuality::WITHOUT_PROTOCOL);
    assert!(watched.requests.iter().all(by_packets));
}

#[test]
pub(crate) fn a_server_that_accepts_late() {
    if !may_observe() {
        return;
    }
    const LATE_NS: u64 = 50_000_000;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let settings = ProbeSettings { accepts: true, ..probes(address.port()) };
    let mut bounds = Vec::new();
    let watched = observe_while(settings, IntendedWaits::Included, || {
        let ask = |late_ns: u64| {
            let begun = now();
            let mut stream = TcpStream::connect(address).expect("the server listens");
            let client = stream.local_addr().expect("it is connected");
            let sent = now();
            stream.write_all(b"question").expect("there is room");
            park_timeout(Duration::from_nanos(late_ns));
            let (mut server, _) = listener.accept().expect("a client waits");
            bounds.push((late_ns / 2, now() - begun));
            let mut buffer = [0; 8];
            server
                .read_exact(&mut buffer)
                .and_then(|()| server.write_all(b"answer"))
                .expect("a client waits");
            stream.read_exact(&mut buffer[..6]).expect("the server answers");
            ClientRequest { client, sent, received: now() }
        };
        [LATE_NS, 0, LATE_NS].into_iter().map(ask).collect()
    });
    watched.expect_all();
    let queue = watched.report.accept_queue.expect("it was asked for");
    assert_eq!(queue.connections, 3);
    let [least, most] =
        [bounds.iter().map(|(least, _)| least).sum(), bounds.iter().map(|(_, most)| most).sum()];
    let sum = queue.waits.expect("three connections").mean * 3.0;
    let (least, most): (u64, u64) = (least, most);
    assert!((least as f64..=most as f64).contains(&sum), "{queue:?}, between {least} and {most}");
}

/// Responses without a length end with their connection, and come in two writes.
#[test]
fn http_bodies_that_end_with_the_connection() {
    if !may_observe() {
        return;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let watched = watch_protocol(address, Protocol::Http1, || {
        let ask = |_| {
            let mut stream = TcpStream::connect(address).expect("the server listens");
            let client = stream.local_addr().expect("it is connected");
            let sent = now();
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("there is room");
            let (mut server, _) = listener.accept().expect("a client waits");
            let mut buffer = vec![0; 64];
            let read = server.read(&mut buffer).expect("a client waits");
            let written =
                server.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").and_then(|()| server.write_all(b"world"));
            drop(server);
            buffer.clear();
            let count = stream.read_to_end(&mut buffer).expect("the server answers");
            assert!(written.is_ok() && (read, count) == (18, 29));
            ClientRequest { client, sent, received: now() }
        };
        (0..5).map(ask).collect()
    });
    assert!(watched.requests.iter().all(|request| (request.request_bytes, request.answer_bytes) == (18, 29)));
}
