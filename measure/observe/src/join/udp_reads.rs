//! Reads of datagrams that are not followed by an answer yet, by thread.

use std::collections::{BTreeMap, VecDeque};

/// A read that is not followed by an answer yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatagramRead {
    pub(super) time: u64,
    pub(super) switched_in: u64,
    pub(super) free_since: u64,
}

/// The reads of a port's threads, oldest first. Threads end, and nothing says so: when too much is kept, all is forgotten.
#[derive(Debug, Default)]
pub(super) struct DatagramReads {
    by_thread: BTreeMap<u32, VecDeque<DatagramRead>>,
    /// How many reads these are.
    count: usize,
}

impl DatagramReads {
    /// A thread has read. At most `kept_max` reads and threads are kept.
    pub(super) fn add(&mut self, thread: u32, read: DatagramRead, kept_max: usize) {
        if self.len() >= kept_max {
            *self = Self::default();
        }
        let reads = self.by_thread.entry(thread).or_default();
        // Whoever has slept since has no intention to answer what it read before.
        if reads.back().is_some_and(|last| read.switched_in > last.time) {
            self.count -= reads.len();
            reads.clear();
        }
        reads.push_back(read);
        self.count += 1;
    }

    /// Whether a thread has read what it has not answered.
    pub(super) fn has(&self, thread: u32) -> bool {
        self.by_thread.get(&thread).is_some_and(|reads| !reads.is_empty())
    }

    /// Takes the first read of a thread after an arrival; and whether it was the only one.
    pub(super) fn take(&mut self, thread: u32, arrival: u64) -> (Option<DatagramRead>, bool) {
        let Some(reads) = self.by_thread.get_mut(&thread) else { return (None, false) };
        while reads.front().is_some_and(|read| read.time < arrival) {
            reads.pop_front();
            self.count -= 1;
        }
        let is_only = reads.len() == 1;
        let read = reads.pop_front();
        self.count -= usize::from(read.is_some());
        (read, is_only)
    }

    /// The number of reads, or of threads if there are more of these.
    pub(super) fn len(&self) -> usize {
        self.count.max(self.by_thread.len())
    }
}
