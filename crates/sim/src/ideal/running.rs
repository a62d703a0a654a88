//! A station that is told of requests one by one, and says when each starts.

use super::shared::{Line, Take};
use super::{IdealStation, OutOfOrderError, ServiceOrder};
use arrivals::TimedRequest;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// A station in the middle of a stream.
pub struct StartTimes {
    queue: Queue,
    /// How many have arrived.
    count: usize,
    previous: Nanos,
}

enum Queue {
    /// Lindley: a request starts when it arrives or when the one ahead departs, whichever is later.
    One(Nanos),
    /// Kiefer and Wolfowitz: a request starts when it arrives or when the first worker is free. Only workers that have
    /// been used are in the heap: many may never be.
    Fifo { free: BinaryHeap<Reverse<Nanos>>, workers: usize },
    /// Lindley for each worker.
    PerWorker { free: Vec<Nanos>, random: Box<StdRng> },
    /// Others keep who waits.
    Waiting(Line),
}

impl StartTimes {
    pub(super) fn new(station: IdealStation, seed: u64) -> Self {
        let workers = station.workers.get();
        let random = || Box::new(StdRng::seed_from_u64(seed));
        let queue = match station.order {
            ServiceOrder::Fifo if workers == 1 => Queue::One(Nanos::ZERO),
            ServiceOrder::Fifo => Queue::Fifo { free: BinaryHeap::new(), workers },
            ServiceOrder::RandomWorker => {
                Queue::PerWorker { free: vec![Nanos::ZERO; workers], random: random() }
            }
            ServiceOrder::Lifo => Queue::Waiting(Line::new(workers, Take::Last)),
            ServiceOrder::RandomRequest => Queue::Waiting(Line::new(workers, Take::Any(random()))),
        };
        Self { queue, count: 0, previous: Nanos::ZERO }
    }

    /// A request arrives. Tells of all starts that are certain by now, each with the tag that came with it: with one
    /// queue, all up to this arrival.
    ///
    /// # Errors
    /// When it arrives before the previous one.
    #[inline]
    pub fn arrive(
        &mut self,
        tag: usize,
        request: TimedRequest,
        mut started: impl FnMut(usize, TimedRequest, Nanos),
    ) -> Result<(), OutOfOrderError> {
        let (index, previous) = (self.count, self.previous);
        if request.arrival < previous {
            return Err(OutOfOrderError { index, arrival: request.arrival, previous });
        }
        self.previous = request.arrival;
        self.count += 1;
        let start = match &mut self.queue {
            Queue::One(free) => wait_for(free, request),
            Queue::Fifo { free, workers } => first_free(free, *workers, request),
            Queue::PerWorker { free, random } => {
                let worker = random.random_range(0..free.len());
                wait_for(&mut free[worker], request)
            }
            Queue::Waiting(line) => {
                line.arrive(tag, request, started);
                return Ok(());
            }
        };
        started(tag, request, start);
        Ok(())
    }

    /// Nobody else arrives: tells of the starts that are left.
    pub fn finish(self, started: impl FnMut(usize, TimedRequest, Nanos)) {
        if let Queue::Waiting(line) = self.queue {
            line.finish(started);
        }
    }
}

#[inline]
fn wait_for(free: &mut Nanos, request: TimedRequest) -> Nanos {
    let start = request.arrival.max(*free);
    *free = start + request.service;
    start
}

#[inline]
fn first_free(free: &mut BinaryHeap<Reverse<Nanos>>, workers: usize, request: TimedRequest) -> Nanos {
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
