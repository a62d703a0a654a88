//! memcached's text commands `get` and `set`, which every server and proxy of it understands.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use super::memcached_key::KeyFormat;
use super::reply_framer::ReplyFramer;
use model::Op;
use std::borrow::Cow;
use wire::ParserLimits;
use wire::memcached::MemcachedParser;
use wire::memcached::client::{self, Confirmation};

/// Bytes after the value in the reply to a `get` that found its key.
const AFTER_VALUE: &[u8] = b"\r\nEND\r\n";

/// Gets and sets values of a workload by TCP.
#[derive(Debug)]
pub(crate) struct MemcachedCodec {
    framer: ReplyFramer<MemcachedParser>,
    commands: TextCommands,
}

impl MemcachedCodec {
    pub(crate) fn new(keys: KeyFormat) -> Self {
        let limits = ParserLimits { in_flight: 1 << 16, ..ParserLimits::MEMCACHED };
        Self { framer: ReplyFramer::new(MemcachedParser::new(limits)), commands: TextCommands::new(keys) }
    }
}

/// The commands of a workload, without what carries them.
#[derive(Debug)]
pub(super) struct TextCommands {
    keys: KeyFormat,
    /// The key of the current request, kept to reuse its memory.
    key: Vec<u8>,
}

impl TextCommands {
    pub(super) fn new(keys: KeyFormat) -> Self {
        Self { keys, key: Vec::new() }
    }

    /// Appends the command of a request.
    pub(super) fn append(&mut self, out: &mut Vec<u8>, request: IoRequest, payload: &[u8]) {
        self.keys.write(&mut self.key, request.size, request.address);
        match request.op {
            Op::Read => client::get(out, &[&self.key]),
            Op::Write => client::set(out, &self.key, 0, 0, payload, Confirmation::Reply),
        }
    }
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
        self.commands.append(out, request, payload);
        self.framer.register_request(&out[start..])
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        self.framer.next_reply(input)
    }

    fn interpret<'a>(&self, request: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a> {
        interpret_text(request, reply, payload_start)
    }
}

/// Interprets a complete reply. Its value, if it has one, begins at `payload_start`.
pub(super) fn interpret_text(request: IoRequest, reply: &[u8], payload_start: usize) -> ReplyStatus<'_> {
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

/// Returns the first line of a reply, cut at 100 bytes.
fn first_line(reply: &[u8]) -> String {
    let end = reply.iter().position(|byte| *byte == b'\r').unwrap_or(reply.len()).min(100);
    String::from_utf8_lossy(&reply[..end]).into_owned()
}
