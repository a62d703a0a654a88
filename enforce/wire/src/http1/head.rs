//! Heads: the first line and the fields, up to the empty line.

use super::body::BodyLength;
use crate::fields::{HeadError, check_at_most};
use crate::{ParserLimits, ProtocolError, RequestClass};
use units::Bytes;

/// Maximum number of fields of a head; servers allow about a hundred.
const FIELDS_MAX: usize = 256;

/// Search for the empty line after a head. It examines each byte once, in however many pieces the head
/// arrives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeadSearch {
    /// Start of the incomplete line.
    line: usize,
    /// Number of bytes at the start of the buffer without an end.
    searched: usize,
    /// These bytes contain a line that is not empty.
    has_words: bool,
}

impl HeadSearch {
    /// Returns the head at the start of the buffer with its empty line, if it has at most `max` bytes. Empty
    /// lines before a request belong to it (RFC 9112, section 2.2). `check` examines the first non-empty line
    /// as soon as it is complete.
    pub(super) fn head<'a>(
        &mut self,
        buffer: &'a [u8],
        max: usize,
        check: impl FnOnce(&[u8]) -> Result<(), ProtocolError>,
    ) -> Result<&'a [u8], HeadError> {
        let mut check = Some(check);
        let until = buffer.len().min(max);
        for place in self.searched.min(until)..until {
            if buffer[place] != b'\n' {
                continue;
            }
            let is_empty = matches!(&buffer[self.line..place], b"" | b"\r");
            if is_empty && self.has_words {
                return Ok(&buffer[..=place]);
            }
            if !is_empty && !self.has_words {
                self.has_words = true;
                check.take().map_or(Ok(()), |check| check(buffer[self.line..place].trim_ascii_end()))?;
            }
            self.line = place + 1;
        }
        self.searched = until;
        check_at_most("HTTP head in bytes", max as u64, buffer.len() as u64 + 1)?;
        Err(HeadError::NeedMore(buffer.len() + 1))
    }
}

const REQUEST_ERROR: ProtocolError =
    ProtocolError::Line { field: "HTTP request", expected: "a line of HTTP/1 and fields" };
const RESPONSE_ERROR: ProtocolError =
    ProtocolError::Line { field: "HTTP response", expected: "a line of HTTP/1 and fields" };

/// Checks that a line can be the first one of a request.
pub(super) fn check_request_line(line: &[u8]) -> Result<(), ProtocolError> {
    let is_http = line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0");
    if is_http { Ok(()) } else { Err(REQUEST_ERROR) }
}

/// Checks that a line can be the first one of a response.
pub(super) fn check_status_line(line: &[u8]) -> Result<(), ProtocolError> {
    if line.starts_with(b"HTTP/1.") { Ok(()) } else { Err(RESPONSE_ERROR) }
}

/// Contents of a request's head.
pub(super) struct HttpRequestHead {
    pub(super) is_head: bool,
    pub(super) class: RequestClass,
    pub(super) body: BodyLength,
}

/// Contents of a response's head.
pub(super) struct HttpResponseHead {
    pub(super) is_interim: bool,
    pub(super) is_error: bool,
    /// The server closes the connection after this response.
    pub(super) is_closing: bool,
    pub(super) body: BodyLength,
}

/// Parses the complete head of a request.
pub(super) fn read_request(head: &[u8], limits: &ParserLimits) -> Result<HttpRequestHead, ProtocolError> {
    let mut fields = vec![httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let complete = request.parse(head).is_ok_and(|status| status.is_complete());
    let Some(method) = request.method.filter(|_| complete) else {
        return Err(REQUEST_ERROR);
    };
    if method == "CONNECT" {
        return Err(ProtocolError::Unsupported {
            what: "an HTTP tunnel",
            remedy: "observe what it leads to",
        });
    }
    let body = body_length(request.headers, limits)?.unwrap_or(BodyLength::Bytes(0));
    Ok(HttpRequestHead { is_head: method == "HEAD", class: class_of(method, body), body })
}

/// Parses the complete head of a response; `is_head`: it answers a HEAD request.
pub(super) fn read_response(
    head: &[u8],
    is_head: bool,
    limits: &ParserLimits,
) -> Result<HttpResponseHead, ProtocolError> {
    let mut fields = vec![httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let complete = response.parse(head).is_ok_and(|status| status.is_complete());
    let Some(code) = response.code.filter(|_| complete) else {
        return Err(RESPONSE_ERROR);
    };
    if code == 101 {
        return Err(ProtocolError::Unsupported {
            what: "another protocol after HTTP's 101",
            remedy: "observe it without a protocol",
        });
    }
    let is_interim = (100..200).contains(&code);
    let body = if is_head || is_interim || matches!(code, 204 | 304) {
        BodyLength::Bytes(0)
    } else {
        body_length(response.headers, limits)?.unwrap_or(BodyLength::UntilClose)
    };
    let is_closing =
        !is_interim && (body == BodyLength::UntilClose || closes(response.version, response.headers));
    Ok(HttpResponseHead { is_interim, is_error: code >= 400, is_closing, body })
}

/// Returns true if the connection ends after a response with these fields (RFC 9112, section 9.3).
fn closes(version: Option<u8>, fields: &[httparse::Header<'_>]) -> bool {
    let connection = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("connection"));
    let mut options = connection.flat_map(|field| field.value.split(|&byte| byte == b','));
    let mut has =
        |option: &str| options.any(|word| word.trim_ascii().eq_ignore_ascii_case(option.as_bytes()));
    match version {
        Some(0) => !has("keep-alive"),
        _ => has("close"),
    }
}

/// Returns the length of the body according to the fields (RFC 9112, section 6.3); `None` if they give none.
fn body_length(
    fields: &[httparse::Header<'_>],
    limits: &ParserLimits,
) -> Result<Option<BodyLength>, ProtocolError> {
    let named = |name: &'static str| fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    if let Some(coding) = named("transfer-encoding").next_back() {
        let last = coding.value.rsplit(|&byte| byte == b',').next().unwrap_or(b"").trim_ascii();
        let is_chunked = last.eq_ignore_ascii_case(b"chunked");
        return Ok(Some(if is_chunked { BodyLength::Chunked } else { BodyLength::UntilClose }));
    }
    let mut length = None;
    for field in named("content-length") {
        let bytes = decimal(field.value)?;
        if length.is_some_and(|before| before != bytes) {
            return Err(ProtocolError::Line { field: "Content-Length", expected: "one length" });
        }
        length = Some(check_at_most("HTTP body in bytes", limits.message.0, bytes)?);
    }
    Ok(length.map(BodyLength::Bytes))
}

fn decimal(value: &[u8]) -> Result<u64, ProtocolError> {
    let error = ProtocolError::Line { field: "Content-Length", expected: "a number" };
    let digits = value.trim_ascii();
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(error);
    }
    Ok(digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// Returns the class of a request with a body of this length.
fn class_of(method: &str, body: BodyLength) -> RequestClass {
    match (method, body) {
        ("GET", _) => RequestClass::Read(Bytes(0)),
        (_, BodyLength::Bytes(0)) => RequestClass::Control,
        (_, BodyLength::Bytes(bytes)) => RequestClass::Write(Bytes(bytes)),
        _ => RequestClass::Write(Bytes(0)),
    }
}
