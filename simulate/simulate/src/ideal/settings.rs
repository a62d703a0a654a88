//! Settings and answer of a computation of ideal latencies.

use crate::ideal::figures::IdealOutcome;
use arrivals::{ArrivalPattern, TimeDistribution};
use sim::ideal::{IdealStation, ServiceOrder};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use units::Nanos;

/// A stream of requests and its servers.
#[derive(Debug, Clone)]
pub struct IdealSettings {
    /// The arrivals of requests, measured or random.
    pub stream: IdealStream,
    /// Service time of a request.
    pub service: TimeDistribution,
    /// Number of requests served at a time.
    pub workers: NonZeroUsize,
    /// Orders of service to compare.
    pub disciplines: Vec<ServiceOrder>,
    /// Target utilisation of the workers, below 1; arrivals are compressed or stretched to it.
    pub load: Option<f64>,
    /// Seed of service times, random arrivals and random orders.
    pub seed: u64,
}

/// The arrivals of requests, measured or random.
#[derive(Debug, Clone)]
pub enum IdealStream {
    /// Arrivals of this trace.
    Trace(PathBuf),
    /// These arrivals, in order of time.
    Recorded {
        /// Name of the stream in the answer.
        name: String,
        /// Arrivals, from one origin.
        arrivals: Vec<Nanos>,
    },
    /// Random arrivals.
    Random {
        /// Arrival process.
        arrivals: ArrivalPattern,
        /// Total number of requests, in independent streams.
        requests: u64,
    },
}

impl IdealSettings {
    /// Returns the station that serves the stream under one discipline.
    pub(super) fn station(&self, order: ServiceOrder) -> IdealStation {
        IdealStation { workers: self.workers, order }
    }
}

/// Latencies of a stream.
#[derive(Debug)]
pub struct IdealAnswer {
    /// Name of the stream.
    pub name: String,
    /// Share of the time that workers are busy.
    pub utilisation: f64,
    /// Latencies by discipline, at least one.
    pub outcomes: Vec<IdealOutcome>,
    /// Number of requests that this utilisation takes, if the streams are too short to be sure of their figures.
    pub requests_needed: Option<u64>,
}
