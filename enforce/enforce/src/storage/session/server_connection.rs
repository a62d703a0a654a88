//! The connection to the server, as far as bytes and requests are concerned.

use super::super::buffer::{ReadBuffer, WriteQueue};
use super::phase::ServerPhase;
use super::reply_stream::ReplyStream;
use std::collections::VecDeque;

/// The connection to the server, as far as bytes and requests are concerned.
#[derive(Debug)]
pub(in super::super) struct ServerSide {
    pub(super) phase: ServerPhase,
    /// Bytes for the server.
    pub(in super::super) output: WriteQueue,
    /// Requests that were sent and not answered, in the order in which they were sent: the identifier that the reply
    /// will have, and the number.
    pub(super) in_flight: VecDeque<(u64, u32)>,
    pub(super) replies: ReplyStream,
    /// When the latest part of a reply came.
    pub(super) heard_at: u64,
    /// Whether the server has left a request unanswered for long that was sent after its latest reply.
    pub(super) is_silent: bool,
}

impl ServerSide {
    pub(super) fn new(now: u64) -> Self {
        Self {
            phase: ServerPhase::Connecting { since: now },
            output: WriteQueue::default(),
            in_flight: VecDeque::new(),
            replies: ReplyStream::default(),
            heard_at: now,
            is_silent: false,
        }
    }

    /// The bytes that the client is to be sent.
    pub(in super::super) fn replies_to_client(&mut self) -> &mut ReadBuffer {
        &mut self.replies.unwritten
    }

    /// Whether everything was sent and answered.
    pub(super) fn owes_nothing(&self) -> bool {
        self.output.is_empty() && self.in_flight.is_empty()
    }
}
