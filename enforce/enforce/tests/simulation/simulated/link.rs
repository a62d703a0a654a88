//! Connections of a simulated world: one end is the proxy's, the far end is a client's or a server's.

use super::pipe::BytePipe;
use super::server::ServerConnection;
use enforce::storage::{StreamInterest, StreamToken};
use std::io;
use std::net::SocketAddr;

/// What is at the far end of a connection.
#[derive(Debug)]
pub enum FarEnd {
    /// The client with this number.
    Client(usize),
    /// A connection that a server has accepted, or will.
    Server(Box<ServerConnection>),
}

/// One connection.
#[derive(Debug)]
pub struct Link {
    /// The front that it belongs to.
    pub front: usize,
    /// The address of the client.
    pub address: SocketAddr,
    /// The session that it belongs to, once the proxy has accepted it.
    pub session: Option<usize>,
    /// What is at the other end.
    pub far: FarEnd,
    /// From the far end to the proxy.
    pub to_proxy: BytePipe,
    /// From the proxy to the far end.
    pub from_proxy: BytePipe,
    /// How long bytes travel.
    pub latency_ns: u64,
    /// When the connection is made or has failed; `None` while it is never made.
    pub made_at: Option<u64>,
    /// Whether it is refused instead of made.
    pub is_refused: bool,
    /// From when on the proxy finds that it was reset.
    pub reset_at: Option<u64>,
    /// Whether the far end has closed both directions.
    pub is_far_gone: bool,
    /// Whether the proxy has closed both directions.
    pub is_proxy_gone: bool,
    /// The name and the interest by which the proxy watches it.
    pub watched: Option<(StreamToken, StreamInterest)>,
    /// Until when the far end does not read.
    pub stalled_until: u64,
}

/// Whether a connection is ready: readable, writable, hung up.
pub type LinkReadiness = (bool, bool, bool);

impl Link {
    /// Whether the connection is made.
    pub fn is_made(&self, now: u64) -> bool {
        self.made_at.is_some_and(|at| at <= now)
    }

    /// Whether the proxy finds that it was reset.
    pub fn is_reset(&self, now: u64) -> bool {
        self.reset_at.is_some_and(|at| at <= now)
    }

    /// What the kernel would report, as far as something is wanted.
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
    /// What a system call would say.
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

    /// The far end closes its direction.
    pub fn end_far(&mut self, now: u64) -> u64 {
        self.to_proxy.end(now + self.latency_ns)
    }

    /// The far end closes both directions. What the proxy has sent and the far end has not read resets the connection.
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

    /// The far end resets the connection: what is on its way is lost.
    pub fn reset_far(&mut self, now: u64) -> u64 {
        self.is_far_gone = true;
        self.from_proxy.lose();
        self.to_proxy.lose();
        *self.reset_at.get_or_insert(now + self.latency_ns)
    }
}
