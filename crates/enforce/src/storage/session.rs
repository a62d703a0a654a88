//! One client's connection and the one to the server behind it.
//!
//! Requests are taken apart from the client's bytes, wait in the queue with their bytes, and are written to the server
//! in the order in which they are let go. Replies pass through as they come; what they answer is over when the head of
//! their last part has come, because then the device has done its work.
//!
//! **Back-pressure.** A session holds at most [`WAITING_MAX`] requests and [`HELD_MAX`] bytes ([`HELD_LEAST`] when the
//! proxy as a whole holds much): beyond that the client is not read. A request that is larger than that
//! enters the queue with what is there, and streams when it is let go. A reply that the client does not take stops the
//! reading of further ones.
//!
//! **Order.** memcached answers in order, so that all its requests stay in one queue. Elsewhere control requests
//! have a queue of their own. A connection changes its flow when nothing of it waits. The last word of a client
//! (a request without answer that is no data, and its hanging up) is passed on when all before it has been.

mod down;
mod end;
mod up;
mod way;

use super::buffer::{Inbox, Outbox};
use super::request::State;
use super::rules::UNKNOWN;
use super::shared::Shared;
use crate::deployment::FrontProtocol;
use down::Down;
pub(super) use end::Cut;
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use up::Current;
use wire::{ParserLimits, ProtocolParser};

/// Requests of one connection that wait.
const WAITING_MAX: u32 = 256;
/// Bytes of them.
const HELD_MAX: usize = 1 << 20;
/// What every connection may hold whatever others hold.
pub(super) const HELD_LEAST: usize = 64 << 10;
/// Requests of one connection that wait or are answered later: below what the codecs take for hostile.
const ASKED_MAX: usize = 3072;

/// Both connections.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: usize,
    pub(super) peer: SocketAddr,
    pub(super) client: TcpStream,
    pub(super) server: TcpStream,
    pub(super) front: FrontProtocol,
    wire: Box<dyn Codec>,
    pub(super) flow: u32,
    /// Its export was looked at.
    named: bool,
    /// The flow that it will have when nothing waits.
    next_flow: Option<u32>,
    inbox: Inbox,
    current: Option<Current>,
    to_server: Outbox,
    /// Sent on while more of it comes in.
    open: Option<u32>,
    /// Let go behind it.
    behind: VecDeque<u32>,
    /// Passed on when nothing waits any more.
    parting: Option<u32>,
    waiting: u32,
    held: usize,
    /// Sent on and not answered: what the reply carries, and the request.
    asked: VecDeque<(u64, u32)>,
    down: Down,
    pub(super) connected: bool,
    client_end: bool,
    server_end: bool,
    /// Since when the server knows that the client says nothing more.
    shut: Option<u64>,
    /// Since when the client is gone.
    gone: Option<u64>,
    /// Since when it stands in its own way.
    stalled: Option<u64>,
    /// When bytes of it moved last.
    moved: u64,
    /// Nothing more is read.
    draining: bool,
    pub(super) interest: [u32; 2],
    /// Client and server are watched; one that has hung up and is not to be read is not.
    pub(super) watched: [bool; 2],
}

/// A codec that can be printed in a bug report.
trait Codec: ProtocolParser + std::fmt::Debug {}
impl<T: ProtocolParser + std::fmt::Debug> Codec for T {}

fn codec(front: FrontProtocol) -> Box<dyn Codec> {
    match front {
        FrontProtocol::Nfs => Box::new(wire::rpc::RpcParser::new(ParserLimits::RPC)),
        FrontProtocol::Nbd => Box::new(wire::nbd::NbdParser::new(ParserLimits::NBD)),
        FrontProtocol::Memcached => Box::new(wire::memcached::MemcachedParser::new(ParserLimits::MEMCACHED)),
    }
}

impl Session {
    pub(super) fn new(
        number: usize,
        front: FrontProtocol,
        peer: SocketAddr,
        sockets: [TcpStream; 2],
    ) -> Self {
        let [client, server] = sockets;
        Self {
            number,
            peer,
            client,
            server,
            front,
            wire: codec(front),
            flow: UNKNOWN,
            named: false,
            next_flow: None,
            inbox: Inbox::default(),
            current: None,
            to_server: Outbox::default(),
            open: None,
            behind: VecDeque::new(),
            parting: None,
            waiting: 0,
            held: 0,
            asked: VecDeque::new(),
            down: Down::default(),
            connected: false,
            client_end: false,
            server_end: false,
            shut: None,
            gone: None,
            stalled: None,
            moved: 0,
            draining: false,
            interest: [0, 0],
            watched: [true, true],
        }
    }

    /// The export that an NBD connection was granted.
    pub(super) fn export(&self) -> Option<&[u8]> {
        self.wire.export_name().filter(|_| self.front == FrontProtocol::Nbd)
    }

    /// Whether the server has granted an export since this was asked last.
    pub(super) fn has_new_name(&mut self) -> bool {
        let new = !self.named && self.export().is_some();
        self.named |= new;
        new
    }

    /// From the next request on that finds nothing of this connection waiting, its requests are of `flow`.
    pub(super) fn belongs_to(&mut self, flow: u32) {
        self.next_flow = (flow != self.flow).then_some(flow);
        self.settle_flow();
    }

    fn settle_flow(&mut self) {
        if self.waiting == 0
            && let Some(flow) = self.next_flow.take()
        {
            self.flow = flow;
        }
    }

    /// Nothing more is asked; what was asked is answered.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// Reads what the client sends.
    pub(super) fn client_readable(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        self.read_client()?;
        self.take_apart(shared)
    }

    /// What can be done without waiting: requests out of the inbox, bytes to both sides, the end.
    pub(super) fn settle(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        self.take_apart(shared)?;
        while let Some(number) = self.parting.filter(|_| self.waiting == 0 && self.open.is_none()) {
            self.parting = None;
            // What is still missing of it follows without waiting.
            shared.requests.get_mut(number).state = State::Over;
            self.emit(number, shared);
            self.take_apart(shared)?;
        }
        if self.connected && !self.server_end {
            self.to_server.write(&mut self.server).map_err(|error| Cut::Broken("server", error))?;
        }
        if self.gone.is_none() {
            match self.down.write(&mut self.client) {
                Ok(0) => {}
                Ok(_) => self.moved = shared.now,
                Err(_) => self.client_gone(shared),
            }
        }
        self.end(shared)?;
        self.watch_stall(shared);
        Ok(())
    }
}

/// What a side of a session is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Session {
    /// Of the client and of the server.
    pub(super) fn interest(&self, shared: &Shared) -> [Interest; 2] {
        let client = Interest {
            read: !self.client_end && self.gone.is_none() && self.wants_more(shared),
            write: self.gone.is_none() && !self.down.is_written(),
        };
        let server = Interest {
            read: self.connected && !self.server_end && !self.down.is_full(),
            write: !self.connected || !self.to_server.is_empty(),
        };
        [client, server]
    }
}
