//! Memory that a parser gives back after a peak.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// How many entries an empty collection keeps room for.
const KEPT_ENTRIES: usize = 14;

/// Gives back the room of an empty map except for a few entries.
pub(crate) fn shrink_if_empty<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.is_empty() && map.capacity() > KEPT_ENTRIES {
        map.shrink_to(KEPT_ENTRIES);
    }
}

/// The same for a queue.
pub(crate) fn shrink_queue_if_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT_ENTRIES {
        queue.shrink_to(KEPT_ENTRIES);
    }
}
