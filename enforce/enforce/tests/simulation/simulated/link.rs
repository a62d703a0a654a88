//! Connections of a simulated world: one end is the proxy's, the far end is a client's or a server's.

use super::pipe::BytePipe;
use super::reader::RequestReader;
use super::server::ServerConnection;
use enforce::storage::{StreamInterest, StreamToken};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// Far end of a connection.
#[derive(Debug)]
pub enum FarEnd {
    /// The client with this number.
    Client(usize),
    /// A connection that a server has accepted, or will.
    Server(Box<ServerConnection>),
}

/// An observer's knowledge of a connection to the server that sessions share.
#[derive(Debug)]
pub struct SharedLink {
    pub written: RequestReader,
    /// Time at which the incomplete request was begun.
    pub begun_at: Option<u64>,
    /// The proxy has sent its greeting.
    pub has_greeted: bool,
    /// For each request on its way to the server: its session, or `None` if the proxy has added it, and the time at
    /// which the proxy has dispatched it at the earliest.
    pub owners: VecDeque<(Option<usize>, u64)>,
    /// Time since which the connection may accept less than offered.
    pub blocked_since: Option<u64>,
    /// True if the proxy tries to write and would block, or the server has not answered the greeting.
    pub is_blocked: bool,
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    /// Front that it belongs to.
    pub front: usize,
    /// Address of the client.
    pub address: SocketAddr,
    /// Session that it belongs to, once the proxy has accepted it.
    pub session: Option<usize>,
    /// The observer's knowledge of it, if sessions share it.
    pub shared: Option<Box<SharedLink>>,
    pub far: FarEnd,
    /// From the far end to the proxy.
    pub to_proxy: BytePipe,
    /// From the proxy to the far end.
    pub from_proxy: BytePipe,
    /// Travel time of bytes.
    pub latency_ns: u64,
    /// Time at which the connection is established or has failed; `None` while it never is.
    pub made_at: Option<u64>,
    /// True if it is refused instead of established.
    pub is_refused: bool,
    /// Time from which the proxy sees a reset.
    pub reset_at: Option<u64>,
    /// True if the far end has closed both directions.
    pub is_far_gone: bool,
    /// True if the proxy has closed both directions.
    pub is_proxy_gone: bool,
    /// Token and interest by which the proxy watches it.
    pub watched: Option<(StreamToken, StreamInterest)>,
    /// Time until which the far end does not read.
    pub stalled_until: u64,
}

/// Readiness of a connection: readable, writable, hung up.
pub type LinkReadiness = (bool, bool, bool);

impl Link {
    /// Returns true if the connection is established.
    pub fn is_made(&self, now: u64) -> bool {
        self.made_at.is_some_and(|at| at <= now)
    }

    /// Returns true if the proxy sees a reset.
    pub fn is_reset(&self, now: u64) -> bool {
        self.reset_at.is_some_and(|at| at <= now)
    }

    /// Returns the events that the kernel would report, subject to the registered interest.
    pub fn readiness(&self, now: u64) -> LinkReadiness {
        if !self.is_made(now) {
            return (false, false, false);
        }
        let both_ended = self.to_proxy.is_end_visible(now) && self.from_proxy.is_ended();
        let hung_up = self.is_refused || self.is_reset(now) || both_ended;
        let readable = hung_up || self.to_proxy.has_bytes(now) || self.to_proxy.is_at_end(now);
        (readable, hung_up || self.from_proxy.room() > 0 || self.is_far_gone, hung_up)
    }

    /// Checks that bytes can be read or written at all.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn check_usable(&self, now: u64) -> io::Result<()> {
        if !self.is_made(now) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.is_refused {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if self.is_reset(now) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    /// Closes the far end's direction.
    pub fn end_far(&mut self, now: u64) -> u64 {
        self.to_proxy.end(now + self.latency_ns)
    }

    /// Closes both directions of the far end. Bytes from the proxy that the far end has not read reset
    /// the connection.
    pub fn close_far(&mut self, now: u64) -> u64 {
        if self.is_far_gone {
            return now;
        }
        self.is_far_gone = true;
        if !self.from_proxy.is_empty() {
            self.reset_at.get_or_insert(now + self.latency_ns);
        }
        self.from_proxy.lose();
        self.end_far(now)
    }

    /// Resets the connection from the far end: bytes on their way are lost.
    pub fn reset_far(&mut self, now: u64) -> u64 {
        self.is_far_gone = true;
        self.from_proxy.lose();
        self.to_proxy.lose();
        *self.reset_at.get_or_insert(now + self.latency_ns)
    }
}
