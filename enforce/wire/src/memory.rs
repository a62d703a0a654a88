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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcached::MemcachedParser;
    use crate::nbd::NbdParser;
    use crate::rpc::RpcParser;

    #[test]
    fn a_peak_is_given_back() {
        let mut map: HashMap<u64, u64> = (0..5000).map(|key| (key, key)).collect();
        let mut queue: VecDeque<u64> = (0..5000).collect();
        map.retain(|key, _| *key == 0);
        queue.truncate(1);
        shrink_if_empty(&mut map);
        shrink_queue_if_empty(&mut queue);
        assert!(map.capacity() > 4000 && queue.capacity() > 4000, "what is in use stays");
        map.clear();
        queue.clear();
        shrink_if_empty(&mut map);
        shrink_queue_if_empty(&mut queue);
        assert!(map.capacity() <= 2 * KEPT_ENTRIES && queue.capacity() <= 2 * KEPT_ENTRIES);
    }

    /// As `ParserLimits::in_flight` promises: the parsers themselves, and 16 places of their maps and queues.
    #[test]
    fn idle_parsers_are_small() {
        let places = |entry: usize| 16 * (entry + 1) + 16;
        let rpc = size_of::<RpcParser>() + 2 * places(8);
        let nbd = size_of::<NbdParser>() + places(24);
        let memcached = size_of::<MemcachedParser>() + places(32);
        assert!(rpc.max(nbd).max(memcached) < 1024, "{rpc} {nbd} {memcached}");
    }
}
