//! What is asked about ideal latencies, and what is answered.

use crate::ideal::figures::IdealOutcome;
use arrivals::{ArrivalPattern, TimeDistribution};
use sim::ideal::{IdealStation, ServiceOrder};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// A stream of requests and what serves it.
#[derive(Debug, Clone)]
pub struct IdealSettings {
    /// The arrivals of requests, measured or random.
    pub stream: IdealStream,
    /// Service time of a request.
    pub service: TimeDistribution,
    /// How many requests are served at a time.
    pub workers: NonZeroUsize,
    /// Who is served next; several disciplines are compared.
    pub disciplines: Vec<ServiceOrder>,
    /// The share of the time that workers are to be busy, below 1, which arrivals are compressed or stretched to.
    pub load: Option<f64>,
    /// The seed of service times, random arrivals and random orders.
    pub seed: u64,
}

/// The arrivals of requests, measured or random.
#[derive(Debug, Clone)]
pub enum IdealStream {
    /// Requests arrive as in this trace.
    Trace(PathBuf),
    /// Requests arrive at random.
    Random {
        /// The process of arrivals.
        arrivals: ArrivalPattern,
        /// How many requests there are, in independent streams.
        requests: u64,
    },
}

impl IdealSettings {
    /// What serves the stream under one discipline.
    pub(super) fn station(&self, order: ServiceOrder) -> IdealStation {
        IdealStation { workers: self.workers, order }
    }
}

/// What came of a stream.
#[derive(Debug)]
pub struct IdealAnswer {
    /// What the stream is called.
    pub name: String,
    /// The share of the time that workers are busy.
    pub utilisation: f64,
    /// The latencies by discipline, at least one.
    pub outcomes: Vec<IdealOutcome>,
}
