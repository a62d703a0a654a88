//! Where messages of NFS, NBD and memcached begin and end on a connection, and what they ask for: pure functions of
//! the bytes, without sockets or clocks, for a proxy that passes bytes on and for a generator of load.
//!
//! A [`Wire`] follows one connection. Each direction has its own buffer, which begins at the first byte not yet
//! framed. A call looks at the head of the next message only: the [`Extent`] of its answer says how many bytes
//! belong to it, whether or not they have arrived, so that payloads stream through and are never copied or held.
//! Both directions share one value because replies cannot be framed without knowing what was asked: a simple NBD
//! reply does not say how long it is, memcached answers in order, an RPC reply does not name its procedure.
//!
//! ```
//! use tailwright_wire::{Class, Limits, Step, Wire, memcached::Connection};
//!
//! let mut wire = Connection::new(Limits::MEMCACHED);
//! // Five bytes of the value are there, the rest will follow.
//! let Step::Message { message, extent } = wire.request(b"set k 0 0 1000\r\nhello")? else { panic!() };
//! assert_eq!(message.class, Class::Write(units::Bytes(1000)));
//! assert_eq!((extent.head, extent.len, extent.last), (16, units::Bytes(1018), true));
//! // Its reply is split.
//! assert_eq!(wire.reply(b"STO")?, Step::NeedMore { at_least: 4 });
//! let Step::Message { message: reply, .. } = wire.reply(b"STORED\r\n")? else { panic!() };
//! assert!(reply.id == message.id && !reply.error);
//! # Ok::<(), tailwright_wire::Malformed>(())
//! ```
//!
//! A generator feeds what it sends to the same [`Wire`], and reads replies as a proxy does; each protocol has
//! encoders (`rpc::client`, `nbd::client`, `memcached::client`) and decoders for the contents of replies.
//!
//! Input is hostile. Every length has a limit ([`Limits`]), memory per connection is bounded by them, the cost of a
//! call is bounded by the head that it looks at, and what breaks the protocol is a [`Malformed`] that names the
//! field and what was expected; the connection is then lost, since nothing after it can be framed.
//!
//! Not covered: encryption. TLS and RPCSEC_GSS are refused, because traffic that cannot be read cannot be held to
//! limits. What servers do with bytes that pass is theirs to judge: only what framing needs is checked.

mod limits;
mod malformed;
pub mod memcached;
mod message;
pub mod nbd;
mod read;
pub mod rpc;

pub use limits::Limits;
pub use malformed::Malformed;
pub use message::{Answer, Class, Extent, Position, Reply, Request, Step};

/// One connection, watched in both directions.
///
/// After [`Step::NeedMore`] call again with the same bytes and more behind them; after a message or its
/// continuation, call with what follows its [`Extent`]. After an error the connection is to be closed.
pub trait Wire: Send {
    /// What stands next in the stream from client to server.
    ///
    /// # Errors
    /// [`Malformed`] if these bytes can be no message, or exceed a limit.
    fn request(&mut self, buffer: &[u8]) -> Result<Step<Request>, Malformed>;

    /// What stands next in the stream from server to client. Requests must have been seen before their replies.
    ///
    /// # Errors
    /// [`Malformed`] if these bytes can be no message, or exceed a limit, or answer what was not asked.
    fn reply(&mut self, buffer: &[u8]) -> Result<Step<Reply>, Malformed>;

    /// The export or volume that the connection was seen to ask for: an NBD export once the server granted it, the
    /// path of an NFS mount when it was asked for. memcached has none.
    fn name(&self) -> Option<&[u8]>;

    /// Requests that wait for a reply. Beyond [`Limits::outstanding`] a further request is an error, so a proxy
    /// stops reading earlier; but not because of [`Answer::Sometimes`] alone, since nothing may ever answer those.
    fn outstanding(&self) -> usize;
}
