//! What differs between protocols once a connection is set up: how a request looks and what an answer says.

mod framer;
mod http;
mod memcached;
mod nbd;
mod nfs;

pub(crate) use framer::Framer;
pub(crate) use http::Http;
pub(crate) use memcached::Memcached;
pub(crate) use nbd::Nbd;
pub(crate) use nfs::{AUTH_MACHINE, Nfs};

use model::Op;
use std::borrow::Cow;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) op: Op,
    /// Payload in bytes.
    pub(crate) size: u32,
    /// Offset in bytes, or number of the key.
    pub(crate) place: u64,
}

/// What the input begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Undecided until so many bytes are there.
    More(usize),
    /// Bytes that answer nothing.
    Skip(usize),
    /// An answer.
    Answer {
        /// Its bytes.
        used: usize,
        /// Low 32 bits of the number of the request that it answers.
        id: u32,
        /// Where its payload begins, if it has one.
        head: usize,
    },
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// It is done; what was read.
    Done(Cow<'a, [u8]>),
    /// The key is not there.
    Missed,
    /// It failed, and why.
    Failed(String),
}

/// One connection's dialect. An error of any of these ends the connection.
pub(crate) trait Speak: Send {
    /// Appends request `id`. Numbers count up from zero. `data` is what a write carries.
    fn ask(&mut self, out: &mut Vec<u8>, id: u64, ask: Ask, data: &[u8]) -> Result<(), String>;

    /// Looks for the next complete answer at the start of the input.
    fn hear(&mut self, input: &[u8]) -> Result<Heard, String>;

    /// What the answer to `ask`, whose bytes are `raw`, says.
    fn said<'a>(&self, ask: Ask, raw: &'a [u8], head: usize) -> Said<'a>;

    /// Whether the server announced that it answers nothing more on this connection.
    fn is_closing(&self) -> bool {
        false
    }
}

/// Requests that may wait on one connection; further ones wait in the generator.
pub(crate) const DEPTH_MAX: usize = 16 << 10;
