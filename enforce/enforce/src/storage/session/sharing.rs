//! Shared connections to the server, as a session sees them.
//!
//! A session begins without a connection of its own. Its requests go over connections that several sessions share,
//! so that one system call moves requests or replies of many clients. A request may do so if neither its effect nor
//! its reply depends on the connection, and if it is short and its reply is expected to be short: a long one would
//! hold up the replies to others. After the first request that may not, the session connects for itself, for good.

use super::super::shared::SharedState;
use super::ProxySession;
use super::close_reason::CloseReason;
use super::phase::ServerPhase;
use units::Bytes;
use wire::RequestHead;

/// Length of the longest request on a shared connection, bytes.
const REQUEST_MAX: u64 = 32 << 10;
/// Expected length of the longest reply on a shared connection, bytes.
const REPLY_MAX: u64 = 64 << 10;
/// Number of requests from which a connection carries many at once without sharing.
const PIPELINED: usize = 16;
/// Time for which a client that reads nothing may hold up replies to others, nanoseconds.
const DEAF_PATIENCE_NS: u64 = 1_000_000_000;
/// Time for which a client that reads slowly may hold them up, nanoseconds.
const SLOW_PATIENCE_NS: u64 = 10_000_000_000;

impl ProxySession {
    /// Returns true if a request may go over a shared connection.
    pub(super) fn may_share(&self, head: &RequestHead, len: Bytes, shared: &SharedState) -> bool {
        head.is_independent
            && len.0 <= REQUEST_MAX
            && self.waiting.len() + self.server.in_flight.len() < PIPELINED
            && shared.reply_expected(self.flow, head.keys) <= REPLY_MAX
    }

    /// Returns true while the session waits to begin a connection of its own.
    pub(super) fn is_changing_over(&self) -> bool {
        self.is_sharing() && self.server.wants_own
    }

    /// Returns true while there is no connection for its requests: each that is dispatched would hold a place at the
    /// device without being there.
    pub(super) fn is_without_connection(&self) -> bool {
        self.is_sharing() && (self.server.wants_own || !self.server.can_share)
    }

    /// Returns true if requests wait for a shared connection.
    pub(in super::super) fn wants_shared_connection(&self) -> bool {
        self.is_sharing() && !self.server.wants_own && !self.server.can_share && !self.waiting.is_empty()
    }

    /// Notes whether there is a shared connection for its requests.
    pub(in super::super) fn set_shared_connection(&mut self, is_open: bool) {
        self.server.can_share = is_open;
    }

    /// Lets the session connect for itself, as soon as its earlier requests are answered.
    pub(in super::super) fn leave_shared_connections(&mut self) {
        self.server.wants_own = true;
    }

    /// Returns true if its requests go over shared connections.
    pub(in super::super) fn is_sharing(&self) -> bool {
        self.server.phase == ServerPhase::Shared
    }

    /// Takes the latest dispatched request, for a shared connection: its identifier and its bytes.
    pub(in super::super) fn take_shared_request(&mut self) -> Option<(u64, Vec<u8>)> {
        if !self.is_sharing() || self.server.output.is_empty() {
            return None;
        }
        let (id, _) = self.server.in_flight.back()?;
        Some((*id, self.server.output.take()))
    }

    /// Takes back a request that no shared connection can carry. The session connects for itself: returns true if
    /// its connection has to begin.
    pub(in super::super) fn take_back(&mut self, bytes: Vec<u8>, now: u64) -> bool {
        let is_first = self.is_sharing();
        if is_first {
            self.server.phase = ServerPhase::Connecting { since: now };
        }
        self.server.output.push(bytes);
        self.server.shared_bytes = 0;
        is_first
    }

    /// Takes bytes of a shared connection that answer the request with this identifier, which is the first one
    /// in flight. Returns their number, and true if the reply is complete.
    pub(in super::super) fn receive_shared(
        &mut self,
        bytes: &[u8],
        id: u64,
        shared: &mut SharedState,
    ) -> Result<(usize, bool), CloseReason> {
        let used = self.parse_replies(bytes, Some(id), shared)?;
        Ok((used, self.is_answered(id)))
    }

    /// Notes the length of a reply: a client of long ones gets a connection of its own.
    pub(super) fn note_reply(&mut self, len: u64) {
        self.server.wants_own |= self.is_sharing() && len > REPLY_MAX;
    }

    /// Returns true if replies of a shared connection are awaited, or the rest of one: a request is no longer in
    /// flight once the head of its reply has arrived.
    pub(in super::super) fn awaits_shared_replies(&self) -> bool {
        !self.server.in_flight.is_empty() || !self.server.replies.is_between_messages()
    }

    /// Returns true if the request with this identifier, and all before it, are answered to the last byte.
    pub(super) fn is_answered(&self, id: u64) -> bool {
        let is_passed = self.server.in_flight.front().is_none_or(|(first, _)| *first > id);
        is_passed && self.server.replies.missing == 0 && self.server.replies.partial.is_none()
    }

    /// Returns true if the shared connection whose next bytes are the session's can be read.
    pub(in super::super) fn has_room_for_reply(&self) -> bool {
        self.server.replies.has_room(true)
    }

    /// Returns true if replies to others have waited behind its own for too long.
    pub(super) fn is_holding_up_others(&self, now: u64) -> bool {
        let is_slow = self.holds_up_since.is_some_and(|since| now > since + SLOW_PATIENCE_NS);
        let is_deaf = self
            .stalled_since
            .is_some_and(|since| now > since.max(self.client.progress_at) + DEAF_PATIENCE_NS);
        self.is_sharing() && self.awaits_shared_replies() && (is_slow || is_deaf)
    }
}
