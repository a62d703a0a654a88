//! Automatic choice of a gate's limit from the variation of its requests' CPU time.
//!
//! A limit shortens the tail while service times are light: without one, requests that are nearly done
//! wait for all later ones. If a few requests are much longer than the others, a limit makes the others
//! wait for them, and the tail grows without bound. The squared coefficient of variation C² decides; its
//! thresholds come from simulation. `cargo bench --bench auto_limit` prints the table, and tests compare
//! the rule with the best fixed limits. A wrong limit costs far more than none, so that none is chosen
//! before enough was measured. C² ignores the shape of the tail: log-normal times of C² between 3 and 4.5
//! have longer tails than the rule assumes.

use std::num::NonZeroU32;

/// Returns the limit for requests with this squared coefficient of variation of CPU time, on this many
/// CPUs; `None` for no limit.
///
/// As many as CPUs up to C² = 1.5, where order matters most; one more up to 4.5, so that a long request
/// does not keep a CPU from all others; none above.
pub fn automatic_limit(c2: f64, workers: NonZeroU32) -> Option<NonZeroU32> {
    match c2 {
        c2 if c2 <= LIGHT => Some(workers),
        c2 if c2 <= HEAVY => Some(workers.saturating_add(1)),
        _ => None,
    }
}

/// C² up to which service times count as light: the exponential distribution has 1.
const LIGHT: f64 = 1.5;
/// C² above which the tail of service times counts as heavy.
const HEAVY: f64 = 4.5;
/// Weight of a measured time after the next one: sums cover about the last 10,000.
const KEPT: f64 = 1.0 - 1e-4;
/// Number of measured times before a limit is chosen.
const LEAST: u64 = 250;

/// Running sums of service times, with exponentially decaying weights.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServiceVariation {
    count: f64,
    sum: f64,
    squares: f64,
    measured: u64,
}

impl ServiceVariation {
    /// Adds the CPU time of a request, seconds, at least 0.
    pub fn add(&mut self, time: f64) {
        self.count = self.count * KEPT + 1.0;
        self.sum = self.sum * KEPT + time;
        self.squares = self.squares * KEPT + time * time;
        self.measured += 1;
    }

    /// Returns the number of times added.
    pub fn measured(&self) -> u64 {
        self.measured
    }

    /// Returns the squared coefficient of variation, E\[S²\]/E\[S\]² − 1; `None` before 250 times, or if
    /// all were 0.
    pub fn c2(&self) -> Option<f64> {
        let is_known = self.measured >= LEAST && self.sum > 0.0;
        is_known.then(|| (self.squares * self.count / (self.sum * self.sum) - 1.0).max(0.0))
    }
}

/// A gate's automatically chosen limit.
#[derive(Debug)]
pub(crate) struct AutomaticLimit {
    pub(crate) variation: ServiceVariation,
    workers: NonZeroU32,
    chosen: Option<NonZeroU32>,
}

/// Number of requests between two evaluations of the variation.
const LOOK_EVERY: u64 = 256;
/// Hysteresis: distance of C² beyond a threshold at which the limit changes, as a share of C².
const MARGIN: f64 = 0.1;

impl AutomaticLimit {
    /// Creates a limit that is not yet set.
    pub(crate) fn new(workers: NonZeroU32) -> Self {
        Self { variation: ServiceVariation::default(), workers, chosen: None }
    }

    /// Adds the CPU time of a request, seconds. Returns the new limit if it changes.
    pub(crate) fn add(&mut self, time: f64) -> Option<Option<NonZeroU32>> {
        self.variation.add(time);
        if !self.variation.measured().is_multiple_of(LOOK_EVERY) {
            return None;
        }
        let c2 = self.variation.c2()?;
        let [low, high] =
            [1.0 - MARGIN, 1.0 + MARGIN].map(|factor| automatic_limit(c2 * factor, self.workers));
        let changes = low == high && low != self.chosen;
        changes.then(|| {
            self.chosen = low;
            low
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(times: impl IntoIterator<Item = f64>) -> ServiceVariation {
        let mut variation = ServiceVariation::default();
        times.into_iter().for_each(|time| variation.add(time));
        variation
    }

    #[test]
    fn of_two_values_it_is_known() {
        // Mean 2, variance 1.
        let two_values = measured((0..50_000).map(|count| f64::from(1 + count % 2 * 2)));
        assert!((two_values.c2().unwrap() - 0.25).abs() < 1e-3);
        assert_eq!(measured(std::iter::repeat_n(3.0, 2000)).c2().map(|c2| c2 < 1e-9), Some(true));
        assert_eq!(measured(std::iter::repeat_n(3.0, 249)).c2(), None, "too few");
        assert_eq!(measured(std::iter::repeat_n(0.0, 2000)).c2(), None, "nothing was measured");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut variation = measured((0..20_000).map(|count| f64::from(count % 100) * f64::from(count % 7)));
        (0..500_000).for_each(|_| variation.add(1.0));
        assert!(variation.c2().unwrap() < 1e-6);
    }

    #[test]
    fn the_limit_changes_with_what_is_measured() {
        let mut automatic = AutomaticLimit::new(NonZeroU32::new(2).unwrap());
        let mut changes = |times: &[f64], count: usize| -> Vec<Option<u32>> {
            let times = times.iter().cycle().take(count);
            times.filter_map(|time| automatic.add(*time)).map(|limit| limit.map(NonZeroU32::get)).collect()
        };
        assert_eq!(changes(&[1.0], 255), [], "not enough is known");
        assert_eq!(changes(&[1.0], 5000), [Some(2)]);
        let mut heavy = [0.01; 100];
        heavy[99] = 100.0;
        assert_eq!(changes(&heavy, 40_000).last(), Some(&None));
        assert_eq!(changes(&[1.0], 400_000).last(), Some(&Some(2)));
    }

    #[test]
    fn the_more_variation_the_more_run_at_once() {
        let workers = NonZeroU32::new(3).unwrap();
        let limits = [0.0, 1.0, 2.0, 4.4, 100.0].map(|c2| automatic_limit(c2, workers).map(NonZeroU32::get));
        assert_eq!(limits, [Some(3), Some(3), Some(4), Some(4), None]);
        assert_eq!(automatic_limit(f64::INFINITY, workers), None);
        assert_eq!(automatic_limit(2.0, NonZeroU32::MAX), Some(NonZeroU32::MAX));
    }
}
