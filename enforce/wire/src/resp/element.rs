//! Elements of replies, and the lines that commands and replies consist of.

use crate::fields::{HeadError, check_at_most};
use crate::{ParserLimits, ProtocolError};

/// The longest line with a number, or of words, in bytes.
pub(super) const LINE_MAX: usize = 4 << 10;

/// A line without its first end, and the length with it.
pub(super) struct Line<'a> {
    pub(super) words: &'a [u8],
    pub(super) end: usize,
}

/// What an element is, as far as the end of the reply depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Plain,
    Error,
    /// So many elements follow.
    Aggregate(u64),
    /// The same, in a message that nobody asked for.
    Push(u64),
    /// So many elements follow, and then what they are about.
    Attributes(u64),
}

/// An element: the length of its line, and with its data.
pub(super) struct Element {
    pub(super) kind: ElementKind,
    pub(super) head: usize,
    pub(super) len: u64,
}

/// The first line, if it has at most `max` bytes.
pub(super) fn line_of(buffer: &[u8], max: usize) -> Result<Line<'_>, HeadError> {
    let until = buffer.len().min(max);
    let Some(place) = buffer[..until].iter().position(|&byte| byte == b'\n') else {
        check_at_most("RESP line in bytes", max as u64, buffer.len() as u64 + 1)?;
        return Err(HeadError::NeedMore(buffer.len() + 1));
    };
    let words = &buffer[..place];
    Ok(Line { words: words.strip_suffix(b"\r").unwrap_or(words), end: place + 1 })
}

/// The longest line with a length that is read to its end: more than any that servers take.
const LENGTH_LINE_MAX: usize = 32;

/// The line with a length at the start of a command or word: up to its first carriage return, and the byte behind that,
/// which servers do not look at.
pub(super) fn length_line(buffer: &[u8]) -> Result<Line<'_>, HeadError> {
    let max = LENGTH_LINE_MAX;
    let until = buffer.len().min(max);
    let Some(place) = buffer[..until].iter().position(|&byte| byte == b'\r') else {
        check_at_most("RESP line in bytes", max as u64, buffer.len() as u64 + 1)?;
        return Err(HeadError::NeedMore(buffer.len() + 1));
    };
    let end = place + 2;
    if buffer.len() < end { Err(HeadError::NeedMore(end)) } else { Ok(Line { words: &buffer[..place], end }) }
}

/// The number in a length line. Servers take it in one spelling only.
pub(super) fn length(digits: &[u8]) -> Result<i64, ProtocolError> {
    match digits {
        [b'0', _, ..] | [b'-', b'0', ..] => {
            Err(ProtocolError::Line { field: "number in a RESP line", expected: "no zeros in front" })
        }
        digits => number(digits),
    }
}

/// A decimal number with a sign, of at most ten digits.
pub(super) fn number(digits: &[u8]) -> Result<i64, ProtocolError> {
    let error = ProtocolError::Line { field: "number in a RESP line", expected: "at most ten digits" };
    let (is_negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 10 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(error);
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Ok(if is_negative { -value } else { value })
}

/// The length of a bulk string; `None` if there is none (−1).
pub(super) fn bulk_length(length: i64, limits: &ParserLimits) -> Result<Option<u64>, ProtocolError> {
    if length < 0 {
        return Ok(None);
    }
    check_at_most("RESP string in bytes", limits.message.0, length.unsigned_abs()).map(Some)
}

/// The bulk string whose line has `head` bytes and which ends, with its end of line, at `len`; `None` if it is longer
/// than `max`.
pub(super) fn word(buffer: &[u8], head: usize, len: u64, max: usize) -> Result<Option<&[u8]>, HeadError> {
    const NAME_MAX: u64 = 64;
    if len > head as u64 + NAME_MAX || len > max as u64 {
        return Ok(None);
    }
    let end = usize::try_from(len).expect("it is short");
    if buffer.len() < end { Err(HeadError::NeedMore(end)) } else { Ok(Some(&buffer[head..end - 2])) }
}

/// Reads the next element of a reply.
pub(super) fn reply_element(buffer: &[u8], limits: &ParserLimits) -> Result<Element, HeadError> {
    let &first = buffer.first().ok_or(HeadError::NeedMore(1))?;
    let error = ProtocolError::Line { field: "RESP reply", expected: "one of +-:$*_#,(!=%~>|" };
    if !b"+-:$*_#,(!=%~>|".contains(&first) {
        return Err(error.into());
    }
    let Line { words, end } = line_of(buffer, LINE_MAX.min(limits.head))?;
    let rest = &words[1..];
    let count = |times: u64| number(rest).map(|count| u64::try_from(count).unwrap_or(0) * times);
    let kind = match first {
        b'*' | b'~' => ElementKind::Aggregate(count(1)?),
        b'%' => ElementKind::Aggregate(count(2)?),
        b'>' => ElementKind::Push(count(1)?),
        b'|' => ElementKind::Attributes(count(2)?),
        b'-' | b'!' => ElementKind::Error,
        _ => ElementKind::Plain,
    };
    let data = match first {
        b'$' | b'!' | b'=' => bulk_length(number(rest)?, limits)?.map_or(0, |bytes| bytes + 2),
        _ => 0,
    };
    Ok(Element { kind, head: end, len: end as u64 + data })
}
