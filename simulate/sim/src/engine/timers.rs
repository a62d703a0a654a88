//! The event queue: a fixed set of timers, each set to one instant or to none.
//!
//! Every possible event is the next event of an owner: a worker, a delay line, an entry. A tournament over
//! the owners needs ⌈log₂ timers⌉ comparisons for a change, regardless of the number of requests. It has no
//! stale entries: a preempted worker's timer is simply reset. Among timers for the same instant the lowest
//! number fires first.
//!
//! `benches/engine.rs` compares it with a heap that only ever replaces its first entry: as quick up to ten timers, slower
//! by half from thirty on; such a heap could not set the timer of a preempted worker anew.

/// The instant of a timer that is not set.
pub(crate) const NEVER: u64 = u64::MAX;

/// Timers in a knock-out tournament for the one that rings next.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Instant in the upper 64 bits, timer in the lower: node i has the lesser of nodes 2i and 2i + 1, and the second
    /// half are the timers themselves. With keys in the nodes no comparison waits for a look at another place.
    tree: Vec<u128>,
}

impl Timers {
    /// `count` timers, none set.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let mut timers = Self { tree: vec![u128::MAX; 2 * leaves] };
        (0..leaves).for_each(|timer| timers.set(timer, NEVER));
        timers
    }

    /// Sets a timer to an instant, or to [`NEVER`].
    #[inline]
    pub(crate) fn set(&mut self, timer: usize, at: u64) {
        let mut node = self.tree.len() / 2 + timer;
        let mut best = u128::from(at) << 64 | timer as u128;
        self.tree[node] = best;
        while node > 1 {
            best = best.min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == best {
                break;
            }
            self.tree[node] = best;
        }
    }

    /// The timer that rings next and when; [`NEVER`] when none is set.
    #[inline]
    pub(crate) fn next(&self) -> (usize, u64) {
        // Both casts take one half of a key.
        #[allow(clippy::cast_possible_truncation)]
        let next = (self.tree[1] as u64 as usize, (self.tree[1] >> 64) as u64);
        next
    }

    /// The instant at which a timer rings.
    #[inline]
    pub(crate) fn get(&self, timer: usize) -> u64 {
        // The cast takes the upper half of a key.
        #[allow(clippy::cast_possible_truncation)]
        let at = (self.tree[self.tree.len() / 2 + timer] >> 64) as u64;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_earliest_rings_and_the_lowest_of_equals(
            count in 1usize..70,
            steps in proptest::collection::vec((0usize..70, proptest::option::weighted(0.8, 0u64..20)), 1..200),
        ) {
            let mut timers = Timers::new(count);
            let mut judge = vec![NEVER; count];
            for (timer, at) in steps {
                judge[timer % count] = at.unwrap_or(NEVER);
                timers.set(timer % count, at.unwrap_or(NEVER));
                let least = *judge.iter().min().unwrap();
                proptest::prop_assert_eq!(timers.next().1, least);
                if least < NEVER {
                    proptest::prop_assert_eq!(Some(timers.next().0), judge.iter().position(|at| *at == least));
                }
            }
        }
    }
}
