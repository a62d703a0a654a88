//! The event queue: a fixed set of timers, each set to one instant or to none, and which rings next.
//!
//! Everything in a network that can happen is the next event of something: a worker, a delay line, a source. A
//! tournament over those needs ⌈log₂ timers⌉ comparisons for a change, whatever the number of requests, and knows
//! no stale entries: a preempted worker's timer is set anew. Of timers for the same instant the one with the
//! lowest number rings first. `benches/engine.rs` has it beside heaps.

/// A timer that is not set.
pub(crate) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Timers {
    at: Vec<u64>,
    /// Winners; node i plays 2i against 2i + 1, leaves begin at `at.len()`.
    winner: Vec<u32>,
}

impl Timers {
    /// `count` timers, none set.
    pub(crate) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        let mut winner: Vec<u32> = vec![0; leaves];
        for node in (1..leaves).rev() {
            let left = node * 2;
            winner[node] =
                if left < leaves { winner[left] } else { u32::try_from(left - leaves).expect("few timers") };
        }
        Self { at: vec![NEVER; leaves], winner }
    }

    /// Sets one.
    #[inline]
    pub(crate) fn set(&mut self, timer: usize, at: u64) {
        self.at[timer] = at;
        let leaves = self.at.len();
        // The lowest match is between two leaves, the others between winners.
        let mut node = (timer + leaves) / 2;
        let left = timer & !1;
        let mut best = if self.at[left + 1] < self.at[left] { left + 1 } else { left };
        loop {
            // A timer's number is below the number that `new` was given.
            #[allow(clippy::cast_possible_truncation)]
            {
                self.winner[node] = best as u32;
            }
            if node == 1 {
                return;
            }
            let other = self.winner[node ^ 1] as usize;
            let (left, right) = if node & 1 == 0 { (best, other) } else { (other, best) };
            best = if self.at[right] < self.at[left] { right } else { left };
            node /= 2;
        }
    }

    /// The timer that rings next and when; [`NEVER`] when none is set.
    #[inline]
    pub(crate) fn next(&self) -> (usize, u64) {
        let timer = self.winner[1] as usize;
        (timer, self.at[timer])
    }

    /// When a timer rings.
    #[inline]
    pub(crate) fn at(&self, timer: usize) -> u64 {
        self.at[timer]
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
            let (mut timers, mut judge) = (Timers::new(count), vec![NEVER; count]);
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
