//! Assembles complete replies from the parts whose heads `wire` parses.
//!
//! `wire` is made for a proxy, which forwards the parts of a reply as they arrive. A client needs the
//! complete reply before it can interpret it.

use super::client_codec::Decoded;
use wire::{ParseStep, ProtocolParser, ReplyHead};

/// A reply of which at least the first head was parsed.
#[derive(Debug, Clone, Copy)]
struct PartialReply {
    reply: ReplyHead,
    /// The length of the first part's head.
    head_len: usize,
    /// Total length of the parts whose heads were parsed. Their payloads may not have arrived.
    end: usize,
    /// True if no further part follows.
    is_last: bool,
}

/// Follows one connection and finds whole replies in its input.
#[derive(Debug)]
pub(crate) struct ReplyFramer<W> {
    wire: W,
    partial: Option<PartialReply>,
}

impl<W: ProtocolParser> ReplyFramer<W> {
    pub(crate) fn new(wire: W) -> Self {
        Self { wire, partial: None }
    }

    pub(crate) fn wire(&self) -> &W {
        &self.wire
    }

    /// True while the head of a reply was parsed and its end has not arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.partial.is_some()
    }

    /// Registers a request that is sent: `bytes` are the whole request. Replies can only be framed if their requests
    /// were registered.
    pub(crate) fn register_request(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self.wire.next_request(bytes).map_err(|error| error.to_string())? {
            ParseStep::Message { .. } => Ok(()),
            _ => Err("the generator made a request that it cannot read itself".to_owned()),
        }
    }

    /// Looks for the next complete reply at the start of the input.
    pub(crate) fn next_reply(&mut self, input: &[u8]) -> Result<Decoded, String> {
        loop {
            let end = match self.partial {
                Some(partial) if input.len() < partial.end => return Ok(Decoded::NeedMore(partial.end)),
                Some(partial) if partial.is_last => {
                    self.partial = None;
                    return Ok(completed(&partial));
                }
                Some(partial) => partial.end,
                None => 0,
            };
            let step = self.wire.next_reply(&input[end..]).map_err(|error| error.to_string())?;
            let (extent, reply) = match step {
                ParseStep::NeedMore { at_least } => return Ok(Decoded::NeedMore(end + at_least)),
                ParseStep::Message { message, extent } => (extent, Some(message)),
                ParseStep::Continued { extent } => (extent, None),
            };
            let len = usize::try_from(extent.len.0).expect("lengths have limits");
            match (&mut self.partial, reply) {
                (Some(partial), _) => {
                    partial.end += len;
                    partial.is_last = extent.last;
                }
                (None, Some(reply)) => {
                    let head_len = extent.head;
                    let is_last = extent.last;
                    self.partial = Some(PartialReply { reply, head_len, end: len, is_last });
                }
                (None, None) => return Err("an answer that does not begin".to_owned()),
            }
        }
    }
}

fn completed(complete: &PartialReply) -> Decoded {
    if !complete.reply.is_solicited {
        return Decoded::Skip(complete.end);
    }
    let id = u32::try_from(complete.reply.id & u64::from(u32::MAX)).expect("32 bits");
    Decoded::Reply { len: complete.end, id, payload_start: complete.head_len }
}
