//! The client side of a session: reading what the client sends, and parsing requests out of it.

use super::super::buffer::IoProgress;
use super::super::request::RequestState;
use super::super::shared::SharedState;
use super::ProxySession;
use super::close_reason::{CloseReason, ProxySide};
use super::incoming::{BUFFERED_GUARANTEED, BUFFERED_MAX, IncomingRequest, QUEUED_MAX, UNANSWERED_MAX};
use crate::deployment::FrontProtocol;
use wire::{Extent, ParseStep};

/// How many bytes are read with one system call: what a socket usually has at most.
const READ_SIZE: usize = 64 << 10;
/// How many bytes may wait for the server's socket: as many as a session may buffer.
const SERVER_OUTPUT_MAX: usize = BUFFERED_MAX;

impl ProxySession {
    /// Reads what the client sends, and parses requests out of it.
    pub(in super::super) fn on_client_readable(
        &mut self,
        shared: &mut SharedState,
    ) -> Result<(), CloseReason> {
        self.read_client()?;
        self.parse_requests(shared)
    }

    fn read_client(&mut self) -> Result<(), CloseReason> {
        match self.client_input.read(&mut self.client, READ_SIZE) {
            Ok(IoProgress::Bytes(_) | IoProgress::WouldBlock) => Ok(()),
            Ok(IoProgress::EndOfFile) => {
                self.client_eof = true;
                Ok(())
            }
            // Some clients hang up by resetting the connection.
            Err(_) if self.is_idle() => Err(CloseReason::Finished),
            Err(error) => Err(CloseReason::SocketFailed(ProxySide::Client, error)),
        }
    }

    /// Whether no request of the client is here or in flight.
    fn is_idle(&self) -> bool {
        self.incoming.is_none()
            && self.deferred.is_none()
            && self.streaming.is_none()
            && self.queued == 0
            && self.in_flight.is_empty()
    }

    /// Whether the client should be read.
    pub(super) fn wants_client_input(&self, shared: &SharedState) -> bool {
        match &self.incoming {
            Some(incoming) if shared.requests.get(incoming.number).state.is_forwarded() => {
                self.server_output.len() < SERVER_OUTPUT_MAX
            }
            Some(_) => self.buffered_bytes < self.buffer_allowance(shared),
            None => !self.is_full(shared) && self.client_input.len() < READ_SIZE,
        }
    }

    /// How many bytes of requests the session may buffer now.
    fn buffer_allowance(&self, shared: &SharedState) -> usize {
        if shared.is_crowded() { BUFFERED_GUARANTEED } else { BUFFERED_MAX }
    }

    /// Whether the session takes no further requests now.
    pub(super) fn is_full(&self, shared: &SharedState) -> bool {
        self.queued >= QUEUED_MAX
            || self.buffered_bytes >= self.buffer_allowance(shared)
            || self.in_flight.len() + self.queued as usize >= UNANSWERED_MAX
            || self.server_output.len() >= SERVER_OUTPUT_MAX
            || self.replies.is_full()
            || self.deferred.is_some()
            || (self.is_in_handshake() && self.queued > 0)
            || self.is_draining
            || self.client_closed_at.is_some()
            || self.server_eof
    }

    /// Whether an NBD client has no export yet. It may send data requests directly behind the one that asks for its
    /// export, and those must not overtake it in the queue.
    fn is_in_handshake(&self) -> bool {
        self.protocol == FrontProtocol::Nbd && self.codec.export_name().is_none()
    }

    /// Parses requests out of the client's input, as many as the session may take.
    pub(super) fn parse_requests(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        loop {
            if self.incoming.is_some() {
                if !self.receive_piece(shared)? {
                    return Ok(());
                }
            } else if self.client_input.is_empty() || self.is_full(shared) || !self.begin_request(shared)? {
                return Ok(());
            }
        }
    }

    /// Parses the head of the next request; whether it was complete.
    fn begin_request(&mut self, shared: &mut SharedState) -> Result<bool, CloseReason> {
        let step = self.codec.next_request(self.client_input.bytes());
        match step.map_err(|error| CloseReason::Malformed(ProxySide::Client, error))? {
            ParseStep::NeedMore { .. } => Ok(false),
            ParseStep::Message { message, extent } => {
                let number = shared.requests.add(self.new_request(&message));
                let (missing, is_last_piece) = (extent.len.0, extent.last);
                self.incoming = Some(IncomingRequest { number, missing, is_last_piece });
                Ok(true)
            }
            ParseStep::Continued { .. } => unreachable!("no request is incomplete"),
        }
    }

    /// Takes what has come of the incoming request; whether a piece was complete and parsing can go on.
    fn receive_piece(&mut self, shared: &mut SharedState) -> Result<bool, CloseReason> {
        let Some(incoming) = &mut self.incoming else { return Ok(true) };
        let number = incoming.number;
        let missing = usize::try_from(incoming.missing).unwrap_or(usize::MAX);
        let count = self.client_input.len().min(missing);
        if count > 0 {
            self.client_progress_at = shared.now;
        }
        incoming.missing -= count as u64;
        let (is_piece_complete, is_last_piece) = (incoming.missing == 0, incoming.is_last_piece);
        let request = shared.requests.get_mut(number);
        let bytes = &self.client_input.bytes()[..count];
        if request.state.is_forwarded() {
            self.server_output.push(bytes.to_vec());
        } else {
            request.bytes.extend_from_slice(bytes);
            self.buffered_bytes += count;
            shared.buffered_bytes += count;
        }
        self.client_input.consume(count);
        if !is_piece_complete {
            self.enqueue_if_oversized(number, shared);
            return Ok(false);
        }
        if !is_last_piece {
            return self.begin_fragment();
        }
        self.incoming = None;
        self.complete_request(number, shared);
        Ok(true)
    }

    /// Parses the head of the next fragment of the incoming request; whether it was complete.
    fn begin_fragment(&mut self) -> Result<bool, CloseReason> {
        if self.client_input.is_empty() {
            return Ok(false);
        }
        let step = self.codec.next_request(self.client_input.bytes());
        match step.map_err(|error| CloseReason::Malformed(ProxySide::Client, error))? {
            ParseStep::NeedMore { .. } => Ok(false),
            ParseStep::Continued { extent: Extent { len, last, .. } } => {
                if let Some(incoming) = &mut self.incoming {
                    (incoming.missing, incoming.is_last_piece) = (len.0, last);
                }
                Ok(true)
            }
            ParseStep::Message { .. } => unreachable!("the last request is incomplete"),
        }
    }

    /// Puts a request that is larger than what may be buffered into the queue before it is complete.
    fn enqueue_if_oversized(&mut self, number: u32, shared: &mut SharedState) {
        let is_arriving = matches!(shared.requests.get(number).state, RequestState::Arriving);
        if is_arriving && self.buffered_bytes >= self.buffer_allowance(shared) {
            self.enqueue(number, shared);
        }
    }
}
