//! Where messages of NFS, NBD, memcached, HTTP/1 and RESP begin and end on a connection, and what they ask for: pure functions of
//! the bytes, without sockets or clocks, for a proxy that forwards bytes and for a load generator.
//!
//! A [`ProtocolParser`] follows one connection. Each direction has its own buffer, which begins at the first byte that
//! belongs to no message yet. A call reads the head of the next message only: the [`Extent`] in its answer says how
//! many bytes belong to the message, whether or not they have arrived, so that payloads stream through and are never
//! copied or held. Both directions share one parser because replies cannot be delimited without knowing the requests:
//! a simple NBD reply does not say how long it is, memcached answers in order, and an RPC reply does not name its
//! procedure.
//!
//! ```
//! use wire::{ParseStep, ParserLimits, ProtocolParser, RequestClass, memcached::MemcachedParser};
//!
//! let mut parser = MemcachedParser::new(ParserLimits::MEMCACHED);
//! // Five bytes of the value are here; the rest will follow.
//! let request = parser.next_request(b"set k 0 0 1000\r\nhello")?;
//! let ParseStep::Message { message, extent } = request else { panic!() };
//! assert_eq!(message.class, RequestClass::Write(units::Bytes(1000)));
//! assert_eq!((extent.head, extent.len, extent.last), (16, units::Bytes(1018), true));
//! // Its reply arrives in two pieces.
//! assert_eq!(parser.next_reply(b"STO")?, ParseStep::NeedMore { at_least: 4 });
//! let ParseStep::Message { message: reply, .. } = parser.next_reply(b"STORED\r\n")? else { panic!() };
//! assert!(reply.id == message.id && !reply.is_error);
//! # Ok::<(), wire::ProtocolError>(())
//! ```
//!
//! [`PROTOCOLS`] describes each protocol: a new one is a parser and a row there.
//!
//! A load generator passes what it sends to a parser of its own, and reads replies as a proxy does; each protocol has
//! encoders (`rpc::client`, `nbd::client`, `memcached::client`) and decoders for the contents of replies.
//!
//! Input is hostile. Every length has a limit ([`ParserLimits`]), memory per connection is bounded by these limits, the
//! cost of a call is bounded by the head that it reads, and what breaks the protocol is a [`ProtocolError`] that names
//! the field and what was expected. After such an error the connection has to be closed, since nothing behind it can be
//! delimited.
//!
//! Encryption is not covered: TLS and RPCSEC_GSS are refused, because traffic that cannot be read cannot be held to
//! limits. Nor are messages validated beyond what delimiting them takes; that is the server's task.

mod error;
mod fields;
mod hash;
pub mod http1;
mod limits;
pub mod memcached;
mod memory;
mod message;
pub mod nbd;
mod protocol;
pub mod resp;
pub mod rpc;
mod sharing;

pub use error::ProtocolError;
pub use limits::ParserLimits;
pub use message::{
    ConnectionMemory, Extent, GrantedMount, InjectedBarrier, ParseStep, Position, ReplyExpectation,
    ReplyHead, RequestClass, RequestHead, RequestRewrite,
};
pub use protocol::{ConnectionAge, ExportSource, PROTOCOLS, Protocol, ProtocolRow};
pub use sharing::SharedConnections;

/// Follows one connection in both directions.
///
/// After [`ParseStep::NeedMore`], call again with the same bytes and more behind them. After a message or its
/// continuation, call with what follows its [`Extent`]. After an error the connection is to be closed.
pub trait ProtocolParser: Send + std::fmt::Debug {
    /// Reads the next message, or piece of one, in the stream from client to server.
    ///
    /// # Errors
    /// [`ProtocolError`] if these bytes can be no message, or exceed a limit.
    fn next_request(&mut self, buffer: &[u8]) -> Result<ParseStep<RequestHead>, ProtocolError>;

    /// Reads the next message, or piece of one, in the stream from server to client. Each request must have been read
    /// before its reply.
    ///
    /// # Errors
    /// [`ProtocolError`] if these bytes can be no message, exceed a limit, or answer no request.
    fn next_reply(&mut self, buffer: &[u8]) -> Result<ParseStep<ReplyHead>, ProtocolError>;

    /// The NBD export of the connection, once the server granted it; the default export has an empty name. Other
    /// protocols have none.
    fn export_name(&self) -> Option<&[u8]> {
        None
    }

    /// The file handle that the latest request of NFS is about: that in front of the arguments of NFSv2, NFSv3 and NFSACL,
    /// or in a compound that of the data, else of the last PUTFH. Empty where a compound concerns data of several files.
    fn file_handle(&self) -> Option<&[u8]> {
        None
    }

    /// What the latest reply granted, if it was a successful one to a MOUNT call.
    fn take_mount(&mut self) -> Option<GrantedMount> {
        None
    }

    /// Adds a request that the server always answers, in order and unmistakably, to those in flight. A proxy calls this
    /// directly after a request head whose [`RequestHead::reply`] is not [`ReplyExpectation::Always`], sends the bytes
    /// behind that request, and swallows the reply ([`ReplyHead::is_injected`]): it says that everything before it is
    /// done. From then on that request is in flight as well, so that an error which is reported to it is no other's.
    ///
    /// None where nothing would answer: protocols without such requests, and requests that end the connection.
    fn inject_barrier(&mut self) -> Option<InjectedBarrier> {
        None
    }

    /// Prepares the parser for a proxy between client and server, which calls [`Self::take_rewrite`] behind every request
    /// and [`Self::take_own_reply`] behind every reply. Requests that the server must not see are then answered in its
    /// place, and a request of very many keys is read as several. An observer does not call it.
    fn mediate(&mut self) {}

    /// The bytes to send in place of the first bytes of the latest request, if they differ.
    fn take_rewrite(&mut self) -> Option<RequestRewrite> {
        None
    }

    /// The bytes to send to the client in place of the latest reply, which is [`ReplyHead::is_injected`].
    fn take_own_reply(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// The class and number of keys of the latest request, which was read to its end, where they differ from those in its
    /// head (RESP): the parts behind the head say how much is written. `None` if the head says all.
    fn work_at_end(&self) -> Option<(RequestClass, u32)> {
        None
    }

    /// Returns true if the server leaves requests behind the latest one unread until that is answered.
    fn is_blocked(&self) -> bool {
        false
    }

    /// The bytes that tell a client why its connection ends after this error in its requests; empty if the protocol has
    /// none.
    fn farewell(&self, error: &ProtocolError) -> Vec<u8> {
        let _ = error;
        Vec::new()
    }

    /// Returns what another parser has to know to continue with the next request, once the replies to all requests are
    /// read. Requests that the server has not seen may be read again by the other one. `None` where this is not
    /// possible: in a handshake, within a list of keys that is read in parts, or while the server awaits a reply.
    fn memory(&self) -> Option<ConnectionMemory> {
        None
    }

    /// Continues a connection that another parser has read so far; called before the first byte.
    fn resume(&mut self, memory: &ConnectionMemory) {
        let _ = memory;
    }

    /// The number of requests that wait for a reply. A request beyond [`ParserLimits::in_flight`] is an error, so a
    /// proxy stops reading earlier. It must not do so because of requests with [`ReplyExpectation::Sometimes`] alone,
    /// since it may be that nothing ever answers those.
    fn in_flight(&self) -> usize;
}
