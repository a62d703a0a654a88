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
    /// Limits for RPC. Servers accept 1 MiB of data by default, the longest credentials and handle take 1 KiB, and
    /// NFSv4 compounds are read as far as a head may reach.
    pub const RPC: Self = Self { message: Bytes(4 << 20), head: 4 << 10, fragments: 4096, in_flight: 4096 };
    /// Limits for NBD. Servers that advertise a largest payload advertise 32 MiB, and names have up to 4 KiB.
    pub const NBD: Self = Self { message: Bytes(32 << 20), head: 8 << 10, fragments: 1, in_flight: 4096 };
    /// Limits for memcached. A server can be configured for values of up to 1 GiB, and a line of 64 KiB holds some
    /// 250 of the longest keys.
    pub const MEMCACHED: Self =
        Self { message: Bytes(1 << 30), head: 64 << 10, fragments: 1, in_flight: 16 << 10 };
    /// Limits for HTTP/1. Servers accept heads of 8 to 64 KiB; a body may have a tebibyte and a million chunks.
    pub const HTTP: Self =
        Self { message: Bytes(1 << 40), head: 64 << 10, fragments: 1 << 20, in_flight: 4096 };
    /// Limits for RESP. Strings have at most 512 MiB, commands at most a million words.
    pub const RESP: Self =
        Self { message: Bytes(512 << 20), head: 64 << 10, fragments: 1 << 20, in_flight: 16 << 10 };
}
