//! Work of a round of the engine, and of what it does, in bytes moved or their equivalent.

/// Work of a round, about 0.15 ms: room for two replies of 64 KiB, so that polling for events costs large replies
/// little.
pub(super) const ROUND_WORK: usize = 192 << 10;
/// Work of an event: its system calls take as long as copying this many bytes.
pub(super) const EVENT_WORK: usize = 4 << 10;
/// Work of accepting a client and beginning a connection to the server.
pub(super) const CONNECTING_WORK: usize = 64 << 10;
/// Work of closing a connection.
pub(super) const CLOSING_WORK: usize = 16 << 10;

/// Order of an event in a round: its level, and the latest round that handled an event of its connection.
pub(super) type EventRank = (u32, u64);
