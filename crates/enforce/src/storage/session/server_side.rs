//! The server side of a session: passing replies on to the client, and finding the requests that they answer.

use super::super::buffer::IoProgress;
use super::super::shared::SharedState;
use super::ProxySession;
use super::close_reason::{CloseReason, ProxySide};
use crate::deployment::FrontProtocol;
use rustix::net::sockopt;
use wire::{Extent, ParseStep, ReplyHead};

/// How many bytes are read with one system call: what a socket usually has at most.
const READ_SIZE: usize = 64 << 10;

impl ProxySession {
    /// The connection to the server was made or failed; `is_writable` tells that it was made.
    pub(in super::super) fn on_connection_event(&mut self, is_writable: bool) -> Result<(), CloseReason> {
        let result = sockopt::socket_error(&self.server).and_then(|result| result);
        result.map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error.into()))?;
        self.is_connected |= is_writable;
        Ok(())
    }

    /// Reads what the server sends, and passes it on.
    pub(in super::super) fn on_server_readable(
        &mut self,
        shared: &mut SharedState,
    ) -> Result<(), CloseReason> {
        match self.replies.buffer.read(&mut self.server, READ_SIZE) {
            Ok(IoProgress::Bytes(_)) => {}
            Ok(IoProgress::WouldBlock) => return Ok(()),
            Ok(IoProgress::EndOfFile) => self.server_eof = true,
            Err(error) => return Err(CloseReason::SocketFailed(ProxySide::Server, error)),
        }
        // The client gets its bytes before they are parsed: that is one thing less to wait for.
        if self.replies.is_discarding() {
            self.replies.drop_unwritten();
        } else if self.replies.write(&mut self.client).is_err() {
            self.close_client(shared);
        }
        self.parse_replies(shared)?;
        self.replies.remove_finished();
        Ok(())
    }

    fn parse_replies(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        while self.replies.skip_message() && !self.replies.unparsed().is_empty() {
            let step = self.codec.next_reply(self.replies.unparsed());
            let step = step.map_err(|error| CloseReason::Malformed(ProxySide::Server, error))?;
            let Extent { len, last, .. } = match step {
                ParseStep::NeedMore { .. } => return Ok(()),
                ParseStep::Message { message, extent } => {
                    self.replies.partial = Some(message);
                    extent
                }
                ParseStep::Continued { extent } => extent,
            };
            self.replies.missing = len.0;
            if last && let Some(reply) = self.replies.partial.take() {
                self.on_reply(&reply, shared);
            }
        }
        Ok(())
    }

    /// Finishes the request that a reply answers: the device has done its work.
    fn on_reply(&mut self, reply: &ReplyHead, shared: &mut SharedState) {
        if let Some(mount) = self.codec.take_mount() {
            shared.add_mount(self.peer.ip(), &mount.path);
        }
        if !reply.is_solicited {
            return;
        }
        let Some(position) = self.in_flight.iter().position(|(id, _)| *id == reply.id) else { return };
        // memcached answers in order: the requests before this one are finished, too.
        let first = if self.protocol == FrontProtocol::Memcached { 0 } else { position };
        for index in (first..=position).rev() {
            if let Some((_, number)) = self.in_flight.remove(index) {
                self.finish_request(number, shared);
            }
        }
    }
}
