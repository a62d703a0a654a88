//! A session: a client's connection and its own connection to the server, or those it shares, as a state machine. Inputs
//! are bytes read and instants; outputs are bytes to write and the events wanted of both connections.
//!
//! Requests are parsed from the client's bytes, wait in the queue with their bytes, and are handed to the
//! server's connection in the order of dispatch. Replies pass through as they arrive. A request is complete
//! at the head of the last part of its reply, because the device has then done its work.
//!
//! **Back-pressure.** A session buffers at most [`QUEUED_MAX`](client_side::QUEUED_MAX) requests and
//! [`BUFFERED_MAX`](client_side::BUFFERED_MAX) bytes
//! ([`BUFFERED_GUARANTEED`](client_side::BUFFERED_GUARANTEED) while the proxy as a whole buffers much);
//! beyond that the client is not read. A larger request is forwarded except for its end, without a slot at
//! the device, while no other request of the session waits; its end enters the queue. So no slot is occupied
//! by a request whose rest does not arrive.
//!
//! **Clients that do not read.** The waiting requests of a client that does not read its replies leave the
//! queue until it has read them. Replies to requests already at the server are read in the meantime.
//!
//! **Errors of clients.** Where a client's bytes cannot be parsed any further, the requests before them are still
//! served. Then the client is told the reason, if its protocol has words for it, and the session ends.
//!
//! **Order.** memcached answers in order, so all requests of its clients stay in one queue. With other
//! protocols control requests have their own queue. A control request without a reply (a client's goodbye) is
//! forwarded after all earlier requests, and so is the end of the client's stream. A client's answer to a
//! call of the server is forwarded at once.
//!
//! `client_side` and `server_side` parse, `sharing` says what goes over shared connections, `lifecycle` leads a request through the queue, `shutdown` decides
//! when a session ends, and `phase` has the states of its connections.

mod client_side;
mod close_reason;
mod handover;
mod incoming;
mod invariants;
mod lifecycle;
mod phase;
mod reply_stream;
mod server_connection;
mod server_side;
mod sharing;
mod shutdown;

use super::buffer::ReadBuffer;
use super::flows::UNKNOWN_FLOW;
use super::shared::SharedState;
use super::system::StreamInterest;

pub(super) use close_reason::{CloseReason, ProxySide};
use incoming::IncomingRequest;
use phase::{ClientPhase, ServerPhase};
use server_connection::ServerSide;
pub(super) use shutdown::SessionOrder;
use std::net::SocketAddr;
use wire::{ConnectionAge, ExportSource, Protocol, ProtocolError, ProtocolParser};

/// A client's connection and the connection to the server behind it. Times are in nanoseconds since the proxy
/// started.
#[derive(Debug)]
pub(super) struct ProxySession {
    /// Slot in the engine's table.
    pub(super) slot: usize,
    pub(super) peer: SocketAddr,
    /// Index of the client's address.
    pub(super) address: usize,
    pub(super) protocol: Protocol,
    codec: Box<dyn ProtocolParser>,
    /// Flow of the session's data requests, from its latest request that identified a workload.
    pub(super) flow: u32,
    /// NFS export of the session's latest request that names a file.
    export: Option<u32>,
    /// The engine has been told of the export that the server granted.
    is_export_reported: bool,
    pub(super) client: ClientSide,
    pub(super) server: ServerSide,
    incoming: Option<IncomingRequest>,
    /// The client's bytes cannot be parsed any further; earlier requests are still answered.
    broken: Option<BrokenStream>,
    /// A complete request whose beginning was forwarded before its dispatch: no other bytes may come in
    /// between.
    ahead: Option<u32>,
    /// A control request without a reply, which is forwarded when no request waits any more.
    goodbye: Option<u32>,
    /// The session's requests in the queue, and the parked ones.
    waiting: Vec<u32>,
    /// Waiting requests are out of the queue, because slots at the device would be wasted on them now.
    is_parked: bool,
    /// Bytes of requests that wait or are being received.
    held_bytes: usize,
    /// Bytes included for this session in the total of all sessions.
    counted_bytes: usize,
    /// Time since which the client blocks its own requests: it reads no replies, or does not send the rest of a
    /// request.
    stalled_since: Option<u64>,
    /// Time since which replies to others wait behind its own, because the client is slow.
    holds_up_since: Option<u64>,
    /// A request of the session has been answered.
    pub(super) has_been_served: bool,
    /// Round of the engine that last handled an event of the session.
    pub(super) round: u64,
}

/// A client's stream that cannot be parsed any further.
#[derive(Debug)]
struct BrokenStream {
    error: ProtocolError,
    /// The client was told.
    is_told: bool,
}

/// State of the connection to the client.
#[derive(Debug)]
pub(super) struct ClientSide {
    phase: ClientPhase,
    /// Bytes from the client that are not parsed yet.
    input: ReadBuffer,
    /// Time when the client last sent or read bytes while the proxy waited for it.
    progress_at: u64,
    /// Time when the client last sent bytes, or connected.
    pub(super) heard_at: u64,
    /// Time when the client connected.
    pub(super) since: u64,
    /// Time when the client's latest request was complete or answered, or when it connected. Bytes of an
    /// incomplete request do not change it.
    pub(super) asked_at: u64,
}

impl ProxySession {
    /// Creates the session of a connected client. Its connection to the server has begun, unless its requests go
    /// over shared ones.
    pub(super) fn new(
        slot: usize,
        protocol: Protocol,
        is_sharing: bool,
        peer: SocketAddr,
        address: usize,
        now: u64,
    ) -> Self {
        let phase = if is_sharing { ServerPhase::Shared } else { ServerPhase::Connecting { since: now } };
        let mut codec = protocol.parser(ConnectionAge::New);
        codec.mediate();
        Self {
            slot,
            peer,
            address,
            protocol,
            codec,
            flow: UNKNOWN_FLOW,
            export: None,
            is_export_reported: false,
            client: ClientSide {
                phase: ClientPhase::Open,
                input: ReadBuffer::default(),
                progress_at: now,
                heard_at: now,
                since: now,
                asked_at: now,
            },
            server: ServerSide::new(phase, now),
            incoming: None,
            broken: None,
            ahead: None,
            goodbye: None,
            waiting: Vec::new(),
            is_parked: true,
            held_bytes: 0,
            counted_bytes: 0,
            stalled_since: None,
            holds_up_since: None,
            has_been_served: false,
            round: 0,
        }
    }

    /// Returns true if the server has granted the connection's export since the last call.
    pub(super) fn has_new_export(&mut self) -> bool {
        let is_new = self.protocol.row().export == ExportSource::Handshake
            && !self.is_export_reported
            && self.codec.export_name().is_some();
        self.is_export_reported |= is_new;
        is_new
    }

    /// Returns true if no complete request of the client has arrived yet.
    pub(super) fn has_asked_nothing(&self) -> bool {
        !self.has_been_served && self.waiting.is_empty() && self.server.in_flight.is_empty()
    }

    /// Returns the events wanted of the client's connection and of the server's.
    pub(super) fn interest(&self, shared: &SharedState) -> [StreamInterest; 2] {
        let has_client = !self.client.phase.is_closed();
        let client = StreamInterest {
            readable: self.wants_client_input(shared),
            writable: has_client && !self.server.replies.is_written(),
        };
        let server = StreamInterest {
            readable: self.wants_server_input(),
            // A socket becomes writable when connecting completes.
            writable: self.is_connecting() || self.may_write_server(),
        };
        [client, server]
    }
}
