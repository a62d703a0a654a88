//! The b-model as a stream: the tree of halvings is walked depth-first, so memory is its depth.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// An interval of time with the number of arrivals that fall into it.
#[derive(Debug, Clone, Copy)]
struct CountedInterval {
    start: f64,
    length: f64,
    count: u64,
    levels_left: u32,
}

/// Endless arrival times of a b-model, in seconds and in ascending order.
pub(crate) struct BModelTimes {
    per_interval: f64,
    bias: f64,
    interval_s: f64,
    levels: u32,
    next_interval: u64,
    /// Intervals with arrivals not yet returned, the earliest on top.
    stack: Vec<CountedInterval>,
    random: StdRng,
}

impl BModelTimes {
    pub(crate) fn new(rate: f64, bias: f64, interval_s: f64, levels: u32, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let per_interval = rate * interval_s;
        Self { per_interval, bias, interval_s, levels, next_interval: 0, stack: Vec::new(), random }
    }

    /// Rounds up or down at random so that the mean is exact.
    fn round(&mut self, value: f64) -> u64 {
        // Counts are not negative and far below 2⁵³.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let floor = value as u64;
        floor + u64::from(self.random.random::<f64>() < value - floor as f64)
    }

    fn begin_interval(&mut self) {
        let start = self.next_interval as f64 * self.interval_s;
        self.next_interval += 1;
        let count = self.round(self.per_interval);
        self.stack.push(CountedInterval { start, length: self.interval_s, count, levels_left: self.levels });
    }

    fn split(&mut self, whole: CountedInterval) {
        let share = if self.random.random::<bool>() { self.bias } else { 1.0 - self.bias };
        let first = self.round(whole.count as f64 * share).min(whole.count);
        let half =
            CountedInterval { length: whole.length / 2.0, levels_left: whole.levels_left - 1, ..whole };
        self.stack.push(CountedInterval {
            start: whole.start + half.length,
            count: whole.count - first,
            ..half
        });
        self.stack.push(CountedInterval { count: first, ..half });
    }
}

impl Iterator for BModelTimes {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            let Some(interval) = self.stack.pop() else {
                self.begin_interval();
                continue;
            };
            if interval.count > 1 && interval.levels_left > 0 {
                self.split(interval);
            } else if interval.count > 0 {
                // The first of `count` sorted uniform points; the others are uniform behind it, so none
                // are held in memory. A single arrival is uniform because both halves were equally
                // likely.
                let u: f64 = self.random.random();
                let gap = interval.length * (1.0 - u.powf(1.0 / interval.count as f64));
                let start = interval.start + gap;
                let length = interval.length - gap;
                self.stack.push(CountedInterval { start, length, count: interval.count - 1, levels_left: 0 });
                return Some(start);
            }
        }
    }
}
