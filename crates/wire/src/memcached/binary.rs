//! The binary protocol: headers of 24 bytes, then extras, key and value.

use super::Parsed;
use super::expect::{Expect, Head, Kind};
use crate::read::{Stop, at_most, exactly, first, u16_at, u32_at};
use crate::{Answer, Class, Limits, Malformed};
use units::Bytes;

pub(super) const REQUEST: u8 = 0x80;
const REPLY: u8 = 0x81;
const HEADER: usize = 24;

const QUIT: u8 = 0x07;
const STAT: u8 = 0x10;

/// Not found, exists, not stored, not a number, and "go on" of an authentication: answers, not failures.
const ANSWERS: [u16; 6] = [0, 1, 2, 5, 6, 0x21];

/// The form of an opcode that is always answered; servers answer quiet ones under it.
fn loud(opcode: u8) -> u8 {
    match opcode {
        // GETQ
        0x09 => 0x00,
        // SETQ to FLUSHQ
        0x11..=0x18 => opcode - 0x10,
        // APPENDQ, PREPENDQ
        0x19 | 0x1a => opcode - 0x0b,
        // GETKQ, GATQ, GATKQ
        0x0d | 0x1e | 0x24 => opcode - 1,
        _ => opcode,
    }
}

struct Header<'a> {
    bytes: &'a [u8; HEADER],
    body: u64,
    extras_and_key: u64,
}

fn header<'a>(
    buffer: &'a [u8],
    magic: u8,
    expected: &'static str,
    limits: &Limits,
) -> Result<Header<'a>, Stop> {
    exactly("memcached binary magic", expected, magic.into(), first::<1>(buffer)?[0].into())?;
    let bytes = first::<HEADER>(buffer)?;
    let body = u64::from(u32_at(bytes, 8));
    let extras_and_key = u64::from(bytes[4]) + u64::from(u16_at(bytes, 2));
    if extras_and_key > body {
        let field = "extras and key of a memcached binary message";
        return Err(Malformed::Short { field, needed: extras_and_key, left: body }.into());
    }
    at_most("memcached value in bytes", limits.message.0, body - extras_and_key)?;
    Ok(Header { bytes, body, extras_and_key })
}

pub(super) fn request(buffer: &[u8], limits: &Limits) -> Result<Parsed, Stop> {
    let header = header(buffer, REQUEST, "0x80 (request)", limits)?;
    let opcode = header.bytes[1];
    let class = match loud(opcode) {
        // GET, GETK, GAT, GATK
        0x00 | 0x0c | 0x1d | 0x23 => Class::Read(Bytes(0)),
        // SET, ADD, REPLACE, APPEND, PREPEND
        0x01..=0x03 | 0x0e | 0x0f => Class::Write(Bytes(header.body - header.extras_and_key)),
        _ => Class::Control,
    };
    // A server may hang up before it answers QUIT.
    let quiet = loud(opcode) != opcode || opcode == QUIT;
    let answer = if quiet { Answer::Sometimes } else { Answer::Always };
    let expect = Expect::Binary { opcode: loud(opcode), opaque: u32_at(header.bytes, 12), quiet };
    Ok(Parsed { class, answer, expect, head: HEADER, len: HEADER as u64 + header.body })
}

pub(super) fn reply(buffer: &[u8], limits: &Limits) -> Result<Head, Stop> {
    let header = header(buffer, REPLY, "0x81 (reply)", limits)?;
    let (opcode, status) = (header.bytes[1], u16_at(header.bytes, 6));
    // Statistics come one a reply, and end with an empty one.
    let more = opcode == STAT && status == 0 && header.body > 0;
    let kind = Kind::Binary { opcode: loud(opcode), opaque: u32_at(header.bytes, 12), more };
    Ok(Head { kind, error: !ANSWERS.contains(&status), head: HEADER, len: HEADER as u64 + header.body })
}
