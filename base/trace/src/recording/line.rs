//! A line of a recording, as text and as values.

use super::RecordableRequest;
use crate::operation;
use crate::scan::{DelimitedFields, decimal};
use model::{Op, Request};
use std::borrow::Cow;
use std::io::Write;
use units::{Bytes, Nanos};

/// First line of every segment.
pub(crate) const HEADER: &str = "arrival_unix_ns,size_bytes,op,offset,response_ns,waited_ns,workload,client";
/// Format of a line, completing "expected …".
pub(crate) const EXPECTED: &str = "arrival_unix_ns,size_bytes,read or write,offset or nothing,response_ns,waited_ns (at \
    most response_ns),workload,client or nothing";

/// Returns true if `line` is the header of a segment.
pub(crate) fn is_header(line: &[u8]) -> bool {
    line.trim_ascii() == HEADER.as_bytes()
}

/// The values of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedLine<'a> {
    /// Request; its arrival counts from 1970, and it has a response time.
    pub(crate) request: Request,
    /// Time of the answer, since 1970.
    pub(crate) answered: Nanos,
    /// Part of the response time before the request was sent on.
    pub(crate) waited: Nanos,
    pub(crate) workload: Cow<'a, str>,
    pub(crate) client: Cow<'a, str>,
}

impl<'a> RecordedLine<'a> {
    /// Parses a line; `None` if it does not follow the format.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = DelimitedFields::new(line.trim_ascii_end(), b',');
        let mut next = || fields.next();
        let arrival = Nanos(decimal(next()?)?);
        let size = Bytes(decimal(next()?)?);
        let op = operation::from_name(next()?)?;
        let offset = match next()? {
            b"" => None,
            digits => Some(decimal(digits)?),
        };
        let response = Nanos(decimal(next()?)?);
        let waited = Nanos(decimal(next()?)?);
        let workload = unescape(next()?)?;
        let client = unescape(next()?)?;
        let answered = Nanos(arrival.0.checked_add(response.0)?);
        if next().is_some() || waited > response {
            return None;
        }
        let request = Request { arrival, size, op, offset, response: Some(response) };
        Some(Self { request, answered, waited, workload, client })
    }
}

/// Appends a request as a line.
pub(super) fn write_line(request: &RecordableRequest<'_>, text: &mut Vec<u8>) {
    let op = match request.op {
        Op::Read => "read",
        Op::Write => "write",
    };
    let offset = request.offset.map(|offset| offset.to_string()).unwrap_or_default();
    let client = request.client.map(|client| client.to_canonical().to_string()).unwrap_or_default();
    let arrival = request.arrival.0;
    let size = request.size.0;
    let response = request.response.0;
    let waited = request.waited.0;
    write!(text, "{arrival},{size},{op},{offset},{response},{waited},").expect("memory can be written");
    escape(request.workload, text);
    writeln!(text, ",{client}").expect("memory can be written");
}

/// Appends text without commas, percent signs and control characters.
fn escape(field: &str, text: &mut Vec<u8>) {
    for &byte in field.as_bytes() {
        if byte == b',' || byte == b'%' || byte.is_ascii_control() {
            write!(text, "%{byte:02X}").expect("memory can be written");
        } else {
            text.push(byte);
        }
    }
}

/// Reverses [`escape`]; `None` if the text is invalid.
fn unescape(field: &[u8]) -> Option<Cow<'_, str>> {
    if !field.contains(&b'%') {
        return std::str::from_utf8(field).ok().map(Cow::Borrowed);
    }
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let code = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
        bytes.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(workload: &str) -> RecordableRequest<'_> {
        RecordableRequest {
            arrival: Nanos(1_700_000_000_000_000_001),
            size: Bytes(4096),
            op: Op::Write,
            offset: Some(8192),
            response: Nanos(1000),
            waited: Nanos(10),
            workload,
            client: Some("::ffff:10.0.0.7".parse().expect("an address")),
        }
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        for workload in ["mail", "(unknown)", "a,b%c\nd", "", "ü"] {
            let mut text = Vec::new();
            write_line(&some(workload), &mut text);
            assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1, "{workload}");
            let line = RecordedLine::parse(&text).expect("it was written here");
            assert_eq!((&*line.workload, &*line.client), (workload, "10.0.0.7"));
            assert_eq!((line.waited, line.answered), (Nanos(10), Nanos(1_700_000_000_000_001_001)));
            assert_eq!((line.request.offset, line.request.op), (Some(8192), Op::Write));
        }
        let mut text = Vec::new();
        write_line(&RecordableRequest { offset: None, client: None, ..some("x") }, &mut text);
        let line = RecordedLine::parse(&text).expect("it was written here");
        assert_eq!((line.request.offset, &*line.client), (None, ""));
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in [
            "",
            HEADER,
            "1,2,read,,3,4,x,y",
            "1,2,read,,3,3,x",
            "1,2,read,,3,3,x,y,z",
            "1,2,erase,,3,3,x,y",
            "18446744073709551615,2,read,,1,0,x,y",
            "1,2,read,,3,3,%4,y",
            "1,2,read,,3,3,%ff,y",
        ] {
            assert_eq!(RecordedLine::parse(text.as_bytes()), None, "{text}");
        }
    }
}
