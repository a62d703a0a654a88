//! The binary protocol: headers of 24 bytes, then extras, key and value.

use super::barrier::BINARY_BARRIER;
use super::command::MemcachedCommand;
use super::expected_reply::{ExpectedReply, MemcachedReply, ReplyKind};
use crate::fields::{HeadError, check_at_most, check_equal, first_bytes, u16_at, u32_at};
use crate::{ParserLimits, ProtocolError, ReplyExpectation, RequestClass, RequestRewrite};
use units::Bytes;

/// The first byte of a request, by which a connection is known to be binary.
pub(super) const REQUEST_MAGIC: u8 = 0x80;
const REPLY_MAGIC: u8 = 0x81;
const HEADER_LEN: usize = 24;

const QUIT: u8 = 0x07;
const STAT: u8 = 0x10;

/// The statuses that are answers and no failures: success, not found, exists, not stored, not a number, and "continue"
/// of an authentication.
const SUCCESSFUL_STATUSES: [u16; 6] = [0, 1, 2, 5, 6, 0x21];

/// The opcode of the same command that is always answered. Servers reply to quiet commands with it.
fn loud_opcode(opcode: u8) -> u8 {
    match opcode {
        // GETQ
        0x09 => 0x00,
        // SETQ to QUITQ and FLUSHQ
        0x11..=0x18 => opcode - 0x10,
        // APPENDQ, PREPENDQ
        0x19 | 0x1a => opcode - 0x0b,
        // GETKQ, GATQ, GATKQ
        0x0d | 0x1e | 0x24 => opcode - 1,
        _ => opcode,
    }
}

/// Whether memcached knows the command.
fn is_known(opcode: u8) -> bool {
    matches!(opcode, 0x00..=0x1a | 0x1c..=0x1e | 0x20..=0x24)
}

struct BinaryHeader<'a> {
    bytes: &'a [u8; HEADER_LEN],
    /// The length of everything behind the header.
    body: u64,
    extras_and_key: u64,
}

impl<'a> BinaryHeader<'a> {
    fn read(
        buffer: &'a [u8],
        magic: u8,
        expected: &'static str,
        limits: &ParserLimits,
    ) -> Result<Self, HeadError> {
        let found = first_bytes::<1>(buffer)?[0];
        check_equal("memcached binary magic", expected, magic.into(), found.into())?;
        let bytes = first_bytes::<HEADER_LEN>(buffer)?;
        let body = u64::from(u32_at(bytes, 8));
        let extras_and_key = u64::from(bytes[4]) + u64::from(u16_at(bytes, 2));
        if extras_and_key > body {
            let field = "extras and key of a memcached binary message";
            return Err(ProtocolError::TooShort { field, needed: extras_and_key, left: body }.into());
        }
        check_at_most("memcached value in bytes", limits.message.0, body - extras_and_key)?;
        Ok(Self { bytes, body, extras_and_key })
    }

    fn opcode(&self) -> u8 {
        self.bytes[1]
    }

    fn status(&self) -> u16 {
        u16_at(self.bytes, 6)
    }

    fn opaque(&self) -> u32 {
        u32_at(self.bytes, 12)
    }

    /// The length of the whole message in bytes.
    fn message_len(&self) -> u64 {
        HEADER_LEN as u64 + self.body
    }
}

/// The reply that a command is unknown.
pub(super) fn unknown_command(opcode: u8, opaque: u32) -> Vec<u8> {
    const TEXT: &[u8] = b"Unknown command";
    const LEN: [u8; 4] = [0, 0, 0, 15];
    let mut reply = vec![REPLY_MAGIC, opcode, 0, 0, 0, 0, 0, 0x81];
    reply.extend(LEN);
    reply.extend(opaque.to_be_bytes());
    reply.extend([0; 8]);
    reply.extend(TEXT);
    reply
}

/// Reads a request. With `mediates`, an unknown command with a body becomes a no-op.
pub(super) fn request(
    buffer: &[u8],
    limits: &ParserLimits,
    mediates: bool,
) -> Result<MemcachedCommand, HeadError> {
    let header = BinaryHeader::read(buffer, REQUEST_MAGIC, "0x80 (request)", limits)?;
    if header.body > 0 && !is_known(header.opcode()) {
        if mediates {
            return Ok(MemcachedCommand {
                class: RequestClass::Control,
                reply: ReplyExpectation::Always,
                expected: ExpectedReply::OwnBinary { opcode: header.opcode(), opaque: header.opaque() },
                ends_connection: false,
                is_independent: false,
                keys: 1,
                rewrite: Some(RequestRewrite { skip: u64::MAX, bytes: BINARY_BARRIER.to_vec() }),
                head: HEADER_LEN,
                len: header.message_len(),
            });
        }
        let field = "memcached binary opcode";
        let expected = "a known one, or no body";
        return Err(ProtocolError::Value { field, expected, found: header.opcode().into() }.into());
    }
    let opcode = loud_opcode(header.opcode());
    let class = match opcode {
        // GET, GETK, GAT, GATK
        0x00 | 0x0c | 0x1d | 0x23 => RequestClass::Read(Bytes(0)),
        // SET, ADD, REPLACE, APPEND, PREPEND
        0x01..=0x03 | 0x0e | 0x0f => RequestClass::Write(Bytes(header.body - header.extras_and_key)),
        _ => RequestClass::Control,
    };
    // A server may hang up before it answers QUIT.
    let quiet = opcode != header.opcode() || opcode == QUIT;
    let reply = if quiet { ReplyExpectation::Sometimes } else { ReplyExpectation::Always };
    let expected = ExpectedReply::Binary { opcode, opaque: header.opaque() };
    let ends_connection = opcode == QUIT;
    let len = header.message_len();
    let head = HEADER_LEN;
    Ok(MemcachedCommand {
        class,
        reply,
        expected,
        ends_connection,
        is_independent: false,
        keys: 1,
        rewrite: None,
        head,
        len,
    })
}

pub(super) fn reply(buffer: &[u8], limits: &ParserLimits) -> Result<MemcachedReply, HeadError> {
    let header = BinaryHeader::read(buffer, REPLY_MAGIC, "0x81 (reply)", limits)?;
    // Statistics come one per message, and end with an empty one.
    let more = header.opcode() == STAT && header.status() == 0 && header.body > 0;
    let kind = ReplyKind::Binary { opcode: loud_opcode(header.opcode()), opaque: header.opaque(), more };
    let is_error = !SUCCESSFUL_STATUSES.contains(&header.status());
    Ok(MemcachedReply { kind, is_error, head: HEADER_LEN, len: header.message_len() })
}
