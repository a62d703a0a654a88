//! Requests with arrival and service times, the input of a single queue.

use crate::{ArrivalPattern, ParameterError, TimeDistribution, split_seed};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use units::Nanos;

/// A request of a single queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimedRequest {
    /// The arrival since the origin of the stream.
    pub arrival: Nanos,
    /// The time that one worker needs to serve it.
    pub service: Nanos,
}

/// A random stream of requests with independent service times.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedRequestSource {
    /// The instants at which requests arrive.
    pub arrivals: ArrivalPattern,
    /// Distribution of service times.
    pub service: TimeDistribution,
}

impl TimedRequestSource {
    /// The requests, without end; arrivals do not decrease.
    ///
    /// # Errors
    /// When a parameter of the arrivals is out of its range.
    pub fn requests(
        &self,
        seed: u64,
    ) -> Result<impl Iterator<Item = TimedRequest> + Send + use<>, ParameterError> {
        let arrivals = self.arrivals.instants(seed)?;
        // A separate generator for service times: drawing them does not change the arrivals.
        let mut random = StdRng::seed_from_u64(split_seed(seed, u64::MAX));
        let sampler = self.service.sampler();
        Ok(arrivals.map(move |arrival| TimedRequest { arrival, service: sampler.draw(&mut random) }))
    }
}
