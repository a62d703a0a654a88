//! memcached's text commands `get` and `set`, which every server and proxy of it understands.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use super::reply_framer::ReplyFramer;
use model::Op;
use std::borrow::Cow;
use wire::ParserLimits;
use wire::memcached::MemcachedParser;
use wire::memcached::client::{self, Confirmation};

/// What follows the value in the reply to a `get` that found its key.
const AFTER_VALUE: &[u8] = b"\r\nEND\r\n";

/// Gets and sets values whose keys begin with a prefix of the workload's own.
#[derive(Debug)]
pub(crate) struct MemcachedCodec {
    framer: ReplyFramer<MemcachedParser>,
    key_prefix: String,
    /// The key of the current request, kept to reuse its memory.
    key: Vec<u8>,
}

impl MemcachedCodec {
    pub(crate) fn new(key_prefix: String) -> Self {
        let limits = ParserLimits { in_flight: 1 << 16, ..ParserLimits::MEMCACHED };
        Self { framer: ReplyFramer::new(MemcachedParser::new(limits)), key_prefix, key: Vec::new() }
    }
}

/// Writes the key of a value. The size is part of the key, so that values of different sizes never share one.
fn write_key(out: &mut Vec<u8>, prefix: &str, size: u32, number: u64) {
    use std::io::Write as _;
    out.clear();
    write!(out, "{prefix}:{size}:{number}").expect("a vector takes what is written");
}

impl ClientCodec for MemcachedCodec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        _id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let start = out.len();
        write_key(&mut self.key, &self.key_prefix, request.size, request.address);
        match request.op {
            Op::Read => client::get(out, &[&self.key]),
            Op::Write => client::set(out, &self.key, 0, 0, payload, Confirmation::Reply),
        }
        self.framer.register_request(&out[start..])
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        self.framer.next_reply(input)
    }

    fn interpret<'a>(&self, request: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a> {
        match request.op {
            Op::Write if reply == b"STORED\r\n" => ReplyStatus::Done(Cow::Borrowed(&[])),
            Op::Read if reply == b"END\r\n" => ReplyStatus::KeyMissing,
            Op::Read
                if reply.starts_with(b"VALUE ")
                    && reply.ends_with(AFTER_VALUE)
                    && reply.len() >= payload_start + AFTER_VALUE.len() =>
            {
                let value = &reply[payload_start..reply.len() - AFTER_VALUE.len()];
                if value.len() == request.size as usize {
                    return ReplyStatus::Done(Cow::Borrowed(value));
                }
                ReplyStatus::Failed(format!("a value of {} bytes instead of {}", value.len(), request.size))
            }
            _ => ReplyStatus::Failed(format!("the server answered '{}'", first_line(reply))),
        }
    }
}

/// The first line of a reply, at most 100 bytes of it.
fn first_line(reply: &[u8]) -> String {
    let end = reply.iter().position(|byte| *byte == b'\r').unwrap_or(reply.len()).min(100);
    String::from_utf8_lossy(&reply[..end]).into_owned()
}
