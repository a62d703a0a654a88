//! A workload's requests as time at each stage of one kind of server.

use ::model::{Job, PerStage, Request};
use std::fmt;
use units::{ByteRate, Nanos};
use workload::device::{NetworkModel, PathWork, StorageProfile};

/// The requests of a workload on one kind of server, to be repeated for ever: a circular trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    jobs: Vec<Job>,
    period: Nanos,
}

/// Requests that make no traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrafficError {
    /// There are none.
    Empty,
    /// This one (counted from 0) arrives before the one before it.
    Unsorted(usize),
    /// The period ends before the last arrival.
    ShortPeriod,
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no requests: expected at least one"),
            Self::Unsorted(index) => write!(f, "request {index} arrives before the one before it"),
            Self::ShortPeriod => f.write_str("the period is shorter than the trace"),
        }
    }
}

impl std::error::Error for TrafficError {}

impl Traffic {
    /// Jobs in order of arrival; arrivals are counted anew from the first one. After `period` (at least from
    /// the first to the last arrival, positive) the first comes again.
    pub fn new(mut jobs: Vec<Job>, period: Nanos) -> Result<Self, TrafficError> {
        let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return Err(TrafficError::Empty) };
        let origin = first.arrival;
        if let Some(late) = jobs.windows(2).position(|pair| pair[1].arrival < pair[0].arrival) {
            return Err(TrafficError::Unsorted(late + 1));
        }
        if period == Nanos::ZERO || last.arrival - origin > period {
            return Err(TrafficError::ShortPeriod);
        }
        jobs.iter_mut().for_each(|job| job.arrival = job.arrival - origin);
        Ok(Self { jobs, period })
    }

    /// Jobs in order of arrival, all before the period's end; repeated after one mean gap between arrivals
    /// (after a second, if there is only one instant).
    pub fn of_jobs(jobs: Vec<Job>) -> Result<Self, TrafficError> {
        let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return Err(TrafficError::Empty) };
        let span = last.arrival.saturating_sub(first.arrival);
        let gap = span.0.div_ceil((jobs.len() as u64 - 1).max(1));
        let period = if span == Nanos::ZERO { Nanos(1_000_000_000) } else { span + Nanos(gap) };
        Self::new(jobs, period)
    }

    /// In order of arrival, the first at 0.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// After which the first job comes again.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Work per second of each stage, seconds: its utilisation by this workload.
    pub fn utilisation(&self) -> PerStage<f64> {
        PerStage::from_fn(|stage| {
            self.jobs.iter().map(|job| job.work[stage].0).sum::<u64>() as f64 / self.period.0 as f64
        })
    }

    /// The jobs that arrive in the first and in the second half of the period, each a trace of its own.
    /// `None` when one half is empty.
    pub fn halves(&self) -> Option<[Self; 2]> {
        let half = Nanos(self.period.0 / 2);
        let middle = self.jobs.partition_point(|job| job.arrival < half);
        let [first, second] = [&self.jobs[..middle], &self.jobs[middle..]].map(|jobs| {
            let origin = jobs.first()?.arrival;
            let length = jobs.last()?.arrival - origin;
            Self::new(jobs.to_vec(), length.max(half)).ok()
        });
        Some([first?, second?])
    }
}

/// What requests pass on a server.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// Bytes on the network by request.
    pub network: NetworkModel,
    /// Link bandwidth in each direction.
    pub bandwidth: ByteRate,
    /// `None` for a network link alone.
    pub storage: Option<&'a StorageProfile>,
    /// Factor on all work, at least 1.
    pub safety_margin: f64,
}

/// Turns requests into [`Traffic`].
#[derive(Debug)]
pub struct TrafficBuilder {
    work: PathWork,
    jobs: Vec<Job>,
}

impl TrafficBuilder {
    /// For requests that take this path.
    pub fn new(path: &Path<'_>) -> Self {
        Self {
            work: PathWork::new(path.network, path.bandwidth, path.storage, path.safety_margin),
            jobs: Vec::new(),
        }
    }

    /// Adds the next request.
    pub fn push(&mut self, request: &Request) {
        self.jobs.push(Job { arrival: request.arrival, work: self.work.work(request) });
    }

    /// The traffic of all requests so far.
    pub fn finish(self) -> Result<Traffic, TrafficError> {
        Traffic::of_jobs(self.jobs)
    }
}
