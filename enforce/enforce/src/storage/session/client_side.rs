//! The client side of a session: parsing requests from the client's stream.

use super::super::buffer::WRITTEN_MAX;
use super::super::request::{ProxyRequest, RequestEnding, RequestState};
use super::super::shared::SharedState;
use super::close_reason::{CloseReason, ProxySide};
use super::incoming::IncomingRequest;
use super::phase::{ClientPhase, ServerPhase};
use super::{BrokenStream, ProxySession};
use units::Bytes;
use wire::{ExportSource, Extent, ParseStep, ProtocolError, ReplyExpectation, RequestClass, RequestHead};

/// Maximum number of a session's requests in the queue; enough for any client that limits itself.
pub(super) const QUEUED_MAX: usize = 256;
/// Maximum number of bytes of requests that a session buffers: the usual maximum `wsize` of NFS clients, and
/// its head.
pub(super) const BUFFERED_MAX: usize = (1 << 20) + (64 << 10);
/// Bytes that a session may always buffer, regardless of other sessions.
pub(super) const BUFFERED_GUARANTEED: usize = 64 << 10;
/// Maximum number of a session's requests that wait or are in flight; below the parsers' limit for hostile
/// clients.
const UNANSWERED_MAX: usize = 3072;
/// Maximum number of unparsed bytes kept while requests are buffered.
const UNPARSED_MAX: usize = 64 << 10;
/// Maximum number of bytes that wait for the server's socket.
const SERVER_OUTPUT_MAX: usize = BUFFERED_MAX;
/// Maximum bytes of a write beyond its data. Any excess is charged as data, whatever the head says.
const WRITE_HEAD_MAX: u64 = 4096;

impl ProxySession {
    /// Parses bytes that the client has sent.
    pub(in super::super) fn receive_from_client(
        &mut self,
        bytes: &[u8],
        shared: &mut SharedState,
    ) -> Result<(), CloseReason> {
        (self.client.heard_at, self.client.progress_at) = (shared.now, shared.now);
        if self.client.input.is_empty() {
            let used = self.parse_requests(bytes, shared)?;
            self.client.input.extend(&bytes[used..]);
            return Ok(());
        }
        self.client.input.extend(bytes);
        self.parse_input(shared)
    }

    /// Notes that the client has ended its stream.
    pub(in super::super) fn end_of_client(&mut self) {
        if self.client.phase == ClientPhase::Open {
            self.client.phase = ClientPhase::Ended;
        }
    }

    /// Returns the reason to close after a failure of the client's connection. Some clients hang up with a
    /// reset.
    pub(in super::super) fn fail_client(&mut self, error: std::io::Error) -> CloseReason {
        if self.is_idle() {
            return CloseReason::Finished;
        }
        CloseReason::SocketFailed(ProxySide::Client, error)
    }

    /// Returns true if no request of the client is buffered, queued or in flight.
    pub(in super::super) fn is_idle(&self) -> bool {
        self.incoming.is_none()
            && self.goodbye.is_none()
            && self.waiting.is_empty()
            && self.server.owes_nothing()
    }

    /// Returns true if nothing of the session waits for the device: the client is idle, has sent a part of a
    /// request only, or does not read its replies.
    pub(in super::super) fn waits_for_client(&self) -> bool {
        let has_request = self.goodbye.is_some() || !self.waiting.is_empty() || !self.server.owes_nothing();
        !has_request || self.stalled_since.is_some()
    }

    /// Returns true if the client's socket should be read.
    pub(in super::super) fn wants_client_input(&self, shared: &SharedState) -> bool {
        if self.client.phase != ClientPhase::Open {
            return false;
        }
        match &self.incoming {
            _ if self.broken.is_some() || self.is_held(shared) => false,
            Some(incoming) if incoming.is_ahead => self.server.output.len() < self.buffer_allowance(shared),
            Some(_) => self.held_bytes < self.buffer_allowance(shared) || self.may_send_ahead(),
            None => !self.is_full(shared) && self.client.input.len() < UNPARSED_MAX,
        }
    }

    /// Returns the number of bytes of requests that the session may buffer now.
    fn buffer_allowance(&self, shared: &SharedState) -> usize {
        if shared.is_crowded(self.address) { BUFFERED_GUARANTEED } else { BUFFERED_MAX }
    }

    /// Returns true if the session accepts no further requests now.
    pub(super) fn is_full(&self, shared: &SharedState) -> bool {
        self.waiting.len() >= QUEUED_MAX
            || self.held_bytes >= self.buffer_allowance(shared)
            || self.server.in_flight.len() + self.waiting.len() >= UNANSWERED_MAX
            || self.is_output_full()
            || self.goodbye.is_some()
            || self.ahead.is_some()
            || self.broken.is_some()
            || self.codec.is_blocked()
            || (self.is_in_handshake() && !self.waiting.is_empty())
            || shared.is_draining
            || self.reads_no_more(shared)
            || self.client.phase.is_closed()
            || self.server.phase.is_ended()
    }

    /// Returns true if the client or the server reads too slowly for its pending output.
    pub(in super::super) fn is_output_full(&self) -> bool {
        self.server.output.len() >= SERVER_OUTPUT_MAX || self.server.replies.is_full()
    }

    /// Returns the number of bytes that may be written in the next round.
    pub(in super::super) fn pending_output(&self) -> usize {
        self.server.output.len().min(WRITTEN_MAX) + self.server.replies.unwritten.len().min(WRITTEN_MAX)
    }

    /// Returns true if the client has yet to name its export. The client may pipeline data requests behind the
    /// option that selects its export, and those must not overtake it in the queue.
    pub(in super::super) fn is_in_handshake(&self) -> bool {
        self.protocol.row().export == ExportSource::Handshake && self.codec.export_name().is_none()
    }

    /// Parses requests from buffered input, as many as the session may accept.
    pub(super) fn parse_input(&mut self, shared: &mut SharedState) -> Result<(), CloseReason> {
        if self.client.input.is_empty() {
            return Ok(());
        }
        let mut input = std::mem::take(&mut self.client.input);
        let used = self.parse_requests(input.bytes(), shared)?;
        input.consume(used);
        self.client.input = input;
        Ok(())
    }

    /// Parses requests from `bytes`, as many as the session may accept, and returns the number of bytes
    /// consumed.
    fn parse_requests(&mut self, bytes: &[u8], shared: &mut SharedState) -> Result<usize, CloseReason> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            if self.incoming.is_some() {
                let (taken, may_go_on) = self.receive_piece(rest, shared)?;
                used += taken;
                if !may_go_on {
                    break;
                }
            } else if self.is_full(shared) || !self.begin_request(rest, shared) {
                break;
            }
        }
        // Bytes behind an error are not parsed.
        Ok(if self.broken.is_some() { bytes.len() } else { used })
    }

    /// Accepts no further requests: the client's next bytes are none.
    fn break_off(&mut self, error: ProtocolError, shared: &mut SharedState) {
        if let Some(incoming) = self.incoming.take() {
            self.discard_request(incoming.number, shared);
        }
        self.broken = Some(BrokenStream { error, is_told: false });
    }

    /// Parses the head of the next request. Returns false if there is none, or it is incomplete.
    fn begin_request(&mut self, bytes: &[u8], shared: &mut SharedState) -> bool {
        match self.codec.next_request(bytes) {
            Err(error) => {
                self.break_off(error, shared);
                false
            }
            Ok(ParseStep::NeedMore { .. }) => false,
            Ok(ParseStep::Message { message, extent }) => {
                let rewrite = self.codec.take_rewrite();
                if self.server.phase == ServerPhase::Shared && !self.may_share(&message, extent.len, shared) {
                    self.server.wants_own = true;
                    // The requests that wait go over the new connection, too.
                    self.park_or_resume(shared);
                }
                let barrier = match message.reply {
                    ReplyExpectation::Always => None,
                    ReplyExpectation::Sometimes | ReplyExpectation::Never => self.codec.inject_barrier(),
                };
                let ending = self.ending_of(&message, barrier.is_some(), shared);
                let mut request = self.new_request(&message, ending, shared);
                let mut skip = 0;
                if let Some(rewrite) = rewrite {
                    request.is_verbatim = false;
                    skip = rewrite.skip;
                    self.held_bytes += rewrite.bytes.len();
                    request.bytes = rewrite.bytes;
                }
                let number = shared.requests.add(request);
                let missing = extent.len.0;
                let is_last_piece = extent.last;
                let barrier = barrier.map_or(&[][..], |barrier| barrier.bytes);
                // The client's reply to a server's call bypasses the queue, so each piece is forwarded at
                // once.
                let is_ahead = ending == RequestEnding::Immediate;
                self.incoming =
                    Some(IncomingRequest { number, missing, is_last_piece, is_ahead, skip, barrier });
                true
            }
            Ok(ParseStep::Continued { .. }) => unreachable!("no request is incomplete"),
        }
    }

    /// Returns the event that completes a request.
    fn ending_of(&self, message: &RequestHead, has_barrier: bool, shared: &mut SharedState) -> RequestEnding {
        if message.is_callback_reply {
            return RequestEnding::Immediate;
        }
        if message.is_retransmission {
            return self.ending_of_retransmission(message.id, shared);
        }
        if has_barrier || message.reply == ReplyExpectation::Always {
            RequestEnding::Reply
        } else {
            RequestEnding::Forwarded
        }
    }

    /// Returns a request of which no byte has been received.
    fn new_request(
        &mut self,
        message: &RequestHead,
        ending: RequestEnding,
        shared: &SharedState,
    ) -> ProxyRequest {
        let handle = self.codec.file_handle();
        let export = handle.and_then(|handle| shared.exports.export_of(handle));
        ProxyRequest {
            session: self.slot,
            client: self.peer.ip(),
            id: message.id,
            flow: self.flow,
            class: message.class,
            keys: message.keys,
            position: message.position,
            export,
            names_file: handle.is_some(),
            ending,
            bytes: Vec::new(),
            barrier_bytes: 0,
            is_verbatim: true,
            received: 0,
            reply_bytes: 0,
            state: RequestState::Arriving,
            cost: 0,
            charge: None,
            number: 0,
            place_in_session: 0,
            arrived: 0,
            sent: 0,
            patience: 0,
            is_beyond_limits: false,
        }
    }

    /// Consumes bytes of the incoming request. Returns their number, and true if a piece is complete and
    /// parsing can continue.
    fn receive_piece(
        &mut self,
        bytes: &[u8],
        shared: &mut SharedState,
    ) -> Result<(usize, bool), CloseReason> {
        let Some(incoming) = &mut self.incoming else { return Ok((0, true)) };
        if incoming.missing == 0 && !incoming.is_last_piece {
            return Ok((0, self.begin_fragment(bytes, shared)?));
        }
        let number = incoming.number;
        let missing = usize::try_from(incoming.missing).unwrap_or(usize::MAX);
        let count = bytes.len().min(missing);
        incoming.missing -= count as u64;
        let is_piece_complete = incoming.missing == 0;
        let is_complete = is_piece_complete && incoming.is_last_piece;
        let is_ahead = incoming.is_ahead;
        let barrier = incoming.barrier;
        let sent_from = count.min(usize::try_from(incoming.skip).unwrap_or(usize::MAX));
        incoming.skip -= sent_from as u64;
        let sent = &bytes[sent_from..count];
        let request = shared.requests.get_mut(number);
        request.received += count as u64;
        if request.ending != RequestEnding::Dropped {
            if is_ahead && !is_complete {
                self.server.output.push(sent.to_vec());
            } else {
                request.bytes.extend_from_slice(sent);
                let barrier = if is_complete { barrier } else { &[] };
                request.bytes.extend_from_slice(barrier);
                request.barrier_bytes = barrier.len();
                self.held_bytes += sent.len() + barrier.len();
            }
        }
        if is_complete {
            self.incoming = None;
            if is_ahead && shared.requests.get(number).ending != RequestEnding::Immediate {
                self.ahead = Some(number);
            }
            self.complete_request(number, shared);
        } else {
            self.send_ahead_if_large(shared);
        }
        Ok((count, is_piece_complete))
    }

    /// Parses the head of the incoming request's next fragment. Returns false if the head is incomplete.
    fn begin_fragment(&mut self, bytes: &[u8], shared: &mut SharedState) -> Result<bool, CloseReason> {
        let step = match self.codec.next_request(bytes) {
            Ok(step) => step,
            // The server has a part of the request already, behind which none of those that wait can follow.
            Err(error)
                if !self.waiting.is_empty()
                    && self.incoming.as_ref().is_some_and(|incoming| incoming.is_ahead) =>
            {
                return Err(CloseReason::Malformed(ProxySide::Client, error));
            }
            Err(error) => {
                self.break_off(error, shared);
                return Ok(false);
            }
        };
        match step {
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

    /// Returns true if the incoming request may be forwarded before it is dispatched: no earlier request of
    /// the session has to be forwarded first.
    fn may_send_ahead(&self) -> bool {
        self.waiting.is_empty() && self.goodbye.is_none() && self.ahead.is_none()
    }

    /// Starts forwarding a request that exceeds the buffer. The server cannot process it before its last
    /// bytes, which are held back until the request is dispatched. Meanwhile the session forwards nothing
    /// else.
    pub(super) fn send_ahead_if_large(&mut self, shared: &mut SharedState) {
        let allowance = self.buffer_allowance(shared);
        let Some(incoming) = self.incoming.as_ref().filter(|incoming| !incoming.is_ahead) else { return };
        let number = incoming.number;
        if self.held_bytes < allowance || !self.may_send_ahead() {
            return;
        }
        let bytes = std::mem::take(&mut shared.requests.get_mut(number).bytes);
        self.forward_bytes(bytes);
        if let Some(incoming) = &mut self.incoming {
            incoming.is_ahead = true;
        }
    }

    /// Returns the class of a complete request. Where the head may state a false size, the size is at least the bytes received, wherever in
    /// the record they were: a client cannot hide data behind a small count.
    pub(super) fn class_by_size(&self, request: &ProxyRequest) -> RequestClass {
        if !self.protocol.row().has_unchecked_size {
            return request.class;
        }
        let data = request.received.saturating_sub(WRITE_HEAD_MAX);
        match request.class {
            RequestClass::Write(asked) => RequestClass::Write(asked.max(Bytes(data))),
            _ if data > 0 => RequestClass::Write(Bytes(data)),
            class => class,
        }
    }
}
