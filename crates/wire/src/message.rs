//! What a proxy needs to know of any message, whatever the protocol.

use units::Bytes;

/// What the parser found at the start of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<T> {
    /// Undecided until the buffer holds at least so many bytes (more than it does), with the present ones first.
    NeedMore {
        /// Length of the buffer from which on another call is worth while, in bytes.
        at_least: usize,
    },
    /// A message begins, and its head says what it is.
    Message {
        /// What it is.
        message: T,
        /// Which bytes belong to it.
        extent: Extent,
    },
    /// A further piece of the message that began last in this direction (a fragment of an RPC record).
    Continued {
        /// Which bytes belong to it.
        extent: Extent,
    },
}

/// A run of bytes from the start of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Bytes that the parser has looked at, all of them in the buffer. Where a message carries nothing but payload
    /// behind its head, the payload begins here.
    pub head: usize,
    /// All bytes, head included. They need not be in the buffer yet.
    pub len: Bytes,
    /// The request or reply is complete with these bytes.
    pub last: bool,
}

/// What a request asks for, as far as its costs are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Data from the server, or into its cache: as many bytes as the client asks for, whatever it gets. Zero where
    /// only the reply tells how many (memcached).
    Read(Bytes),
    /// Data to the server, or zeroed by it without passing the wire (NBD). Without headers.
    Write(Bytes),
    /// Anything else: metadata, handshake, control.
    Control,
}

/// Where on which object a read or write happens: what continues it begins at `offset` plus its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Hash of the file handle; zero for the one export of an NBD connection. Not collision-proof: a hint.
    pub object: u64,
    /// Bytes from the start of the object.
    pub offset: u64,
}

/// Whether a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// By one reply.
    Always,
    /// Depending on the result (memcached's quiet requests). Without a reply of its own it is done when a later
    /// request is answered.
    Sometimes,
    /// Never.
    Never,
}

/// A request as its head shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What replies carry in [`Reply::id`]: the xid (RPC), the cookie (NBD), or the position in the connection
    /// (memcached, and options of the NBD handshake).
    pub id: u64,
    /// What it asks for.
    pub class: Class,
    /// Reads and writes of files and volumes.
    pub position: Option<Position>,
    /// Whether a reply is to be expected.
    pub answer: Answer,
    /// An RPC call with an xid that is already outstanding: a retransmission. It may be answered once or twice.
    pub repeated: bool,
}

/// A reply, or a part of one that has a head of its own, as the head shows it. Complete at [`Extent::last`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The [`Request::id`] that it answers. memcached answers in order: every earlier request is done as well.
    pub id: u64,
    /// The server says that the request failed. "Not found" of memcached is no failure.
    pub error: bool,
    /// False for what answers no outstanding request: the greeting of NBD, the second answer to a retransmitted
    /// RPC call, a call from an RPC server to its client, an error that memcached reports to a silent request.
    pub asked: bool,
}
