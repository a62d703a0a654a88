//! When other work takes workers away: exponential gaps between the end of one and the beginning of the next.

use super::timers::NEVER;
use rand::RngExt as _;
use rand::rngs::StdRng;
use units::Nanos;

/// The gaps between interferences, and for workers that are away, when they will be taken next.
#[derive(Debug)]
pub(crate) struct InterferenceSchedule {
    /// When each disturbed worker will be taken next, in the order of their timers.
    next: Vec<u64>,
    random: StdRng,
}

impl InterferenceSchedule {
    /// A schedule for so many workers that other work disturbs.
    pub(crate) fn new(workers: usize, random: StdRng) -> Self {
        Self { next: vec![NEVER; workers], random }
    }

    /// When a worker that is away will be taken next.
    pub(crate) fn next(&self, worker: usize) -> u64 {
        self.next[worker]
    }

    /// Remembers when a worker will be taken next.
    pub(crate) fn set_next(&mut self, worker: usize, at: u64) {
        self.next[worker] = at;
    }

    /// Draws an exponential gap of this mean, at least 1 ns.
    pub(crate) fn draw_gap(&mut self, mean: Nanos) -> u64 {
        let gap = -(1.0 - self.random.random_range(0.0f64..1.0)).ln() * mean.0 as f64;
        // A float beyond u64 becomes the largest.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let gap = (gap as u64).max(1);
        gap
    }
}
