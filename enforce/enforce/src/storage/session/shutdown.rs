//! End of a session, whether finished, failed or stalled, and the fate of its requests.
//!
//! **Order.** When the client closes its direction of the connection, some of its requests still wait or are
//! in flight. All of them are dispatched first. Then the proxy ends its stream to the server, as the client
//! would have done. Replies pass until the server closes; once they are written, the session ends.
//!
//! A client that disconnects abruptly is closed at once and its waiting requests are withdrawn. The
//! connection to the server stays until the requests in flight are answered: they keep the device busy, so
//! they must count as outstanding.

use super::super::request::RequestState;
use super::super::shared::SharedState;
use super::ProxySession;
use super::close_reason::{CloseReason, ProxySide};
use super::phase::{ClientPhase, ServerPhase};

/// Time that a client may block its own replies before its requests at the server stop counting as
/// outstanding, nanoseconds. Longer than a working client takes to read a reply; short for other clients that
/// wait for the device.
const STALL_NS: u64 = 20_000_000;
/// Time for the server to answer a client that has disconnected, nanoseconds. Also the time after which an
/// unanswered request stops counting, also for its own workload, since a lost one must not block it forever. No
/// working device takes this long.
pub(super) const SERVER_PATIENCE_NS: u64 = 5_000_000_000;
/// Time for a client that reads nothing, or that stops in the middle of a request, nanoseconds.
const CLIENT_PATIENCE_NS: u64 = 60_000_000_000;

/// Action that the engine has to perform on a session's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum SessionOrder {
    None,
    /// Shut down the stream to the server for writing.
    EndServerStream,
    /// Connect to the server for this session alone.
    ConnectServer,
}

impl ProxySession {
    /// Makes all progress that needs no socket and no waiting.
    pub(in super::super) fn make_progress(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        self.park_or_resume(shared);
        self.send_ahead_if_large(shared);
        self.parse_input(shared)?;
        while let Some(number) = self.goodbye.filter(|_| self.waiting.is_empty()) {
            self.goodbye = None;
            shared.requests.get_mut(number).state = RequestState::Released;
            self.forward(number, shared);
            self.parse_input(shared)?;
        }
        Ok(())
    }

    /// Updates the session's accounts after reads and writes. Returns an error if the session is at its end.
    pub(in super::super) fn settle(&mut self, shared: &mut SharedState) -> Result<SessionOrder, CloseReason> {
        self.count_bytes(shared);
        self.update_stall(shared);
        self.check_end(shared)
    }

    /// Checks for the end of the session, and for the end of the client's requests, which the server must
    /// see.
    fn check_end(&mut self, shared: &SharedState) -> Result<SessionOrder, CloseReason> {
        let now = shared.now;
        let is_all_sent = self.waiting.is_empty() && self.goodbye.is_none() && self.server.output.is_empty();
        // The rest of a reply is read in any case where the next one is for another client.
        let is_carried = self.is_sharing() && self.awaits_shared_replies();
        let is_all_answered = is_all_sent && self.server.in_flight.is_empty() && !is_carried;
        if let ClientPhase::Closed { since } = self.client.phase {
            return if is_all_answered || self.server.phase.is_ended() {
                Err(CloseReason::Finished)
            } else if now > since + self.patience_without_client() {
                Err(CloseReason::ServerSilent)
            } else {
                Ok(SessionOrder::None)
            };
        }
        // A request is done at the head of its reply, whose data may be on their way.
        let is_all_answered = is_all_answered && self.server.replies.is_between_messages();
        if let Some(broken) = &mut self.broken
            && is_all_answered
        {
            if !std::mem::replace(&mut broken.is_told, true) {
                let farewell = self.codec.farewell(&broken.error);
                self.server.replies.say(&farewell);
            }
            if self.server.replies.is_written() {
                return Err(CloseReason::Malformed(ProxySide::Client, broken.error));
            }
        }
        let is_written = self.server.replies.is_written();
        if self.server.phase.is_ended() && is_written {
            let is_clean = is_all_answered && self.incoming.is_none();
            return Err(if is_clean {
                CloseReason::Finished
            } else {
                CloseReason::ClosedEarly(ProxySide::Server)
            });
        }
        // A server that keeps the connection open after the end of the stream is left once all requests are
        // answered.
        let is_server_late =
            matches!(self.server.phase, ServerPhase::Told { since } if now > since + SERVER_PATIENCE_NS);
        let is_quiet = is_all_answered && self.incoming.is_none() && is_written;
        if (shared.is_draining || is_server_late) && is_quiet {
            return Err(CloseReason::Finished);
        }
        let is_all_parsed = self.client.input.is_empty() || !self.is_full(shared);
        let is_last_word = self.client.phase == ClientPhase::Ended && is_all_sent && is_all_parsed;
        if is_last_word && self.incoming.is_some() && self.server.phase.can_be_told() {
            return Err(CloseReason::ClosedEarly(ProxySide::Client));
        }
        if self.server.phase == ServerPhase::Shared {
            if is_last_word && is_quiet {
                return Err(CloseReason::Finished);
            }
            if self.is_changing_over() && !self.awaits_shared_replies() {
                self.server.phase = ServerPhase::Connecting { since: now };
                return Ok(SessionOrder::ConnectServer);
            }
            return Ok(SessionOrder::None);
        }
        if is_last_word && self.server.phase == ServerPhase::Open {
            self.server.phase = ServerPhase::Told { since: now };
            return Ok(SessionOrder::EndServerStream);
        }
        Ok(SessionOrder::None)
    }

    /// Returns the time for the server to answer a client that has disconnected, nanoseconds. The end of a session
    /// whose requests are on a shared connection ends others, too.
    fn patience_without_client(&self) -> u64 {
        if self.is_sharing() { CLIENT_PATIENCE_NS } else { SERVER_PATIENCE_NS }
    }

    /// Abandons the client: nothing can be sent to it any more. Its waiting requests are withdrawn; replies
    /// to those in flight are awaited and dropped.
    pub(in super::super) fn give_client_up(&mut self, shared: &mut SharedState) {
        if self.client.phase.is_closed() {
            return;
        }
        self.client.phase = ClientPhase::Closed { since: shared.now };
        self.client.input.clear();
        self.withdraw_waiting(shared);
        if let Some(incoming) = self.incoming.take() {
            self.discard_request(incoming.number, shared);
        }
        if let Some(number) = self.goodbye.take() {
            self.discard_request(number, shared);
        }
        self.server.replies.discard();
        self.count_bytes(shared);
    }

    /// Returns true if the client's connection is no longer used although the session continues.
    pub(in super::super) fn is_client_given_up(&self) -> bool {
        self.client.phase.is_closed()
    }

    /// Returns true if the server still owes replies to a client that is about to be disconnected. Until they
    /// arrive the requests count as outstanding, so that breaking the protocol gains no share of the device.
    pub(in super::super) fn awaits_replies(&self) -> bool {
        let are_due =
            if self.is_sharing() { self.awaits_shared_replies() } else { !self.server.in_flight.is_empty() };
        !self.client.phase.is_closed() && are_due && !self.server.phase.is_ended()
    }

    /// Releases all resources of the session, which must not be used afterwards.
    ///
    /// Waiting requests are withdrawn first; otherwise they could take the slots at the device that the
    /// others release.
    pub(in super::super) fn close(&mut self, shared: &mut SharedState) {
        self.withdraw_waiting(shared);
        let incoming = self.incoming.take().map(|incoming| incoming.number);
        let in_flight = std::mem::take(&mut self.server.in_flight);
        let in_flight = in_flight.into_iter().map(|(_, number)| number);
        for number in in_flight.chain(incoming).chain(self.goodbye.take()) {
            shared.release(number);
            self.discard_request(number, shared);
        }
        shared.count_buffered(self.address, std::mem::take(&mut self.counted_bytes), 0);
    }

    /// Returns true if the passing of time can end or change the session.
    pub(in super::super) fn is_timed(&self) -> bool {
        !matches!(self.server.phase, ServerPhase::Open | ServerPhase::Shared)
            || self.client.phase != ClientPhase::Open
            || !self.server.in_flight.is_empty()
            || !self.server.replies.is_written()
            || self.incoming.is_some()
    }

    /// Handles timeouts: releases delayed requests and ends stalled sessions.
    pub(in super::super) fn on_tick(
        &mut self,
        shared: &mut SharedState,
    ) -> Result<SessionOrder, CloseReason> {
        let now = shared.now;
        if let ServerPhase::Connecting { since } = self.server.phase
            && now > since + SERVER_PATIENCE_NS
        {
            return Err(CloseReason::ServerSilent);
        }
        if now > self.client.progress_at + CLIENT_PATIENCE_NS {
            return Err(CloseReason::ClientStalled);
        }
        if self.is_holding_up_others(now) {
            return Err(CloseReason::HoldsUpOthers);
        }
        if self.stalled_since.is_some_and(|since| now > since + STALL_NS) {
            self.release_unread(shared);
        }
        self.give_places_away(shared);
        if self.is_reply_lost(shared) {
            self.release_sent_before(now - SERVER_PATIENCE_NS, shared);
            self.server.is_silent = self.is_server_silent(shared);
            self.park_or_resume(shared);
            if self.server.is_silent && now > self.server.heard_at + CLIENT_PATIENCE_NS {
                return Err(CloseReason::ServerSilent);
            }
        }
        self.check_end(shared)
    }

    /// Stops counting requests that were dispatched before an instant.
    fn release_sent_before(&mut self, before: u64, shared: &mut SharedState) {
        for (_, number) in &self.server.in_flight {
            let request = shared.requests.get(*number);
            let is_counted = matches!(request.state, RequestState::Outstanding(_));
            if request.sent < before && shared.release(*number) && is_counted {
                shared.statistics.released += 1;
            }
        }
    }

    /// Stops counting requests whose replies the client does not read. Those that the server had left unanswered
    /// for long before that keep the places of their workload.
    fn release_unread(&mut self, shared: &mut SharedState) {
        for (_, number) in &self.server.in_flight {
            let is_counted = matches!(shared.requests.get(*number).state, RequestState::Outstanding(_));
            if is_counted && shared.release(*number) {
                shared.statistics.released += 1;
            }
        }
    }

    /// Lets overdue requests count for their own workload only. The client has no part in it: a request is not
    /// overdue while its client keeps the server from being read.
    fn give_places_away(&mut self, shared: &mut SharedState) {
        if self.stalled_since.is_some() {
            return;
        }
        let has_ids = self.protocol.row().has_ids;
        let mut since = self.server.unread_at;
        if !has_ids {
            // Replies come in order: while one arrives, those behind it cannot.
            since = since.max(self.server.read_at);
        }
        let mut gives_any = false;
        for (_, number) in &self.server.in_flight {
            let request = shared.requests.get(*number);
            let overdue_at = request.sent.max(since).saturating_add(request.patience);
            let is_counted = matches!(request.state, RequestState::Outstanding(_));
            if is_counted && request.reply_bytes == 0 && overdue_at < shared.now {
                gives_any |= shared.give_place_away(*number, overdue_at);
            }
        }
        if gives_any && !has_ids {
            // Its next requests would wait behind this one.
            self.server.is_silent = true;
            self.park_or_resume(shared);
        }
    }

    /// Returns true if a reply is overdue for longer than any working device takes.
    fn is_reply_lost(&self, shared: &SharedState) -> bool {
        self.oldest_sent(shared) + SERVER_PATIENCE_NS < shared.now
    }

    /// Returns the dispatch time of the oldest unanswered request; now if there is none.
    fn oldest_sent(&self, shared: &SharedState) -> u64 {
        let oldest = self.server.in_flight.front();
        oldest.map_or(shared.now, |(_, number)| shared.requests.get(*number).sent)
    }

    /// Returns true if a request that was sent after the server's latest reply is overdue. A server that has
    /// lost one reply still sends others; one that sends none any more would keep every slot that its
    /// sessions get.
    fn is_server_silent(&self, shared: &SharedState) -> bool {
        self.server.in_flight.iter().any(|(_, number)| {
            let sent = shared.requests.get(*number).sent;
            sent >= self.server.heard_at && sent + SERVER_PATIENCE_NS < shared.now
        })
    }

    /// Notes if and since when the client blocks its own replies so far that the server is not read.
    fn update_stall(&mut self, shared: &SharedState) {
        let is_stalled = !self.server.replies.has_room(true);
        if is_stalled || self.stalled_since.is_some() {
            self.server.unread_at = shared.now;
        }
        self.stalled_since = is_stalled.then(|| self.stalled_since.unwrap_or(shared.now));
        if !self.awaits_shared_replies() || self.server.replies.is_written() {
            self.holds_up_since = None;
        }
        // Not until the reply can go on, which it does for a moment whenever the client reads.
        self.holds_up_since = self.holds_up_since.or(self.stalled_since.filter(|_| self.is_sharing()));
        let is_waited_for = !self.server.replies.is_written() || self.incoming.is_some();
        if !is_waited_for || self.client.phase.is_closed() {
            self.client.progress_at = shared.now;
        }
    }

    /// Notes that the client has taken or sent bytes.
    pub(in super::super) fn note_client_progress(&mut self, shared: &SharedState) {
        self.client.progress_at = shared.now;
    }

    /// Updates this session's share of the buffered bytes of all sessions.
    fn count_bytes(&mut self, shared: &mut SharedState) {
        let replies = &self.server.replies;
        let count = self.held_bytes
            + self.client.input.len()
            + self.server.output.len()
            + self.server.shared_bytes
            + replies.unparsed.len()
            + replies.unwritten.len();
        shared.count_buffered(self.address, self.counted_bytes, count);
        self.counted_bytes = count;
    }
}
