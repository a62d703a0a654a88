//! How much a connection may ask for before it is cut off.

use units::Bytes;

/// Bounds per connection. Memory that a [`crate::Wire`] holds, and makes its caller hold, follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest message: an RPC record with all its fragments, the data of one NBD request or chunk, a memcached value.
    pub message: Bytes,
    /// Most bytes of a message that must be in the buffer before it is decided what it is: the RPC header with
    /// credentials, an NBD option's name, a line of memcached. No [`crate::Step::NeedMore`] asks for more.
    pub head: usize,
    /// Most fragments of one RPC record, empty ones included.
    pub fragments: u32,
    /// Most requests that wait for replies. Each costs at most 64 bytes.
    pub outstanding: usize,
}

impl Limits {
    /// 4 MiB records (servers take 1 MiB of data at most by default), 4 KiB heads (the longest credentials and
    /// handle take 1 KiB; compounds are read as far as this), 4096 fragments, 4096 outstanding.
    pub const RPC: Self = Self { message: Bytes(4 << 20), head: 4 << 10, fragments: 4096, outstanding: 4096 };
    /// 32 MiB payloads, as servers advertise when they advertise something; names of 4 KiB with room to spare.
    pub const NBD: Self = Self { message: Bytes(32 << 20), head: 8 << 10, fragments: 1, outstanding: 4096 };
    /// 1 GiB values, the most that a server can be configured for, and lines of 64 KiB: some 250 of the longest keys.
    pub const MEMCACHED: Self =
        Self { message: Bytes(1 << 30), head: 64 << 10, fragments: 1, outstanding: 16 << 10 };
}
