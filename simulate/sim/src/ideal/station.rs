//! An A/S/c queue, and the latencies of a stream that goes through it.

use super::distribution::LatencyDistribution;
use super::error::OutOfOrderError;
use super::service_order::ServiceOrder;
use super::start_times::StartTimes;
use arrivals::TimedRequest;
use std::num::NonZeroUsize;
use units::Nanos;

/// Workers, and the order in which they take requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdealStation {
    /// Number of requests served at a time.
    pub workers: NonZeroUsize,
    /// Order in which waiting requests are served.
    pub order: ServiceOrder,
}

impl IdealStation {
    /// Reports the start of each request: its index in the stream, the request, the start. FIFO and queues
    /// per worker report in order of arrival, the others in order of starts. All randomness comes from the
    /// seed.
    ///
    /// # Errors
    /// When arrivals decrease; the starts reported so far hold.
    ///
    /// # Panics
    /// When a start is beyond 584 years.
    pub fn starts(
        self,
        requests: impl IntoIterator<Item = TimedRequest>,
        seed: u64,
        mut started: impl FnMut(usize, TimedRequest, Nanos),
    ) -> Result<(), OutOfOrderError> {
        let mut start_times = self.start_times(seed);
        for (index, request) in requests.into_iter().enumerate() {
            start_times.arrive(index, request, &mut started)?;
        }
        start_times.finish(started);
        Ok(())
    }

    /// The station before its first request. Randomness comes from the seed.
    pub(crate) fn start_times(self, seed: u64) -> StartTimes {
        StartTimes::new(self.workers.get(), self.order, seed)
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
