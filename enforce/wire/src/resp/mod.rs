//! RESP, the Redis serialization protocol (versions 2 and 3), which Valkey speaks, too: where commands and replies end.
//!
//! A command is an array of bulk strings, or a line of words. Replies come in the order of the commands; a command's
//! identifier is its position in the connection, counted from zero. Pushed messages (`>`) are unsolicited.
//!
//! What a command costs its server does not show in its head: all of them are [`RequestClass::Control`]. Commands after
//! which replies are no longer one for each are refused: SUBSCRIBE and its like, MONITOR, SYNC, PSYNC and CLIENT REPLY.
//!
//! [`RequestClass::Control`]: crate::RequestClass::Control

mod element;

use crate::fields::{HeadError, check_at_most, into_parse_step};
use crate::{
    Extent, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyExpectation, ReplyHead, RequestHead,
};
use element::{Element, ElementKind, LINE_MAX, Line, bulk_length, line_of, reply_element};
use units::Bytes;

/// Commands after which replies are not counted by commands any more.
const REFUSED: [&[u8]; 9] = [
    b"subscribe",
    b"psubscribe",
    b"ssubscribe",
    b"unsubscribe",
    b"punsubscribe",
    b"sunsubscribe",
    b"monitor",
    b"sync",
    b"psync",
];

/// The parser of one TCP connection to a server that speaks RESP.
#[derive(Debug)]
pub struct RespParser {
    limits: ParserLimits,
    /// The numbers of commands, of commands that are answered by one reply each, and of such replies.
    commands: u64,
    answered: u64,
    /// Bulk strings that are left of the command.
    request_left: u64,
    /// Elements that are left of the reply, in nested arrays, too.
    reply_left: u64,
    /// How many elements the reply has until now.
    reply_elements: u64,
}

impl RespParser {
    /// A parser for a connection at the start of a command; [`ParserLimits::RESP`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        Self { limits, commands: 0, answered: 0, request_left: 0, reply_left: 0, reply_elements: 0 }
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if self.request_left > 0 {
            let (head, len) = self.bulk(buffer)?;
            self.request_left -= 1;
            let extent = Extent { head, len: Bytes(len), last: self.request_left == 0 };
            return Ok(ParseStep::Continued { extent });
        }
        let Line { words, end } = line_of(buffer, LINE_MAX.min(self.limits.head))?;
        let Some(count) = words.strip_prefix(b"*") else { return self.inline(words, end) };
        let count = match element::number(count)? {
            ..=0 => return Ok(self.without_answer(end)),
            count => {
                check_at_most("words of a RESP command", self.limits.fragments.into(), count.unsigned_abs())?
            }
        };
        let (head, len) = self.bulk(&buffer[end..]).map_err(|error| behind(error, end))?;
        let name = element::word(&buffer[end..], head, len, LINE_MAX).map_err(|error| behind(error, end))?;
        let read = end + head;
        if name.is_some_and(|name| name.eq_ignore_ascii_case(b"client")) && count > 1 {
            let second = end + usize::try_from(len).expect("a name is short");
            let rest = buffer.get(second..).unwrap_or(b"");
            let (head, len) = self.bulk(rest).map_err(|error| behind(error, second))?;
            let word = element::word(rest, head, len, LINE_MAX).map_err(|error| behind(error, second))?;
            refuse_if(word.is_some_and(|word| word.eq_ignore_ascii_case(b"reply")))?;
        }
        refuse_if(name.is_some_and(|name| REFUSED.iter().any(|refused| name.eq_ignore_ascii_case(refused))))?;
        self.request_left = count - 1;
        let extent = Extent { head: read, len: Bytes(end as u64 + len), last: self.request_left == 0 };
        Ok(ParseStep::Message { message: self.command()?, extent })
    }

    /// A command as a line of words.
    fn inline(&mut self, line: &[u8], end: usize) -> Result<ParseStep<RequestHead>, HeadError> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(name) = words.next() else { return Ok(self.without_answer(end)) };
        if !name[0].is_ascii_alphabetic() {
            return Err(ProtocolError::Line { field: "RESP command", expected: "an array or a word" }.into());
        }
        let is_reply = name.eq_ignore_ascii_case(b"client")
            && words.next().is_some_and(|word| word.eq_ignore_ascii_case(b"reply"));
        refuse_if(is_reply || REFUSED.iter().any(|refused| name.eq_ignore_ascii_case(refused)))?;
        let extent = Extent { head: end, len: Bytes(end as u64), last: true };
        Ok(ParseStep::Message { message: self.command()?, extent })
    }

    fn command(&mut self) -> Result<RequestHead, ProtocolError> {
        let max = self.limits.in_flight as u64;
        check_at_most("outstanding RESP commands", max, self.commands - self.answered + 1)?;
        self.commands += 1;
        Ok(RequestHead::control(self.commands - 1, ReplyExpectation::Always))
    }

    /// An empty array or line, which servers leave without an answer.
    fn without_answer(&self, end: usize) -> ParseStep<RequestHead> {
        let extent = Extent { head: end, len: Bytes(end as u64), last: true };
        ParseStep::Message { message: RequestHead::control(self.commands, ReplyExpectation::Never), extent }
    }

    /// The length of the line in front of a bulk string, and that of both.
    fn bulk(&self, buffer: &[u8]) -> Result<(usize, u64), HeadError> {
        let Line { words, end } = line_of(buffer, LINE_MAX.min(self.limits.head))?;
        let Some(length) = words.strip_prefix(b"$") else {
            return Err(
                ProtocolError::Line { field: "word of a RESP command", expected: "a bulk string" }.into()
            );
        };
        let error = ProtocolError::Line { field: "word of a RESP command", expected: "a length" };
        let bytes = bulk_length(length, &self.limits)?.ok_or(error)?;
        Ok((end, end as u64 + bytes + 2))
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        let Element { kind, head, len } = reply_element(buffer, &self.limits)?;
        let is_first = self.reply_left == 0;
        let left = if is_first { 1 } else { self.reply_left };
        let elements = if is_first { 1 } else { self.reply_elements + 1 };
        let further = match kind {
            ElementKind::Aggregate(count) | ElementKind::Push(count) => count,
            // What has the attributes comes behind them.
            ElementKind::Attributes(count) => count + 1,
            ElementKind::Plain | ElementKind::Error => 0,
        };
        let max = u64::from(self.limits.fragments);
        let left = left - 1 + further;
        check_at_most("elements of a RESP reply", max, elements + left)?;
        (self.reply_left, self.reply_elements) = (left, elements);
        let extent = Extent { head, len: Bytes(len), last: left == 0 };
        if !is_first {
            return Ok(ParseStep::Continued { extent });
        }
        let is_solicited = !matches!(kind, ElementKind::Push(_));
        let id = if is_solicited { self.answered } else { 0 };
        if is_solicited {
            if self.answered == self.commands {
                return Err(ProtocolError::Unsolicited { field: "RESP reply", id }.into());
            }
            self.answered += 1;
        }
        let is_error = kind == ElementKind::Error;
        let message = ReplyHead { id, is_error, is_solicited, is_injected: false };
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

fn refuse_if(is_refused: bool) -> Result<(), ProtocolError> {
    let what = "a RESP command without one reply";
    let remedy = "observe such connections without a protocol";
    if is_refused { Err(ProtocolError::Unsupported { what, remedy }) } else { Ok(()) }
}

impl ProtocolParser for RespParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(self.request(buffer))
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(self.reply(buffer))
    }

    fn in_flight(&self) -> usize {
        usize::try_from(self.commands - self.answered).unwrap_or(usize::MAX)
    }
}
