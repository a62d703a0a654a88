//! The least of a fixed number of keys, any of which may change at any time.

/// A tournament tree over the places `0..count`, each of which may have a key. A change costs ⌈log₂ count⌉
/// comparisons, and nothing is allocated after construction. Among equal keys the lowest place wins.
#[derive(Debug, Clone)]
pub(crate) struct Tournament<K> {
    /// Node i has the winner of nodes 2i and 2i + 1. The second half of the nodes are the places themselves.
    tree: Vec<Option<(K, u32)>>,
}

impl<K: Copy + Ord> Tournament<K> {
    /// Creates a tree with `count` places and no keys.
    pub(crate) fn new(count: usize) -> Self {
        Self { tree: vec![None; 2 * count.next_power_of_two()] }
    }

    /// Sets or removes the key of a place.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, key: Option<K>) {
        let mut node = self.tree.len() / 2 + place;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "places are flows or classes, with numbers of 32 bits"
        )]
        let mut best = key.map(|key| (key, place as u32));
        self.tree[node] = best;
        while node > 1 {
            best = lesser(best, self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == best {
                break;
            }
            self.tree[node] = best;
        }
    }

    /// Returns the key of a place.
    pub(crate) fn get(&self, place: usize) -> Option<K> {
        self.tree[self.tree.len() / 2 + place].map(|(key, _)| key)
    }

    /// Returns the least key and its place, if any place has a key.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, usize)> {
        self.tree[1].map(|(key, place)| (key, place as usize))
    }
}

fn lesser<K: Ord>(one: Option<K>, other: Option<K>) -> Option<K> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_winner_is_the_least_of_all(
            count in 1usize..70,
            steps in proptest::collection::vec((0usize..70, proptest::option::weighted(0.8, 0u64..20)), 1..200),
        ) {
            let mut tournament = Tournament::new(count);
            let mut judge = vec![None; count];
            for (place, key) in steps {
                judge[place % count] = key;
                tournament.set(place % count, key);
                let least = (0..count).filter_map(|place| Some((judge[place]?, place))).min();
                proptest::prop_assert_eq!(tournament.first(), least);
            }
        }
    }
}
