//! NBD: the fixed newstyle and newstyle handshakes, then simple replies, structured replies or extended headers.
//!
//! The parser observes the handshake and takes no part in it: the options that the server acknowledged say which
//! headers and replies the transmission phase uses. Options and their replies have identifiers of their own, counted
//! from zero.
//!
//! The oldstyle handshake is refused, and so is TLS once a server agrees to it. A server without TLS declines STARTTLS,
//! and the connection continues.

pub mod client;
mod framing;
mod handshake;
pub mod protocol;
mod transmission;

pub use framing::Framing;

use crate::fields::into_parse_step;
use crate::{
    ConnectionMemory, ParseStep, ParserLimits, ProtocolError, ProtocolParser, ReplyHead, RequestHead,
};
use handshake::ObservedHandshake;
use transmission::Transmission;

/// The parser of one TCP connection to an NBD server.
#[derive(Debug)]
pub struct NbdParser {
    limits: ParserLimits,
    handshake: ObservedHandshake,
    transmission: Transmission,
}

impl NbdParser {
    /// A parser for a connection that begins; [`ParserLimits::NBD`] are sensible limits.
    pub fn new(limits: ParserLimits) -> Self {
        let handshake = ObservedHandshake::default();
        Self { limits, handshake, transmission: Transmission::new(limits, Framing::Simple) }
    }

    /// A parser for a connection after its handshake, such as that of a load generator after
    /// [`client::ClientHandshake`].
    pub fn after_handshake(limits: ParserLimits, framing: Framing) -> Self {
        let mut handshake = ObservedHandshake::default();
        handshake.finish();
        Self { limits, handshake, transmission: Transmission::new(limits, framing) }
    }

    /// A parser for a connection whose handshake nobody has seen: messages say which form they have. Chunks of replies to
    /// requests from before are unsolicited; a simple reply to one is an error, because its length is not known.
    pub fn within_connection(limits: ParserLimits) -> Self {
        let parser = Self::after_handshake(limits, Framing::Structured);
        Self { transmission: parser.transmission.learning(), ..parser }
    }

    /// The form of messages as far as it has been negotiated.
    pub fn framing(&self) -> Framing {
        self.transmission.framing
    }

    /// Whether the server has granted an export.
    pub fn is_transmitting(&self) -> bool {
        self.handshake.server_is_done()
    }
}

impl ProtocolParser for NbdParser {
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError> {
        into_parse_step(if self.handshake.client_is_done() {
            self.transmission.request(buffer)
        } else {
            self.handshake.request(buffer, &self.limits)
        })
    }

    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError> {
        into_parse_step(if self.handshake.server_is_done() {
            self.transmission.reply(buffer)
        } else {
            self.handshake.reply(buffer, &mut self.transmission.framing)
        })
    }

    fn mediate(&mut self) {
        self.transmission.mediate();
    }

    fn is_blocked(&self) -> bool {
        self.transmission.is_blocked()
    }

    fn export_name(&self) -> Option<&[u8]> {
        self.handshake.export_name()
    }

    fn memory(&self) -> Option<ConnectionMemory> {
        let is_done = self.handshake.client_is_done() && self.handshake.server_is_done();
        is_done.then(|| ConnectionMemory {
            framing: self.framing(),
            export: self.export_name().map(<[u8]>::to_vec),
            ..ConnectionMemory::default()
        })
    }

    fn resume(&mut self, memory: &ConnectionMemory) {
        self.handshake.resume(memory.export.clone());
        self.transmission.framing = memory.framing;
    }

    fn in_flight(&self) -> usize {
        self.transmission.in_flight() + self.handshake.pending_options()
    }
}
