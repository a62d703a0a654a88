//! The limit that a gate chooses by itself, from how much the CPU time of its requests varies.

use std::num::NonZeroU32;

/// Running sums of service times, in which older ones count less and less.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServiceVariation {
    count: f64,
    sum: f64,
    squares: f64,
    measured: u64,
}

/// What a measured time counts after the next one, as a share: sums are over about the last 10,000.
const KEPT: f64 = 1.0 - 1e-4;
/// Measured times before a limit is chosen.
const LEAST: u64 = 200;
/// The squared coefficient of variation up to which requests are as good as exponential or lighter.
const LIGHT: f64 = 1.5;
/// The squared coefficient of variation above which the tail counts as heavy.
const HEAVY: f64 = 10.0;

impl ServiceVariation {
    /// Adds the CPU time of a request, in seconds.
    pub(crate) fn add(&mut self, time: f64) {
        self.count = self.count * KEPT + 1.0;
        self.sum = self.sum * KEPT + time;
        self.squares = self.squares * KEPT + time * time;
        self.measured += 1;
    }

    /// The squared coefficient of variation, E[S²]/E[S]² − 1; `None` before enough were measured.
    pub(crate) fn c2(&self) -> Option<f64> {
        let is_known = self.measured >= LEAST && self.sum > 0.0;
        is_known.then(|| (self.squares * self.count / (self.sum * self.sum) - 1.0).max(0.0))
    }
}
