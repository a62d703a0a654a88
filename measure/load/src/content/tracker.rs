//! Expected contents of every block, as far as they are known.
//!
//! The contents of a block are known from the end of a write that covered all of it while no other write
//! touched it. They are unknown while writes are in flight, and stay unknown if writes overlapped,
//! because the client cannot observe the order in which the server executed them. A read is compared
//! where the contents were known throughout, from its sending until its reply. A server may still execute
//! a write that failed, even after it lost its client: the blocks of such a write count as being written
//! for another two seconds.

use super::pattern::ContentPattern;
use crate::report::DataComparison;
use crate::validate::checked_size;
use std::collections::HashMap;
use std::ops::Range;

/// Time for which a failed write may still be executed, in nanoseconds.
const LATE_EXECUTION_NS: u64 = 2_000_000_000;
/// Maximum number of earlier writes that are considered as the origin of unexpected contents.
const OLDER_WRITES_MAX: usize = 1000;

/// Division of the contents of a server into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSize {
    /// A file or device, in blocks of this many bytes.
    Fixed(u64),
    /// Values that are read and written whole, each one block. Before the clock starts they are stored with the contents
    /// of write 0.
    WholeValue,
}

/// Outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// The server confirmed it.
    Stored,
    /// It failed or its reply was lost: it may have been executed, or still be.
    Uncertain,
    /// It never reached the server.
    NotSent,
}

/// Knowledge about one block.
#[derive(Debug, Clone, Copy, Default)]
struct BlockState {
    /// The number of writes in flight.
    writers: u32,
    /// True if the contents after the writes in flight are unpredictable: more than one touched the
    /// block, one covered only a part of it, or one failed.
    is_ambiguous: bool,
    /// The number of the write whose contents the block has, if known.
    last_write: Option<u64>,
    /// The version at which a write of this block last began or ended.
    changed_at: u64,
    /// A failed write may still be executed until this time, in nanoseconds since the start of the run.
    uncertain_until: u64,
}

/// The part of a request within one block.
struct BlockSpan {
    block: u64,
    /// Range of bytes in the request's payload.
    payload: Range<usize>,
    /// Start of the span in the block.
    offset: usize,
    /// True if the span is the whole block.
    is_whole: bool,
}

/// The expected contents of one workload's file, device or keys.
#[derive(Debug)]
pub(crate) struct ContentTracker {
    pattern: ContentPattern,
    block_size: BlockSize,
    /// Counts the beginnings and ends of writes. The number of a write is the version at its beginning.
    version: u64,
    blocks: HashMap<u64, BlockState>,
    comparison: DataComparison,
}

impl ContentTracker {
    pub(crate) fn new(pattern: ContentPattern, block_size: BlockSize) -> Self {
        let comparison = DataComparison::default();
        Self { pattern, block_size, version: 0, blocks: HashMap::new(), comparison }
    }

    /// Begins a write of `size` bytes at `now`, appends its contents to `out`, and returns its number.
    pub(crate) fn begin_write(&mut self, address: u64, size: u32, now: u64, out: &mut Vec<u8>) -> u64 {
        self.version += 1;
        for span in spans(self.block_size, address, size) {
            let block = self.blocks.entry(span.block).or_default();
            block.writers += 1;
            block.is_ambiguous |= block.writers > 1 || !span.is_whole || now < block.uncertain_until;
            (block.last_write, block.changed_at) = (None, self.version);
            if span.offset == 0 {
                self.pattern.append(out, span.block, self.version, span.payload.len());
            } else {
                // The pattern can only be written from the start of a block.
                let mut from_start = Vec::new();
                let end = span.offset + span.payload.len();
                self.pattern.append(&mut from_start, span.block, self.version, end);
                out.extend_from_slice(&from_start[span.offset..]);
            }
        }
        self.version
    }

    /// Ends write `number` at `now`.
    pub(crate) fn end_write(&mut self, address: u64, size: u32, number: u64, end: WriteEnd, now: u64) {
        self.version += 1;
        for span in spans(self.block_size, address, size) {
            let block = self.blocks.get_mut(&span.block).expect("a write that ends has begun");
            block.writers -= 1;
            block.changed_at = self.version;
            block.is_ambiguous |= end != WriteEnd::Stored;
            if end == WriteEnd::Uncertain {
                block.uncertain_until = now + LATE_EXECUTION_NS;
            }
            if block.writers == 0 {
                block.last_write = (!block.is_ambiguous).then_some(number);
                block.is_ambiguous = false;
            }
        }
    }

    /// The current version, which a read that is sent now passes to [`Self::end_read`].
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Compares the data of a read that was sent at version `since`. `workload` is named in the message of a mismatch.
    pub(crate) fn end_read(&mut self, address: u64, data: &[u8], since: u64, workload: &str) {
        for span in spans(self.block_size, address, checked_size(data.len() as u64)) {
            let found = &data[span.payload.clone()];
            match self.unchanged_since(span.block, since) {
                // A span that begins inside of a block is not compared: the pattern is checked from the start.
                Some(number) if span.offset == 0 => {
                    self.comparison.bytes.0 += found.len() as u64;
                    if let Some(position) = self.pattern.first_difference(found, span.block, number) {
                        self.record_mismatch(&span, number, position, found, workload);
                    }
                }
                _ => self.comparison.unknown.0 += found.len() as u64,
            }
        }
    }

    /// Returns the counters of all comparisons.
    pub(crate) fn into_comparison(self) -> DataComparison {
        self.comparison
    }

    /// The number of the write whose contents the block had from version `since` until now.
    fn unchanged_since(&self, block: u64, since: u64) -> Option<u64> {
        match self.blocks.get(&block) {
            Some(block) => block.last_write.filter(|_| block.changed_at <= since),
            None => (self.block_size == BlockSize::WholeValue).then_some(0),
        }
    }

    /// Counts a mismatch and describes it if it is the first.
    fn record_mismatch(
        &mut self,
        span: &BlockSpan,
        number: u64,
        position: usize,
        found: &[u8],
        workload: &str,
    ) {
        self.comparison.mismatches += 1;
        if self.comparison.first.is_some() {
            return;
        }
        let place = match self.block_size {
            BlockSize::Fixed(size) => format!("offset {}", span.block * size + position as u64),
            BlockSize::WholeValue => format!("byte {position} of value {}", span.block),
        };
        let expected = self.pattern.byte(span.block, number, position);
        let origin = match self.older_write(span.block, number, found) {
            Some(older) => format!("; all of the block is as write {older} left it"),
            None => String::new(),
        };
        self.comparison.first = Some(format!(
            "workload {workload}, {place}: expected {expected:#04x} of write {number}, found {:#04x}{origin}",
            found[position]
        ));
    }

    /// The latest write before `number` that left these contents in the block, among the last few.
    fn older_write(&self, block: u64, number: u64, found: &[u8]) -> Option<u64> {
        let mut older = (0..number).rev().take(OLDER_WRITES_MAX);
        older.find(|older| self.pattern.first_difference(found, block, *older).is_none())
    }
}

/// Divides a request into its parts within blocks.
fn spans(block_size: BlockSize, address: u64, size: u32) -> impl Iterator<Item = BlockSpan> {
    let len = u64::from(size);
    let mut position = 0u64;
    std::iter::from_fn(move || {
        if position >= len {
            return None;
        }
        let (block, offset, room) = match block_size {
            BlockSize::Fixed(block_len) => {
                let block = (address + position) / block_len;
                let offset = (address + position) % block_len;
                (block, offset, block_len - offset)
            }
            BlockSize::WholeValue => (address, 0, len),
        };
        let span_len = room.min(len - position);
        let payload = request_index(position)..request_index(position + span_len);
        position += span_len;
        let is_whole = span_len == room && offset == 0;
        Some(BlockSpan { block, payload, offset: request_index(offset), is_whole })
    })
}

/// A position within a request as an index.
fn request_index(position: u64) -> usize {
    usize::try_from(position).expect("a request fits in memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Bytes;

    const SIZE: u32 = 1024;

    fn tracker() -> ContentTracker {
        ContentTracker::new(ContentPattern::new(1, 0), BlockSize::Fixed(512))
    }

    fn write(tracker: &mut ContentTracker, address: u64) -> (u64, Vec<u8>) {
        let mut data = Vec::new();
        (tracker.begin_write(address, SIZE, 0, &mut data), data)
    }

    #[test]
    fn what_was_written_is_compared() {
        let mut tracker = tracker();
        let (number, mut data) = write(&mut tracker, 512);
        tracker.end_write(512, SIZE, number, WriteEnd::Stored, 0);
        let since = tracker.version();
        tracker.end_read(512, &data, since, "a");
        assert_eq!((tracker.comparison.bytes, tracker.comparison.mismatches), (Bytes(1024), 0));
        data[700] ^= 4;
        tracker.end_read(512, &data, since, "a");
        assert_eq!(tracker.comparison.mismatches, 1);
        let first = tracker.comparison.first.clone().unwrap();
        assert!(first.contains(&format!("offset {}", 512 + 700)) && first.contains("workload a"), "{first}");
    }

    #[test]
    fn old_contents_are_recognised() {
        let mut tracker = tracker();
        let (first, old) = write(&mut tracker, 0);
        tracker.end_write(0, SIZE, first, WriteEnd::Stored, 0);
        let (second, _) = write(&mut tracker, 0);
        tracker.end_write(0, SIZE, second, WriteEnd::Stored, 0);
        let since = tracker.version();
        tracker.end_read(0, &old, since, "a");
        assert_eq!(tracker.comparison.mismatches, 2);
        assert!(tracker.comparison.first.unwrap().contains(&format!("as write {first} left it")));
    }

    #[test]
    fn what_may_be_either_is_unknown() {
        let mut tracker = tracker();
        let since = tracker.version();
        let (one, data) = write(&mut tracker, 0);
        let (two, _) = write(&mut tracker, 512);
        tracker.end_write(0, SIZE, one, WriteEnd::Stored, 0);
        tracker.end_write(512, SIZE, two, WriteEnd::Stored, 0);
        // Block 0 is known, but not since the read began; block 1 was written by both.
        tracker.end_read(0, &data, since, "a");
        assert_eq!((tracker.comparison.bytes, tracker.comparison.unknown), (Bytes(0), Bytes(1024)));
        let since = tracker.version();
        tracker.end_read(0, &data, since, "a");
        assert_eq!((tracker.comparison.bytes, tracker.comparison.unknown), (Bytes(512), Bytes(1024 + 512)));
    }

    #[test]
    fn a_failed_write_may_still_be_executed() {
        let mut tracker = tracker();
        let (number, _) = write(&mut tracker, 0);
        tracker.end_write(0, SIZE, number, WriteEnd::Uncertain, 5);
        for (now, known) in [(LATE_EXECUTION_NS, false), (5 + LATE_EXECUTION_NS, true)] {
            let mut data = Vec::new();
            let number = tracker.begin_write(0, SIZE, now, &mut data);
            tracker.end_write(0, SIZE, number, WriteEnd::Stored, now);
            let before = tracker.comparison.bytes;
            tracker.end_read(0, &data, tracker.version(), "a");
            assert_eq!(tracker.comparison.bytes > before, known, "{now}");
        }
    }

    /// A request in flight.
    struct InFlight {
        is_write: bool,
        address: u64,
        size: u32,
        /// The number of a write, or the version at which a read was sent.
        version: u64,
        /// The data to be written, or that was read.
        data: Vec<u8>,
        is_executed: bool,
    }

    impl InFlight {
        /// Lets the server execute the request, unless it has already done so.
        fn execute(&mut self, stored: &mut [u8]) {
            if std::mem::replace(&mut self.is_executed, true) {
                return;
            }
            let start = usize::try_from(self.address).unwrap();
            let range = start..start + self.size as usize;
            if self.is_write {
                stored[range].copy_from_slice(&self.data);
            } else {
                self.data = stored[range].to_vec();
            }
        }
    }

    proptest! {
        /// A server may execute requests in any order, and at any time before it answers: correct data is never
        /// reported as a mismatch.
        #[test]
        fn correct_data_is_never_a_mismatch(
            steps in proptest::collection::vec((0u8..5, 0u64..4, 1u32..1200, any::<u8>()), 1..60),
        ) {
            let mut tracker = tracker();
            let mut stored = vec![0u8; 4 * 512 + 2048];
            let mut in_flight: Vec<InFlight> = Vec::new();
            for (step, block, size, which) in steps {
                let address = block * 512;
                // Whole blocks as often as not.
                let size = if which % 2 == 0 { SIZE } else { size };
                let chosen = (!in_flight.is_empty()).then(|| usize::from(which) % in_flight.len().max(1));
                match (step, chosen) {
                    (0, _) => {
                        let mut data = Vec::new();
                        let version = tracker.begin_write(address, size, 0, &mut data);
                        let is_write = true;
                        let is_executed = false;
                        in_flight.push(InFlight { is_write, address, size, version, data, is_executed });
                    }
                    (1, _) => {
                        let version = tracker.version();
                        let data = Vec::new();
                        let is_write = false;
                        let is_executed = false;
                        in_flight.push(InFlight { is_write, address, size, version, data, is_executed });
                    }
                    (_, None) => {}
                    (2, Some(chosen)) => in_flight[chosen].execute(&mut stored),
                    (_, Some(chosen)) => {
                        let mut request = in_flight.remove(chosen);
                        request.execute(&mut stored);
                        let InFlight { address, size, version, .. } = request;
                        if request.is_write {
                            tracker.end_write(address, size, version, WriteEnd::Stored, 0);
                        } else {
                            tracker.end_read(address, &request.data, version, "a");
                        }
                    }
                }
            }
            prop_assert_eq!(tracker.comparison.mismatches, 0);
        }
    }
}
