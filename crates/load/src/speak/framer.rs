//! Complete answers, from the heads that `wire` reads.

use super::Heard;
use wire::{Reply, Step, Wire};

/// An answer of which a part was seen.
#[derive(Debug, Clone, Copy)]
struct Begun {
    reply: Reply,
    /// Of its first part.
    head: usize,
    /// Bytes of the parts that were seen.
    end: usize,
    is_last: bool,
}

/// Follows one connection and waits for whole answers.
#[derive(Debug)]
pub(crate) struct Framer<W> {
    wire: W,
    begun: Option<Begun>,
}

impl<W: Wire> Framer<W> {
    pub(crate) fn new(wire: W) -> Self {
        Self { wire, begun: None }
    }

    /// `bytes` are one request that was sent.
    pub(crate) fn asked(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self.wire.request(bytes).map_err(|bad| bad.to_string())? {
            Step::Message { .. } => Ok(()),
            _ => Err("the generator made a request that it cannot read itself".to_owned()),
        }
    }

    /// The next answer, when it is complete.
    pub(crate) fn hear(&mut self, input: &[u8]) -> Result<Heard, String> {
        loop {
            let end = match self.begun {
                Some(begun) if input.len() < begun.end => return Ok(Heard::More(begun.end)),
                Some(begun) if begun.is_last => {
                    self.begun = None;
                    return Ok(heard(&begun));
                }
                Some(begun) => begun.end,
                None => 0,
            };
            let step = self.wire.reply(&input[end..]).map_err(|bad| bad.to_string())?;
            let (extent, reply) = match step {
                Step::NeedMore { at_least } => return Ok(Heard::More(end + at_least)),
                Step::Message { message, extent } => (extent, Some(message)),
                Step::Continued { extent } => (extent, None),
            };
            let len = usize::try_from(extent.len.0).expect("lengths have limits");
            match (&mut self.begun, reply) {
                (Some(begun), _) => {
                    begun.end += len;
                    begun.is_last = extent.last;
                }
                (None, Some(reply)) => {
                    let (head, is_last) = (extent.head, extent.last);
                    self.begun = Some(Begun { reply, head, end: len, is_last });
                }
                (None, None) => return Err("an answer that does not begin".to_owned()),
            }
        }
    }
}

fn heard(begun: &Begun) -> Heard {
    if !begun.reply.asked {
        return Heard::Skip(begun.end);
    }
    let id = u32::try_from(begun.reply.id & u64::from(u32::MAX)).expect("32 bits");
    Heard::Answer { used: begun.end, id, head: begun.head }
}
