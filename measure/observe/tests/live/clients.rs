//! Clients that note when they sent a request and when they had its answer.
#![allow(dead_code, reason = "tests and the benchmark use their parts")]

use machine::clock::now;
use observe::ClientRequest;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// What is said.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dialogue {
    /// Gets of a value of 1,000 bytes.
    Memcached,
    /// Sets of a value of this many bytes.
    MemcachedSet(usize),
    /// The same gets as datagrams.
    MemcachedUdp,
    /// A page.
    Http,
}

/// What each client does.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    dialogue: Dialogue,
    requests: usize,
    in_flight: usize,
    every: Duration,
    netns: Option<String>,
}

const KEY_COUNT: usize = 5;

impl Exchange {
    pub(crate) fn new(dialogue: Dialogue, requests: usize) -> Self {
        Self { dialogue, requests, in_flight: 1, every: Duration::ZERO, netns: None }
    }

    /// This many requests are sent before the answer to the first is awaited.
    pub(crate) fn in_flight(self, in_flight: usize) -> Self {
        Self { in_flight, ..self }
    }

    /// Requests are sent at this distance, or as soon as the answers before are there if that is later.
    pub(crate) fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// From this network namespace.
    pub(crate) fn from(self, netns: &str) -> Self {
        Self { netns: Some(netns.to_owned()), ..self }
    }

    fn enter(&self) {
        if let Some(netns) = &self.netns {
            machine::netns::enter(netns).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// Runs the clients, each with a connection of its own, to their ends. The keys of memcached are stored first, by a
/// connection whose requests are among those that are returned.
pub(crate) fn run(server: SocketAddr, exchange: &Exchange, clients: usize) -> Vec<ClientRequest> {
    std::thread::scope(|scope| {
        let store = scope.spawn(|| {
            exchange.enter();
            store_keys(server, exchange.dialogue)
        });
        let mut sent = store.join().expect("keys can be stored");
        let client = || {
            exchange.enter();
            match exchange.dialogue {
                Dialogue::MemcachedUdp => over_udp(server, exchange),
                _ => over_tcp(server, exchange),
            }
        };
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        sent.extend(clients.into_iter().flat_map(|client| client.join().expect("a client does not fail")));
        sent
    })
}

fn store_keys(server: SocketAddr, dialogue: Dialogue) -> Vec<ClientRequest> {
    match dialogue {
        Dialogue::Http => Vec::new(),
        _ => over_tcp(server, &Exchange::new(Dialogue::MemcachedSet(1000), KEY_COUNT)),
    }
}

fn request(dialogue: Dialogue, number: usize) -> Vec<u8> {
    let key = number % KEY_COUNT;
    match dialogue {
        Dialogue::Memcached => format!("get key-{key}\r\n").into_bytes(),
        Dialogue::MemcachedUdp => {
            [&[0, 1, 0, 0, 0, 1, 0, 0][..], format!("get key-{key}\r\n").as_bytes()].concat()
        }
        Dialogue::MemcachedSet(bytes) => {
            [format!("set key-{key} 0 0 {bytes}\r\n").as_bytes(), &vec![b'x'; bytes], b"\r\n"].concat()
        }
        Dialogue::Http => b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    }
}

/// The length of the first answer in these bytes, once all of it is there.
pub(crate) fn answer(dialogue: Dialogue, bytes: &[u8]) -> Option<usize> {
    let after =
        |end: &[u8]| bytes.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
    match dialogue {
        Dialogue::Memcached | Dialogue::MemcachedUdp => after(b"END\r\n"),
        Dialogue::MemcachedSet(_) => after(b"STORED\r\n"),
        Dialogue::Http => {
            let head = after(b"\r\n\r\n")?;
            let text = std::str::from_utf8(&bytes[..head]).expect("heads are text");
            let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).expect("the length is given");
            (bytes.len() >= head + length).then_some(head + length)
        }
    }
}

fn over_tcp(server: SocketAddr, exchange: &Exchange) -> Vec<ClientRequest> {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let client = stream.local_addr().expect("a connected socket has an address");
    let mut open = VecDeque::new();
    let mut done = Vec::new();
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let start = Instant::now();
    for number in 0..exchange.requests + exchange.in_flight {
        if open.len() >= exchange.in_flight || number >= exchange.requests {
            let Some(sent) = open.pop_front() else { break };
            let length = loop {
                if let Some(length) = answer(exchange.dialogue, &bytes) {
                    break length;
                }
                let count = stream.read(&mut buffer).expect("the server answers");
                assert!(count > 0, "the server has closed the connection");
                bytes.extend(&buffer[..count]);
            };
            bytes.drain(..length);
            done.push(ClientRequest { client, sent, received: now() });
        }
        if number < exchange.requests {
            sleep_until(start + exchange.every.mul_f64(number as f64));
            open.push_back(now());
            stream.write_all(&request(exchange.dialogue, number)).expect("the server reads");
        }
    }
    assert_eq!(done.len(), exchange.requests);
    done
}

fn sleep_until(instant: Instant) {
    while let Some(rest) = instant.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

fn over_udp(server: SocketAddr, exchange: &Exchange) -> Vec<ClientRequest> {
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any).expect("a port is free");
    socket.connect(server).expect("the server has an address");
    let client = socket.local_addr().expect("a connected socket has an address");
    let mut buffer = vec![0; 1 << 16];
    let ask = |number| {
        let sent = now();
        socket.send(&request(exchange.dialogue, number)).expect("a datagram can be sent");
        let count = socket.recv(&mut buffer).expect("the server answers");
        assert!(answer(exchange.dialogue, &buffer[..count]).is_some(), "an answer is one datagram");
        ClientRequest { client, sent, received: now() }
    };
    (0..exchange.requests).map(ask).collect()
}

/// Lines that are answered by lines, each after the answer before, on this many connections that are made one after the
/// other. Those for which `sends` is false send one.
pub(crate) fn lines_over_tcp(
    server: SocketAddr,
    connections: usize,
    requests: usize,
    sends: &[bool],
) -> Vec<ClientRequest> {
    let connect = |_| TcpStream::connect(server).expect("the server listens");
    let streams: Vec<TcpStream> = (0..connections).map(connect).collect();
    let is_silent = |number: usize| sends.get(number) == Some(&false);
    let (silent, busy): (Vec<_>, Vec<_>) =
        streams.iter().enumerate().partition(|(number, _)| is_silent(*number));
    let mut sent: Vec<ClientRequest> = silent.iter().flat_map(|(_, stream)| ask_lines(stream, 1)).collect();
    std::thread::scope(|scope| {
        let client = |(_, stream)| scope.spawn(move || ask_lines(stream, requests));
        let running: Vec<_> = busy.into_iter().map(client).collect();
        sent.extend(running.into_iter().flat_map(|client| client.join().expect("a client does not fail")));
    });
    sent
}

fn ask_lines(mut stream: &TcpStream, requests: usize) -> Vec<ClientRequest> {
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let client = stream.local_addr().expect("a connected socket has an address");
    let mut buffer = [0; 256];
    let ask = |_| {
        let sent = now();
        stream.write_all(b"version\r\n").expect("the server reads");
        let mut last = 0;
        while last != b'\n' {
            let count = stream.read(&mut buffer).expect("the server answers");
            last = buffer[..count].last().copied().expect("the connection is open");
        }
        ClientRequest { client, sent, received: now() }
    };
    (0..requests).map(ask).collect()
}
