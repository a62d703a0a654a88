//! Bytes that tell which workload wrote them, where, and with which write.

use arrivals::split_seed;

/// The contents that one workload writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern {
    key: u64,
}

impl Pattern {
    /// Of the workload with this index.
    pub(crate) fn new(seed: u64, workload: usize) -> Self {
        Self { key: split_seed(seed, workload as u64) }
    }

    /// Appends the first `len` bytes that write `number` leaves in `block`: words of SplitMix64 whose start follows
    /// from all three, so that a block in the wrong place, of an older write or of another workload differs in every
    /// word.
    pub(crate) fn put(self, out: &mut Vec<u8>, block: u64, number: u64, len: usize) {
        let end = out.len() + len;
        for word in self.words(block, number).take(len.div_ceil(8)) {
            out.extend(word.to_le_bytes());
        }
        out.truncate(end);
    }

    /// The first byte of `data` that differs from what [`Self::put`] makes.
    pub(crate) fn first_difference(self, data: &[u8], block: u64, number: u64) -> Option<usize> {
        for (at, (piece, word)) in data.chunks(8).zip(self.words(block, number)).enumerate() {
            let expected = &word.to_le_bytes()[..piece.len()];
            if piece != expected {
                let within = piece.iter().zip(expected).position(|(found, expected)| found != expected)?;
                return Some(8 * at + within);
            }
        }
        None
    }

    /// The byte at `at`.
    pub(crate) fn byte(self, block: u64, number: u64, at: usize) -> u8 {
        self.words(block, number).nth(at / 8).expect("words have no end").to_le_bytes()[at % 8]
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
            Pattern::new(seed, workload).put(&mut out, block, number, 13);
            out
        };
        let one = bytes(1, 0, 7, 3);
        assert_eq!((one.len(), &one), (13, &bytes(1, 0, 7, 3)));
        for other in [bytes(2, 0, 7, 3), bytes(1, 1, 7, 3), bytes(1, 0, 8, 3), bytes(1, 0, 7, 4)] {
            assert!(one[..8] != other[..8] && one[8..] != other[8..]);
        }
        let pattern = Pattern::new(1, 0);
        assert_eq!(pattern.first_difference(&one, 7, 3), None);
        for at in 0..13 {
            let mut damaged = one.clone();
            damaged[at] ^= 1;
            assert_eq!(pattern.first_difference(&damaged, 7, 3), Some(at));
            assert_eq!(pattern.byte(7, 3, at), one[at]);
        }
    }
}
