//! One queue that workers take from in another order than FIFO.

use crate::source::Demand;
use rand::RngExt as _;
use rand::rngs::StdRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Who waits and who is served.
pub(super) struct Line {
    take: Take,
    workers: usize,
    /// New ones come in at the back.
    waiting: Vec<(usize, Demand)>,
    /// When each busy worker will be free.
    busy: BinaryHeap<Reverse<Nanos>>,
}

/// Which of the waiting requests is next.
pub(super) enum Take {
    /// The one that came last.
    Last,
    /// Any, equally likely; the last one fills its place.
    Any(Box<StdRng>),
}

impl Take {
    fn from(&mut self, waiting: &mut Vec<(usize, Demand)>) -> Option<(usize, Demand)> {
        match self {
            Self::Last => waiting.pop(),
            Self::Any(_) if waiting.is_empty() => None,
            Self::Any(random) => Some(waiting.swap_remove(random.random_range(0..waiting.len()))),
        }
    }
}

impl Line {
    pub(super) fn new(workers: usize, take: Take) -> Self {
        Self { take, workers, waiting: Vec::new(), busy: BinaryHeap::new() }
    }

    #[inline]
    pub(super) fn arrive(
        &mut self,
        tag: usize,
        demand: Demand,
        mut started: impl FnMut(usize, Demand, Nanos),
    ) {
        while let Some(Reverse(now)) = self.busy.peek().copied().filter(|first| first.0 <= demand.arrival) {
            self.depart(now, &mut started);
        }
        self.waiting.push((tag, demand));
        if self.busy.len() < self.workers {
            // An idle worker: nobody else waits. It is the worker that becomes free now.
            self.busy.push(Reverse(demand.arrival));
            self.depart(demand.arrival, &mut started);
        }
    }

    pub(super) fn finish(mut self, mut started: impl FnMut(usize, Demand, Nanos)) {
        while let Some(Reverse(now)) = self.busy.peek().copied() {
            self.depart(now, &mut started);
        }
    }

    fn depart(&mut self, now: Nanos, started: &mut impl FnMut(usize, Demand, Nanos)) {
        self.busy.pop();
        if let Some((tag, demand)) = self.take.from(&mut self.waiting) {
            self.busy.push(Reverse(now + demand.service));
            started(tag, demand, now);
        }
    }
}
