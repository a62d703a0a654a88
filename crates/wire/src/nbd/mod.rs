//! NBD, fixed newstyle and newstyle handshake, with simple replies, structured replies and extended headers.
//!
//! The handshake is watched, not taken part in: which replies and which headers the transmission phase uses is
//! known from the options that the server acknowledged. Options and their replies have ids of their own, counted
//! from zero.
//!
//! Refused: the oldstyle handshake, and TLS, once a server agrees to it. A server that has none says no to
//! STARTTLS, and the connection goes on.

pub mod client;
mod handshake;
pub mod protocol;
mod transmission;

use crate::read::settle;
use crate::{Limits, Malformed, Reply, Request, Step, Wire};
use handshake::Handshake;
use std::collections::HashMap;
use transmission::Asked;

/// How messages of the transmission phase look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Requests of 28 bytes, simple replies of 16 bytes and the data read.
    #[default]
    Simple,
    /// As simple, but what is read comes in chunks of 20 bytes and data.
    Structured,
    /// Requests and chunks of 32 bytes, with lengths of 64 bits.
    Extended,
}

/// One TCP connection to an NBD server.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    handshake: Handshake,
    framing: Framing,
    asked: HashMap<u64, Asked>,
}

impl Connection {
    /// A connection on which nothing has been said; [`Limits::NBD`] are sensible limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, handshake: Handshake::default(), framing: Framing::Simple, asked: HashMap::new() }
    }

    /// A connection that is past its handshake, as a generator of load has it after [`client::Handshake`].
    pub fn transmitting(limits: Limits, framing: Framing) -> Self {
        let mut connection = Self::new(limits);
        connection.handshake.finish();
        connection.framing = framing;
        connection
    }

    /// How messages look, as far as it was negotiated yet.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the server has granted an export.
    pub fn is_transmitting(&self) -> bool {
        self.handshake.server_is_done()
    }
}

impl Wire for Connection {
    fn request(&mut self, buffer: &[u8]) -> Result<Step<Request>, Malformed> {
        settle(if self.handshake.client_is_done() {
            self.command(buffer)
        } else {
            self.handshake.request(buffer, &self.limits)
        })
    }

    fn reply(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Malformed> {
        settle(if self.handshake.server_is_done() {
            self.chunk(buffer)
        } else {
            self.handshake.reply(buffer, &mut self.framing)
        })
    }

    fn name(&self) -> Option<&[u8]> {
        self.handshake.name()
    }

    fn outstanding(&self) -> usize {
        self.asked.len() + self.handshake.options()
    }
}
