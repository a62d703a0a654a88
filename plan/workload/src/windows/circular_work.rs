//! The work of a circular trace of jobs, as the joint queue of their stages sees it.

use model::Job;
use units::Nanos;

/// A job in the joint queue of its stages. Times are nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueJob {
    pub(super) at: u64,
    /// The most that any single stage works on the job.
    pub(super) work: u64,
    /// The work that the job adds when it straddles the first turning point, or the second one.
    pub(super) straddle: [u64; 2],
    /// The work that the job adds when it straddles both turning points.
    pub(super) straddle_both: u64,
}

impl QueueJob {
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

/// The work of a circular trace of jobs.
#[derive(Debug, Clone)]
pub struct CircularWork {
    pub(super) jobs: Vec<QueueJob>,
    /// The work of the jobs before each one.
    pub(super) before: Vec<u64>,
    /// The period in nanoseconds.
    pub(super) period: u64,
    /// The work of one period.
    pub(super) total: u64,
    /// The largest allowance that any window needs.
    pub(super) allowance: u64,
}

impl CircularWork {
    /// Takes jobs in order of arrival, from 0 to at most `period`, which is positive.
    ///
    /// # Panics
    /// If there are no jobs, or they are out of order or beyond the period.
    pub fn new(jobs: &[Job], period: Nanos) -> Self {
        assert!(!jobs.is_empty() && jobs.is_sorted_by_key(|job| job.arrival), "jobs in order of arrival");
        assert!(period > Nanos::ZERO && jobs[jobs.len() - 1].arrival <= period, "all within the period");
        let jobs: Vec<QueueJob> = jobs.iter().map(QueueJob::new).collect();
        let largest_first = largest(&jobs, |job| job.straddle[0]);
        let largest_second = largest(&jobs, |job| job.straddle[1]);
        let largest_both = largest(&jobs, |job| job.straddle_both);
        Self {
            allowance: largest_both.max(largest_first + largest_second),
            total: jobs.iter().map(|job| job.work).sum(),
            before: work_before(&jobs),
            period: period.0,
            jobs,
        }
    }

    /// The long-run utilisation: work per time, where 1 keeps a server busy all the time.
    pub fn rate(&self) -> f64 {
        self.total as f64 / self.period as f64
    }

    /// The memory that the jobs occupy, bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&self.jobs[..]) + size_of_val(&self.before[..])
    }

    /// The least b in seconds such that no window of length τ contains more than b + rate·τ, allowance included.
    pub fn burst(&self) -> f64 {
        let rate = self.rate();
        let mut before = 0.0f64;
        let mut lowest = 0.0f64;
        let mut highest = 0.0f64;
        for job in &self.jobs {
            lowest = lowest.min(before - rate * job.at as f64);
            before += job.work as f64;
            highest = highest.max(before - rate * job.at as f64);
        }
        // A window across the end of the period begins low in one period and ends high in the next.
        (highest - lowest + self.allowance as f64) * 1e-9 * (1.0 + 1e-9)
    }
}

fn work_before(jobs: &[QueueJob]) -> Vec<u64> {
    let sums = jobs.iter().scan(0, |sum, job| {
        let before = *sum;
        *sum += job.work;
        Some(before)
    });
    sums.collect()
}

fn largest(jobs: &[QueueJob], value: fn(&QueueJob) -> u64) -> u64 {
    jobs.iter().map(value).max().unwrap_or(0)
}
