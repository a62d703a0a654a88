//! The ideal latency of a service: what queueing alone does to an arrival stream (Tales of the Tail §2).
//!
//! A [`IdealStation`] is an A/S/c queue: workers that serve one request at a time, without interruption and without
//! any cost of their own, in the order of an [`ServiceOrder`]. Whatever a real server takes beyond the latencies of
//! this model is not due to the arrivals and the utilisation.
//!
//! FIFO is the recursion of Kiefer and Wolfowitz (Lindley's for one worker), a queue per worker is Lindley's for
//! each; LIFO and random requests keep the waiting ones. n requests at c workers take O(n log c); FIFO and
//! queues per worker hold O(c) words, the others also the waiting requests. [`StationRun`] collects what became of a stream
//! in a [`Summary`] whose memory does not grow with it, and [`replicate`] does so for several random streams.
//!
//! Ties: at one instant departures come before arrivals, arrivals in their given order, and a request that finds
//! a worker idle starts at once. Of several workers that become free at one instant any may go on: it makes no
//! difference.
//!
//! Not covered: service that is shared, preempted or depends on the queue; several stations.

mod distribution;
mod play;
mod replicate;
mod running;
mod shared;
mod summary;

pub use distribution::LatencyDistribution;
pub use play::StationRun;
pub use replicate::{ReplicationSizes, replicate};
pub use running::StartTimes;
pub use summary::Summary;

use arrivals::TimedRequest;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use units::{Nanos, ParseError};

/// Which request a worker takes next (Tales of the Tail §2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceOrder {
    /// The one that has waited longest.
    Fifo,
    /// The one that came last.
    Lifo,
    /// Any of the waiting ones, equally likely.
    RandomRequest,
    /// Every worker has a FIFO queue, and a request joins one of them at random.
    RandomWorker,
}

impl ServiceOrder {
    /// All, in the order of the paper.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Lifo, Self::RandomWorker, Self::RandomRequest];

    fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
            Self::RandomRequest => "random-request",
            Self::RandomWorker => "random-worker",
        }
    }
}

impl fmt::Display for ServiceOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ServiceOrder {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text.trim());
        found.ok_or_else(|| ParseError::new(text, "fifo, lifo, random-request or random-worker"))
    }
}

/// Workers, and the order in which they take requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdealStation {
    /// How many requests are served at a time.
    pub workers: NonZeroUsize,
    /// Which are next.
    pub order: ServiceOrder,
}

/// A request that arrives before the one given ahead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrderError {
    /// Counted from 0.
    pub index: usize,
    /// When it arrives.
    pub arrival: Nanos,
    /// When the one ahead of it does.
    pub previous: Nanos,
}

impl fmt::Display for OutOfOrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, arrival, previous } = self;
        write!(
            f,
            "request {index} arrives at {arrival}, before the previous one at {previous}: sort by arrival"
        )
    }
}

impl std::error::Error for OutOfOrderError {}

impl IdealStation {
    /// Tells when each request starts: its place in the stream, the request, the start. FIFO and queues per worker
    /// tell in the order of arrivals, the others in that of starts. Randomness comes from the seed.
    ///
    /// # Errors
    /// When arrivals decrease; the starts told so far hold.
    ///
    /// # Panics
    /// When a start is beyond 584 years.
    pub fn starts(
        self,
        requests: impl IntoIterator<Item = TimedRequest>,
        seed: u64,
        mut started: impl FnMut(usize, TimedRequest, Nanos),
    ) -> Result<(), OutOfOrderError> {
        let mut running = self.running(seed);
        for (index, request) in requests.into_iter().enumerate() {
            running.arrive(index, request, &mut started)?;
        }
        running.finish(started);
        Ok(())
    }

    /// The station before its first request. Randomness comes from the seed.
    pub fn running(self, seed: u64) -> StartTimes {
        StartTimes::new(self, seed)
    }

    /// The latency of each request, start − arrival + service, in the order of arrivals.
    ///
    /// # Errors
    /// When arrivals decrease.
    pub fn latencies(
        self,
        requests: impl IntoIterator<Item = TimedRequest>,
        seed: u64,
    ) -> Result<Vec<Nanos>, OutOfOrderError> {
        let mut latencies = Vec::new();
        self.starts(requests, seed, |index, request, start| {
            if latencies.len() <= index {
                latencies.resize(index + 1, Nanos::ZERO);
            }
            latencies[index] = start - request.arrival + request.service;
        })?;
        Ok(latencies)
    }

    /// The distribution of the latencies; `None` without requests.
    ///
    /// # Errors
    /// When arrivals decrease.
    pub fn distribution(
        self,
        requests: impl IntoIterator<Item = TimedRequest>,
        seed: u64,
    ) -> Result<Option<LatencyDistribution>, OutOfOrderError> {
        Ok(LatencyDistribution::new(self.latencies(requests, seed)?))
    }
}
