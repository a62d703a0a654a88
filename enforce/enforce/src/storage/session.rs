//! A session: a client's connection and the connection to the server behind it, as a state machine. Bytes that were read
//! and instants come in; bytes to write, and what is wanted of the connections, come out.
//!
//! Requests are parsed from the client's bytes, wait in the queue with their bytes, and are handed to the server's
//! connection in the order in which they are dispatched. Replies pass through as they come; a request is finished when
//! the head of the last part of its reply has come, because then the device has done its work.
//!
//! **Back-pressure.** A session buffers at most [`QUEUED_MAX`](client_side::QUEUED_MAX) requests and
//! [`BUFFERED_MAX`](client_side::BUFFERED_MAX) bytes ([`BUFFERED_GUARANTEED`](client_side::BUFFERED_GUARANTEED) when the
//! proxy as a whole buffers much): beyond that the client is not read. A request that is larger than that goes ahead
//! to the server but for its end, without a place at the device, while nothing else of the session waits; its end
//! enters the queue. So nobody occupies a place with a request of which the rest does not come.
//!
//! **Clients that take nothing.** The waiting requests of a client that does not take its replies leave the queue until
//! it has taken them; replies to what is at the server already are read in the meantime.
//!
//! **Order.** memcached answers in order, so that all requests of its clients stay in one queue. Elsewhere control
//! requests have a queue of their own. A request without a reply that is no data (a client's goodbye) is forwarded when
//! all requests before it have been, and so is the end of the client's stream. A client's answer to a call of the server
//! is forwarded at once.
//!
//! The files: `client_side` and `server_side` parse, `lifecycle` leads a request through the queue, `shutdown`
//! decides when and how a session ends, `phase` says how far its connections have come.

mod client_side;
mod close_reason;
mod incoming;
mod invariants;
mod lifecycle;
mod phase;
mod reply_stream;
mod server_connection;
mod server_side;
mod shutdown;

use super::buffer::ReadBuffer;
use super::flows::UNKNOWN_FLOW;
use super::shared::SharedState;
use super::system::StreamInterest;
use crate::deployment::FrontProtocol;

pub(super) use close_reason::{CloseReason, ProxySide};
use incoming::IncomingRequest;
use phase::ClientPhase;
use server_connection::ServerSide;
pub(super) use shutdown::SessionOrder;
use std::net::SocketAddr;
use wire::{ParserLimits, ProtocolParser};

/// A client's connection and the connection to the server behind it. Times are in nanoseconds since the proxy started.
#[derive(Debug)]
pub(super) struct ProxySession {
    /// The place of the session in the engine's table.
    pub(super) slot: usize,
    pub(super) peer: SocketAddr,
    pub(super) protocol: FrontProtocol,
    codec: Box<dyn SessionCodec>,
    /// The flow of the session's data requests: that of its latest request which said whose it is.
    pub(super) flow: u32,
    /// The number of the NFS export that the latest request which names a file was about.
    export: Option<u32>,
    /// Whether the engine has asked for the session's NBD export.
    is_export_reported: bool,
    pub(super) client: ClientSide,
    pub(super) server: ServerSide,
    incoming: Option<IncomingRequest>,
    /// A complete request whose beginning was sent to the server before its turn: nothing may come in between.
    ahead: Option<u32>,
    /// A control request without a reply, which is forwarded when no request waits any more.
    goodbye: Option<u32>,
    /// The session's requests in the queue, and the parked ones.
    waiting: Vec<u32>,
    /// Whether waiting requests are out of the queue, because places at the device would be of no use to them now.
    is_parked: bool,
    /// The bytes of requests that wait or are being received.
    held_bytes: usize,
    /// The bytes that are counted for the session among those of all sessions.
    counted_bytes: usize,
    /// When the client began to hold up its own requests: it takes no replies, or does not send the rest of one.
    stalled_since: Option<u64>,
    /// Whether a request of the session was answered.
    pub(super) has_been_served: bool,
}

/// The connection to the client, as far as bytes are concerned.
#[derive(Debug)]
pub(super) struct ClientSide {
    phase: ClientPhase,
    /// Bytes from the client that were not parsed yet.
    input: ReadBuffer,
    /// When the client last sent or took bytes while it was waited for.
    progress_at: u64,
    /// When the client last sent bytes, or connected.
    pub(super) heard_at: u64,
    /// When the client connected.
    pub(super) since: u64,
}

/// A codec of a protocol that can be printed in a bug report.
trait SessionCodec: ProtocolParser + std::fmt::Debug {}
impl<T: ProtocolParser + std::fmt::Debug> SessionCodec for T {}

fn codec(protocol: FrontProtocol) -> Box<dyn SessionCodec> {
    match protocol {
        FrontProtocol::Nfs => Box::new(wire::rpc::RpcParser::new(ParserLimits::RPC)),
        FrontProtocol::Nbd => Box::new(wire::nbd::NbdParser::new(ParserLimits::NBD)),
        FrontProtocol::Memcached => Box::new(wire::memcached::MemcachedParser::new(ParserLimits::MEMCACHED)),
    }
}

impl ProxySession {
    /// A session of a client that has connected, whose connection to the server is begun.
    pub(super) fn new(slot: usize, protocol: FrontProtocol, peer: SocketAddr, now: u64) -> Self {
        Self {
            slot,
            peer,
            protocol,
            codec: codec(protocol),
            flow: UNKNOWN_FLOW,
            export: None,
            is_export_reported: false,
            client: ClientSide {
                phase: ClientPhase::Open,
                input: ReadBuffer::default(),
                progress_at: now,
                heard_at: now,
                since: now,
            },
            server: ServerSide::new(now),
            incoming: None,
            ahead: None,
            goodbye: None,
            waiting: Vec::new(),
            is_parked: true,
            held_bytes: 0,
            counted_bytes: 0,
            stalled_since: None,
            has_been_served: false,
        }
    }

    /// Whether the server has granted an NBD export since the last call.
    pub(super) fn has_new_export(&mut self) -> bool {
        let is_new = self.protocol == FrontProtocol::Nbd
            && !self.is_export_reported
            && self.codec.export_name().is_some();
        self.is_export_reported |= is_new;
        is_new
    }

    /// Whether the client has asked for nothing so far, as far as whole requests tell.
    pub(super) fn has_asked_nothing(&self) -> bool {
        !self.has_been_served && self.waiting.is_empty() && self.server.in_flight.is_empty()
    }

    /// What is wanted of the client's connection and of the server's.
    pub(super) fn interest(&self, shared: &SharedState) -> [StreamInterest; 2] {
        let has_client = !self.client.phase.is_closed();
        let client = StreamInterest {
            readable: self.wants_client_input(shared),
            writable: has_client && !self.server.replies.is_written(),
        };
        let server = StreamInterest {
            readable: self.wants_server_input(shared),
            // A connection that is being made becomes writable when it is made.
            writable: self.is_connecting() || self.may_write_server(),
        };
        [client, server]
    }
}
