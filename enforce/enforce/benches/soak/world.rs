//! Addresses of servers and proxies, their restarts, and counters.

use crate::codec::Protocol;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Shared by all threads.
#[derive(Default)]
pub struct World {
    /// Addresses of the proxies, for clients.
    pub proxies: Vec<Fronts>,
    /// Addresses of the servers themselves.
    pub servers: Fronts,
    /// Number of starts and ends of each server and each proxy: odd while it is down.
    pub server_turns: [AtomicU32; 3],
    pub proxy_turns: [AtomicU32; 2],
    pub stop: AtomicBool,
    pub tally: Tally,
    /// The first few faults.
    pub faults: Mutex<Vec<String>>,
}

/// Addresses by protocol.
#[derive(Debug, Clone, Copy)]
pub struct Fronts {
    pub nbd: SocketAddr,
    pub memcached: SocketAddr,
    pub nfs: SocketAddr,
    pub mount: SocketAddr,
}

impl Default for Fronts {
    fn default() -> Self {
        let none = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { nbd: none, memcached: none, nfs: none, mount: none }
    }
}

impl Fronts {
    /// Returns the fronts at an address with the usual ports.
    pub fn at(ip: [u8; 4]) -> Self {
        let on = |port| SocketAddr::from((ip, port));
        Self { nbd: on(10809), memcached: on(11211), nfs: on(2049), mount: on(20048) }
    }

    pub fn of(&self, protocol: Protocol) -> SocketAddr {
        [self.nbd, self.memcached, self.nfs][protocol as usize]
    }
}

/// Counters of a run.
#[derive(Default)]
pub struct Tally {
    pub requests: AtomicU64,
    pub compared: AtomicU64,
    pub written: AtomicU64,
    pub lost: AtomicU64,
    pub corrupt: AtomicU64,
    pub refused: AtomicU64,
    pub connections: AtomicU64,
    pub killed: AtomicU64,
    pub half_closed: AtomicU64,
    pub cut: AtomicU64,
    pub servers: AtomicU64,
    pub proxies: AtomicU64,
    pub policies: AtomicU64,
    pub hostile: AtomicU64,
    /// Longest gap, milliseconds.
    pub gap: AtomicU64,
}

pub fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, SeqCst);
}

/// Restart counters of the processes that a connection passes through; it may be cut when one changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    pub server: u32,
    pub proxy: u32,
}

impl Turns {
    /// Returns true if both were up.
    pub fn is_up(self) -> bool {
        self.server.is_multiple_of(2) && self.proxy.is_multiple_of(2)
    }
}

impl World {
    pub fn stopped(&self) -> bool {
        self.stop.load(SeqCst)
    }

    pub fn turns(&self, protocol: Protocol, proxy: usize) -> Turns {
        let server = self.server_turns[protocol as usize].load(SeqCst);
        Turns { server, proxy: self.proxy_turns.get(proxy).map_or(0, |turns| turns.load(SeqCst)) }
    }

    pub fn error(&self, text: String) {
        let mut faults = self.faults.lock().expect("nobody panics with it");
        if faults.len() < 40 {
            eprintln!("soak: {text}");
            faults.push(text);
        }
    }

    /// Sleeps, but not beyond the end of the run.
    pub fn pause(&self, mut time: Duration) {
        while !time.is_zero() && !self.stopped() {
            let piece = time.min(Duration::from_millis(100));
            std::thread::sleep(piece);
            time -= piece;
        }
    }
}
