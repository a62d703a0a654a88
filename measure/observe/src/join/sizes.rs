//! How many entries the tables of the joiner have, and may have at most: memory is bounded however long it runs, though the
//! ends of connections and threads, reads and answers may never be seen.

use std::collections::{BTreeMap, VecDeque};

/// A number of entries of each table; where each connection or port has a table of its own, of the one with most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Connections. Beyond the limit, the half that had no event for the longest time is forgotten.
    pub connections: usize,
    /// Threads whose last activity is known. Beyond the limit, all are forgotten.
    pub threads: usize,
    /// Of a connection: requests that are read and not answered; answers that are not transmitted. Beyond the limit, these
    /// are counted as unanswered or discarded.
    pub open_requests: usize,
    /// Of a connection: segments that are not read. Beyond the limit, the oldest is forgotten; a read of its bytes counts as
    /// one of an unseen arrival.
    pub segments: usize,
    /// Of a connection: reads, segments and writes of messages that are not complete. Beyond the limit, its messages count
    /// as untold.
    pub incomplete: usize,
    /// Of a connection: writes of an answer. Beyond the limit, further ones are kept as one.
    pub writes: usize,
    /// Of a UDP port: datagrams without an answer; reads, writes and answers of its threads. Beyond the limit, the datagrams
    /// are counted as unanswered, the answers are taken to be complete, and the others are forgotten.
    pub datagrams: usize,
    /// Bytes of memory of the tables of all connections together, without what the allocator adds. Beyond the limit, the
    /// connections that hold most are forgotten, until half of it is left.
    pub bytes: usize,
}

impl TableSizes {
    /// The limits of an observation.
    pub const LIMITS: Self = Self {
        connections: 1 << 16,
        threads: 1 << 16,
        open_requests: 16 << 10,
        segments: 8192,
        incomplete: 4096,
        writes: 1024,
        datagrams: 1 << 16,
        bytes: 256 << 20,
    };

    /// Whether no table has more entries than its limit.
    pub fn are_within(&self, limits: &Self) -> bool {
        self.or_larger(*limits) == *limits
    }

    /// The larger one of the two numbers of each table.
    #[must_use]
    pub fn or_larger(self, other: Self) -> Self {
        Self {
            connections: self.connections.max(other.connections),
            threads: self.threads.max(other.threads),
            open_requests: self.open_requests.max(other.open_requests),
            segments: self.segments.max(other.segments),
            incomplete: self.incomplete.max(other.incomplete),
            writes: self.writes.max(other.writes),
            datagrams: self.datagrams.max(other.datagrams),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// A table that takes memory in proportion to its entries.
pub(super) trait TableMemory {
    /// Its memory in bytes, with the room that is not used; not what its entries point to.
    fn bytes(&self) -> usize;
}

impl<T> TableMemory for Vec<T> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<T> TableMemory for VecDeque<T> {
    fn bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }
}

impl<K, V> TableMemory for BTreeMap<K, V> {
    /// Nodes have room for eleven entries, and are about half full or more where there are several.
    fn bytes(&self) -> usize {
        let room = if self.is_empty() { 0 } else { (2 * self.len()).max(11) };
        room * size_of::<(K, V)>()
    }
}
