//! The bytes of an export: in memory, and only those blocks that were ever written.

use std::collections::HashMap;

const BLOCK: u64 = 64 << 10;

/// As many bytes as it is said to have, zero until written. Ranges are checked by whoever calls.
#[derive(Debug, Default)]
pub(super) struct Store {
    blocks: HashMap<u64, Box<[u8]>>,
}

/// The parts of a range that lie in one block each: number of the block, where in it, how long.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        let part = (BLOCK - at % BLOCK).min(end - at);
        let found = (at / BLOCK, index(at % BLOCK), index(part));
        at += part;
        (part > 0).then_some(found)
    })
}

/// Below the length of a block.
fn index(value: u64) -> usize {
    usize::try_from(value).expect("blocks fit in memory")
}

impl Store {
    /// Appends `len` bytes from `offset` to `out`.
    pub(super) fn read(&self, offset: u64, len: u64, out: &mut Vec<u8>) {
        for (block, from, len) in parts(offset, len) {
            match self.blocks.get(&block) {
                Some(bytes) => out.extend_from_slice(&bytes[from..from + len]),
                None => out.resize(out.len() + len, 0),
            }
        }
    }

    pub(super) fn write(&mut self, offset: u64, mut data: &[u8]) {
        for (block, from, len) in parts(offset, data.len() as u64) {
            let (now, rest) = data.split_at(len);
            let bytes = self.blocks.entry(block).or_insert_with(|| vec![0; index(BLOCK)].into());
            bytes[from..from + len].copy_from_slice(now);
            data = rest;
        }
    }

    /// Whole blocks are given back.
    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        // A range over all of a large sparse export must not cost its length.
        let touched: Vec<u64> = if len / BLOCK > self.blocks.len() as u64 {
            let (first, last) = (offset / BLOCK, (offset + len) / BLOCK);
            self.blocks.keys().copied().filter(|block| (first..=last).contains(block)).collect()
        } else {
            parts(offset, len).map(|(block, _, _)| block).collect()
        };
        for block in touched {
            let start = block * BLOCK;
            let from = index(offset.saturating_sub(start).min(BLOCK));
            let to = index((offset + len - start).min(BLOCK));
            if to - from == index(BLOCK) {
                self.blocks.remove(&block);
            } else if let Some(bytes) = self.blocks.get_mut(&block) {
                bytes[from..to].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = 5 * BLOCK;

    proptest! {
        #[test]
        fn is_an_array(steps in prop::collection::vec((0u64..SIZE, 0u64..SIZE, 0u8..3, any::<u8>()), 1..20)) {
            let (mut store, mut array) = (Store::default(), vec![0u8; index(SIZE)]);
            for (offset, len, kind, fill) in steps {
                let len = len.min(SIZE - offset);
                let range = index(offset)..index(offset + len);
                match kind {
                    0 => {
                        store.write(offset, &vec![fill; index(len)]);
                        array[range].fill(fill);
                    }
                    1 => {
                        store.zero(offset, len);
                        array[range].fill(0);
                    }
                    _ => {
                        let mut read = vec![7];
                        store.read(offset, len, &mut read);
                        prop_assert!(read[1..] == array[range]);
                    }
                }
            }
            let mut all = Vec::new();
            store.read(0, SIZE, &mut all);
            prop_assert!(all == array);
        }
    }

    #[test]
    fn zeroes_over_a_large_hole_cost_nothing() {
        let mut store = Store::default();
        store.write(1 << 50, &[1, 2]);
        store.zero(0, 1 << 60);
        assert!(store.blocks.is_empty());
    }
}
