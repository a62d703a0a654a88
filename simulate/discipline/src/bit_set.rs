//! A set of small numbers that finds its least member in a few steps.

/// The number of bits in a word.
const WORD_BITS: usize = u64::BITS as usize;

/// A subset of `0..capacity`, as a tree of words. A bit of an inner word says that the word below is not
/// empty. The depth is ⌈log₆₄ capacity⌉, and so is the cost of every operation.
#[derive(Debug, Clone)]
pub(crate) struct BitSet {
    /// The layers of the tree, from the leaves to the single word at the root.
    layers: Vec<Vec<u64>>,
}

impl BitSet {
    /// The empty subset of `0..capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        let mut layers = Vec::new();
        let mut words = capacity.div_ceil(WORD_BITS).max(1);
        layers.push(vec![0; words]);
        while words > 1 {
            words = words.div_ceil(WORD_BITS);
            layers.push(vec![0; words]);
        }
        Self { layers }
    }

    /// The whole of `0..capacity`.
    pub(crate) fn full(capacity: usize) -> Self {
        let mut set = Self::new(capacity);
        (0..capacity).for_each(|member| set.insert(member));
        set
    }

    /// Adds `member`, which must be below the capacity.
    #[inline]
    pub(crate) fn insert(&mut self, member: usize) {
        let mut index = member;
        for layer in &mut self.layers {
            layer[index / WORD_BITS] |= 1 << (index % WORD_BITS);
            index /= WORD_BITS;
        }
    }

    /// Removes `member` if present.
    #[inline]
    pub(crate) fn remove(&mut self, member: usize) {
        let mut index = member;
        for layer in &mut self.layers {
            let word = &mut layer[index / WORD_BITS];
            *word &= !(1 << (index % WORD_BITS));
            if *word != 0 {
                break;
            }
            index /= WORD_BITS;
        }
    }

    /// Returns the least member.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        let mut index = 0;
        for layer in self.layers.iter().rev() {
            let word = layer[index];
            if word == 0 {
                return None;
            }
            index = index * WORD_BITS + word.trailing_zeros() as usize;
        }
        Some(index)
    }

    /// Removes all members and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.fill(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    proptest::proptest! {
        #[test]
        fn agrees_with_an_ordered_set(
            capacity in proptest::sample::select(vec![1usize, 63, 64, 65, 4096, 4097, 300_000]),
            steps in proptest::collection::vec((proptest::prelude::any::<u32>(), 0..2u8), 0..200),
        ) {
            let mut set = BitSet::new(capacity);
            let mut judge = BTreeSet::new();
            for (number, action) in steps {
                let member = number as usize % capacity;
                match action {
                    0 => { set.insert(member); judge.insert(member); }
                    _ => { set.remove(member); judge.remove(&member); }
                }
                proptest::prop_assert_eq!(set.first(), judge.first().copied());
            }
            set.clear();
            proptest::prop_assert_eq!(set.first(), None);
        }
    }
}
