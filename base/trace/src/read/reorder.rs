//! Restores the order of logs with slightly disordered lines.

use model::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Sorts requests that are at most `size` requests too late.
pub(super) struct ReorderBuffer {
    size: usize,
    /// True once the source has ended, so that every buffered request may leave.
    draining: bool,
    sequence: u64,
    buffered: BinaryHeap<Reverse<BufferedRequest>>,
}

/// Ordered by arrival and then by the position in the file.
struct BufferedRequest {
    arrival: Nanos,
    sequence: u64,
    request: Request,
}

impl PartialEq for BufferedRequest {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for BufferedRequest {}

impl PartialOrd for BufferedRequest {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BufferedRequest {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrival, self.sequence).cmp(&(other.arrival, other.sequence))
    }
}

impl ReorderBuffer {
    pub(super) fn new(size: usize) -> Self {
        Self { size, draining: false, sequence: 0, buffered: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, request: Request) {
        self.sequence += 1;
        let buffered = BufferedRequest { arrival: request.arrival, sequence: self.sequence, request };
        self.buffered.push(Reverse(buffered));
    }

    /// Returns the earliest buffered request, once no earlier one can follow.
    pub(super) fn pop(&mut self) -> Option<Request> {
        if !self.draining && self.buffered.len() <= self.size {
            return None;
        }
        self.buffered.pop().map(|Reverse(buffered)| buffered.request)
    }

    /// Marks the end of the input.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }
}
