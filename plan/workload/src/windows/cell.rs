//! The most work beyond the mean rate in windows of a range of lengths that end at the same instant.

use super::circular_work::CircularWork;
use super::distribution::{DistributionBins, WorkDistribution, bin_floor};
use std::collections::VecDeque;
use units::Nanos;

/// Windows that end at one instant, swept over a circular trace. Indices count through the repetitions of the trace, and
/// instants are nanoseconds since the beginning of its first round.
struct CellSweep<'a> {
    stream: &'a CircularWork,
    /// The length of the shortest window, and of the longest.
    lengths: [u64; 2],
    rate: f64,
    /// The first job that has not arrived.
    ahead: usize,
    /// The first job inside the shortest window.
    inside: usize,
    /// The first job inside the longest window.
    reached: usize,
    /// Jobs that only longer windows hold: their indices and how much more than the shortest window, at the mean rate,
    /// a window that begins with them has when nothing comes after; these decrease.
    candidates: VecDeque<(usize, f64)>,
}

impl<'a> CellSweep<'a> {
    /// The windows that end at the beginning of the second round.
    fn new(stream: &'a CircularWork, lengths: [u64; 2]) -> Self {
        let rate = stream.rate();
        let mut sweep =
            Self { stream, lengths, rate, ahead: 0, inside: 0, reached: 0, candidates: VecDeque::new() };
        sweep.advance_to(stream.period);
        sweep
    }

    fn arrival(&self, index: usize) -> u64 {
        let count = self.stream.jobs.len();
        self.stream.jobs[index % count].at + (index / count) as u64 * self.stream.period
    }

    /// The work of all jobs before this one.
    fn work_before(&self, index: usize) -> u64 {
        let count = self.stream.jobs.len();
        self.stream.before[index % count] + (index / count) as u64 * self.stream.total
    }

    /// Moves the common end of the windows to an instant.
    fn advance_to(&mut self, end: u64) {
        while self.arrival(self.ahead) <= end {
            self.ahead += 1;
        }
        while self.arrival(self.inside) + self.lengths[0] <= end {
            let value = self.rate * self.arrival(self.inside) as f64 - self.work_before(self.inside) as f64;
            while self.candidates.back().is_some_and(|&(_, last)| last <= value) {
                self.candidates.pop_back();
            }
            self.candidates.push_back((self.inside, value));
            self.inside += 1;
        }
        while self.arrival(self.reached) + self.lengths[1] <= end {
            self.reached += 1;
        }
        while self.candidates.front().is_some_and(|&(index, _)| index < self.reached) {
            self.candidates.pop_front();
        }
    }

    /// When the next job arrives, or leaves one of the windows.
    fn next_event(&self) -> u64 {
        let leaves = self.arrival(self.inside) + self.lengths[0];
        self.arrival(self.ahead).min(leaves).min(self.arrival(self.reached) + self.lengths[1])
    }

    /// The work of the shortest window, and the most of a longer one beyond the rate, when they end at this instant.
    fn values(&self, end: u64) -> [f64; 2] {
        let work = self.work_before(self.ahead);
        let shortest = (work - self.work_before(self.inside)) as f64;
        let beyond = self.rate * (end - self.lengths[0]) as f64;
        let longer = self.candidates.front().map_or(0.0, |&(_, value)| work as f64 + value - beyond);
        [shortest, longer]
    }

    /// Moves the end through a round, and adds the time for which each amount lasts.
    fn run(mut self, bins: &mut DistributionBins) {
        let mut now = self.stream.period;
        while now < 2 * self.stream.period {
            let next = self.next_event().min(2 * self.stream.period);
            let [shortest, longer] = self.values(now);
            self.add(bins, shortest, longer, next - now);
            self.advance_to(next);
            now = next;
        }
    }

    /// Adds so many nanoseconds in which the amount is the larger of a constant and of what falls at the mean rate; the
    /// largest amount of a piece in one bin counts for all of it.
    fn add(&self, bins: &mut DistributionBins, constant: f64, falling: f64, duration: u64) {
        let mut left = duration;
        let mut amount = falling;
        while left > 0 && amount > constant {
            let value = self.with_allowance(amount);
            let lowest = (bin_floor(value) as f64 - self.stream.allowance as f64 - 1.0).max(constant);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            let piece = (((amount - lowest) / self.rate) as u64).clamp(1, left);
            bins.add(value, piece);
            left -= piece;
            amount -= self.rate * piece as f64;
        }
        if left > 0 {
            bins.add(self.with_allowance(constant), left);
        }
    }

    /// An amount with the allowance, rounded up beyond what rounding in the sweep can have lost.
    fn with_allowance(&self, amount: f64) -> u64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
        let whole = (amount * (1.0 + 1e-9) + 1e-3).ceil() as u64;
        whole + self.stream.allowance
    }
}

impl CircularWork {
    /// The distribution, in seconds and allowance included, of the largest of `work(u) − rate·(u − shortest)` over all
    /// lengths u from `shortest` to `longest`, where work(u) is that of a closed window of length u, all windows end at the
    /// same instant, which is uniform over the period, and `rate` is the mean rate. `None` where the longest exceeds the
    /// period.
    pub fn work_beyond_rate(&self, shortest: Nanos, longest: Nanos) -> Option<WorkDistribution> {
        // A closed window contains one more instant than its length.
        let lengths = [shortest, longest.max(shortest)].map(|length| length.0.saturating_add(1));
        if lengths[1] > self.period {
            return None;
        }
        let mut bins = DistributionBins::new();
        CellSweep::new(self, lengths).run(&mut bins);
        Some(bins.distribution())
    }
}
