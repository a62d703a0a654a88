//! Observed requests: the common result of simulations, load generation and the storage proxy.

use crate::Op;
use units::{Bytes, Nanos};

/// Outcomes of the requests of some workloads, in a simulation or on machines; verification treats both
/// alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observations {
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Names of the measured stages, in the order in which a request passes them; may be empty.
    pub stages: Vec<String>,
    /// The requests, sorted by intended time.
    pub requests: Vec<Observation>,
    /// Time that each request spent in each stage: all stages of the first request in the order of
    /// `stages`, then those of the second. As long as requests × stages.
    pub stage_times: Vec<Nanos>,
}

/// One request. Instants count from an origin that all requests share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Index of its workload.
    pub workload: u32,
    /// Direction of the payload.
    pub op: Op,
    /// The number of bytes read or written.
    pub size: Bytes,
    /// Intended sending time, independent of earlier requests. Latency counts from here, so that a slow
    /// system cannot hide delay by slowing its clients down (coordinated omission).
    pub intended: Nanos,
    /// Actual sending time; the intended time in a simulation.
    pub sent: Nanos,
    /// Outcome of the request, with the time of its complete answer.
    pub outcome: RequestOutcome,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Answered at this instant.
    Done(Nanos),
    /// Answered with an error at this instant.
    Failed(Nanos),
    /// No answer came before the observation ended.
    Lost,
}

impl Observation {
    /// Returns the time from the intended instant to the answer; `None` without an answer or for an
    /// error.
    pub fn latency(&self) -> Option<Nanos> {
        match self.outcome {
            RequestOutcome::Done(at) => Some(at - self.intended),
            RequestOutcome::Failed(_) | RequestOutcome::Lost => None,
        }
    }
}
