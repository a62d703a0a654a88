//! Sorting within a window, for logs that were written a little out of order.

use model::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Restores the order of requests that come at most `size` requests late.
pub(super) struct Window {
    size: usize,
    /// The source has ended: everything held goes out.
    pub(super) draining: bool,
    sequence: u64,
    held: BinaryHeap<Reverse<Held>>,
}

/// Ordered by arrival; equal arrivals keep the order of the file.
struct Held(Nanos, u64, Request);

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl Window {
    pub(super) fn new(size: usize) -> Self {
        Self { size, draining: false, sequence: 0, held: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, request: Request) {
        self.sequence += 1;
        self.held.push(Reverse(Held(request.arrival, self.sequence, request)));
    }

    pub(super) fn pop(&mut self) -> Option<Request> {
        if !self.draining && self.held.len() <= self.size {
            return None;
        }
        self.held.pop().map(|Reverse(held)| held.2)
    }
}
