//! The ideal latency of a service: what queueing alone does to an arrival stream (Tales of the Tail §2).
//!
//! A [`Station`] is an A/S/c queue: workers that serve one request at a time, without interruption and without
//! any cost of their own, in the order of an [`Order`]. Whatever a real server takes beyond the latencies of
//! this model is not due to the arrivals and the utilisation.
//!
//! FIFO is the recursion of Kiefer and Wolfowitz (Lindley's for one worker), a queue per worker is Lindley's for
//! each; LIFO and random requests keep the waiting ones. n requests at c workers take O(n log c); FIFO and
//! queues per worker hold O(c) words, the others also the waiting requests.
//!
//! Ties: at one instant departures come before arrivals, arrivals in their given order, and a request that finds
//! a worker idle starts at once. Of several workers that become free at one instant any may go on: it makes no
//! difference.
//!
//! Not covered: service that is shared, preempted or depends on the queue; several stations.

mod distribution;
mod shared;

pub use distribution::Distribution;

use crate::source::Demand;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use units::{Nanos, ParseError};

/// Which request a worker takes next (Tales of the Tail §2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The one that has waited longest.
    Fifo,
    /// The one that came last.
    Lifo,
    /// Any of the waiting ones, equally likely.
    RandomRequest,
    /// Every worker has a FIFO queue, and a request joins one of them at random.
    RandomWorker,
}

impl Order {
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

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Order {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text.trim());
        found.ok_or_else(|| ParseError::new(text, "fifo, lifo, random-request or random-worker"))
    }
}

/// Workers, and the order in which they take requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Station {
    /// How many requests are served at a time.
    pub workers: NonZeroUsize,
    /// Which are next.
    pub order: Order,
}

/// A request that arrives before the one given ahead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrder {
    /// Counted from 0.
    pub index: usize,
    /// When it arrives.
    pub arrival: Nanos,
    /// When the one ahead of it does.
    pub previous: Nanos,
}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, arrival, previous } = self;
        write!(
            f,
            "request {index} arrives at {arrival}, before the previous one at {previous}: sort by arrival"
        )
    }
}

impl std::error::Error for OutOfOrder {}

impl Station {
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
        demands: impl IntoIterator<Item = Demand>,
        seed: u64,
        started: impl FnMut(usize, Demand, Nanos),
    ) -> Result<(), OutOfOrder> {
        let ordered = Ordered { inner: demands.into_iter().enumerate(), previous: Nanos::ZERO };
        let random = StdRng::seed_from_u64(seed);
        match self.order {
            Order::Fifo if self.workers.get() == 1 => one_worker(ordered, started),
            Order::Fifo => kiefer_wolfowitz(ordered, self.workers.get(), started),
            Order::RandomWorker => queue_per_worker(ordered, self.workers.get(), random, started),
            Order::Lifo => shared::run(ordered, self.workers.get(), Vec::pop, started),
            Order::RandomRequest => shared::run(ordered, self.workers.get(), shared::any(random), started),
        }
    }

    /// The latency of each request, start − arrival + service, in the order of arrivals.
    ///
    /// # Errors
    /// When arrivals decrease.
    pub fn latencies(
        self,
        demands: impl IntoIterator<Item = Demand>,
        seed: u64,
    ) -> Result<Vec<Nanos>, OutOfOrder> {
        let mut latencies = Vec::new();
        self.starts(demands, seed, |index, demand, start| {
            if latencies.len() <= index {
                latencies.resize(index + 1, Nanos::ZERO);
            }
            latencies[index] = start - demand.arrival + demand.service;
        })?;
        Ok(latencies)
    }

    /// The distribution of the latencies; `None` without requests.
    ///
    /// # Errors
    /// When arrivals decrease.
    pub fn distribution(
        self,
        demands: impl IntoIterator<Item = Demand>,
        seed: u64,
    ) -> Result<Option<Distribution>, OutOfOrder> {
        Ok(Distribution::new(self.latencies(demands, seed)?))
    }
}

/// Demands with their places, checked.
struct Ordered<I> {
    inner: I,
    previous: Nanos,
}

impl<I: Iterator<Item = (usize, Demand)>> Iterator for Ordered<I> {
    type Item = Result<(usize, Demand), OutOfOrder>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (index, demand) = self.inner.next()?;
        let previous = std::mem::replace(&mut self.previous, demand.arrival);
        if demand.arrival < previous {
            return Some(Err(OutOfOrder { index, arrival: demand.arrival, previous }));
        }
        Some(Ok((index, demand)))
    }
}

type Item = Result<(usize, Demand), OutOfOrder>;

/// Lindley: a request starts when it arrives or when the one ahead departs, whichever is later.
fn one_worker(
    demands: impl Iterator<Item = Item>,
    mut started: impl FnMut(usize, Demand, Nanos),
) -> Result<(), OutOfOrder> {
    let mut free = Nanos::ZERO;
    for item in demands {
        let (index, demand) = item?;
        let start = demand.arrival.max(free);
        free = start + demand.service;
        started(index, demand, start);
    }
    Ok(())
}

/// Kiefer and Wolfowitz: a request starts when it arrives or when the first worker is free.
fn kiefer_wolfowitz(
    demands: impl Iterator<Item = Item>,
    workers: usize,
    mut started: impl FnMut(usize, Demand, Nanos),
) -> Result<(), OutOfOrder> {
    // Only workers that have been used: many may never be.
    let mut free: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
    for item in demands {
        let (index, demand) = item?;
        let full = free.len() == workers;
        let start = match free.peek_mut() {
            Some(mut first) if full || first.0 <= demand.arrival => {
                let start = first.0.max(demand.arrival);
                *first = Reverse(start + demand.service);
                start
            }
            other => {
                drop(other);
                free.push(Reverse(demand.arrival + demand.service));
                demand.arrival
            }
        };
        started(index, demand, start);
    }
    Ok(())
}

/// Lindley for each worker.
fn queue_per_worker(
    demands: impl Iterator<Item = Item>,
    workers: usize,
    mut random: StdRng,
    mut started: impl FnMut(usize, Demand, Nanos),
) -> Result<(), OutOfOrder> {
    let mut free = vec![Nanos::ZERO; workers];
    for item in demands {
        let (index, demand) = item?;
        let worker = &mut free[random.random_range(0..workers)];
        let start = demand.arrival.max(*worker);
        *worker = start + demand.service;
        started(index, demand, start);
    }
    Ok(())
}
