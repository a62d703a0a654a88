//! memcached: text and meta commands (its `protocol.txt`) and the binary protocol, told apart by the first byte of a
//! connection.
//!
//! Replies come in the order of the requests, so requests in flight are kept in a queue, and a request's identifier is
//! its position in the connection, counted from zero. Requests that never have a reply (`noreply`, `quit`) are not in
//! the queue.
//!
//! Quiet requests (meta flag `q`, binary `GETQ` and the like) are, since whether they are answered depends on the
//! result. A reply belongs to the first request in flight that it can answer, and only quiet requests may be skipped on
//! the way. Distinct opaque values leave no doubt. Without them, a reply that several quiet requests of one kind could
//! have had is given to the first of them; a client could not tell either. The same holds for error lines, and for
//! quiet `md` and `ma`, since versions differ in whether these are silent about a miss. So each reply that a quiet
//! request was given makes up for one later request that seems to have had no answer, up to the next no-op: the number
//! of requests in flight is right in the end, and no connection is closed for what its client left open.
//!
//! An error may also be that of a request with `noreply`. It is reported as unsolicited if nothing that can fail is in
//! flight. Otherwise it is taken for the next answer, and the surplus reply is an error later. A proxy leaves no doubt:
//! it injects a barrier behind each request that may stay silent. Then requests with `noreply` are in flight, too, as
//! quiet ones, and their errors are theirs.
//!
//! Which requests may stay silent was found by trying all commands on memcached 1.6 (`tests/differential.rs`). Whether
//! `noreply` is a word of the command, a key or nothing depends on the command, so that any other command with that
//! word may be silent.
//!
//! `watch` is refused, because after it the server speaks unasked without end. So is what comes behind a `metadump`
//! before that ends: memcached would not answer it before something else comes. A storage command whose words memcached
//! would not accept is an error here, since it takes the data for commands then, and so is an unknown binary command
//! with a body, of which memcached 1.6 skips a part of the next message, too.

mod binary;
pub mod client;
mod command;
mod expected_reply;
mod line;
mod text;
mod text_reply;

use crate::fields::{HeadError, check_at_most, into_parse_step};
use crate::memory::shrink_queue_if_empty;
use crate::{
    Extent, InjectedBarrier, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyExpectation,
    ReplyHead, RequestHead,
};
use expected_reply::{BINARY_NOOP, ExpectedReply, MemcachedReply, ReplyKind};
use line::LineSearch;
use std::collections::VecDeque;
use units::Bytes;

/// The barrier of the text protocol. Every version answers it, in order, with a line that answers nothing else.
const TEXT_BARRIER: &[u8] = b"version\r\n";

/// The parser of one TCP connection to a memcached server.
#[derive(Debug)]
pub struct MemcachedParser {
    limits: ParserLimits,
    /// Whether the connection is binary; unknown before its first byte.
    is_binary: Option<bool>,
    /// The number of requests so far, which is the identifier of the next one.
    request_count: u64,
    /// The requests in flight, in order.
    pending: VecDeque<UnansweredCommand>,
    /// The latest request, if a barrier may follow it.
    before_barrier: Option<BarrierPlace>,
    /// The replies that were given to quiet requests and may have been those of later ones.
    doubtful_replies: u32,
    request_line: LineSearch,
    reply_line: LineSearch,
}

/// A request in flight.
#[derive(Debug)]
struct UnansweredCommand {
    id: u64,
    expected: ExpectedReply,
    /// Whether the request may stay without a reply. A reply that is given to it could be that of a later one.
    is_quiet: bool,
    is_injected: bool,
}

/// A request behind which a barrier may be injected.
#[derive(Debug)]
enum BarrierPlace {
    /// Behind a quiet request that is in flight.
    BehindPending,
    /// Behind a request without a reply, which is in flight as soon as there is a barrier.
    BehindSilent(u64),
}

impl MemcachedParser {
    /// A parser for a connection that begins; [`ParserLimits::MEMCACHED`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        Self {
            limits,
            is_binary: None,
            request_count: 0,
            pending: VecDeque::new(),
            before_barrier: None,
            doubtful_replies: 0,
            request_line: LineSearch::default(),
            reply_line: LineSearch::default(),
        }
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        let &first_byte = buffer.first().ok_or(HeadError::NeedMore(1))?;
        let is_binary = *self.is_binary.get_or_insert(first_byte == binary::REQUEST_MAGIC);
        let command = if is_binary {
            binary::request(buffer, &self.limits)?
        } else {
            text::request(self.request_line.first_line(buffer, self.limits.head)?, &self.limits)?
        };
        self.request_line = LineSearch::default();
        let id = self.request_count;
        let class = command.class;
        let reply = command.reply;
        self.before_barrier = match reply {
            ReplyExpectation::Always => None,
            ReplyExpectation::Sometimes => Some(BarrierPlace::BehindPending),
            ReplyExpectation::Never => Some(BarrierPlace::BehindSilent(id)),
        };
        if command.ends_connection {
            self.before_barrier = None;
        }
        let is_behind_dump = self.pending.back().is_some_and(|pending| pending.expected.is_dump());
        if is_behind_dump && !command.ends_connection {
            let what = "a memcached request behind metadump or mgdump";
            let remedy = "wait for the end of the list";
            return Err(ProtocolError::Unsupported { what, remedy }.into());
        }
        if reply != ReplyExpectation::Never {
            let max = self.limits.in_flight as u64;
            check_at_most("outstanding memcached requests", max, self.pending.len() as u64 + 1)?;
            let expected = command.expected;
            let is_quiet = reply == ReplyExpectation::Sometimes;
            self.pending.push_back(UnansweredCommand { id, expected, is_quiet, is_injected: false });
        }
        self.request_count += 1;
        let message = RequestHead { class, ..RequestHead::control(id, reply) };
        let extent = Extent { head: command.head, len: Bytes(command.len), last: true };
        Ok(ParseStep::Message { message, extent })
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        let reply = if self.is_binary == Some(true) {
            binary::reply(buffer, &self.limits)?
        } else {
            text_reply::read(self.reply_line.first_line(buffer, self.limits.head)?, &self.limits)?
        };
        self.reply_line = LineSearch::default();
        let is_solicited = reply.kind != ReplyKind::Error
            || self.pending.front().is_some_and(|pending| pending.expected.may_fail());
        let (id, is_injected, last) = if is_solicited {
            self.match_reply(&reply)?
        } else {
            (self.request_count.saturating_sub(1), false, true)
        };
        let extent = Extent { head: reply.head, len: Bytes(reply.len), last };
        let message = ReplyHead { id, is_error: reply.is_error, is_solicited, is_injected };
        Ok(ParseStep::Message { message, extent })
    }

    /// The request that a reply answers, whether it is a barrier of the parser's own, and whether the reply completes
    /// its answer. Quiet requests in front of it have had no reply and are no longer in flight.
    fn match_reply(&mut self, reply: &MemcachedReply) -> Result<(u64, bool, bool), ProtocolError> {
        loop {
            let Some(pending) = self.pending.front() else {
                let field = "memcached reply after request";
                let id = self.request_count;
                return Err(ProtocolError::Unsolicited { field, id });
            };
            if let Some(last) = pending.expected.is_completed_by(reply.kind) {
                let id = pending.id;
                let is_injected = pending.is_injected;
                let is_barrier = pending.expected.is_barrier();
                self.doubtful_replies = self.doubtful_replies.saturating_add(pending.is_quiet.into());
                if last {
                    self.pending.pop_front();
                    shrink_queue_if_empty(&mut self.pending);
                }
                if is_barrier || self.pending.is_empty() {
                    self.doubtful_replies = 0;
                }
                return Ok((id, is_injected, last));
            }
            if !pending.is_quiet {
                let field = "memcached reply";
                let expected = pending.expected.describe();
                let error = ProtocolError::Line { field, expected };
                self.doubtful_replies = self.doubtful_replies.checked_sub(1).ok_or(error)?;
            }
            self.pending.pop_front();
        }
    }
}

impl ProtocolParser for MemcachedParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(self.request(buffer))
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(self.reply(buffer))
    }

    fn inject_barrier(&mut self) -> Option<InjectedBarrier> {
        if let BarrierPlace::BehindSilent(id) = self.before_barrier.take()? {
            let expected = ExpectedReply::Line;
            self.pending.push_back(UnansweredCommand { id, expected, is_quiet: true, is_injected: false });
        }
        let (expected, bytes): (_, &[u8]) = if self.is_binary == Some(true) {
            let opcode = BINARY_NOOP;
            let opaque = binary::BARRIER_OPAQUE;
            (ExpectedReply::Binary { opcode, opaque }, &binary::BARRIER)
        } else {
            (ExpectedReply::Version, TEXT_BARRIER)
        };
        let id = self.request_count;
        self.request_count += 1;
        self.pending.push_back(UnansweredCommand { id, expected, is_quiet: false, is_injected: true });
        Some(InjectedBarrier { id, bytes })
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}

// ParserLimits::in_flight promises 64 bytes per request: a queue that grows by doubling holds up to twice its content.
const _: () = assert!(size_of::<UnansweredCommand>() <= 32);
