//! A session: a client's connection and the connection to the server behind it.
//!
//! Requests are parsed from the client's bytes, wait in the queue with their bytes, and are written to the server
//! in the order in which they are dispatched. Replies pass through as they come; a request is finished when the head of
//! the last part of its reply has come, because then the device has done its work.
//!
//! **Back-pressure.** A session buffers at most [`QUEUED_MAX`](incoming::QUEUED_MAX) requests and
//! [`BUFFERED_MAX`](incoming::BUFFERED_MAX) bytes ([`BUFFERED_GUARANTEED`](incoming::BUFFERED_GUARANTEED) when the
//! proxy as a whole buffers much): beyond that the client is not read. A request that is larger than that
//! enters the queue with the bytes that have come, and streams to the server when it is dispatched. A reply that the
//! client does not take stops the reading of further ones.
//!
//! **Order.** memcached answers in order, so that all requests of its clients stay in one queue. Elsewhere control
//! requests have a queue of their own. A session changes its flow when none of its requests waits. A request without
//! a reply that is no data (a client's goodbye) is forwarded when all requests before it have been, and so is the end of
//! the client's stream.
//!
//! The files: `client_side` and `server_side` read and parse, `lifecycle` leads a request through the queue, `shutdown`
//! decides when and how a session ends, and `interest` says what epoll should report.

mod client_side;
mod close_reason;
mod incoming;
mod interest;
mod lifecycle;
mod reply_stream;
mod server_side;
mod shutdown;

use super::buffer::{ReadBuffer, WriteQueue};
use super::flows::UNKNOWN_FLOW;
use crate::deployment::FrontProtocol;
pub(super) use close_reason::CloseReason;
use incoming::IncomingRequest;
use reply_stream::ReplyStream;
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use wire::{ParserLimits, ProtocolParser};

/// A client's connection and the connection to the server behind it. Times are in nanoseconds since the proxy started.
#[derive(Debug)]
pub(super) struct ProxySession {
    /// The place of the session in the engine's table.
    pub(super) slot: usize,
    /// The number that tells it from earlier sessions in the slot.
    pub(super) serial: u32,
    pub(super) peer: SocketAddr,
    pub(super) client: TcpStream,
    pub(super) server: TcpStream,
    pub(super) protocol: FrontProtocol,
    codec: Box<dyn SessionCodec>,
    /// The flow of the session's requests.
    pub(super) flow: u32,
    /// The flow that the session will have when none of its requests waits.
    next_flow: Option<u32>,
    /// Whether the engine has asked for the session's export.
    is_export_reported: bool,
    /// Bytes from the client that were not parsed yet.
    client_input: ReadBuffer,
    incoming: Option<IncomingRequest>,
    /// Bytes for the server.
    server_output: WriteQueue,
    /// The request that was dispatched before it was complete: its bytes go to the server as they come.
    streaming: Option<u32>,
    /// Requests that were dispatched while another was streaming, in order.
    behind_streaming: VecDeque<u32>,
    /// A control request without a reply, which is forwarded when no request waits any more.
    deferred: Option<u32>,
    /// The number of the session's requests in the queue.
    queued: u32,
    /// The bytes of requests that wait or are being received.
    buffered_bytes: usize,
    /// Requests that were sent and not answered: the identifier that the reply will have, and the number.
    in_flight: VecDeque<(u64, u32)>,
    replies: ReplyStream,
    /// Whether the connection to the server is made.
    pub(super) is_connected: bool,
    /// Whether the client will send nothing more.
    client_eof: bool,
    /// Whether the server will send nothing more, or nothing that it sends is waited for.
    server_eof: bool,
    /// When the server was told that the client sends nothing more.
    server_shutdown_at: Option<u64>,
    /// When the client's connection was closed.
    client_closed_at: Option<u64>,
    /// When the client began to hold up its own requests: it takes no replies, or does not send the rest of one.
    stalled_since: Option<u64>,
    /// When the client last sent or took bytes.
    client_progress_at: u64,
    /// Whether the proxy ends: no further requests are taken.
    is_draining: bool,
    /// What epoll reports about the client side and the server side, in its flags.
    pub(super) registered_flags: [u32; 2],
    /// Whether epoll watches the sides. A side that has hung up and is not to be read is not watched, because epoll
    /// would report the end again and again.
    pub(super) is_watched: [bool; 2],
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
    /// A session between sockets that do not block: the client's, and one whose connection to the server is begun.
    pub(super) fn new(
        slot: usize,
        serial: u32,
        protocol: FrontProtocol,
        peer: SocketAddr,
        [client, server]: [TcpStream; 2],
    ) -> Self {
        Self {
            slot,
            serial,
            peer,
            client,
            server,
            protocol,
            codec: codec(protocol),
            flow: UNKNOWN_FLOW,
            next_flow: None,
            is_export_reported: false,
            client_input: ReadBuffer::default(),
            incoming: None,
            server_output: WriteQueue::default(),
            streaming: None,
            behind_streaming: VecDeque::new(),
            deferred: None,
            queued: 0,
            buffered_bytes: 0,
            in_flight: VecDeque::new(),
            replies: ReplyStream::default(),
            is_connected: false,
            client_eof: false,
            server_eof: false,
            server_shutdown_at: None,
            client_closed_at: None,
            stalled_since: None,
            client_progress_at: 0,
            is_draining: false,
            registered_flags: [0, 0],
            is_watched: [true, true],
        }
    }

    /// The export that the server has granted an NBD connection.
    pub(super) fn export(&self) -> Option<&[u8]> {
        self.codec.export_name().filter(|_| self.protocol == FrontProtocol::Nbd)
    }

    /// Whether the server has granted an export since the last call.
    pub(super) fn has_new_export(&mut self) -> bool {
        let is_new = !self.is_export_reported && self.export().is_some();
        self.is_export_reported |= is_new;
        is_new
    }

    /// Moves the session to a flow, as soon as none of its requests waits in the present one.
    pub(super) fn move_to_flow(&mut self, flow: u32) {
        self.next_flow = (flow != self.flow).then_some(flow);
        self.adopt_next_flow();
    }

    fn adopt_next_flow(&mut self) {
        if self.queued == 0
            && let Some(flow) = self.next_flow.take()
        {
            self.flow = flow;
        }
    }

    /// Takes no further requests; the session ends when the requests in flight are answered.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }
}
