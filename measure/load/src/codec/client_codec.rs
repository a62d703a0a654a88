//! The interface that every protocol implements.
//!
//! Finding a reply and interpreting it are two calls, because the engine has to look up which request the reply answers
//! in between: a reply to a read does not say how much was asked for.

use model::Op;
use std::borrow::Cow;

/// Maximum number of requests in flight on one connection by any protocol.
pub(crate) const IN_FLIGHT_MAX: usize = 16 << 10;

/// A read or write as protocols encode it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IoRequest {
    pub(crate) op: Op,
    /// The payload in bytes.
    pub(crate) size: u32,
    /// An offset in bytes, or the number of a key.
    pub(crate) address: u64,
}

/// State of the start of the received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Undecided until the input has at least this length.
    NeedMore(usize),
    /// This many bytes belong to no request and are to be dropped.
    Skip(usize),
    /// The input begins with a complete reply.
    Reply {
        /// Its length in bytes.
        len: usize,
        /// The low 32 bits of the number of the request that it answers.
        id: u32,
        /// Position of its payload, if it has one.
        payload_start: usize,
    },
}

/// Result of a request, according to its reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplyStatus<'a> {
    /// The request succeeded. The bytes are the data of a read.
    Done(Cow<'a, [u8]>),
    /// The key does not exist.
    KeyMissing,
    /// The request failed, with a message that says why.
    Failed(String),
}

/// The client's side of a protocol on one connection. An error of any method ends the connection.
pub(crate) trait ClientCodec: Send {
    /// Appends a request to `out`. The `id`s of a connection count up from zero. `payload` is the data of
    /// a write.
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String>;

    /// True if replies do not stand in what is received as [`Self::decode`] finds them, so that it goes
    /// through [`Self::accept`].
    fn converts(&self) -> bool {
        false
    }

    /// Takes a datagram, or the next bytes of a stream. Appends to `input` the replies that it completes,
    /// as [`Self::decode`] finds them, and to `out` bytes that the protocol sends without a request.
    /// Replies that are complete before an error are still appended.
    fn accept(&mut self, received: &[u8], input: &mut Vec<u8>, _out: &mut Vec<u8>) -> Result<(), String> {
        input.extend_from_slice(received);
        Ok(())
    }

    /// Maximum number of requests in flight at this moment; further requests wait in the generator.
    fn in_flight_max(&self) -> usize {
        IN_FLIGHT_MAX
    }

    /// Looks for the next complete reply at the start of the input.
    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String>;

    /// Interprets the bytes of the reply to `request`, as [`Self::decode`] found them.
    fn interpret<'a>(&self, request: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a>;

    /// False after the server has announced that it takes no further requests on this connection, while it
    /// still answers earlier ones.
    fn takes_requests(&self) -> bool {
        true
    }

    /// True after the server has announced that it will send no further replies on this connection.
    fn is_closing(&self) -> bool {
        false
    }
}
