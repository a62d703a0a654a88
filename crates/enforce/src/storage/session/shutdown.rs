//! How a session ends: because both sides are done, because something breaks, or because somebody stands still; and what
//! becomes of its requests.
//!
//! **The order.** When the client closes its direction of the connection, its requests still wait or are in flight.
//! They are all dispatched first; then the server is told (`shutdown` of the writing direction), as the client would
//! have told it; then replies pass until the server closes, and when they are written the session ends. A client that
//! breaks off instead is closed at once and its waiting requests are withdrawn, but the connection to the server stays
//! until the requests in flight are answered: they keep the device busy, and have to count as outstanding.

use super::super::flows::CONTROL_FLOW;
use super::super::request::RequestState;
use super::super::shared::SharedState;
use super::ProxySession;
use super::close_reason::{CloseReason, ProxySide};
use std::io::Read;
use std::net::Shutdown;

/// How long a client may hold up its own requests before they stop counting as outstanding: far longer than a client
/// that is alive needs to take a reply, and short for the others that want the device.
const STALL_NS: u64 = 100_000_000;
/// How long the server may take to answer a client that has gone; and how long it may take to answer anybody before
/// the request stops counting as outstanding: one that is lost must not hold up everybody for ever. No device that
/// works takes that long.
const SERVER_PATIENCE_NS: u64 = 5_000_000_000;
/// How long a client that takes nothing, or stops in the middle of a request, is kept.
const CLIENT_PATIENCE_NS: u64 = 60_000_000_000;
/// The most that is read from a client that is cut off, in pieces of 16 KiB: 1 MiB, what it may have on its way.
const LAST_READS_MAX: usize = 64;

impl ProxySession {
    /// Does all that can be done without waiting: parses requests, writes to both sides, and ends what is at its end.
    pub(in super::super) fn make_progress(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        self.parse_requests(shared)?;
        while let Some(number) = self.deferred.filter(|_| self.queued == 0 && self.streaming.is_none()) {
            self.deferred = None;
            // What has not come of it yet follows without waiting.
            shared.requests.get_mut(number).state = RequestState::Released;
            self.forward(number, shared);
            self.parse_requests(shared)?;
        }
        if self.is_connected && !self.server_eof {
            self.server_output
                .write(&mut self.server)
                .map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))?;
        }
        if self.client_closed_at.is_none() {
            match self.replies.write(&mut self.client) {
                Ok(0) => {}
                Ok(_) => self.client_progress_at = shared.now,
                Err(_) => self.close_client(shared),
            }
        }
        self.check_end(shared)?;
        self.update_stall(shared);
        Ok(())
    }

    /// Ends the session if it is at its end, and tells the server when the client has said its last.
    fn check_end(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        let is_all_sent = self.queued == 0 && self.deferred.is_none() && self.server_output.is_empty();
        let is_all_answered = is_all_sent && self.in_flight.is_empty();
        if let Some(since) = self.client_closed_at {
            return if is_all_answered || self.server_eof {
                Err(CloseReason::Finished)
            } else if shared.now > since + SERVER_PATIENCE_NS {
                Err(CloseReason::ServerSilent)
            } else {
                Ok(())
            };
        }
        if self.server_eof && self.replies.is_written() {
            return Err(if is_all_answered {
                CloseReason::Finished
            } else {
                CloseReason::ClosedEarly(ProxySide::Server)
            });
        }
        let is_quiet = is_all_answered && self.incoming.is_none();
        // A server that was told and does not hang up is left when everything is answered.
        let is_server_late =
            self.server_shutdown_at.is_some_and(|since| shared.now > since + SERVER_PATIENCE_NS);
        if (self.is_draining || is_server_late) && is_quiet && self.replies.is_written() {
            return Err(CloseReason::Finished);
        }
        let is_all_parsed = self.client_input.is_empty() || !self.is_full(shared);
        let is_server_waiting = self.is_connected && self.server_shutdown_at.is_none() && !self.server_eof;
        if self.client_eof && is_all_sent && is_all_parsed && is_server_waiting {
            if self.incoming.is_some() {
                return Err(CloseReason::ClosedEarly(ProxySide::Client));
            }
            self.server_shutdown_at = Some(shared.now);
            self.server
                .shutdown(Shutdown::Write)
                .map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))?;
        }
        Ok(())
    }

    /// Closes the client's connection, on which nothing can be answered any more. Its waiting requests are withdrawn;
    /// replies to those in flight are waited for and dropped.
    pub(in super::super) fn close_client(&mut self, shared: &mut SharedState) {
        if self.client_closed_at.is_some() {
            return;
        }
        self.client_closed_at = Some(shared.now);
        let _ = self.client.shutdown(Shutdown::Both);
        self.withdraw_queued(shared);
        if let Some(incoming) = &self.incoming {
            let number = incoming.number;
            if matches!(shared.requests.get(number).state, RequestState::Arriving) {
                self.deferred = self.deferred.filter(|deferred| *deferred != number);
                self.discard_request(number, shared);
            }
        }
        self.replies.discard();
        if self.streaming.is_some() {
            // The server waits for the rest of a request, which will never come, before it answers anything.
            self.server_eof = true;
        }
    }

    /// Whether the server still owes replies to a client that is to be cut off. Until they come the requests count as
    /// outstanding, so that nobody gets more of the device by breaking the protocol.
    pub(in super::super) fn awaits_replies(&self) -> bool {
        self.client_closed_at.is_none()
            && !self.in_flight.is_empty()
            && self.streaming.is_none()
            && !self.server_eof
    }

    /// Withdraws the session's requests from the queue.
    fn withdraw_queued(&mut self, shared: &mut SharedState) {
        for flow in [self.flow, self.flow | CONTROL_FLOW] {
            for number in shared.withdraw(self.slot, flow) {
                self.queued -= 1;
                self.discard_request(number, shared);
            }
        }
    }

    /// Ends both connections and gives back all that the session holds; it is not used afterwards.
    ///
    /// Waiting requests are withdrawn first, so that a place at the device that the rest gives back goes to others.
    pub(in super::super) fn close(&mut self, shared: &mut SharedState) {
        self.withdraw_queued(shared);
        self.hang_up();
        let mut numbers: Vec<u32> = self.in_flight.drain(..).map(|(_, number)| number).collect();
        numbers.extend(self.behind_streaming.drain(..));
        numbers.extend(self.streaming.into_iter().chain(self.deferred));
        numbers.extend(self.incoming.as_ref().map(|incoming| incoming.number));
        // A request may be in several of these places.
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            shared.release(number);
            self.discard_request(number, shared);
        }
        shared.buffered_bytes -= std::mem::take(&mut self.buffered_bytes);
    }

    /// Ends both connections. What the client has sent in the meantime is read: unread bytes would make the kernel
    /// reset the connection, and throw away the replies that are on their way to the client.
    fn hang_up(&mut self) {
        let _ = (self.client.shutdown(Shutdown::Write), self.server.shutdown(Shutdown::Both));
        let mut piece = [0; 16 << 10];
        for _ in 0..LAST_READS_MAX {
            if !self.client.read(&mut piece).is_ok_and(|count| count > 0) {
                return;
            }
        }
    }

    /// Whether time alone may end the session or change something.
    pub(in super::super) fn is_timed(&self) -> bool {
        self.stalled_since.is_some()
            || self.client_closed_at.is_some()
            || self.server_shutdown_at.is_some()
            || !self.in_flight.is_empty()
    }

    /// Does what the clock demands: releases requests that are held up, and ends sessions of those who stand still.
    pub(in super::super) fn on_tick(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        if let Some(since) = self.stalled_since {
            if shared.now > self.client_progress_at + CLIENT_PATIENCE_NS {
                return Err(CloseReason::ClientStalled);
            }
            if shared.now > since + STALL_NS {
                self.release_sent_before(u64::MAX, shared);
            }
        }
        if self.has_overdue_reply(shared) {
            self.release_sent_before(shared.now - SERVER_PATIENCE_NS, shared);
        }
        self.check_end(shared)
    }

    /// Lets requests that were dispatched before an instant no longer count as outstanding.
    fn release_sent_before(&mut self, before: u64, shared: &mut SharedState) {
        let in_flight = self.in_flight.iter().map(|(_, number)| number);
        for number in in_flight.chain(&self.streaming).chain(&self.behind_streaming) {
            if shared.requests.get(*number).sent < before && shared.release(*number) {
                shared.statistics.released += 1;
            }
        }
    }

    /// Whether the server owes a reply for longer than a device takes.
    fn has_overdue_reply(&self, shared: &SharedState) -> bool {
        let oldest = self.in_flight.front().map(|(_, number)| shared.requests.get(*number).sent);
        oldest.is_some_and(|sent| sent + SERVER_PATIENCE_NS < shared.now)
    }

    /// Notes whether the client holds up its own requests, and since when.
    fn update_stall(&mut self, shared: &SharedState) {
        let is_stalled = self.replies.is_full() || self.streaming.is_some();
        self.stalled_since = is_stalled.then(|| self.stalled_since.unwrap_or(shared.now));
        if !is_stalled {
            self.client_progress_at = shared.now;
        }
    }
}
