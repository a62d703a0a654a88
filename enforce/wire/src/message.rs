//! What a proxy or a load generator needs to know of a message, whatever the protocol.

use units::Bytes;

/// What a parser found at the start of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseStep<T> {
    /// Nothing can be said before the buffer is longer than it is.
    NeedMore {
        /// The length in bytes, that of the present bytes included, from which on another call is worth while.
        at_least: usize,
    },
    /// A message begins, and its head has been read.
    Message {
        /// What the head says.
        message: T,
        /// The bytes that belong to the message.
        extent: Extent,
    },
    /// A further piece begins of the last message in this direction, such as a fragment of an RPC record.
    Continued {
        /// The bytes that belong to the piece.
        extent: Extent,
    },
}

/// The bytes at the start of the buffer that belong to one message or piece of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The length in bytes of what the parser has read, all of which is in the buffer. Where a message carries nothing
    /// but payload behind its head, the payload begins here.
    pub head: usize,
    /// The length of the whole, head included. The end need not be in the buffer yet.
    pub len: Bytes,
    /// Whether the request or reply is complete with these bytes.
    pub last: bool,
}

/// What a request asks for, as far as its costs are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    /// Data from the server, or into its cache: as many bytes as the client asks for, whatever it gets. The number is
    /// zero where only the reply shows it (memcached).
    Read(Bytes),
    /// Data to the server, without headers, or data that the server copies, zeroes, allocates or frees without receiving
    /// them (NBD, NFSv4.2). A compound that reads and writes is a write of the bytes of both.
    Write(Bytes),
    /// Anything else, such as metadata and handshakes.
    Control,
}

/// Where on which object a read or write happens. What continues it begins at `offset` plus its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// A hash of the file handle, or zero for the one export of an NBD connection. Two files may share a hash, so
    /// this is a hint and no identity.
    pub object: u64,
    /// The distance from the start of the object in bytes.
    pub offset: u64,
}

/// Whether a request is answered by a reply of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyExpectation {
    /// The server answers with one reply.
    Always,
    /// The reply depends on the result (memcached's quiet requests), or on what the server makes of the request. One
    /// without a reply of its own is done when a later request is answered.
    Sometimes,
    /// The server does not answer, except perhaps with an error (memcached's `noreply`).
    Never,
}

/// What the head of a request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// The identifier that replies carry in [`ReplyHead::id`]: the xid (RPC), the cookie (NBD), or the position in the
    /// connection (memcached, and options of the NBD handshake).
    pub id: u64,
    /// What the request asks for.
    pub class: RequestClass,
    /// The place that a read or write of a file or volume concerns, where the head shows it.
    pub position: Option<Position>,
    /// Whether the server will answer.
    pub reply: ReplyExpectation,
    /// Whether this is an RPC call with an xid that is already in flight. Such a call may be answered once or twice.
    pub is_retransmission: bool,
    /// Whether this is no request, but the client's RPC reply to a call that the server made on the same connection.
    pub is_callback_reply: bool,
}

impl RequestHead {
    /// A request that neither reads nor writes.
    pub(crate) fn control(id: u64, reply: ReplyExpectation) -> Self {
        let class = RequestClass::Control;
        Self { id, class, position: None, reply, is_retransmission: false, is_callback_reply: false }
    }
}

/// What the head of a reply says, or of a part of a reply that has a head of its own. The reply is complete with the
/// part whose [`Extent::last`] is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHead {
    /// The [`RequestHead::id`] of the request that is answered. memcached answers in order, so that every earlier
    /// request is done as well.
    pub id: u64,
    /// Whether the server says that the request failed. "Not found" of memcached is no failure.
    pub is_error: bool,
    /// Whether this answers a request in flight. The greeting of NBD does not, nor does the second answer to a
    /// retransmitted RPC call, a call from an RPC server to its client, or an error that memcached reports to a
    /// request without replies.
    pub is_solicited: bool,
    /// Whether this answers an [`InjectedBarrier`], of which the client knows nothing.
    pub is_injected: bool,
}

/// A directory tree that an NFS server granted to its client by MOUNT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedMount {
    /// The path that the client asked for.
    pub path: Vec<u8>,
    /// The file handle of the root of the tree.
    pub root: Vec<u8>,
}

/// A request that a proxy adds to those of its client to learn when they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InjectedBarrier {
    /// The identifier that its reply carries in [`ReplyHead::id`]. No request of the client has the same.
    pub id: u64,
    /// What is to be sent to the server.
    pub bytes: &'static [u8],
}
