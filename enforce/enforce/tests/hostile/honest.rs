//! A client that follows the protocol, and checks every byte that it receives.

use crate::codec::{BLOCK, ClientCodec, Protocol};
use crate::ledger::{Ledger, Verdict};
use crate::mini::Mini;
use crate::proxy::{Running, apart, deployment, profile};
use enforce::storage::{ProxyOptions, ProxySnapshot};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

pub const PROTOCOLS: [Protocol; 3] = [Protocol::Nbd, Protocol::Memcached, Protocol::Nfs];

/// Number of outstanding requests.
const DEPTH: usize = 4;
const BLOCKS: usize = 64;

pub fn mini(protocol: Protocol) -> Mini {
    match protocol {
        Protocol::Nbd => Mini::nbd(),
        Protocol::Memcached => Mini::memcached(),
        Protocol::Nfs => Mini::nfs(),
    }
}

/// Starts a proxy before a server, with fields of its storage.
pub fn proxy_before(server: &Mini, protocol: Protocol, fields: &str) -> Running {
    let deployment = deployment(protocol.name(), server.address, fields, "");
    Running::start(ProxyOptions::new("ssd", deployment, None, profile()))
}

/// The same, with a connection to the server for each client.
pub fn proxy_apart(server: &Mini, protocol: Protocol, fields: &str) -> Running {
    let deployment = apart(deployment(protocol.name(), server.address, fields, ""));
    Running::start(ProxyOptions::new("ssd", deployment, None, profile()))
}

/// Opens a connection and completes its handshake.
pub fn handshake(proxy: &Running, protocol: Protocol, owner: u32) -> (TcpStream, ClientCodec) {
    let mut stream = proxy.connect();
    let codec = match protocol {
        Protocol::Nbd => ClientCodec::nbd(&mut stream, u64::from(owner) << 20, false),
        Protocol::Memcached => Ok(ClientCodec::memcached(owner)),
        Protocol::Nfs => ClientCodec::nfs("/export", &mut proxy.connect(), &mut stream, owner),
    };
    (stream, codec.expect("a handshake"))
}

/// Reads until the connection ends in any way.
pub fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let ended = stream.read_to_end(&mut all);
    let timed_out =
        |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    assert!(!ended.is_err_and(|error| timed_out(&error)), "the connection is not ended");
    all
}

/// Waits until the proxy's status satisfies a condition.
pub fn wait_for_status(
    proxy: &Running,
    what: &str,
    wanted: impl Fn(&ProxySnapshot) -> bool,
) -> ProxySnapshot {
    let begun = Instant::now();
    loop {
        let snapshot = proxy.remote.status().expect("it runs");
        if wanted(&snapshot) {
            return snapshot;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for {what}: {snapshot:?}");
        std::thread::yield_now();
    }
}

/// Returns the next complete answer: its id and data.
pub fn answer(stream: &mut TcpStream, codec: &mut ClientCodec) -> (u64, Option<Vec<u8>>) {
    loop {
        if let Some(answer) = codec.answer().expect("answers can be read") {
            assert!(!answer.error, "the server has refused");
            return (answer.id, answer.data);
        }
        let mut piece = [0; 65536];
        let read = stream.read(&mut piece).expect("an answer");
        assert!(read > 0, "cut off with an answer to come");
        codec.feed(&piece[..read]);
    }
}

pub struct HonestClient {
    stream: TcpStream,
    codec: ClientCodec,
    ledger: Ledger,
    in_flight: BTreeMap<u64, (usize, bool)>,
    turn: usize,
}

impl HonestClient {
    pub fn new(proxy: &Running, protocol: Protocol, owner: u32) -> Self {
        let (stream, codec) = handshake(proxy, protocol, owner);
        let size = |block: usize| if protocol == Protocol::Memcached { block * 70 } else { BLOCK };
        let ledger = Ledger::new(owner, (0..BLOCKS).map(size), false);
        Self { stream, codec, ledger, in_flight: BTreeMap::new(), turn: 0 }
    }

    /// Sends this many requests, half of them writes, and reads all answers.
    pub fn round(&mut self, requests: usize) {
        for _ in 0..requests {
            // Odd factors walk through all blocks; two passes write before one reads.
            let block = self.turn * 27 % BLOCKS;
            let writes = (self.turn / BLOCKS).is_multiple_of(2);
            self.turn += 1;
            let mut out = Vec::new();
            let id = if writes {
                let mut data = Vec::new();
                self.ledger.begin_write(block, &mut data);
                self.codec.write(&mut out, block, &data)
            } else {
                self.ledger.begin_read(block);
                self.codec.read(&mut out, block, self.ledger.size(block))
            };
            self.in_flight.insert(id, (block, writes));
            self.stream.write_all(&out).expect("the proxy takes it");
            while self.in_flight.len() >= DEPTH {
                self.answer();
            }
        }
        while !self.in_flight.is_empty() {
            self.answer();
        }
    }

    fn answer(&mut self) {
        let (id, data) = answer(&mut self.stream, &mut self.codec);
        let (block, writes) = self.in_flight.remove(&id).expect("it was in_flight for");
        if writes {
            return self.ledger.written(block, 0);
        }
        let verdict = self.ledger.read(block, data.as_deref(), 0, Instant::now());
        assert_eq!(verdict, Verdict::Right, "block {block}");
    }
}

/// Runs something while honest clients continue, and lets them do another round afterwards.
pub fn beside_honest_clients<T>(proxy: &Running, protocol: Protocol, act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let honest = |owner| {
            let mut honest = HonestClient::new(proxy, protocol, owner);
            while !over.load(SeqCst) {
                honest.round(20);
            }
            honest.round(200);
        };
        let threads = [100, 101].map(|owner| scope.spawn(move || honest(owner)));
        // Also on a panic: the other threads must end.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, SeqCst);
        for thread in threads {
            thread.join().expect("an honest client gets all of its answers");
        }
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Ends a proxy, which must hold no state, and returns the number of connections cut.
pub fn drain_empty(proxy: Running) -> u64 {
    let left = |s: &ProxySnapshot| (s.connections, s.waiting, s.outstanding, s.buffered_bytes);
    wait_for_status(&proxy, "an empty proxy", |snapshot| left(snapshot) == (0, 0, 0, 0));
    proxy.drain().snapshot.cut
}
