//! The bytes of an export in memory, of which only blocks that were written take space.

use std::collections::HashMap;

/// The length of a block in bytes.
const BLOCK: u64 = 64 << 10;

/// A volume whose bytes are zero until they are written. It does not know its size: the caller checks ranges.
#[derive(Debug, Default)]
pub(super) struct SparseVolume {
    blocks: HashMap<u64, Box<[u8]>>,
}

/// Cuts a range at the borders of blocks. Each part is the number of its block, its offset there, and its length.
fn parts_by_block(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut position = offset;
    std::iter::from_fn(move || {
        let len = (BLOCK - position % BLOCK).min(end - position);
        let part = (position / BLOCK, index(position % BLOCK), index(len));
        position += len;
        (len > 0).then_some(part)
    })
}

/// A position within a block, or a length of at most one.
fn index(value: u64) -> usize {
    usize::try_from(value).expect("blocks fit in memory")
}

impl SparseVolume {
    /// Appends `len` bytes from `offset` to `out`.
    pub(super) fn read(&self, offset: u64, len: u64, out: &mut Vec<u8>) {
        for (block, from, len) in parts_by_block(offset, len) {
            match self.blocks.get(&block) {
                Some(bytes) => out.extend_from_slice(&bytes[from..from + len]),
                None => out.resize(out.len() + len, 0),
            }
        }
    }

    /// Writes these bytes from `offset` on.
    pub(super) fn write(&mut self, offset: u64, mut data: &[u8]) {
        for (block, from, len) in parts_by_block(offset, data.len() as u64) {
            let (part, rest) = data.split_at(len);
            let bytes = self.blocks.entry(block).or_insert_with(|| vec![0; index(BLOCK)].into());
            bytes[from..from + len].copy_from_slice(part);
            data = rest;
        }
    }

    /// Makes `len` bytes from `offset` zero. The memory of whole blocks is freed.
    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        // Zeroing all of a large sparse export must not take time in proportion to its length.
        let touched: Vec<u64> = if len / BLOCK > self.blocks.len() as u64 {
            let first = offset / BLOCK;
            let last = (offset + len) / BLOCK;
            self.blocks.keys().copied().filter(|block| (first..=last).contains(block)).collect()
        } else {
            parts_by_block(offset, len).map(|(block, _, _)| block).collect()
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
            let mut volume = SparseVolume::default();
            let mut array = vec![0u8; index(SIZE)];
            for (offset, len, kind, fill) in steps {
                let len = len.min(SIZE - offset);
                let range = index(offset)..index(offset + len);
                match kind {
                    0 => {
                        volume.write(offset, &vec![fill; index(len)]);
                        array[range].fill(fill);
                    }
                    1 => {
                        volume.zero(offset, len);
                        array[range].fill(0);
                    }
                    _ => {
                        let mut read = vec![7];
                        volume.read(offset, len, &mut read);
                        prop_assert!(read[1..] == array[range]);
                    }
                }
            }
            let mut all = Vec::new();
            volume.read(0, SIZE, &mut all);
            prop_assert!(all == array);
        }
    }

    #[test]
    fn zeroes_over_a_large_hole_cost_nothing() {
        let mut volume = SparseVolume::default();
        volume.write(1 << 50, &[1, 2]);
        volume.zero(0, 1 << 60);
        assert!(volume.blocks.is_empty());
    }
}
