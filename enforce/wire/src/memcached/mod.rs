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
//! A proxy ([`ProtocolParser::mediate`]) survives what memcached survives, and does not send what could make the two
//! disagree on where requests end: it asks for the version instead, which keeps the order, and answers in place of the
//! server. These are lines that memcached answers with an error and whose data it takes for commands, keys that are too
//! long, at which memcached 1.6 drops earlier replies, lines that it would hang up on, `watch`, after which it speaks
//! unasked without end, and unknown binary commands with a body, of which it skips a part of the next message, too. A
//! list of many keys is read as several requests (`key_list`): the proxy drops the `END` of all but the last. What is
//! behind a `metadump` waits for the end of the list ([`ProtocolParser::is_blocked`]), since memcached would not answer
//! it before something else comes. For an observer some of these are errors.

mod barrier;
mod binary;
pub mod client;
mod command;
mod expected_reply;
mod key_list;
mod line;
mod text;
mod text_reply;

use crate::fields::{HeadError, check_at_most, into_parse_step};
use crate::memory::shrink_queue_if_empty;
use crate::sharing::SharedConnections;
use crate::{
    ConnectionMemory, Extent, InjectedBarrier, ParseStep, ParserLimits, ProtocolError, ProtocolParser,
    ReplyExpectation, ReplyHead, RequestHead, RequestRewrite,
};
use barrier::{BARRIER_OPAQUE, BINARY_BARRIER, BINARY_NOOP, TEXT_BARRIER};
use command::MemcachedCommand;
use expected_reply::{ExpectedReply, MemcachedReply, ReplyKind};
use key_list::{KEYS_PER_PART, KeyListPart, KeyScan};
use line::{LineSearch, words};
use std::collections::VecDeque;
use units::Bytes;

/// Connections that the clients of a proxy share.
pub(crate) const SHARED_CONNECTIONS: SharedConnections =
    SharedConnections { greeting: TEXT_BARRIER, read_welcome: barrier::read_welcome };

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
    /// A proxy asks, which can answer in place of the server.
    mediates: bool,
    key_list: KeyListState,
    /// Bytes to send in place of the latest request.
    rewrite: Option<RequestRewrite>,
    /// Answer in place of the latest reply.
    own_reply: Option<Vec<u8>>,
    /// A part of a list of keys was answered by an error, which is the answer to the list.
    has_list_failed: bool,
}

/// The client's place in a list of keys that is read in parts.
#[derive(Debug, Default)]
enum KeyListState {
    #[default]
    Outside,
    /// Within the list.
    Inside {
        /// The line in front of the keys.
        command: Vec<u8>,
        /// The first byte of the next part in the buffer.
        start: usize,
        scan: KeyScan,
        /// A part was read.
        is_further: bool,
    },
    /// Behind its last key that counts, in front of the end of the line.
    Discarding,
}

/// A request in flight.
#[derive(Debug)]
struct UnansweredCommand {
    id: u64,
    expected: ExpectedReply,
    /// Whether the request may stay without a reply. A reply that is given to it could be that of a later one.
    is_quiet: bool,
    is_injected: bool,
    place: ListPlace,
}

/// A request's place in a list of keys that is read in parts.
#[derive(Debug, Clone, Copy, Default)]
struct ListPlace {
    /// An earlier part precedes it.
    is_further: bool,
    /// Another part follows.
    has_more: bool,
}

/// The number of bytes to the end of the line, and whether it is there.
fn until_line_end(buffer: &[u8]) -> (usize, bool) {
    match buffer.iter().position(|&byte| byte == b'\n') {
        Some(place) => (place + 1, true),
        None => (buffer.len(), false),
    }
}

/// The end of the words in front of the keys, if a line is a list to read in parts. It may be too long to be complete.
fn list_start(line: &Result<&[u8], HeadError>, buffer: &[u8]) -> Option<usize> {
    /// memcached reads long lines with at most so many spaces in front.
    const SPACES_MAX: usize = 100;
    const WORDS_MAX: usize = 160;
    let line = match line {
        Ok(line) if line.len() > 2 * KEYS_PER_PART as usize => line.split(|&byte| byte == 0).next()?,
        Err(HeadError::Invalid(_)) => buffer,
        _ => return None,
    };
    let word_end = |begin: usize| Some(begin + line[begin..].iter().position(|&byte| byte == b' ')?);
    let begin = line.iter().position(|&byte| byte != b' ').filter(|spaces| *spaces <= SPACES_MAX)?;
    let mut end = word_end(begin)?;
    for _ in 1..text::retrieval_words(&line[begin..end])? {
        end = word_end(end + line[end..].iter().position(|&byte| byte != b' ')?)?;
    }
    let mut keys = words(&line[end..]);
    let is_long = line.last() != Some(&b'\n') || keys.clone().nth(KEYS_PER_PART as usize).is_some();
    let is_refused = line.last() == Some(&b'\n') && keys.any(|key| key.len() > key_list::KEY_LEN_MAX);
    (end <= WORDS_MAX && is_long && !is_refused).then_some(end)
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
            mediates: false,
            key_list: KeyListState::Outside,
            rewrite: None,
            own_reply: None,
            has_list_failed: false,
        }
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        let &first_byte = buffer.first().ok_or(HeadError::NeedMore(1))?;
        let is_binary = *self.is_binary.get_or_insert(first_byte == binary::REQUEST_MAGIC);
        if !matches!(self.key_list, KeyListState::Outside) {
            return self.list_part(buffer);
        }
        let command = if is_binary {
            binary::request(buffer, &self.limits, self.mediates)?
        } else {
            let line = self.request_line.first_line(buffer, self.limits.head);
            if self.mediates
                && let Some(start) = list_start(&line, buffer)
            {
                self.request_line = LineSearch::default();
                let command = [&buffer[..start], b" "].concat();
                let scan = KeyScan::from(start);
                self.key_list = KeyListState::Inside { command, start, scan, is_further: false };
                return self.list_part(buffer);
            }
            text::LineReader { mediates: self.mediates }.request(line?)?
        };
        self.request_line = LineSearch::default();
        self.accept(command, ListPlace::default(), true)
    }

    /// Reads the next part of a list of keys, or what is left behind it.
    fn list_part(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        let KeyListState::Inside { command, start, scan, is_further } = &mut self.key_list else {
            let (len, is_end) = until_line_end(buffer);
            if is_end {
                self.key_list = KeyListState::Outside;
            }
            let extent = Extent { head: len, len: Bytes(len as u64), last: is_end };
            return Ok(ParseStep::Continued { extent });
        };
        let is_further = *is_further;
        let reader = text::LineReader { mediates: true };
        let with_end = |end: usize, line_end: &[u8]| [command, &buffer[*start..end], line_end].concat();
        let (text, keys, (len, is_end)) = match scan.advance(buffer) {
            KeyListPart::Open => {
                let found = buffer.len() as u64 + 1;
                check_at_most("memcached line in bytes", self.limits.head as u64, found)?;
                return Err(HeadError::NeedMore(buffer.len() + 1));
            }
            KeyListPart::More { end, keys } => (with_end(end, b"\r\n"), keys, (end, true)),
            KeyListPart::Last { end, keys } => (with_end(end, b""), keys, (end, true)),
            KeyListPart::Zero { at, keys } => (with_end(at, b"\r\n"), keys, until_line_end(buffer)),
            KeyListPart::LongKey => (Vec::new(), 1, until_line_end(buffer)),
        };
        let has_more = buffer[len - 1] != b'\n' && is_end;
        self.key_list = if has_more {
            let command = std::mem::take(command);
            KeyListState::Inside { command, start: 0, scan: KeyScan::default(), is_further: true }
        } else if is_end {
            KeyListState::Outside
        } else {
            KeyListState::Discarding
        };
        let mut command = if text.is_empty() { reader.long_key() } else { reader.keys(text, keys) };
        (command.head, command.len) = (len, len as u64);
        self.accept(command, ListPlace { is_further, has_more }, is_end)
    }

    /// Takes a request that was read.
    fn accept(
        &mut self,
        command: MemcachedCommand,
        place: ListPlace,
        last: bool,
    ) -> Result<ParseStep<RequestHead>, HeadError> {
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
        if reply != ReplyExpectation::Never {
            let max = self.limits.in_flight as u64;
            check_at_most("outstanding memcached requests", max, self.pending.len() as u64 + 1)?;
            let expected = command.expected;
            let is_quiet = reply == ReplyExpectation::Sometimes;
            self.pending.push_back(UnansweredCommand { id, expected, is_quiet, is_injected: false, place });
        }
        self.request_count += 1;
        self.rewrite = command.rewrite;
        // The parts of a list have to stay together.
        let is_whole = !place.is_further && !place.has_more && last;
        let is_independent = command.is_independent && reply == ReplyExpectation::Always && is_whole;
        let keys = command.keys;
        let message = RequestHead { class, keys, is_independent, ..RequestHead::control(id, reply) };
        let extent = Extent { head: command.head, len: Bytes(command.len), last };
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

    /// Returns true if the client does not see this reply: the end of a part of a list of keys, anything behind the error that
    /// was the answer to the list, and replies to what was sent in place of a command.
    fn is_dropped(&self, expected: ExpectedReply, place: ListPlace, reply: ReplyKind) -> bool {
        let is_own = matches!(expected, ExpectedReply::OwnLine(_) | ExpectedReply::OwnBinary { .. });
        let is_behind_error = place.is_further && self.has_list_failed;
        is_own || is_behind_error || (place.has_more && reply == ReplyKind::End)
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
                let is_injected =
                    pending.is_injected || self.is_dropped(pending.expected, pending.place, reply.kind);
                let place = pending.place;
                let expected = pending.expected;
                let is_barrier = pending.expected.is_barrier();
                self.doubtful_replies = self.doubtful_replies.saturating_add(pending.is_quiet.into());
                let is_unsaid = place.is_further && self.has_list_failed;
                self.own_reply = match expected {
                    _ if is_unsaid => None,
                    ExpectedReply::OwnLine(line) => Some(line.bytes().to_vec()),
                    ExpectedReply::OwnBinary { opcode, opaque } => {
                        Some(binary::unknown_command(opcode, opaque))
                    }
                    _ => None,
                };
                if last {
                    let has_failed = self.has_list_failed || reply.kind == ReplyKind::Error;
                    self.has_list_failed = place.has_more && has_failed;
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
            let place = ListPlace::default();
            self.pending.push_back(UnansweredCommand {
                id,
                expected,
                is_quiet: true,
                is_injected: false,
                place,
            });
        }
        let (expected, bytes): (_, &[u8]) = if self.is_binary == Some(true) {
            let opcode = BINARY_NOOP;
            let opaque = BARRIER_OPAQUE;
            (ExpectedReply::Binary { opcode, opaque }, &BINARY_BARRIER)
        } else {
            (ExpectedReply::Version, TEXT_BARRIER)
        };
        let id = self.request_count;
        self.request_count += 1;
        let place = ListPlace::default();
        self.pending.push_back(UnansweredCommand { id, expected, is_quiet: false, is_injected: true, place });
        Some(InjectedBarrier { id, bytes })
    }

    fn mediate(&mut self) {
        self.mediates = true;
    }

    fn take_rewrite(&mut self) -> Option<RequestRewrite> {
        self.rewrite.take()
    }

    fn take_own_reply(&mut self) -> Option<Vec<u8>> {
        self.own_reply.take()
    }

    fn is_blocked(&self) -> bool {
        self.pending.back().is_some_and(|pending| pending.expected.is_dump())
    }

    fn farewell(&self, error: &ProtocolError) -> Vec<u8> {
        if self.is_binary == Some(true) {
            Vec::new()
        } else {
            format!("CLIENT_ERROR {error}\r\n").into_bytes()
        }
    }

    fn memory(&self) -> Option<ConnectionMemory> {
        let is_between = matches!(self.key_list, KeyListState::Outside) && !self.has_list_failed;
        let is_binary = self.is_binary;
        is_between.then(|| ConnectionMemory { is_binary, ..ConnectionMemory::default() })
    }

    fn resume(&mut self, memory: &ConnectionMemory) {
        self.is_binary = memory.is_binary;
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}

// ParserLimits::in_flight promises 64 bytes per request: a queue that grows by doubling holds up to twice its content.
const _: () = assert!(size_of::<UnansweredCommand>() <= 32);
