//! What a session hands over to the next proxy.
//!
//! A session can move when the server owes it nothing: then its state is what the parser remembers between two
//! messages, the client's bytes that the server has not seen, and the replies that the client has not read. Requests
//! that wait in the queue move as bytes, which the next proxy reads again.

use super::super::handover::SessionRecord;
use super::super::request::RequestEnding;
use super::super::shared::SharedState;
use super::ProxySession;
use super::phase::{ClientPhase, ServerPhase};
use wire::{ConnectionMemory, ExportSource};

impl ProxySession {
    /// Returns true if the session begins no further request, because the proxy is about to hand it over. One that
    /// cannot move before further requests, such as those of a handshake, reads them.
    pub(super) fn reads_no_more(&self, shared: &SharedState) -> bool {
        shared.is_holding && self.client.phase == ClientPhase::Open && self.codec.memory().is_some()
    }

    /// Returns true if nothing of the session is read or dispatched: all that waits can move.
    pub(super) fn is_held(&self, shared: &SharedState) -> bool {
        self.reads_no_more(shared) && self.may_move_requests(shared)
    }

    /// Returns true if the requests that the server has not seen can be read again from their bytes.
    fn may_move_requests(&self, shared: &SharedState) -> bool {
        let incoming = self.incoming.as_ref();
        let is_untouched = incoming.is_none_or(|incoming| !incoming.is_ahead);
        let mut numbers = self.waiting.iter().copied().chain(incoming.map(|incoming| incoming.number));
        is_untouched
            && self.ahead.is_none()
            && self.goodbye.is_none()
            && self.broken.is_none()
            && numbers.all(|number| {
                let request = shared.requests.get(number);
                request.is_verbatim && request.ending != RequestEnding::Dropped
            })
    }

    /// Returns true if the session can move to another proxy now.
    pub(in super::super) fn may_move(&self, shared: &SharedState) -> bool {
        self.is_held(shared)
            && matches!(self.server.phase, ServerPhase::Open | ServerPhase::Shared)
            && self.server.owes_nothing()
            // A quiet command may be answered before its barrier.
            && self.codec.in_flight() <= self.unsent_replies(shared)
            && self.server.replies.is_between_messages()
    }

    /// Returns the number of replies that requests will have which the server has not seen.
    fn unsent_replies(&self, shared: &SharedState) -> usize {
        let replies = |number: u32, has_barrier: bool| match shared.requests.get(number).ending {
            RequestEnding::Reply => 1 + usize::from(has_barrier),
            _ => 0,
        };
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|number| replies(*number, shared.requests.get(*number).barrier_bytes > 0));
        let incoming = self.incoming.iter();
        let incoming = incoming.map(|incoming| replies(incoming.number, !incoming.barrier.is_empty()));
        waiting.chain(incoming).sum()
    }

    /// Returns the session's state for another proxy; call only if it [may move](Self::may_move).
    pub(in super::super) fn record(&self, front: usize, shared: &SharedState) -> SessionRecord {
        let mut unsent = Vec::new();
        let incoming = self.incoming.as_ref().map(|incoming| incoming.number);
        for number in self.waiting_in_order(shared).into_iter().chain(incoming) {
            let request = shared.requests.get(number);
            unsent.extend_from_slice(&request.bytes[..request.bytes.len() - request.barrier_bytes]);
        }
        unsent.extend_from_slice(self.client.input.bytes());
        let ConnectionMemory { is_binary, framing, export } = self.codec.memory().unwrap_or_default();
        let by_handle = self.protocol.row().export == ExportSource::FileHandle;
        let file_export =
            self.export.filter(|_| by_handle).map(|export| shared.exports.path(export).to_vec());
        SessionRecord {
            front,
            peer: self.peer,
            has_server: self.server.phase == ServerPhase::Open,
            is_binary,
            framing: framing.into(),
            export: export.or(file_export),
            has_been_served: self.has_been_served,
            unsent,
            unread: self.server.replies.unwritten.bytes().to_vec(),
        }
    }

    /// Continues the session of another proxy.
    pub(in super::super) fn resume(&mut self, record: SessionRecord, shared: &mut SharedState) {
        let is_named = self.protocol.row().export == ExportSource::Handshake;
        if self.protocol.row().export == ExportSource::FileHandle {
            self.export = record.export.as_deref().and_then(|path| shared.exports.number_of(path));
        }
        self.codec.resume(&ConnectionMemory {
            is_binary: record.is_binary,
            framing: record.framing.into(),
            export: record.export.filter(|_| is_named),
        });
        if record.has_server {
            self.server.phase = ServerPhase::Open;
        }
        self.has_been_served = record.has_been_served;
        self.client.input.extend(&record.unsent);
        self.server.replies.unwritten.extend(&record.unread);
        self.identify(shared);
    }
}
