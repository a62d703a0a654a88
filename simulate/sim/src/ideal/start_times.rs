//! Start of each request of a stream, computed as the requests arrive one by one.

use super::error::OutOfOrderError;
use super::service_order::ServiceOrder;
use super::shared_queue::{NextRequest, SharedQueue};
use arrivals::TimedRequest;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// A station in the middle of a stream.
pub(crate) struct StartTimes {
    queue: StationQueue,
    /// Number of requests that have arrived.
    count: usize,
    /// Arrival of the latest request.
    previous: Nanos,
}

/// State needed to compute the start of the next request.
enum StationQueue {
    /// Lindley: a request starts when it arrives or when the one ahead departs, whichever is later.
    OneWorker(Nanos),
    /// Kiefer and Wolfowitz: a request starts when it arrives or when the first worker is free. The heap
    /// holds only workers that have been used, because most may never be.
    Fifo { free: BinaryHeap<Reverse<Nanos>>, workers: usize },
    /// Lindley for each worker: the instant at which it becomes free.
    PerWorker { free: Vec<Nanos>, random: Box<StdRng> },
    /// Other orders keep the waiting requests.
    Shared(SharedQueue),
}

impl StartTimes {
    pub(super) fn new(workers: usize, order: ServiceOrder, seed: u64) -> Self {
        let random = || Box::new(StdRng::seed_from_u64(seed));
        let queue = match order {
            ServiceOrder::Fifo if workers == 1 => StationQueue::OneWorker(Nanos::ZERO),
            ServiceOrder::Fifo => StationQueue::Fifo { free: BinaryHeap::new(), workers },
            ServiceOrder::RandomWorker => {
                StationQueue::PerWorker { free: vec![Nanos::ZERO; workers], random: random() }
            }
            ServiceOrder::Lifo => StationQueue::Shared(SharedQueue::new(workers, NextRequest::Last)),
            ServiceOrder::RandomRequest => {
                StationQueue::Shared(SharedQueue::new(workers, NextRequest::Any(random())))
            }
        };
        Self { queue, count: 0, previous: Nanos::ZERO }
    }

    /// Adds a request. Reports all starts that are now certain, each with the tag of its request: with
    /// one queue, all starts up to this arrival.
    ///
    /// # Errors
    /// When it arrives before the previous one.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        tag: usize,
        request: TimedRequest,
        mut started: impl FnMut(usize, TimedRequest, Nanos),
    ) -> Result<(), OutOfOrderError> {
        let index = self.count;
        let previous = self.previous;
        if request.arrival < previous {
            return Err(OutOfOrderError { index, arrival: request.arrival, previous });
        }
        self.previous = request.arrival;
        self.count += 1;
        let start = match &mut self.queue {
            StationQueue::OneWorker(free) => start_at_worker(free, request),
            StationQueue::Fifo { free, workers } => start_at_first_free(free, *workers, request),
            StationQueue::PerWorker { free, random } => {
                let worker = random.random_range(0..free.len());
                start_at_worker(&mut free[worker], request)
            }
            StationQueue::Shared(queue) => {
                queue.arrive(tag, request, started);
                return Ok(());
            }
        };
        started(tag, request, start);
        Ok(())
    }

    /// Reports the starts that are left, when no further request arrives.
    pub(crate) fn finish(self, started: impl FnMut(usize, TimedRequest, Nanos)) {
        if let StationQueue::Shared(queue) = self.queue {
            queue.finish(started);
        }
    }
}

/// Returns the start of a request at a worker that is free from `free` on, and advances `free` to its end.
#[inline]
fn start_at_worker(free: &mut Nanos, request: TimedRequest) -> Nanos {
    let start = request.arrival.max(*free);
    *free = start + request.service;
    start
}

/// The start of a request at the worker that is free first.
#[inline]
fn start_at_first_free(
    free: &mut BinaryHeap<Reverse<Nanos>>,
    workers: usize,
    request: TimedRequest,
) -> Nanos {
    let full = free.len() == workers;
    match free.peek_mut() {
        Some(mut first) if full || first.0 <= request.arrival => {
            let start = first.0.max(request.arrival);
            *first = Reverse(start + request.service);
            start
        }
        other => {
            drop(other);
            free.push(Reverse(request.arrival + request.service));
            request.arrival
        }
    }
}
