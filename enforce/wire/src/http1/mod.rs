//! HTTP/1.0 and HTTP/1.1 (RFC 9112): where requests and responses end. Heads are read by `httparse`.
//!
//! Responses come in the order of the requests; a request's identifier is its position in the connection, counted from
//! zero. Interim responses (100, 103) are reported as unsolicited, because the request waits on. So is a response to
//! nothing, such as 408 on an idle connection. A body whose end is the end of the connection has the length [`u64::MAX`].
//!
//! Bodies have the length of `Content-Length` or are `chunked`; a message with both is chunked (section 6.3). Tunnels
//! (CONNECT) and other protocols after 101 are refused. HTTP/2 is not HTTP/1.

mod body;
mod head;

use crate::fields::{HeadError, check_at_most, into_parse_step};
use crate::memory::shrink_queue_if_empty;
use crate::{
    Extent, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyExpectation, ReplyHead, RequestHead,
};
use body::{BodyLength, ChunkedBody};
use head::HeadSearch;
use std::collections::VecDeque;
use units::Bytes;

/// The parser of one TCP connection to an HTTP/1 server.
#[derive(Debug)]
pub struct HttpParser {
    limits: ParserLimits,
    /// Whether each request without a complete response is a HEAD, whose response has no body.
    pending: VecDeque<bool>,
    /// The number of requests that have been answered, which is the identifier of the first pending one.
    answered: u64,
    request_search: HeadSearch,
    reply_search: HeadSearch,
    /// The rest of a request or response in chunks.
    request_body: Option<ChunkedBody>,
    reply_body: Option<ChunkedBody>,
    is_closing: bool,
}

impl HttpParser {
    /// A parser for a connection at the start of a request; [`ParserLimits::HTTP`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        Self {
            limits,
            pending: VecDeque::new(),
            answered: 0,
            request_search: HeadSearch::default(),
            reply_search: HeadSearch::default(),
            request_body: None,
            reply_body: None,
            is_closing: false,
        }
    }

    /// Returns true after the head of a response that is the last one of its connection.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if let Some(body) = &mut self.request_body {
            return continued(body.next(buffer, &self.limits), &mut self.request_body);
        }
        let head = self.request_search.head(buffer, self.limits.head, head::check_request_line)?;
        let request = head::read_request(head, &self.limits)?;
        let max = self.limits.in_flight as u64;
        check_at_most("outstanding HTTP requests", max, self.pending.len() as u64 + 1)?;
        self.request_search = HeadSearch::default();
        let id = self.answered + self.pending.len() as u64;
        self.pending.push_back(request.is_head);
        let message =
            RequestHead { class: request.class, ..RequestHead::control(id, ReplyExpectation::Always) };
        let extent = extent(head, request.body, &mut self.request_body);
        Ok(ParseStep::Message { message, extent })
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        if let Some(body) = &mut self.reply_body {
            return continued(body.next(buffer, &self.limits), &mut self.reply_body);
        }
        let head = self.reply_search.head(buffer, self.limits.head, head::check_status_line)?;
        let is_head = self.pending.front().copied().unwrap_or(false);
        let reply = head::read_response(head, is_head, &self.limits)?;
        self.reply_search = HeadSearch::default();
        self.is_closing |= reply.is_closing;
        let is_solicited = !reply.is_interim && !self.pending.is_empty();
        let id = if is_solicited { self.answered } else { 0 };
        if is_solicited {
            self.pending.pop_front();
            self.answered += 1;
            shrink_queue_if_empty(&mut self.pending);
        }
        let extent = extent(head, reply.body, &mut self.reply_body);
        let message = ReplyHead { id, is_error: reply.is_error, is_solicited, is_injected: false };
        Ok(ParseStep::Message { message, extent })
    }
}

/// The extent of a message with this head; a body in chunks comes behind it.
fn extent(head: &[u8], body: BodyLength, chunks: &mut Option<ChunkedBody>) -> Extent {
    let head = head.len();
    let (len, last) = match body {
        BodyLength::Bytes(bytes) => ((head as u64).saturating_add(bytes), true),
        BodyLength::UntilClose => (u64::MAX, true),
        BodyLength::Chunked => (head as u64, false),
    };
    *chunks = (!last).then(ChunkedBody::default);
    Extent { head, len: Bytes(len), last }
}

fn continued<T>(
    piece: Result<Extent, HeadError>,
    chunks: &mut Option<ChunkedBody>,
) -> Result<ParseStep<T>, HeadError> {
    let extent = piece?;
    if extent.last {
        *chunks = None;
    }
    Ok(ParseStep::Continued { extent })
}

impl ProtocolParser for HttpParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(self.request(buffer))
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(self.reply(buffer))
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}
