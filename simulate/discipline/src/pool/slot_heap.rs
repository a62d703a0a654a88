//! A min-heap of numbered slots that supports removal of any slot.

/// A 4-ary min-heap by key; each slot is in it at most once. Inserting and removing cost O(log n)
/// comparisons. It allocates only when it holds more slots than ever before.
#[derive(Debug, Clone)]
pub(super) struct SlotHeap<K> {
    entries: Vec<(K, u32)>,
    /// Index of each slot's entry; meaningless for slots that are not in the heap.
    positions: Vec<u32>,
}

const CHILDREN: usize = 4;

impl<K: Copy + Ord> SlotHeap<K> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), positions: Vec::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the least key with its slot.
    #[inline]
    pub(super) fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// All slots, in no particular order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|(_, slot)| *slot)
    }

    /// Adds a slot that is not in the heap.
    pub(super) fn insert(&mut self, slot: u32, key: K) {
        if self.positions.len() <= slot as usize {
            self.positions.resize(slot as usize + 1, 0);
        }
        self.entries.push((key, slot));
        self.rise(self.entries.len() - 1);
    }

    /// Removes a slot that is in the heap.
    ///
    /// # Panics
    /// May panic when the slot is not in the heap.
    pub(super) fn remove(&mut self, slot: u32) {
        let position = self.positions[slot as usize] as usize;
        debug_assert_eq!(self.entries[position].1, slot, "the slot is in the heap");
        self.entries.swap_remove(position);
        if position < self.entries.len() {
            // The last entry took the place and may have to move either way; at most one call moves it.
            self.sink(position);
            self.rise(position);
        }
    }

    /// Moves the entry at a position towards the root until its parent is not greater.
    fn rise(&mut self, mut position: usize) {
        let entry = self.entries[position];
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if self.entries[parent].0 <= entry.0 {
                break;
            }
            self.put(position, self.entries[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    /// Moves the entry at a position away from the root until no child is less.
    fn sink(&mut self, mut position: usize) {
        let entry = self.entries[position];
        loop {
            let first = CHILDREN * position + 1;
            let children = first..(first + CHILDREN).min(self.entries.len());
            let Some(least) = children.min_by_key(|child| self.entries[*child].0) else { break };
            if entry.0 <= self.entries[least].0 {
                break;
            }
            self.put(position, self.entries[least]);
            position = least;
        }
        self.put(position, entry);
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "as many entries as slots, which are counted by a u32"
    )]
    fn put(&mut self, position: usize, entry: (K, u32)) {
        self.entries[position] = entry;
        self.positions[entry.1 as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    proptest::proptest! {
        #[test]
        fn the_first_is_the_least_of_all(steps in proptest::collection::vec((0u32..40, 0u64..20), 1..300)) {
            let mut heap = SlotHeap::new();
            let mut judge = BTreeSet::new();
            let mut keys = [None; 40];
            for (slot, key) in steps {
                match keys[slot as usize].take() {
                    Some(old) => {
                        judge.remove(&(old, slot));
                        heap.remove(slot);
                    }
                    None => {
                        keys[slot as usize] = Some((key, slot));
                        judge.insert(((key, slot), slot));
                        heap.insert(slot, (key, slot));
                    }
                }
                proptest::prop_assert_eq!(heap.first(), judge.first().copied());
                proptest::prop_assert_eq!(heap.len(), judge.len());
            }
        }
    }
}
