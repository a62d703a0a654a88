//! Contents that identify the workload, the place and the write that they come from.

use arrivals::split_seed;

/// Contents of the writes of one workload: a function of the block and the number of the write.
///
/// They are words of SplitMix64, started from the seed, the workload, the block and the write. A block in
/// the wrong place, of an older write or of another workload therefore differs in every word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentPattern {
    key: u64,
}

impl ContentPattern {
    /// The pattern of the workload with this index.
    pub(crate) fn new(seed: u64, workload: usize) -> Self {
        Self { key: split_seed(seed, workload as u64) }
    }

    /// Appends the first `len` bytes that write `number` leaves in `block`.
    pub(crate) fn append(self, out: &mut Vec<u8>, block: u64, number: u64, len: usize) {
        let end = out.len() + len;
        for word in self.words(block, number).take(len.div_ceil(8)) {
            out.extend(word.to_le_bytes());
        }
        out.truncate(end);
    }

    /// The position of the first byte in `data` that differs from what [`Self::append`] writes.
    pub(crate) fn first_difference(self, data: &[u8], block: u64, number: u64) -> Option<usize> {
        for (index, (chunk, word)) in data.chunks(8).zip(self.words(block, number)).enumerate() {
            let expected = &word.to_le_bytes()[..chunk.len()];
            if chunk != expected {
                let within = chunk.iter().zip(expected).position(|(found, expected)| found != expected)?;
                return Some(8 * index + within);
            }
        }
        None
    }

    /// The byte that write `number` leaves at `position` in `block`.
    pub(crate) fn byte(self, block: u64, number: u64, position: usize) -> u8 {
        let word = self.words(block, number).nth(position / 8).expect("the sequence is endless");
        word.to_le_bytes()[position % 8]
    }

    fn words(self, block: u64, number: u64) -> impl Iterator<Item = u64> {
        let start = split_seed(split_seed(self.key, block), number);
        (0..).map(move |index| split_seed(start, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_differ_in_everything_that_they_depend_on() {
        let bytes = |seed, workload, block, number| {
            let mut out = Vec::new();
            ContentPattern::new(seed, workload).append(&mut out, block, number, 13);
            out
        };
        let one = bytes(1, 0, 7, 3);
        assert_eq!((one.len(), &one), (13, &bytes(1, 0, 7, 3)));
        for other in [bytes(2, 0, 7, 3), bytes(1, 1, 7, 3), bytes(1, 0, 8, 3), bytes(1, 0, 7, 4)] {
            assert!(one[..8] != other[..8] && one[8..] != other[8..]);
        }
        let pattern = ContentPattern::new(1, 0);
        assert_eq!(pattern.first_difference(&one, 7, 3), None);
        for at in 0..13 {
            let mut damaged = one.clone();
            damaged[at] ^= 1;
            assert_eq!(pattern.first_difference(&damaged, 7, 3), Some(at));
            assert_eq!(pattern.byte(7, 3, at), one[at]);
        }
    }
}
