//! A stream played through a station: each request is followed until it is complete, and then summarised.

use super::error::OutOfOrderError;
use super::start_times::StartTimes;
use super::station::IdealStation;
use super::summary::Summary;
use crate::engine::OrderTracker;
use arrivals::TimedRequest;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// A station in the middle of a stream, with a summary of the complete requests. Memory is proportional
/// to the requests inside.
pub struct StationRun {
    start_times: StartTimes,
    unfinished: UnfinishedRequests,
    summary: Summary,
}

/// The requests that are not complete.
struct UnfinishedRequests {
    order: OrderTracker,
    requests: Slab<UnfinishedRequest>,
    /// The requests that have started: completion, number, slot. Equal completions go by arrival.
    completions: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrived: u64,
    /// Number of requests at the beginning that are not summarised.
    warm_up: u64,
}

#[derive(Clone, Copy)]
struct UnfinishedRequest {
    request: TimedRequest,
    /// Its position in the stream, from 0.
    number: u64,
}

impl StationRun {
    /// A run that begins with an empty station. The first `warm_up` requests are played, but not summarised. Randomness
    /// comes from the seed.
    pub fn new(station: IdealStation, seed: u64, warm_up: u64, summary: Summary) -> Self {
        let unfinished = UnfinishedRequests {
            order: OrderTracker::default(),
            requests: Slab::new(),
            completions: BinaryHeap::new(),
            arrived: 0,
            warm_up,
        };
        Self { start_times: station.start_times(seed), unfinished, summary }
    }

    /// The next request arrives.
    ///
    /// # Errors
    /// When it arrives before the previous one.
    ///
    /// # Panics
    /// When it ends beyond 584 years.
    #[inline]
    pub fn arrive(&mut self, request: TimedRequest) -> Result<(), OutOfOrderError> {
        let slot = self.unfinished.enter(request);
        let Self { start_times, unfinished, .. } = self;
        start_times.arrive(slot as usize, request, |slot, request, start| {
            unfinished.start(slot, request, start);
        })?;
        // All requests that end before this arrival have started, and all that precede them in the ideal
        // order are known.
        self.unfinished.complete(|end| end < request.arrival.0, &mut self.summary);
        Ok(())
    }

    /// The summary of all requests, when no further one arrives.
    pub fn finish(self) -> Summary {
        let Self { start_times, mut unfinished, mut summary } = self;
        start_times.finish(|slot, request, start| unfinished.start(slot, request, start));
        unfinished.complete(|_| true, &mut summary);
        summary
    }
}

impl UnfinishedRequests {
    /// Takes a request in and returns its slot.
    #[inline]
    fn enter(&mut self, request: TimedRequest) -> u32 {
        let number = self.arrived;
        let slot = self.requests.insert(UnfinishedRequest { request, number });
        let slot = u32::try_from(slot).expect("memory ends before four billion are inside");
        let ideal = request.arrival + request.service;
        self.order.enter(ideal.0, number, slot);
        self.arrived += 1;
        slot
    }

    #[inline]
    fn start(&mut self, slot: usize, request: TimedRequest, start: Nanos) {
        let number = self.requests[slot].number;
        // The slot was a u32 when the request entered.
        #[allow(clippy::cast_possible_truncation)]
        self.completions.push(Reverse(((start + request.service).0, number, slot as u32)));
    }

    /// Summarises the requests that have started and whose completion `is_due`.
    #[inline]
    fn complete(&mut self, is_due: impl Fn(u64) -> bool, summary: &mut Summary) {
        while let Some(Reverse((end, number, slot))) = self.completions.peek().copied()
            && is_due(end)
        {
            self.completions.pop();
            let deviation = self.order.complete(end, slot);
            let finished = self.requests.remove(slot as usize);
            if number >= self.warm_up {
                summary.record(finished.request, Nanos(end), deviation.displaced);
            }
        }
    }
}
