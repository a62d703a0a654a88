//! NBD commands with simple replies.

use super::client_codec::{ClientCodec, Decoded, IN_FLIGHT_MAX, IoRequest, ReplyStatus};
use super::reply_framer::ReplyFramer;
use model::Op;
use std::borrow::Cow;
use wire::nbd::{Framing, NbdParser, client};
use wire::{ParserLimits, ProtocolParser as _};

const LIMITS: ParserLimits = ParserLimits { in_flight: 1 << 16, ..ParserLimits::NBD };
// The engine stops encoding before `wire` refuses a request.
const _: () = assert!(IN_FLIGHT_MAX < LIMITS.in_flight);

/// A connection in the transmission phase.
#[derive(Debug)]
pub(crate) struct NbdCodec(ReplyFramer<NbdParser>);

impl NbdCodec {
    /// Continues after a handshake that granted this framing.
    pub(crate) fn new(framing: Framing) -> Self {
        let connection = NbdParser::after_handshake(LIMITS, framing);
        debug_assert_eq!(connection.in_flight(), 0);
        Self(ReplyFramer::new(connection))
    }
}

impl ClientCodec for NbdCodec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let start = out.len();
        match request.op {
            Op::Read => client::read(out, id, request.address, request.size),
            Op::Write => client::write(out, id, request.address, payload),
        }
        self.0.register_request(&out[start..])
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        self.0.next_reply(input)
    }

    fn interpret<'a>(&self, request: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a> {
        match (request.op, error_number(reply)) {
            (_, Some(error)) => ReplyStatus::Failed(format!("the server answered with error {error}")),
            (Op::Read, None) => ReplyStatus::Done(Cow::Borrowed(&reply[payload_start..])),
            (Op::Write, None) => ReplyStatus::Done(Cow::Borrowed(&[])),
        }
    }
}

/// The error field of a simple reply (magic, error, cookie), unless it is 0.
fn error_number(reply: &[u8]) -> Option<u32> {
    let error = u32::from_be_bytes(reply.get(4..8)?.try_into().ok()?);
    (error != 0).then_some(error)
}
