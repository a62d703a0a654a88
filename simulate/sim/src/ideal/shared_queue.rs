//! One queue from which all workers take requests in another order than FIFO.

use arrivals::TimedRequest;
use rand::RngExt as _;
use rand::rngs::StdRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Waiting requests, and the instants at which workers become free.
pub(super) struct SharedQueue {
    next: NextRequest,
    workers: usize,
    /// Tags and requests that wait, in order of arrival unless [`NextRequest::Any`] has moved one.
    waiting: Vec<(usize, TimedRequest)>,
    /// Instants at which the busy workers become free.
    busy: BinaryHeap<Reverse<Nanos>>,
}

/// Choice among the waiting requests.
pub(super) enum NextRequest {
    /// The request that arrived last.
    Last,
    /// Any request, equally likely; the last in the list fills its place.
    Any(Box<StdRng>),
}

impl NextRequest {
    /// Takes the next request out of the list.
    fn take(&mut self, waiting: &mut Vec<(usize, TimedRequest)>) -> Option<(usize, TimedRequest)> {
        match self {
            Self::Last => waiting.pop(),
            Self::Any(_) if waiting.is_empty() => None,
            Self::Any(random) => Some(waiting.swap_remove(random.random_range(0..waiting.len()))),
        }
    }
}

impl SharedQueue {
    pub(super) fn new(workers: usize, next: NextRequest) -> Self {
        Self { next, workers, waiting: Vec::new(), busy: BinaryHeap::new() }
    }

    /// A request arrives; reports all starts up to now.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        tag: usize,
        request: TimedRequest,
        mut started: impl FnMut(usize, TimedRequest, Nanos),
    ) {
        while let Some(Reverse(now)) = self.busy.peek().copied().filter(|first| first.0 <= request.arrival) {
            self.release_worker(now, &mut started);
        }
        self.waiting.push((tag, request));
        if self.busy.len() < self.workers {
            // An idle worker means that no other request waits: the worker counts as becoming free now.
            self.busy.push(Reverse(request.arrival));
            self.release_worker(request.arrival, &mut started);
        }
    }

    /// Reports the starts that are left, when no further request arrives.
    pub(super) fn finish(mut self, mut started: impl FnMut(usize, TimedRequest, Nanos)) {
        while let Some(Reverse(now)) = self.busy.peek().copied() {
            self.release_worker(now, &mut started);
        }
    }

    /// The worker that is free first takes the next request, if any waits.
    fn release_worker(&mut self, now: Nanos, started: &mut impl FnMut(usize, TimedRequest, Nanos)) {
        self.busy.pop();
        if let Some((tag, request)) = self.next.take(&mut self.waiting) {
            self.busy.push(Reverse(now + request.service));
            started(tag, request, now);
        }
    }
}
