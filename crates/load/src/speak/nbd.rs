//! NBD commands, with simple replies.

use super::framer::Framer;
use super::{Ask, Heard, Said, Speak};
use model::Op;
use std::borrow::Cow;
use wire::nbd::{Connection, Framing, client};
use wire::{Limits, Wire as _};

const _: () = assert!(super::DEPTH_MAX < LIMITS.outstanding);
pub(super) const LIMITS: Limits = Limits { outstanding: 1 << 16, ..Limits::NBD };

#[derive(Debug)]
pub(crate) struct Nbd(Framer<Connection>);

impl Nbd {
    /// Behind a handshake that granted this framing.
    pub(crate) fn new(framing: Framing) -> Self {
        let connection = Connection::transmitting(LIMITS, framing);
        debug_assert_eq!(connection.outstanding(), 0);
        Self(Framer::new(connection))
    }
}

impl Speak for Nbd {
    fn ask(&mut self, out: &mut Vec<u8>, id: u64, ask: Ask, data: &[u8]) -> Result<(), String> {
        let start = out.len();
        match ask.op {
            Op::Read => client::read(out, id, ask.place, ask.size),
            Op::Write => client::write(out, id, ask.place, data),
        }
        self.0.asked(&out[start..])
    }

    fn hear(&mut self, input: &[u8]) -> Result<Heard, String> {
        self.0.hear(input)
    }

    fn said<'a>(&self, ask: Ask, raw: &'a [u8], head: usize) -> Said<'a> {
        match (ask.op, error(raw)) {
            (_, Some(error)) => Said::Failed(format!("the server answered with error {error}")),
            (Op::Read, None) => Said::Done(Cow::Borrowed(&raw[head..])),
            (Op::Write, None) => Said::Done(Cow::Borrowed(&[])),
        }
    }
}

/// Of a simple reply.
fn error(raw: &[u8]) -> Option<u32> {
    let error = raw.get(4..8)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    (error != 0).then_some(error)
}
