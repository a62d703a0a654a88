//! The connection to the server: its bytes and requests.

use super::super::buffer::{ReadBuffer, WriteQueue};
use super::phase::ServerPhase;
use super::reply_stream::ReplyStream;
use std::collections::VecDeque;

/// The connection to the server: its bytes and requests.
#[derive(Debug)]
pub(in super::super) struct ServerSide {
    pub(super) phase: ServerPhase,
    /// Bytes for the server.
    pub(in super::super) output: WriteQueue,
    /// Requests sent and not answered, in sending order: the identifier of the reply, and the number.
    pub(super) in_flight: VecDeque<(u64, u32)>,
    pub(super) replies: ReplyStream,
    /// Time of the latest part of a reply.
    pub(super) heard_at: u64,
    /// Time of the latest bytes from the server.
    pub(super) read_at: u64,
    /// Latest time at which the server was not read, because its client did not read.
    pub(super) unread_at: u64,
    /// True if a request sent after the server's latest reply has been unanswered for long.
    pub(super) is_silent: bool,
    /// The session has requests that shared connections must not carry. It connects once those that they do carry
    /// are answered.
    pub(super) wants_own: bool,
    /// There is an open connection for its requests, which they share.
    pub(super) can_share: bool,
    /// Bytes of requests in flight on a shared connection.
    pub(super) shared_bytes: usize,
}

impl ServerSide {
    pub(super) fn new(phase: ServerPhase, now: u64) -> Self {
        Self {
            phase,
            output: WriteQueue::default(),
            in_flight: VecDeque::new(),
            replies: ReplyStream::default(),
            heard_at: now,
            read_at: now,
            unread_at: now,
            is_silent: false,
            wants_own: false,
            can_share: false,
            shared_bytes: 0,
        }
    }

    /// Returns the bytes to send to the client.
    pub(in super::super) fn replies_to_client(&mut self) -> &mut ReadBuffer {
        &mut self.replies.unwritten
    }

    /// Returns true if everything was sent and answered.
    pub(super) fn owes_nothing(&self) -> bool {
        self.output.is_empty() && self.in_flight.is_empty()
    }
}
