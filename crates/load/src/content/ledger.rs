//! What should be in every block, as far as that is known.
//!
//! A block is known from the end of a write that covered all of it while no other write touched it. While writes are
//! on their way it is unknown, and it stays unknown if they overlapped, since the order in which the server did them is
//! not seen. A read is compared where the block was known from before it was sent until its answer was there. A write
//! that failed may still be done later by a server that lost its client: its blocks count as being written for
//! another two seconds.

use super::Pattern;
use crate::Compared;
use std::collections::HashMap;
use std::ops::Range;

/// How long a write that failed may still come, in nanoseconds.
const SETTLE_NS: u64 = 2_000_000_000;

/// What contents are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Units {
    /// Blocks of so many bytes of a file or device.
    Blocks(u64),
    /// Values that are read and written whole, stored with the contents of write 0 before the clock started.
    Values,
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server said so.
    Stored,
    /// Failed or lost: it may be there, or come yet.
    Unsure,
    /// It never left.
    NotSent,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Writes on their way.
    writers: u32,
    /// More than one of them touched it, or one that covered only a part.
    is_tangled: bool,
    /// The write whose contents it has.
    known: Option<u64>,
    /// Tick of the last beginning or end of a write.
    changed: u64,
    settled_at: u64,
}

/// A piece of a request within one block.
struct Span {
    block: u64,
    /// Of the request's payload.
    bytes: Range<usize>,
    /// From the start of the block.
    from: usize,
    is_whole: bool,
}

/// The contents of one workload's file, device or keys.
#[derive(Debug)]
pub(crate) struct Ledger {
    pattern: Pattern,
    units: Units,
    /// Counts beginnings and ends of writes. A write's number is the tick of its beginning.
    tick: u64,
    blocks: HashMap<u64, Block>,
    pub(crate) compared: Compared,
}

impl Ledger {
    pub(crate) fn new(pattern: Pattern, units: Units) -> Self {
        Self { pattern, units, tick: 0, blocks: HashMap::new(), compared: Compared::default() }
    }

    /// A write of `size` bytes goes out at `now`, with contents that are appended to `out`; its number.
    pub(crate) fn write_begins(&mut self, place: u64, size: u32, now: u64, out: &mut Vec<u8>) -> u64 {
        self.tick += 1;
        for span in spans(self.units, place, size) {
            let block = self.blocks.entry(span.block).or_default();
            block.writers += 1;
            block.is_tangled |= block.writers > 1 || !span.is_whole || now < block.settled_at;
            (block.known, block.changed) = (None, self.tick);
            if span.from == 0 {
                self.pattern.put(out, span.block, self.tick, span.bytes.len());
            } else {
                let mut whole = Vec::new();
                self.pattern.put(&mut whole, span.block, self.tick, span.from + span.bytes.len());
                out.extend_from_slice(&whole[span.from..]);
            }
        }
        self.tick
    }

    /// Write `number` ended at `now`.
    pub(crate) fn write_ends(&mut self, place: u64, size: u32, number: u64, ended: Ended, now: u64) {
        self.tick += 1;
        for span in spans(self.units, place, size) {
            let block = self.blocks.get_mut(&span.block).expect("a write that ends has begun");
            block.writers -= 1;
            block.changed = self.tick;
            block.is_tangled |= ended != Ended::Stored;
            if ended == Ended::Unsure {
                block.settled_at = now + SETTLE_NS;
            }
            if block.writers == 0 {
                block.known = (!block.is_tangled).then_some(number);
                block.is_tangled = false;
            }
        }
    }

    /// A read goes out; what [`Self::read_ends`] is to be told.
    pub(crate) fn read_begins(&self) -> u64 {
        self.tick
    }

    /// A read that began at `since` brought `data`. `name` says whose it is.
    pub(crate) fn read_ends(&mut self, place: u64, data: &[u8], since: u64, name: &str) {
        let size = u32::try_from(data.len()).expect("sizes are checked before");
        for span in spans(self.units, place, size) {
            let found = &data[span.bytes.clone()];
            match self.known(span.block, since) {
                Some(number) if span.from == 0 => {
                    self.compared.bytes.0 += found.len() as u64;
                    if let Some(at) = self.pattern.first_difference(found, span.block, number) {
                        self.mismatch(&span, number, at, found, name);
                    }
                }
                _ => self.compared.unknown.0 += found.len() as u64,
            }
        }
    }

    /// The write whose contents the block had from `since` until now.
    fn known(&self, block: u64, since: u64) -> Option<u64> {
        match self.blocks.get(&block) {
            Some(block) => block.known.filter(|_| block.changed <= since),
            None => (self.units == Units::Values).then_some(0),
        }
    }

    fn mismatch(&mut self, span: &Span, number: u64, at: usize, found: &[u8], name: &str) {
        self.compared.mismatches += 1;
        if self.compared.first.is_some() {
            return;
        }
        let place = match self.units {
            Units::Blocks(size) => format!("offset {}", span.block * size + at as u64),
            Units::Values => format!("byte {at} of value {}", span.block),
        };
        let expected = self.pattern.byte(span.block, number, at);
        // Which write left this, if it was an earlier one.
        let older = (0..number).rev().take(1000);
        let origin = older.map(|number| (number, self.pattern.first_difference(found, span.block, number)));
        let origin = match origin.into_iter().find(|(_, difference)| difference.is_none()) {
            Some((older, _)) => format!("; all of the block is as write {older} left it"),
            None => String::new(),
        };
        self.compared.first = Some(format!(
            "workload {name}, {place}: expected {expected:#04x} of write {number}, found {:#04x}{origin}",
            found[at]
        ));
    }
}

fn spans(units: Units, place: u64, size: u32) -> impl Iterator<Item = Span> {
    let (len, mut at) = (u64::from(size), 0u64);
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let (block, from, room) = match units {
            Units::Blocks(unit) => {
                let (block, from) = ((place + at) / unit, (place + at) % unit);
                (block, from, unit - from)
            }
            Units::Values => (place, 0, len),
        };
        let take = room.min(len - at);
        let index = |value: u64| usize::try_from(value).expect("within one request");
        let bytes = index(at)..index(at + take);
        at += take;
        Some(Span { block, bytes, from: index(from), is_whole: take == room && from == 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use units::Bytes;

    const SIZE: u32 = 1024;

    fn ledger() -> Ledger {
        Ledger::new(Pattern::new(1, 0), Units::Blocks(512))
    }

    fn write(ledger: &mut Ledger, place: u64) -> (u64, Vec<u8>) {
        let mut data = Vec::new();
        (ledger.write_begins(place, SIZE, 0, &mut data), data)
    }

    #[test]
    fn what_was_written_is_compared() {
        let mut ledger = ledger();
        let (number, mut data) = write(&mut ledger, 512);
        ledger.write_ends(512, SIZE, number, Ended::Stored, 0);
        let since = ledger.read_begins();
        ledger.read_ends(512, &data, since, "a");
        assert_eq!((ledger.compared.bytes, ledger.compared.mismatches), (Bytes(1024), 0));
        data[700] ^= 4;
        ledger.read_ends(512, &data, since, "a");
        assert_eq!(ledger.compared.mismatches, 1);
        let first = ledger.compared.first.clone().unwrap();
        assert!(first.contains(&format!("offset {}", 512 + 700)) && first.contains("workload a"), "{first}");
    }

    #[test]
    fn old_contents_are_recognised() {
        let mut ledger = ledger();
        let (first, old) = write(&mut ledger, 0);
        ledger.write_ends(0, SIZE, first, Ended::Stored, 0);
        let (second, _) = write(&mut ledger, 0);
        ledger.write_ends(0, SIZE, second, Ended::Stored, 0);
        let since = ledger.read_begins();
        ledger.read_ends(0, &old, since, "a");
        assert_eq!(ledger.compared.mismatches, 2);
        assert!(ledger.compared.first.unwrap().contains(&format!("as write {first} left it")));
    }

    #[test]
    fn what_may_be_either_is_unknown() {
        let mut ledger = ledger();
        let since = ledger.read_begins();
        let (one, data) = write(&mut ledger, 0);
        let (two, _) = write(&mut ledger, 512);
        ledger.write_ends(0, SIZE, one, Ended::Stored, 0);
        ledger.write_ends(512, SIZE, two, Ended::Stored, 0);
        // Block 0 is known, but not since the read began; block 1 was written by both.
        ledger.read_ends(0, &data, since, "a");
        assert_eq!((ledger.compared.bytes, ledger.compared.unknown), (Bytes(0), Bytes(1024)));
        let since = ledger.read_begins();
        ledger.read_ends(0, &data, since, "a");
        assert_eq!((ledger.compared.bytes, ledger.compared.unknown), (Bytes(512), Bytes(1024 + 512)));
    }

    #[test]
    fn a_failed_write_may_still_come() {
        let mut ledger = ledger();
        let (number, _) = write(&mut ledger, 0);
        ledger.write_ends(0, SIZE, number, Ended::Unsure, 5);
        for (now, known) in [(SETTLE_NS, false), (5 + SETTLE_NS, true)] {
            let mut data = Vec::new();
            let number = ledger.write_begins(0, SIZE, now, &mut data);
            ledger.write_ends(0, SIZE, number, Ended::Stored, now);
            let before = ledger.compared.bytes;
            ledger.read_ends(0, &data, ledger.read_begins(), "a");
            assert_eq!(ledger.compared.bytes > before, known, "{now}");
        }
    }

    proptest! {
        /// Against a server that does requests in any order while they are on their way: what is right is never
        /// called wrong.
        #[test]
        fn right_data_is_never_called_wrong(
            steps in proptest::collection::vec((0u8..4, 0u64..6, 1u32..1200, any::<u8>()), 1..60),
        ) {
            let mut ledger = ledger();
            let mut stored = vec![0u8; 6 * 512 + 2048];
            let mut flying: Vec<(bool, u64, u32, u64, Vec<u8>)> = Vec::new();
            for (step, block, size, which) in steps {
                let place = block * 512;
                match step {
                    0 => {
                        let mut data = Vec::new();
                        let number = ledger.write_begins(place, size, 0, &mut data);
                        flying.push((true, place, size, number, data));
                    }
                    1 => flying.push((false, place, size, ledger.read_begins(), Vec::new())),
                    _ if flying.is_empty() => {}
                    _ => {
                        // The server does it now, and the answer arrives.
                        let (writes, place, size, mark, data) = flying.remove(usize::from(which) % flying.len());
                        let at = usize::try_from(place).unwrap();
                        let range = at..at + size as usize;
                        if writes {
                            stored[range].copy_from_slice(&data);
                            ledger.write_ends(place, size, mark, Ended::Stored, 0);
                        } else {
                            ledger.read_ends(place, &stored[range].to_vec(), mark, "a");
                        }
                    }
                }
            }
            prop_assert_eq!(ledger.compared.mismatches, 0);
        }
    }
}
