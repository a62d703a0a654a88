//! How much work a stream asks for within windows of time, as a law instead of a maximum.
//!
//! The stream is a circular trace: after its period it comes again. Its law over a window is that of the
//! work that arrives in a window whose start is uniform over the period, which is what a replay with a
//! uniform relative shift sees of it; nothing is fitted and nothing is assumed about its process. Requests
//! do not see what time sees (a burst holds many requests in little time), so the law of what a request
//! finds of its own stream is taken over requests: [`Stream::backlog_at_arrivals`].
//!
//! A path of stages counts as one queue. A job's work there is the most that any stage works on it, and a
//! window has an allowance besides: the jobs that straddle a turning point of the busy periods that lead to
//! a completion are worked on at two or three stages in sequence. With works w₁, w₂, w₃ the allowance of a
//! window is the larger of `max_j (w₁ + w₂ + w₃ − max w)` (one job straddles both turning points) and
//! `max_j min(w₁, w₂) + max_j min(w₂, w₃)` (one job each). Why this is enough stands at the latency model
//! that uses it.
//!
//! Laws round outward: work in one of 16 bins per octave counts as the largest work seen in it.
//!
//! Not covered: dependence between streams, and anything about traffic that the trace does not show.

mod backlog;
mod law;
mod sliding;

pub use law::{Atom, Law};

use model::Job;
use units::Nanos;

/// A job as the joint queue of its stages sees it, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Item {
    at: u64,
    /// The most that one stage works on it.
    work: u64,
    /// What it adds when it straddles the first, the second, or both turning points.
    straddle: [u64; 2],
    straddle_both: u64,
}

impl Item {
    fn new(job: &Job) -> Self {
        let [first, second, third] = job.work.map(|work| work.0).into_array();
        let work = first.max(second).max(third);
        Self {
            at: job.arrival.0,
            work,
            straddle: [first.min(second), second.min(third)],
            straddle_both: first + second + third - work,
        }
    }
}

/// A circular trace of jobs.
#[derive(Debug, Clone)]
pub struct Stream {
    items: Vec<Item>,
    period: u64,
    /// Work of one period.
    total: u64,
    /// The largest allowance that any window needs.
    allowance: u64,
}

impl Stream {
    /// Jobs in order of arrival, from 0 and at most `period`, which is positive.
    ///
    /// # Panics
    /// If there are no jobs, or they are out of order or beyond the period.
    pub fn new(jobs: &[Job], period: Nanos) -> Self {
        assert!(!jobs.is_empty() && jobs.is_sorted_by_key(|job| job.arrival), "jobs in order of arrival");
        assert!(period > Nanos::ZERO && jobs[jobs.len() - 1].arrival <= period, "all within the period");
        let items: Vec<Item> = jobs.iter().map(Item::new).collect();
        let most = |of: fn(&Item) -> u64| items.iter().map(of).max().unwrap_or(0);
        let apart = most(|item| item.straddle[0]) + most(|item| item.straddle[1]);
        Self {
            allowance: most(|item| item.straddle_both).max(apart),
            total: items.iter().map(|item| item.work).sum(),
            period: period.0,
            items,
        }
    }

    /// Work per time in the long run.
    pub fn rate(&self) -> f64 {
        self.total as f64 / self.period as f64
    }

    /// The least b in seconds such that no window of length τ holds more than b + rate·τ, allowance included.
    pub fn burst(&self) -> f64 {
        let rate = self.rate();
        let (mut before, mut lowest, mut highest) = (0.0f64, 0.0f64, 0.0f64);
        for item in &self.items {
            lowest = lowest.min(before - rate * item.at as f64);
            before += item.work as f64;
            highest = highest.max(before - rate * item.at as f64);
        }
        // A window that spans the wrap begins low in one period and ends high in the next.
        (highest - lowest + self.allowance as f64) * 1e-9 * (1.0 + 1e-9)
    }

    /// The law of the work in a closed window whose start is uniform over the period, seconds.
    pub fn work_in_window(&self, window: Nanos) -> Law {
        sliding::law(self, window.0)
    }

    /// The law, over the stream's requests, of `sup_u (work in [t − u, t] − service·u)` at the arrival t of a
    /// request, allowance included: what it finds of its own stream, itself included, when a fraction
    /// `service` of the queue works for it. Requests at the same instant count in their order. `None` where
    /// the stream asks for more than `service`.
    pub fn backlog_at_arrivals(&self, service: f64) -> Option<Law> {
        (self.rate() <= service).then(|| backlog::law(self, service))
    }
}

#[cfg(test)]
mod tests;
