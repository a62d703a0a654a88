//! Bytes from the server to the client. They are passed on as soon as their message is identified: replies to
//! the proxy's own requests must not reach the client.

use super::super::buffer::ReadBuffer;
use wire::ReplyHead;

/// Bytes that may wait for a client that reads nothing, before its requests leave the queue.
pub(super) const UNWRITTEN_MAX: usize = 256 << 10;
/// Bytes that may wait for a client with requests at the server. Their replies are read to the end, which
/// releases their slots at the device: four of 1 MiB with their heads.
const UNWRITTEN_WITH_REQUESTS_MAX: usize = (4 << 20) + (64 << 10);

/// Bytes from the server, and the state of parsing them.
#[derive(Debug, Default)]
pub(super) struct ReplyStream {
    /// Bytes not parsed yet.
    pub(super) unparsed: ReadBuffer,
    /// Bytes that the client has not read yet.
    pub(super) unwritten: ReadBuffer,
    /// Number of bytes of the latest message, or part of one, that have not arrived.
    pub(super) missing: u64,
    /// Message of which further parts follow.
    pub(super) partial: Option<ReplyHead>,
    /// The latest message is for the client.
    pub(super) is_for_client: bool,
    /// Bytes are dropped instead of written, because the client has gone.
    is_discarding: bool,
}

impl ReplyStream {
    /// Returns true if no byte waits for the client.
    pub(super) fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Returns true if the client must read before it is sent more.
    pub(super) fn is_full(&self) -> bool {
        self.unwritten.len() >= UNWRITTEN_MAX
    }

    /// Returns true if more may be read from the server. `has_requests`: the server owes replies.
    pub(super) fn has_room(&self, has_requests: bool) -> bool {
        let most = if has_requests { UNWRITTEN_WITH_REQUESTS_MAX } else { UNWRITTEN_MAX };
        self.unwritten.len() < most
    }

    /// Drops unwritten bytes, and all that arrive from now on.
    pub(super) fn discard(&mut self) {
        self.is_discarding = true;
        self.unwritten.clear();
    }

    /// Returns true if everything that the server has sent is whole messages.
    pub(super) fn is_between_messages(&self) -> bool {
        self.missing == 0 && self.partial.is_none() && self.unparsed.is_empty()
    }

    /// Adds bytes of the proxy's own.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        if !self.is_discarding {
            self.unwritten.extend(bytes);
        }
    }

    /// Passes on the received bytes of the latest message, and returns their number.
    pub(super) fn pass_message(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(usize::try_from(self.missing).unwrap_or(usize::MAX));
        self.missing -= count as u64;
        if self.is_for_client && !self.is_discarding {
            self.unwritten.extend(&bytes[..count]);
        }
        count
    }
}
