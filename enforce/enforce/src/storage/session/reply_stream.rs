//! The bytes from the server to the client. They are passed on as soon as it is known what they belong to: replies to
//! the proxy's own requests do not reach the client.

use super::super::buffer::ReadBuffer;
use wire::ReplyHead;

/// How many bytes may wait for a client that takes nothing, before its requests leave the queue.
pub(super) const UNWRITTEN_MAX: usize = 256 << 10;
/// How many bytes may wait for a client while it has requests at the server: these are read to their end, so that their
/// places are given back.
const UNWRITTEN_WITH_REQUESTS_MAX: usize = 4 << 20;

/// The bytes from the server, and how far they were understood.
#[derive(Debug, Default)]
pub(super) struct ReplyStream {
    /// The bytes that were not parsed yet.
    pub(super) unparsed: ReadBuffer,
    /// The bytes that the client has not taken yet.
    pub(super) unwritten: ReadBuffer,
    /// How many bytes of the latest message, or part of one, have not come yet.
    pub(super) missing: u64,
    /// The message of which further parts follow.
    pub(super) partial: Option<ReplyHead>,
    /// Whether the bytes of the latest message are the client's.
    pub(super) is_for_client: bool,
    /// Whether bytes are dropped instead of written, because the client has gone.
    is_discarding: bool,
}

impl ReplyStream {
    /// Whether nothing waits for the client.
    pub(super) fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Whether the client has much to take before it is given more.
    pub(super) fn is_full(&self) -> bool {
        self.unwritten.len() >= UNWRITTEN_MAX
    }

    /// Whether more may be read from the server; `has_requests` tells that it owes replies.
    pub(super) fn has_room(&self, has_requests: bool, is_crowded: bool) -> bool {
        let most = if has_requests && !is_crowded { UNWRITTEN_WITH_REQUESTS_MAX } else { UNWRITTEN_MAX };
        self.unwritten.len() < most
    }

    /// Drops what is not written, and everything that comes from now on.
    pub(super) fn discard(&mut self) {
        self.is_discarding = true;
        self.unwritten.clear();
    }

    /// Passes on what has come of the latest message, and returns how many bytes that was.
    pub(super) fn pass_message(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(usize::try_from(self.missing).unwrap_or(usize::MAX));
        self.missing -= count as u64;
        if self.is_for_client && !self.is_discarding {
            self.unwritten.extend(&bytes[..count]);
        }
        count
    }
}
