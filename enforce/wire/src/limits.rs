//! How much a connection may ask for before it is closed.

use units::Bytes;

/// Bounds per connection. They bound the memory that a [`crate::ProtocolParser`] holds and makes its caller hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParserLimits {
    /// The longest message: an RPC record with all its fragments, the data of one NBD request or chunk, or a memcached
    /// value.
    pub message: Bytes,
    /// The most bytes of a message that must be in the buffer before it is known what it is: the RPC header with
    /// credentials, an NBD option's name, or a line of memcached. No [`crate::ParseStep::NeedMore`] asks for more.
    pub head: usize,
    /// The most fragments of one RPC record, empty ones included.
    pub fragments: u32,
    /// The most requests that wait for replies, and calls of an RPC server that wait for those of its client. Each costs
    /// at most 64 bytes of memory. Beside them a parser holds at most 16 paths of MOUNT calls of 1 KiB, or 16 names of NBD
    /// exports of 4 KiB until one is granted. It gives memory back when nothing waits: then it has less than 1 KiB and the
    /// name of its export.
    pub in_flight: usize,
}

impl ParserLimits {
    /// Limits for RPC. nfs-ganesha grants reads and writes of up to 64 MiB, Linux of 1 MiB. The longest credentials and
    /// handle take 1 KiB, and NFSv4 compounds are read as far as a head may reach.
    pub const RPC: Self = Self { message: Bytes(1 << 30), head: 4 << 10, fragments: 4096, in_flight: 4096 };
    /// Limits for NBD. A length has 32 bits, and the server refuses what is too large for it. Names have up to 4 KiB.
    pub const NBD: Self =
        Self { message: Bytes(u32::MAX as u64), head: 8 << 10, fragments: 1, in_flight: 4096 };
    /// Limits for memcached. A length has 31 bits in text and 32 in binary messages, and the server refuses what is too
    /// large for it. A line of 64 KiB holds some 250 of the longest keys; longer lists are read in parts.
    pub const MEMCACHED: Self =
        Self { message: Bytes(u32::MAX as u64), head: 64 << 10, fragments: 1, in_flight: 16 << 10 };
    /// Limits for HTTP/1. Servers accept heads of 8 to 64 KiB; a body may have a tebibyte and a million chunks.
    pub const HTTP: Self =
        Self { message: Bytes(1 << 40), head: 64 << 10, fragments: 1 << 20, in_flight: 4096 };
    /// Limits for RESP. Strings have at most 512 MiB, commands at most a million words.
    pub const RESP: Self =
        Self { message: Bytes(512 << 20), head: 64 << 10, fragments: 1 << 20, in_flight: 16 << 10 };
}
