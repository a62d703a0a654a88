//! The delay that a stream causes to work which it overtakes, and the backlog that it has at a random instant.

use super::circular_work::CircularWork;
use super::distribution::{DistributionBins, WorkDistribution, bin_floor};

impl CircularWork {
    /// The distribution over time, in seconds and without allowance, of `sup_u (work in [t − u, t] − service·u)`: the
    /// backlog at a uniformly distributed instant t when a fraction `service` of the queue works for the stream. `None`
    /// where the stream asks for more than that.
    pub fn backlog_over_time(&self, service: f64) -> Option<WorkDistribution> {
        if self.rate() > service {
            return None;
        }
        let mut bins = DistributionBins::new();
        for (level, job) in DelaySweep::new(self, service) {
            let gap = self.arrival(job + 1) - self.arrival(job);
            add_falling(&mut bins, (level, 0.0), service, gap);
        }
        Some(bins.distribution())
    }

    /// The distribution over time, in seconds and without allowance, of the least y for which
    /// `B(t) + work in (t, t + y] + begun < y`, where B(t) is the backlog of [`Self::backlog_over_time`] at a uniformly
    /// distributed instant t: the time that `begun` seconds of other work take from t on when every job of the stream that
    /// comes meanwhile goes first. `None` where the stream asks for more than `service`, or keeps the queue busy for ever.
    pub fn delay_over_time(&self, service: f64, begun: f64) -> Option<WorkDistribution> {
        if self.rate() > service || self.rate() >= 1.0 {
            return None;
        }
        let mut bins = DistributionBins::new();
        // The first job that is not done before the delayed work. The end of that work never moves back while t goes on,
        // because neither a time step nor an arrival makes `t + B(t) + work in (t, …]` smaller.
        let mut next = 0;
        for (level, job) in DelaySweep::new(self, service) {
            let from = self.arrival(job);
            let to = self.arrival(job + 1);
            next = next.max(job + 1);
            let mut overtaking = (self.work_before(next) - self.work_before(job + 1)) as f64 + begun * 1e9;
            let mut now = from;
            while now < to {
                let backlog = (level - service * (now - from) as f64).max(0.0);
                let end = |overtaking: f64| {
                    let end = now as f64 + backlog + overtaking;
                    end + 1.0 + end * 1e-12
                };
                while self.arrival(next) as f64 <= end(overtaking) {
                    overtaking += self.job_work(next) as f64;
                    next += 1;
                }
                // The end advances at rate 1 − service while there is backlog, then at 1, until the next job
                // arrives.
                let slack = self.arrival(next) as f64 - end(overtaking);
                let idle_in = backlog / service;
                let reached_in = if slack < (1.0 - service) * idle_in {
                    slack / (1.0 - service)
                } else {
                    idle_in + slack - (1.0 - service) * idle_in
                };
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
                let piece = (reached_in as u64).clamp(1, to - now);
                add_falling(&mut bins, (backlog + overtaking, overtaking), service, piece);
                now += piece;
            }
        }
        Some(bins.distribution())
    }

    /// The instant of the job with this index, which counts through the repetitions of the trace.
    fn arrival(&self, index: usize) -> u64 {
        let count = self.jobs.len();
        self.jobs[index % count].at + (index / count) as u64 * self.period
    }

    fn job_work(&self, index: usize) -> u64 {
        self.jobs[index % self.jobs.len()].work
    }

    /// The work of all jobs before this one.
    fn work_before(&self, index: usize) -> u64 {
        let count = self.jobs.len();
        self.before[index % count] + (index / count) as u64 * self.total
    }

    /// The largest allowance that any window needs, seconds.
    pub fn allowance(&self) -> f64 {
        self.allowance as f64 * 1e-9 * (1.0 + 1e-12)
    }
}

/// The backlogs just after the jobs of one whole period, in nanoseconds, with the indices of these jobs.
struct DelaySweep<'a> {
    stream: &'a CircularWork,
    service: f64,
    level: f64,
    job: usize,
}

impl<'a> DelaySweep<'a> {
    /// The backlogs from the last job of the first round on: in that round, an empty queue has filled as it does for ever,
    /// because it serves at least the mean rate.
    fn new(stream: &'a CircularWork, service: f64) -> Self {
        let mut sweep = Self { stream, service, level: stream.job_work(0) as f64, job: 0 };
        while sweep.job + 1 < stream.jobs.len() {
            sweep.advance();
        }
        sweep
    }

    fn advance(&mut self) {
        let gap = (self.stream.arrival(self.job + 1) - self.stream.arrival(self.job)) as f64;
        self.job += 1;
        self.level = (self.level - self.service * gap).max(0.0) + self.stream.job_work(self.job) as f64;
    }
}

impl Iterator for DelaySweep<'_> {
    type Item = (f64, usize);

    fn next(&mut self) -> Option<(f64, usize)> {
        let last_of_period = 2 * self.stream.jobs.len() - 1;
        if self.job == last_of_period {
            return None;
        }
        let found = (self.level, self.job);
        self.advance();
        Some(found)
    }
}

/// Adds so many nanoseconds in which an amount falls at a rate to a constant and stays there; the largest amount of a piece
/// in one bin counts for all of it.
fn add_falling(bins: &mut DistributionBins, (from, constant): (f64, f64), rate: f64, duration: u64) {
    let mut left = duration;
    let mut amount = from;
    while left > 0 && amount > constant {
        let value = nanos_up(amount);
        let lowest = (bin_floor(value) as f64 - 1.0).max(constant);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
        let piece = (((amount - lowest) / rate) as u64).clamp(1, left);
        bins.add(value, piece);
        left -= piece;
        amount -= rate * piece as f64;
    }
    if left > 0 {
        bins.add(nanos_up(constant), left);
    }
}

/// Rounds up to whole nanoseconds, beyond what rounding in a sweep can have lost.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn nanos_up(ns: f64) -> u64 {
    (ns * (1.0 + 1e-9) + 1e-3).ceil() as u64
}
