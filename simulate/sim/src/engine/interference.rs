//! Interference: other work that takes workers away, with exponential gaps between its end and its next
//! start.

use super::timers::NEVER;
use rand::RngExt as _;
use rand::rngs::StdRng;
use units::Nanos;

/// The gaps between interferences, and for workers that are away, when they will be taken next.
#[derive(Debug)]
pub(crate) struct InterferenceSchedule {
    /// Next interference of each disturbed worker, in the order of their timers.
    next: Vec<u64>,
    random: StdRng,
}

impl InterferenceSchedule {
    /// Creates a schedule for `workers` disturbed workers.
    pub(crate) fn new(workers: usize, random: StdRng) -> Self {
        Self { next: vec![NEVER; workers], random }
    }

    /// Returns the next interference of a worker that is away.
    pub(crate) fn next(&self, worker: usize) -> u64 {
        self.next[worker]
    }

    /// Sets the next interference of a worker.
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
