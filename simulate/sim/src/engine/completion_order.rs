//! Deviation of the completion order from the order without queueing.
//!
//! TailClipper (§5.4) counts the share of requests "whose completion order deviates from an ideal completion
//! order, which assumes unlimited resources across all tiers such that requests would immediately execute
//! upon arrival". Here that is the share of *displaced* requests: their position among all completions
//! differs from that in the ideal order. One late request displaces every request that passes it by one
//! position. Therefore *overtaken* requests are counted too: those that complete after at least one request
//! that is later in the ideal order. Ties in the ideal order go by arrival.
//!
//! At a station the same applies to the visits there: the ideal order is that in which they would leave
//! it if no request ever waited anywhere. The count of a later station includes disorder from earlier
//! ones, which it may also repair. At the last station of a chain it is the count of the requests.
//!
//! One pass suffices: no request completes before its ideal time, so at every completion all ideal times up
//! to now are known. Memory is proportional to the requests inside.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks the completions and the ideal order of requests, or of visits to a station.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrderTracker {
    /// Requests without a position in the ideal order yet: ideal time, number, slot.
    unplaced: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Position of each slot in the ideal order.
    position: Vec<u64>,
    placed: u64,
    complete: u64,
    /// Position + 1 of the latest completed request in the ideal order.
    latest_complete: u64,
}

/// Deviation of one request from the ideal order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderDeviation {
    pub(crate) displaced: bool,
    pub(crate) overtaken: bool,
}

impl OrderTracker {
    /// Adds a request whose ideal completion is at `ideal`; ties go by `number`.
    #[inline]
    pub(crate) fn enter(&mut self, ideal: u64, number: u64, slot: u32) {
        if self.position.len() <= slot as usize {
            self.position.resize(slot as usize + 1, 0);
        }
        self.unplaced.push(Reverse((ideal, number, slot)));
    }

    /// Completes a request; all requests that precede it in the ideal order must have been added.
    #[inline]
    pub(crate) fn complete(&mut self, now: u64, slot: u32) -> OrderDeviation {
        while let Some(Reverse((ideal, _, next))) = self.unplaced.peek().copied()
            && ideal <= now
        {
            self.unplaced.pop();
            self.position[next as usize] = self.placed;
            self.placed += 1;
        }
        let position = self.position[slot as usize];
        let deviation = OrderDeviation {
            displaced: position != self.complete,
            overtaken: position < self.latest_complete,
        };
        self.complete += 1;
        self.latest_complete = self.latest_complete.max(position + 1);
        deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The judge: both orders as sorted lists.
        #[test]
        fn places_are_those_of_sorted_lists(
            requests in proptest::collection::vec((0u64..50, 0u64..10, 0u64..10), 1..40),
        ) {
            // Arrival, own time, queueing; numbered by arrival.
            let mut requests = requests;
            requests.sort_unstable();
            let ideal: Vec<u64> = requests.iter().map(|(arrival, own, _)| arrival + own).collect();
            let end: Vec<u64> = requests.iter().zip(&ideal).map(|(request, ideal)| ideal + request.2).collect();
            let mut by_ideal: Vec<usize> = (0..requests.len()).collect();
            by_ideal.sort_by_key(|i| (ideal[*i], *i));
            let mut by_end: Vec<usize> = (0..requests.len()).collect();
            by_end.sort_by_key(|i| (end[*i], *i));
            // Completions before arrivals of the same instant would know too little: arrivals first here.
            let mut orders = OrderTracker::default();
            let mut entered = 0;
            for (position, request) in by_end.iter().copied().enumerate() {
                while entered < requests.len() && requests[entered].0 <= end[request] {
                    orders.enter(ideal[entered], entered as u64, u32::try_from(entered).unwrap());
                    entered += 1;
                }
                let place = orders.complete(end[request], u32::try_from(request).unwrap());
                let mine = by_ideal.iter().position(|i| *i == request).unwrap();
                proptest::prop_assert_eq!(place.displaced, mine != position);
                let overtaken = by_end[..position]
                    .iter()
                    .any(|other| by_ideal.iter().position(|i| i == other).unwrap() > mine);
                proptest::prop_assert_eq!(place.overtaken, overtaken);
            }
        }
    }
}
