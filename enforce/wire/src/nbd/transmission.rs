//! The transmission phase: requests, and replies that carry the cookie of their request.

use super::Framing;
use super::protocol::{
    CMD_CACHE, CMD_DISC, CMD_FLAG_PAYLOAD_LEN, CMD_READ, CMD_TRIM, CMD_WRITE, CMD_WRITE_ZEROES,
    EXTENDED_REPLY_MAGIC, EXTENDED_REQUEST_MAGIC, REPLY_FLAG_DONE, REPLY_TYPE_ERROR_BIT,
    REPLY_TYPE_OFFSET_DATA, REQUEST_HEADER_LEN, REQUEST_MAGIC, SIMPLE_REPLY_HEADER_LEN, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC,
};
use crate::fields::{HeadError, check_at_most, check_equal, first_bytes, u16_at, u32_at, u64_at};
use crate::memory::shrink_if_empty;
use crate::{
    Extent, ParseStep, ParserLimits, Position, ProtocolError, ReplyExpectation, ReplyHead, RequestClass,
    RequestHead,
};
use std::collections::HashMap;
use units::Bytes;

/// Length of the header of a chunk in a structured reply: magic, flags, type, cookie, length.
const STRUCTURED_REPLY_HEADER_LEN: usize = 20;
/// Length of a header with 64-bit lengths, of a request and of a chunk.
const EXTENDED_HEADER_LEN: usize = 32;
/// Length of the offset in front of the data of a chunk.
const CHUNK_OFFSET_LEN: usize = 8;

/// Both directions of a connection in its transmission phase.
#[derive(Debug)]
pub(super) struct Transmission {
    /// The form of messages.
    pub(super) framing: Framing,
    /// Whether nobody has seen what was negotiated.
    is_learning: bool,
    limits: ParserLimits,
    /// The requests without a complete reply, by cookie.
    pending: HashMap<u64, PendingRequest>,
    /// A proxy asks, which can let the client wait.
    mediates: bool,
    /// The cookie of the next request, if another request had it when it was last looked at.
    blocked_by: Option<u64>,
}

/// A request that waits for its reply.
#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    /// The bytes that a simple reply carries unless it is an error; `None` for requests that do not read.
    read_len: Option<u64>,
}

/// The header of a request, whichever form it has.
struct RequestHeader {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    len: u64,
    /// The length of the header itself in bytes.
    header_len: usize,
}

impl Transmission {
    pub(super) fn new(limits: ParserLimits, framing: Framing) -> Self {
        Self {
            framing,
            is_learning: false,
            limits,
            pending: HashMap::new(),
            mediates: false,
            blocked_by: None,
        }
    }

    /// The same, where what was negotiated and asked before is not known.
    pub(super) fn learning(self) -> Self {
        Self { is_learning: true, ..self }
    }

    /// The same for a proxy: a request waits until no other one has its cookie.
    pub(super) fn mediate(&mut self) {
        self.mediates = true;
    }

    /// Returns true if the next request has the cookie of one that is not answered.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_by.is_some_and(|cookie| self.pending.contains_key(&cookie))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, HeadError> {
        if self.is_learning && u32::from_be_bytes(*first_bytes::<4>(buffer)?) == EXTENDED_REQUEST_MAGIC {
            self.framing = Framing::Extended;
        }
        let header = RequestHeader::read(buffer, self.framing)?;
        let payload = header.payload_len(self.framing)?;
        check_at_most("NBD payload in bytes", self.limits.message.0, payload)?;
        let read_len = (header.kind == CMD_READ).then_some(header.len);
        check_at_most("NBD READ in bytes", self.limits.message.0, read_len.unwrap_or(0))?;
        let reply = if header.kind == CMD_DISC { ReplyExpectation::Never } else { ReplyExpectation::Always };
        self.blocked_by = None;
        if reply == ReplyExpectation::Always {
            if self.mediates && self.pending.contains_key(&header.cookie) {
                self.blocked_by = Some(header.cookie);
                return Err(HeadError::NeedMore(buffer.len() + 1));
            }
            self.remember(header.cookie, PendingRequest { read_len })?;
        }
        let len = Bytes(header.header_len as u64 + payload);
        let extent = Extent { head: header.header_len, len, last: true };
        Ok(ParseStep::Message { message: header.request_head(reply), extent })
    }

    fn remember(&mut self, cookie: u64, request: PendingRequest) -> Result<(), ProtocolError> {
        let max = self.limits.in_flight as u64;
        check_at_most("outstanding NBD commands", max, self.pending.len() as u64 + 1)?;
        match self.pending.insert(cookie, request) {
            None => Ok(()),
            Some(_) => {
                let field = "NBD cookie";
                let expected = "one that is not outstanding";
                Err(ProtocolError::Value { field, expected, found: cookie })
            }
        }
    }

    /// Reads a simple reply, or one chunk of a structured or extended reply.
    pub(super) fn reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, HeadError> {
        let magic = u32::from_be_bytes(*first_bytes::<4>(buffer)?);
        match (magic, self.framing) {
            (SIMPLE_REPLY_MAGIC, Framing::Simple | Framing::Structured) => {
                self.simple_reply(first_bytes::<SIMPLE_REPLY_HEADER_LEN>(buffer)?)
            }
            (STRUCTURED_REPLY_MAGIC, Framing::Structured) => {
                let header = first_bytes::<STRUCTURED_REPLY_HEADER_LEN>(buffer)?;
                self.chunk(buffer, header, u32_at(header, 16).into())
            }
            (EXTENDED_REPLY_MAGIC, Framing::Extended) => {
                let header = first_bytes::<EXTENDED_HEADER_LEN>(buffer)?;
                self.chunk(buffer, header, u64_at(header, 24))
            }
            _ => {
                let expected = match self.framing {
                    Framing::Simple => "0x67446698 (simple)",
                    Framing::Structured => "0x67446698 (simple) or 0x668e33ef (structured)",
                    Framing::Extended => "0x6e8a278c (extended)",
                };
                Err(ProtocolError::Value { field: "NBD reply magic", expected, found: magic.into() }.into())
            }
        }
    }

    fn pending_request(&self, cookie: u64) -> Result<PendingRequest, ProtocolError> {
        let unsolicited = ProtocolError::Unsolicited { field: "reply to NBD cookie", id: cookie };
        self.pending.get(&cookie).copied().ok_or(unsolicited)
    }

    fn finish_request(&mut self, cookie: u64) {
        self.pending.remove(&cookie);
        shrink_if_empty(&mut self.pending);
    }

    fn simple_reply(
        &mut self,
        header: &[u8; SIMPLE_REPLY_HEADER_LEN],
    ) -> Result<ParseStep<ReplyHead>, HeadError> {
        let error = u32_at(header, 4);
        let id = u64_at(header, 8);
        let payload = match self.pending_request(id)?.read_len {
            Some(bytes) if error == 0 => bytes,
            _ => 0,
        };
        if payload > 0 && self.framing == Framing::Structured && !self.is_learning {
            let field = "NBD reply magic";
            let expected = "0x668e33ef (structured) for data";
            return Err(ProtocolError::Value { field, expected, found: SIMPLE_REPLY_MAGIC.into() }.into());
        }
        self.finish_request(id);
        let head = header.len();
        let extent = Extent { head, len: Bytes(head as u64 + payload), last: true };
        let message = ReplyHead { id, is_error: error != 0, is_solicited: true, is_injected: false };
        Ok(ParseStep::Message { message, extent })
    }

    /// Reads a chunk of `len` bytes behind its header. Headers of structured and extended chunks both begin with magic,
    /// flags, type and cookie.
    fn chunk(&mut self, buffer: &[u8], header: &[u8], len: u64) -> Result<ParseStep<ReplyHead>, HeadError> {
        let flags = u16_at(header, 4);
        let kind = u16_at(header, 6);
        let id = u64_at(header, 8);
        let is_solicited = self.pending.contains_key(&id);
        if !self.is_learning {
            self.pending_request(id)?;
        }
        let max = self.limits.message.0 + CHUNK_OFFSET_LEN as u64;
        check_at_most("NBD chunk in bytes", max, len)?;
        let mut head = header.len();
        if kind == REPLY_TYPE_OFFSET_DATA {
            let needed = CHUNK_OFFSET_LEN as u64;
            if len < needed {
                let field = "offset of an NBD data chunk";
                return Err(ProtocolError::TooShort { field, needed, left: len }.into());
            }
            head += CHUNK_OFFSET_LEN;
            if buffer.len() < head {
                return Err(HeadError::NeedMore(head));
            }
        }
        let last = flags & REPLY_FLAG_DONE != 0;
        if last {
            self.finish_request(id);
        }
        let extent = Extent { head, len: Bytes(header.len() as u64 + len), last };
        let message =
            ReplyHead { id, is_error: kind & REPLY_TYPE_ERROR_BIT != 0, is_solicited, is_injected: false };
        Ok(ParseStep::Message { message, extent })
    }
}

impl RequestHeader {
    fn read(buffer: &[u8], framing: Framing) -> Result<Self, HeadError> {
        let magic = u32::from_be_bytes(*first_bytes::<4>(buffer)?).into();
        let (header, len): (&[u8], _) = if framing == Framing::Extended {
            check_equal("NBD request magic", "0x21e41c71 (extended)", EXTENDED_REQUEST_MAGIC.into(), magic)?;
            let header = first_bytes::<EXTENDED_HEADER_LEN>(buffer)?;
            (header, u64_at(header, 24))
        } else {
            check_equal("NBD request magic", "0x25609513", REQUEST_MAGIC.into(), magic)?;
            let header = first_bytes::<REQUEST_HEADER_LEN>(buffer)?;
            (header, u32_at(header, 24).into())
        };
        Ok(Self {
            flags: u16_at(header, 4),
            kind: u16_at(header, 6),
            cookie: u64_at(header, 8),
            offset: u64_at(header, 16),
            len,
            header_len: header.len(),
        })
    }

    /// The number of bytes behind the header.
    fn payload_len(&self, framing: Framing) -> Result<u64, ProtocolError> {
        let is_announced = framing == Framing::Extended && self.flags & CMD_FLAG_PAYLOAD_LEN != 0;
        match self.kind {
            CMD_WRITE if framing == Framing::Extended && !is_announced => {
                let field = "flags of an extended NBD WRITE";
                let expected = "the payload flag";
                Err(ProtocolError::Value { field, expected, found: self.flags.into() })
            }
            CMD_WRITE => Ok(self.len),
            _ => Ok(if is_announced { self.len } else { 0 }),
        }
    }

    fn request_head(&self, reply: ReplyExpectation) -> RequestHead {
        let class = match self.kind {
            CMD_READ => RequestClass::Read(Bytes(self.len)),
            // How much work these are for the device no reply shows: they count like what is written.
            CMD_WRITE | CMD_WRITE_ZEROES | CMD_TRIM | CMD_CACHE => RequestClass::Write(Bytes(self.len)),
            _ => RequestClass::Control,
        };
        let has_position = class != RequestClass::Control;
        let position = has_position.then_some(Position { object: 0, offset: self.offset });
        RequestHead { class, position, ..RequestHead::control(self.cookie, reply) }
    }
}
