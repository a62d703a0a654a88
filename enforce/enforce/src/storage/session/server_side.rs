//! The server side of a session: passing replies on to the client, and finding the requests that they answer.

use super::super::shared::SharedState;
use super::ProxySession;
use super::close_reason::{CloseReason, ProxySide};
use super::phase::ServerPhase;
use wire::{Extent, ParseStep, ReplyHead};

impl ProxySession {
    /// Notes that the connection to the server is established.
    pub(in super::super) fn connect_server(&mut self) {
        if matches!(self.server.phase, ServerPhase::Connecting { .. }) {
            self.server.phase = ServerPhase::Open;
        }
    }

    /// Returns true while the connection to the server is being established.
    pub(in super::super) fn is_connecting(&self) -> bool {
        matches!(self.server.phase, ServerPhase::Connecting { .. })
    }

    /// Returns true if bytes may be written to the server.
    pub(in super::super) fn may_write_server(&self) -> bool {
        self.server.phase.is_connected() && !self.server.output.is_empty()
    }

    /// Returns true if the server's socket should be read.
    pub(in super::super) fn wants_server_input(&self) -> bool {
        let has_requests = !self.server.in_flight.is_empty();
        self.server.phase.is_connected() && self.server.replies.has_room(has_requests)
    }

    /// Notes that the server has ended its stream.
    pub(in super::super) fn end_of_server(&mut self) {
        self.server.phase = ServerPhase::Ended;
    }

    /// Takes bytes that the server has sent.
    pub(in super::super) fn receive_from_server(
        &mut self,
        bytes: &[u8],
        shared: &mut SharedState,
    ) -> Result<(), CloseReason> {
        // The usual case: only an incomplete head at the end is copied.
        if self.server.replies.unparsed.is_empty() {
            let used = self.parse_replies(bytes, None, shared)?;
            self.server.replies.unparsed.extend(&bytes[used..]);
            return Ok(());
        }
        let mut unparsed = std::mem::take(&mut self.server.replies.unparsed);
        unparsed.extend(bytes);
        let used = self.parse_replies(unparsed.bytes(), None, shared)?;
        unparsed.consume(used);
        self.server.replies.unparsed = unparsed;
        Ok(())
    }

    /// Parses replies and passes their bytes on, all or up to the end of the one with the identifier `last_id`.
    /// Returns the number of bytes processed.
    pub(super) fn parse_replies(
        &mut self,
        bytes: &[u8],
        last_id: Option<u64>,
        shared: &mut SharedState,
    ) -> Result<usize, CloseReason> {
        self.server.read_at = shared.now;
        let mut used = 0;
        loop {
            used += self.server.replies.pass_message(&bytes[used..]);
            if used == bytes.len() || last_id.is_some_and(|id| self.is_answered(id)) {
                return Ok(used);
            }
            let step = self.codec.next_reply(&bytes[used..]);
            let step = step.map_err(|error| CloseReason::Malformed(ProxySide::Server, error))?;
            let Extent { len, last, .. } = match step {
                ParseStep::NeedMore { .. } => return Ok(used),
                ParseStep::Message { message, extent } => {
                    self.server.replies.is_for_client = !message.is_injected;
                    if let Some(own) = self.codec.take_own_reply() {
                        self.server.replies.say(&own);
                    }
                    self.server.replies.partial = Some(message);
                    extent
                }
                ParseStep::Continued { extent } => extent,
            };
            self.server.replies.missing = len.0;
            if let Some(reply) = self.server.replies.partial {
                self.on_reply_part(&reply, len.0, last, shared);
            }
            if last {
                self.server.replies.partial = None;
            }
        }
    }

    /// Counts a part of a reply. At its last part the device has completed the request.
    fn on_reply_part(&mut self, reply: &ReplyHead, len: u64, is_last: bool, shared: &mut SharedState) {
        if !reply.is_solicited {
            return;
        }
        (self.server.heard_at, self.server.is_silent) = (shared.now, false);
        if let Some(mount) = self.codec.take_mount() {
            shared.learn_export(&mount.path, &mount.root);
        }
        if !self.protocol.row().has_ids {
            return self.on_ordered_reply(reply, len, is_last, shared);
        }
        let in_flight = &mut self.server.in_flight;
        let Some(position) = in_flight.iter().position(|(id, _)| *id == reply.id) else { return };
        let (_, number) = in_flight[position];
        shared.requests.get_mut(number).reply_bytes += len;
        if is_last {
            in_flight.remove(position);
            self.finish_request(number, reply.is_error, shared);
        }
    }

    /// Replies come in order, so the requests before the answered one are also done.
    fn on_ordered_reply(&mut self, reply: &ReplyHead, len: u64, is_last: bool, shared: &mut SharedState) {
        while let Some(&(id, number)) = self.server.in_flight.front() {
            if id > reply.id || (id == reply.id && !is_last) {
                break;
            }
            if id == reply.id {
                shared.requests.get_mut(number).reply_bytes += len;
            }
            self.server.in_flight.pop_front();
            self.finish_request(number, id == reply.id && reply.is_error, shared);
        }
        // A part before the last: the loop has left its request in flight.
        if !is_last
            && let Some(&(id, number)) = self.server.in_flight.front()
            && id == reply.id
        {
            shared.requests.get_mut(number).reply_bytes += len;
        }
    }
}
