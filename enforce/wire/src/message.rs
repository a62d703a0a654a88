//! Messages as a proxy or a load generator sees them, independent of the protocol.

use crate::nbd::Framing;
use units::Bytes;

/// Result of parsing the start of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseStep<T> {
    /// The buffer is too short to parse.
    NeedMore {
        /// Minimum buffer length for another attempt, bytes; the present bytes count.
        at_least: usize,
    },
    /// A message begins, and its head was parsed.
    Message {
        /// Contents of the head.
        message: T,
        /// Bytes that belong to the message.
        extent: Extent,
    },
    /// Another piece of the previous message in this direction begins, such as a fragment of an RPC record.
    Continued {
        /// Bytes that belong to the piece.
        extent: Extent,
    },
}

/// Bytes at the start of the buffer that belong to one message or one piece of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of bytes parsed, all of them in the buffer. If nothing but payload follows the head, the
    /// payload begins here.
    pub head: usize,
    /// Total length including the head. The end may be beyond the buffer.
    pub len: Bytes,
    /// These bytes complete the request or reply.
    pub last: bool,
}

/// Kind of work that a request asks for, as its cost model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    /// Reads from the server's store, or into its cache: the bytes requested, even if fewer are returned.
    /// Zero if only the reply shows the size (memcached).
    Read(Bytes),
    /// Writes to the server, without headers. Includes data that the server copies, zeroes, allocates or
    /// frees without receiving it (NBD, NFSv4.2). A compound that reads and writes is a write of the bytes of
    /// both. In the head of a RESP command, the bytes that the head shows ([`crate::ProtocolParser::work_at_end`]).
    Write(Bytes),
    /// Any other request, such as metadata and handshakes.
    Control,
}

/// Object and offset of a read or write. A sequential successor begins at `offset` plus the request's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Hash of the file handle; zero for the only export of an NBD connection. Hashes of two files may
    /// collide, so this is a hint, not an identity.
    pub object: u64,
    /// Offset from the start of the object, bytes.
    pub offset: u64,
}

/// Certainty that a request gets a reply of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyExpectation {
    /// The server sends exactly one reply.
    Always,
    /// A reply depends on the result (memcached's quiet requests) or on the server's interpretation of the
    /// request. A request without a reply is complete when a later request is answered.
    Sometimes,
    /// The server sends no reply, except perhaps an error (memcached's `noreply`).
    Never,
}

/// Contents of a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// Identifier that replies carry in [`ReplyHead::id`]: the xid (RPC), the cookie (NBD), or the ordinal in
    /// the connection (memcached, and options of the NBD handshake).
    pub id: u64,
    pub class: RequestClass,
    /// Object and offset of a read or write of a file or volume, if the head shows them.
    pub position: Option<Position>,
    pub reply: ReplyExpectation,
    /// Number of keys that the request looks up, at least 1. For a list of keys that goes on behind the head, those in
    /// the head.
    pub keys: u32,
    /// An RPC call whose xid is already in flight. The server may answer such a call once or twice.
    pub is_retransmission: bool,
    /// Not a request but the client's RPC reply to a call that the server made on the same connection.
    pub is_callback_reply: bool,
    /// Neither its effect nor its single reply depends on the connection, and the server keeps the connection
    /// open: it may go over a connection that several clients share ([`SharedConnections`](crate::SharedConnections)).
    pub is_independent: bool,
}

impl RequestHead {
    /// Returns the head of a request that neither reads nor writes.
    pub(crate) fn control(id: u64, reply: ReplyExpectation) -> Self {
        let class = RequestClass::Control;
        Self {
            id,
            class,
            position: None,
            reply,
            keys: 1,
            is_retransmission: false,
            is_callback_reply: false,
            is_independent: false,
        }
    }
}

/// Contents of the head of a reply, or of a part of a reply with its own head. The part whose
/// [`Extent::last`] is set completes the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHead {
    /// [`RequestHead::id`] of the answered request. memcached answers in order, so a reply also completes
    /// every earlier request.
    pub id: u64,
    /// The server reports a failure. memcached's "not found" is not one.
    pub is_error: bool,
    /// The reply answers a request in flight. Unsolicited are the NBD greeting, the second answer to a
    /// retransmitted RPC call, an RPC server's call to its client, and memcached's error for a request
    /// without replies.
    pub is_solicited: bool,
    /// The reply answers an [`InjectedBarrier`] or a [`RequestRewrite`] and must not reach the client.
    pub is_injected: bool,
}

/// State of a connection between two messages, with which another parser continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionMemory {
    /// memcached: the connection is binary; unknown before its first byte.
    pub is_binary: Option<bool>,
    /// NBD: form of messages in the transmission phase.
    pub framing: Framing,
    /// NBD: export that the server granted.
    pub export: Option<Vec<u8>>,
}

/// Directory tree that an NFS server granted to its client through MOUNT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedMount {
    /// Path that the client asked for.
    pub path: Vec<u8>,
    /// File handle of the root of the tree.
    pub root: Vec<u8>,
}

/// Request that a proxy appends to its client's requests to learn when they are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InjectedBarrier {
    /// Identifier that its reply carries in [`ReplyHead::id`]. No request of the client has the same one.
    pub id: u64,
    /// Bytes to send to the server.
    pub bytes: &'static [u8],
}

/// Bytes that a proxy sends to the server in place of bytes of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRewrite {
    /// Number of bytes of the request, from its first one, that are not sent; all of them if there are fewer.
    pub skip: u64,
    /// Bytes to send in front of the rest.
    pub bytes: Vec<u8>,
}
