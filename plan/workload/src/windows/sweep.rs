//! Sweeps a window of fixed length over a circular trace, and weights each amount of work by the time for which the
//! window contains it.

use super::circular_work::CircularWork;
use super::distribution::{DistributionBins, WorkDistribution};
use std::collections::VecDeque;
use units::Nanos;

/// The jobs in the window (start, start + length]. Indices count through the repetitions of the trace.
struct WindowSweep<'a> {
    stream: &'a CircularWork,
    length: u64,
    /// The first job inside the window.
    inside: usize,
    /// The first job beyond the window.
    beyond: usize,
    work: u64,
    /// The largest straddling work inside the window: at the first turning point, at the second, at both.
    straddling: [SlidingMaximum; 3],
}

impl<'a> WindowSweep<'a> {
    /// The window that starts at 0.
    fn new(stream: &'a CircularWork, length: u64) -> Self {
        let inside = stream.jobs.partition_point(|job| job.at == 0);
        let straddling = [SlidingMaximum::default(), SlidingMaximum::default(), SlidingMaximum::default()];
        let mut sweep = Self { stream, length, inside, beyond: inside, work: 0, straddling };
        while sweep.arrival(sweep.beyond) <= length {
            sweep.enter();
        }
        sweep
    }

    /// When the job with this index arrives.
    fn arrival(&self, index: usize) -> u64 {
        let count = self.stream.jobs.len();
        // The index is in the third round at most: a window shorter than the period starts within the first.
        let (index, origin) = if index < count { (index, 0) } else { (index - count, self.stream.period) };
        let (index, origin) =
            if index < count { (index, origin) } else { (index - count, origin + self.stream.period) };
        self.stream.jobs[index].at + origin
    }

    fn enter(&mut self) {
        let job = self.stream.jobs[self.beyond % self.stream.jobs.len()];
        self.work += job.work;
        if self.stream.allowance > 0 {
            let values = [job.straddle[0], job.straddle[1], job.straddle_both];
            self.straddling
                .iter_mut()
                .zip(values)
                .for_each(|(maximum, value)| maximum.enter(self.beyond, value));
        }
        self.beyond += 1;
    }

    fn leave(&mut self) {
        self.work -= self.stream.jobs[self.inside % self.stream.jobs.len()].work;
        self.inside += 1;
        self.straddling.iter_mut().for_each(|maximum| maximum.leave(self.inside));
    }

    /// The work inside the window and its allowance.
    fn work_and_allowance(&self) -> u64 {
        let [first, second, both] = &self.straddling;
        self.work + both.value().max(first.value() + second.value())
    }

    /// Moves the start of the window through one period, and adds the time for which each amount of work lasts.
    fn run(mut self, bins: &mut DistributionBins, whole_rounds: u64) {
        let mut start = 0;
        while start < self.stream.period {
            let leaves = self.arrival(self.inside);
            let enters = self.arrival(self.beyond) - self.length;
            let next = leaves.min(enters).min(self.stream.period);
            if next > start {
                bins.add(self.with_whole_rounds(whole_rounds), next - start);
                start = next;
            }
            // A job that enters and leaves at the same instant has to enter first.
            if enters <= next {
                self.enter();
            }
            if leaves <= next {
                self.leave();
            }
        }
    }

    /// The work and allowance of a window that contains `whole_rounds` periods in addition to this window; the largest
    /// number where there is more, which is centuries.
    fn with_whole_rounds(&self, whole_rounds: u64) -> u64 {
        match whole_rounds {
            0 => self.work_and_allowance(),
            rounds => {
                let others = rounds.saturating_mul(self.stream.total);
                others.saturating_add(self.work).saturating_add(self.stream.allowance)
            }
        }
    }
}

/// The maximum of the values inside a sliding window, by the monotonic queue of those that may still become it.
#[derive(Default)]
struct SlidingMaximum {
    /// The indices and values of candidates; values decrease.
    candidates: VecDeque<(usize, u64)>,
}

impl SlidingMaximum {
    fn enter(&mut self, index: usize, value: u64) {
        while self.candidates.back().is_some_and(|&(_, last)| last <= value) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((index, value));
    }

    fn leave(&mut self, inside: usize) {
        while self.candidates.front().is_some_and(|&(index, _)| index < inside) {
            self.candidates.pop_front();
        }
    }

    fn value(&self) -> u64 {
        self.candidates.front().map_or(0, |&(_, value)| value)
    }
}

impl CircularWork {
    /// The distribution, in seconds, of the work in a closed window whose start is uniform over the period.
    pub fn work_in_window(&self, window: Nanos) -> WorkDistribution {
        self.bins_in_window(window).distribution()
    }

    /// The same distribution with each value rounded up to the largest one of its bin, whether a window has that much or not.
    /// Of two windows of which one contains the other, the longer one never has less after rounding, either.
    pub fn work_in_window_by_bins(&self, window: Nanos) -> WorkDistribution {
        self.bins_in_window(window).distribution_at_ceilings()
    }

    fn bins_in_window(&self, window: Nanos) -> DistributionBins {
        // Times are whole nanoseconds, so a closed window contains one more instant than its length; for a continuous
        // alignment that is a nanosecond too long.
        let length = window.0.saturating_add(1);
        let rounds = length / self.period;
        let rest = length % self.period;
        let mut bins = DistributionBins::new();
        WindowSweep::new(self, rest).run(&mut bins, rounds);
        bins
    }
}
