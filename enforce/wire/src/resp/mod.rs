//! RESP, the Redis serialization protocol (versions 2 and 3), which Valkey speaks, too: where commands and replies end.
//!
//! A command is an array of bulk strings, or a line of words. Replies come in the order of the commands; a command's
//! identifier is its position in the connection, counted from zero. Pushed messages (`>`) are unsolicited. A reply may
//! have attributes and nested aggregates of both versions; streamed strings and aggregates, which no server sends, are
//! errors.
//!
//! A command's name says whether it reads, writes or neither, and how many keys it names; the bytes of a write are known
//! at its end ([`ProtocolParser::work_at_end`]). What a script, SORT or KEYS costs, neither the command nor the reply
//! shows.
//!
//! Commands after which replies are no longer one for each are errors for an observer: SUBSCRIBE and its like, MONITOR,
//! SYNC, PSYNC, REPLCONF and CLIENT REPLY. A proxy ([`ProtocolParser::mediate`]) answers them in the server's place, as
//! well as commands that wait without end (`refusal`), and sends an unknown command instead, whose error keeps the order.
//! It sends lines of words as arrays, so that quotes and escapes cannot hide a name. Behind QUIT it reads no more commands,
//! since a server closes the connection without reading them. What a server says to nothing, such as that it has too many
//! clients, reaches the client as it is.
//!
//! Commands within a transaction are answered by `QUEUED` each, and EXEC by all replies at once: one reply for each
//! command here, too.

mod command;
mod element;
mod inline;
mod refusal;

use crate::fields::{HeadError, check_at_most, into_parse_step};
use crate::memory::shrink_queue_if_empty;
use crate::{
    ConnectionMemory, Extent, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyExpectation,
    ReplyHead, RequestClass, RequestHead, RequestRewrite,
};
use command::CommandWork;
use element::{
    Element, ElementKind, LINE_MAX, Line, bulk_length, length, length_line, line_of, reply_element,
};
use refusal::{Reason, Refusal, STAND_IN, StreamOption, StreamOptions, refusal_of};
use std::collections::VecDeque;
use units::Bytes;

/// The most words of a command that a proxy reads: as many as servers do.
const PROXY_WORDS_MAX: u64 = i32::MAX as u64;
/// The most bytes in front of the keys of XREAD: what precedes BLOCK has to be read before the command is sent.
const OPTIONS_MAX: usize = 4 << 10;
/// The first byte of TLS. A line that begins with it would be waited for without end.
const TLS_HANDSHAKE: u8 = 0x16;

/// The parser of one TCP connection to a server that speaks RESP.
#[derive(Debug)]
pub struct RespParser {
    limits: ParserLimits,
    /// The numbers of commands, of commands that are answered by one reply each, and of such replies.
    commands: u64,
    answered: u64,
    /// Bulk strings that are left of the command.
    request_left: u64,
    /// The work of the latest command.
    work: CommandWork,
    /// Bytes of an incomplete line of words in which there is no end.
    searched: usize,
    /// Elements that are left of the reply, in nested arrays, too.
    reply_left: u64,
    /// Number of elements of the reply until now.
    reply_elements: u64,
    /// A proxy asks, which can answer in place of the server.
    mediates: bool,
    /// The commands in flight that the server does not see.
    refused: VecDeque<(u64, Refusal)>,
    /// The client has said goodbye.
    has_quit: bool,
    /// Bytes to send in place of the latest command.
    rewrite: Option<RequestRewrite>,
    /// Answer in place of the latest reply.
    own_reply: Option<Vec<u8>>,
}

impl RespParser {
    /// A parser for a connection at the start of a command; [`ParserLimits::RESP`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        Self {
            limits,
            commands: 0,
            answered: 0,
            request_left: 0,
            work: CommandWork::new(b"", 1),
            searched: 0,
            reply_left: 0,
            reply_elements: 0,
            mediates: false,
            refused: VecDeque::new(),
            has_quit: false,
            rewrite: None,
            own_reply: None,
        }
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if self.request_left > 0 {
            return self.further_word(buffer);
        }
        let &first = buffer.first().ok_or(HeadError::NeedMore(1))?;
        if first != b'*' {
            return self.inline(first, buffer);
        }
        let Line { words, end } = length_line(buffer)?;
        let count = length(&words[1..])?;
        if count <= 0 {
            return Ok(self.without_answer(end));
        }
        let max = if self.mediates { PROXY_WORDS_MAX } else { self.limits.fragments.into() };
        let count = check_at_most("words of a RESP command", max, count.unsigned_abs())?;
        let (head, len) = self.bulk(&buffer[end..]).map_err(|error| behind(error, end))?;
        let name = element::word(&buffer[end..], head, len, LINE_MAX).map_err(|error| behind(error, end))?;
        let name = name.unwrap_or(b"").to_ascii_lowercase();
        let mut work = CommandWork::new(&name, count);
        let arguments = end + usize::try_from(len).unwrap_or(usize::MAX);
        let refusal = match &name[..] {
            b"client" if count > 1 => {
                let rest = buffer.get(arguments..).unwrap_or(b"");
                let (head, len) = self.bulk(rest).map_err(|error| behind(error, arguments))?;
                let word = element::word(rest, head, len, LINE_MAX);
                let word = word.map_err(|error| behind(error, arguments))?;
                refusal_of(&name, word.map(<[u8]>::to_ascii_lowercase).as_deref())
            }
            b"xread" | b"xreadgroup" if self.mediates => {
                self.stream_read(buffer, arguments, count - 1, &mut work)?
            }
            name => refusal_of(name, None),
        };
        let message = self.accept(&name, work, refusal)?;
        self.request_left = count - 1;
        let extent = Extent { head: end + head, len: Bytes(end as u64 + len), last: count == 1 };
        Ok(ParseStep::Message { message, extent })
    }

    /// Another word of the command.
    fn further_word(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        let (head, len) = self.bulk(buffer)?;
        let content =
            if self.work.awaits_number() { element::word(buffer, head, len, LINE_MAX)? } else { None };
        self.work.add_word(len - head as u64 - 2, content);
        self.request_left -= 1;
        let extent = Extent { head, len: Bytes(len), last: self.request_left == 0 };
        Ok(ParseStep::Continued { extent })
    }

    /// Reads the options of XREAD and XREADGROUP: the refusal of one that waits, and the number of keys.
    fn stream_read(
        &self,
        buffer: &[u8],
        arguments: usize,
        count: u64,
        work: &mut CommandWork,
    ) -> Result<Option<Refusal>, HeadError> {
        let mut options = StreamOptions::default();
        let mut at = arguments;
        for left in (0..count).rev() {
            if at >= OPTIONS_MAX.min(self.limits.head / 2) {
                return Ok(Some(Refusal::of_stream_read(Reason::Options)));
            }
            let rest = buffer.get(at..).unwrap_or(b"");
            let (head, len) = self.bulk(rest).map_err(|error| behind(error, at))?;
            let word = element::word(rest, head, len, LINE_MAX).map_err(|error| behind(error, at))?;
            match options.take(word) {
                StreamOption::Block => return Ok(Some(Refusal::of_stream_read(Reason::Waits))),
                StreamOption::Streams => {
                    work.set_streams(left / 2);
                    return Ok(None);
                }
                StreamOption::Other => at = at.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)),
            }
        }
        Ok(None)
    }

    /// A command as a line of words.
    fn inline(&mut self, first: u8, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if !self.mediates {
            return self.observed_inline(buffer);
        }
        if first == TLS_HANDSHAKE {
            let remedy = "connect without it";
            return Err(ProtocolError::Unsupported { what: "TLS", remedy }.into());
        }
        let max = self.limits.head;
        let from = self.searched.min(buffer.len());
        let Some(place) = buffer[from..].iter().position(|&byte| byte == b'\n') else {
            check_at_most("RESP line in bytes", max as u64, buffer.len() as u64 + 1)?;
            self.searched = buffer.len();
            return Err(HeadError::NeedMore(buffer.len() + 1));
        };
        self.searched = 0;
        let end = from + place + 1;
        check_at_most("RESP line in bytes", max as u64, end as u64)?;
        let line = &buffer[..end - 1];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let error = ProtocolError::Line { field: "quotes in a RESP line", expected: "an end and a space" };
        let words = inline::words(line).map_err(|()| error)?;
        let Some((name, arguments)) = words.split_first() else { return Ok(self.without_answer(end)) };
        let name = name.to_ascii_lowercase();
        let mut work = CommandWork::new(&name, words.len() as u64);
        let mut refusal =
            refusal_of(&name, arguments.first().map(|word| word.to_ascii_lowercase()).as_deref());
        let mut options = StreamOptions::default();
        let mut has_keys = false;
        let is_stream_read = matches!(&name[..], b"xread" | b"xreadgroup");
        for (index, word) in arguments.iter().enumerate() {
            if is_stream_read && !has_keys {
                match options.take(Some(word)) {
                    StreamOption::Block => refusal = Some(Refusal::of_stream_read(Reason::Waits)),
                    StreamOption::Streams => {
                        has_keys = true;
                        work.set_streams((arguments.len() - index - 1) as u64 / 2);
                    }
                    StreamOption::Other => {}
                }
            }
            work.add_word(word.len() as u64, Some(word));
        }
        let message = self.accept(&name, work, refusal)?;
        if refusal.is_none() {
            self.rewrite = Some(RequestRewrite { skip: u64::MAX, bytes: inline::as_array(&words) });
        }
        let extent = Extent { head: end, len: Bytes(end as u64), last: true };
        Ok(ParseStep::Message { message, extent })
    }

    /// A line of words as an observer sees it, who needs its name only.
    fn observed_inline(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        let Line { words: line, end } = line_of(buffer, LINE_MAX.min(self.limits.head))?;
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(name) = words.next() else { return Ok(self.without_answer(end)) };
        if !name[0].is_ascii_alphabetic() {
            return Err(ProtocolError::Line { field: "RESP command", expected: "an array or a word" }.into());
        }
        let name = name.to_ascii_lowercase();
        let mut work = CommandWork::new(&name, 1 + words.clone().count() as u64);
        let refusal = refusal_of(&name, words.clone().next().map(<[u8]>::to_ascii_lowercase).as_deref());
        words.for_each(|word| work.add_word(word.len() as u64, Some(word)));
        let extent = Extent { head: end, len: Bytes(end as u64), last: true };
        Ok(ParseStep::Message { message: self.accept(&name, work, refusal)?, extent })
    }

    /// Takes a command whose name was read.
    fn accept(
        &mut self,
        name: &[u8],
        work: CommandWork,
        refusal: Option<Refusal>,
    ) -> Result<RequestHead, ProtocolError> {
        if !self.mediates
            && let Some(error) = refusal.and_then(Refusal::error)
        {
            return Err(error);
        }
        let max = self.limits.in_flight as u64;
        check_at_most("outstanding RESP commands", max, self.commands - self.answered + 1)?;
        let id = self.commands;
        self.commands += 1;
        self.work = work;
        self.rewrite = None;
        if self.mediates {
            self.has_quit |= name == b"quit";
            if let Some(refusal) = refusal {
                self.work = CommandWork::new(b"", 1);
                self.refused.push_back((id, refusal));
                self.rewrite = Some(RequestRewrite { skip: u64::MAX, bytes: STAND_IN.to_vec() });
            }
        }
        let head = RequestHead::control(id, ReplyExpectation::Always);
        Ok(RequestHead { class: self.work.class(), keys: self.work.keys(), ..head })
    }

    /// An empty array or line, which servers leave without an answer.
    fn without_answer(&mut self, end: usize) -> ParseStep<RequestHead> {
        self.work = CommandWork::new(b"", 1);
        self.rewrite = None;
        let extent = Extent { head: end, len: Bytes(end as u64), last: true };
        ParseStep::Message { message: RequestHead::control(self.commands, ReplyExpectation::Never), extent }
    }

    /// The length of the line in front of a bulk string, and that of both.
    fn bulk(&self, buffer: &[u8]) -> Result<(usize, u64), HeadError> {
        let Line { words, end } = length_line(buffer)?;
        let Some(digits) = words.strip_prefix(b"$") else {
            return Err(
                ProtocolError::Line { field: "word of a RESP command", expected: "a bulk string" }.into()
            );
        };
        let error = ProtocolError::Line { field: "word of a RESP command", expected: "a length" };
        let bytes = bulk_length(length(digits)?, &self.limits)?.ok_or(error)?;
        Ok((end, end as u64 + bytes + 2))
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        let Element { kind, head, len } = reply_element(buffer, &self.limits)?;
        let is_first = self.reply_left == 0;
        let left = if is_first { 1 } else { self.reply_left };
        let elements = if is_first { 1 } else { self.reply_elements.saturating_add(1) };
        let further = match kind {
            ElementKind::Aggregate(count) | ElementKind::Push(count) => count,
            // What has the attributes comes behind them.
            ElementKind::Attributes(count) => count + 1,
            ElementKind::Plain | ElementKind::Error => 0,
        };
        let max = u64::from(self.limits.fragments);
        let left = (left - 1).saturating_add(further);
        // A server may send more elements than it takes words.
        if !self.mediates {
            check_at_most("elements of a RESP reply", max, elements.saturating_add(left))?;
        }
        (self.reply_left, self.reply_elements) = (left, elements);
        let extent = Extent { head, len: Bytes(len), last: left == 0 };
        if !is_first {
            return Ok(ParseStep::Continued { extent });
        }
        let is_due = self.answered < self.commands;
        // An error without a request says why a connection ends, such as that there are too many clients.
        let is_last_word = self.mediates && kind == ElementKind::Error && !is_due;
        let is_solicited = !matches!(kind, ElementKind::Push(_)) && !is_last_word;
        let id = if is_solicited { self.answered } else { 0 };
        let mut is_injected = false;
        self.own_reply = None;
        if is_solicited {
            if !is_due {
                return Err(ProtocolError::Unsolicited { field: "RESP reply", id }.into());
            }
            self.answered += 1;
            if let Some((_, refusal)) = self.refused.front().copied().filter(|(refused, _)| *refused == id) {
                self.refused.pop_front();
                is_injected = true;
                self.own_reply = Some(refusal.answer());
                shrink_queue_if_empty(&mut self.refused);
            }
        }
        let is_error = kind == ElementKind::Error;
        let message = ReplyHead { id, is_error, is_solicited, is_injected };
        Ok(ParseStep::Message { message, extent })
    }
}

/// The same reason with bytes in front of those that were looked at.
fn behind(error: HeadError, bytes: usize) -> HeadError {
    match error {
        HeadError::NeedMore(at_least) => HeadError::NeedMore(at_least + bytes),
        invalid @ HeadError::Invalid(_) => invalid,
    }
}

impl ProtocolParser for RespParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(self.request(buffer))
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(self.reply(buffer))
    }

    fn work_at_end(&self) -> Option<(RequestClass, u32)> {
        Some((self.work.class(), self.work.keys()))
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
        self.has_quit
    }

    fn farewell(&self, error: &ProtocolError) -> Vec<u8> {
        format!("-ERR Protocol error: {error}\r\n").into_bytes()
    }

    fn memory(&self) -> Option<ConnectionMemory> {
        (!self.has_quit).then(ConnectionMemory::default)
    }

    fn in_flight(&self) -> usize {
        usize::try_from(self.commands - self.answered).unwrap_or(usize::MAX)
    }
}

// ParserLimits::in_flight promises 64 bytes per request: a queue that grows by doubling holds up to twice its content.
const _: () = assert!(size_of::<(u64, Refusal)>() <= 32);
