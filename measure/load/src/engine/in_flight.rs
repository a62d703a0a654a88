//! The requests in flight on one connection.

use super::request_log::RequestIndex;
use std::collections::VecDeque;
use units::Nanos;

/// Requests that were encoded and not yet answered, in the order in which they were encoded. Requests are numbered from
/// zero on each connection.
#[derive(Debug, Default)]
pub(super) struct InFlightWindow {
    /// `None` stands for a request that was answered before an earlier one.
    slots: VecDeque<Option<SentRequest>>,
    /// The number of the request in the first slot.
    first_id: u64,
    /// Number of requests that wait for a reply.
    unanswered: usize,
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct SentRequest {
    request: RequestIndex,
    /// When it was encoded, or handed to the kernel as a datagram.
    at: Nanos,
}

impl InFlightWindow {
    /// The number of the request that is pushed next.
    pub(super) fn next_id(&self) -> u64 {
        self.first_id + self.slots.len() as u64
    }

    pub(super) fn unanswered(&self) -> usize {
        self.unanswered
    }

    /// Adds a request that was encoded at `at`.
    pub(super) fn push(&mut self, request: RequestIndex, at: Nanos) {
        self.slots.push_back(Some(SentRequest { request, at }));
        self.unanswered += 1;
    }

    /// Notes that the newest request was handed to the kernel at `at`.
    pub(super) fn newest_left(&mut self, at: Nanos) {
        if let Some(Some(newest)) = self.slots.back_mut() {
            newest.at = at;
        }
    }

    /// Takes the request that a reply answers, given the low 32 bits of its number; `None` if no such request is in
    /// flight. The number is unambiguous because far fewer than 2³² requests are in flight.
    pub(super) fn take(&mut self, id: u32) -> Option<RequestIndex> {
        #[expect(clippy::cast_possible_truncation, reason = "replies carry the low 32 bits of numbers")]
        let slot = id.wrapping_sub(self.first_id as u32) as usize;
        let taken = self.slots.get_mut(slot).and_then(Option::take)?;
        self.unanswered -= 1;
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first_id += 1;
        }
        Some(taken.request)
    }

    /// The low 32 bits of the number of the request that has waited longest, and since when.
    pub(super) fn oldest(&self) -> Option<(u32, Nanos)> {
        #[expect(clippy::cast_possible_truncation, reason = "replies carry the low 32 bits of numbers")]
        let id = self.first_id as u32;
        self.slots.front().copied().flatten().map(|oldest| (id, oldest.at))
    }

    /// All requests that wait for a reply, in order.
    pub(super) fn into_unanswered(self) -> Vec<RequestIndex> {
        self.slots.into_iter().flatten().map(|sent| sent.request).collect()
    }
}
