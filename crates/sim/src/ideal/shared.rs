//! One queue that workers take from in another order than FIFO.

use arrivals::TimedRequest;
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
    waiting: Vec<(usize, TimedRequest)>,
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
    fn from(&mut self, waiting: &mut Vec<(usize, TimedRequest)>) -> Option<(usize, TimedRequest)> {
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
        request: TimedRequest,
        mut started: impl FnMut(usize, TimedRequest, Nanos),
    ) {
        while let Some(Reverse(now)) = self.busy.peek().copied().filter(|first| first.0 <= request.arrival) {
            self.depart(now, &mut started);
        }
        self.waiting.push((tag, request));
        if self.busy.len() < self.workers {
            // An idle worker: nobody else waits. It is the worker that becomes free now.
            self.busy.push(Reverse(request.arrival));
            self.depart(request.arrival, &mut started);
        }
    }

    pub(super) fn finish(mut self, mut started: impl FnMut(usize, TimedRequest, Nanos)) {
        while let Some(Reverse(now)) = self.busy.peek().copied() {
            self.depart(now, &mut started);
        }
    }

    fn depart(&mut self, now: Nanos, started: &mut impl FnMut(usize, TimedRequest, Nanos)) {
        self.busy.pop();
        if let Some((tag, request)) = self.take.from(&mut self.waiting) {
            self.busy.push(Reverse(now + request.service));
            started(tag, request, now);
        }
    }
}
