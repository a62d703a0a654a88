//! Restores the order of arrival of requests that are in the order of their answers.

use super::ORDER_WINDOW;
use crate::error::TraceErrorKind;
use model::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Maximum number of buffered requests, about 100 MB; beyond it the window is shorter.
const WAITING_MAX: usize = 1 << 20;
/// Largest step back in the times of answers that is tolerated: CPU clocks differ, and a writer takes
/// events in batches.
const ANSWERS_BACK_MAX: Nanos = Nanos(2_000_000_000);

/// A request with accompanying data, ordered by arrival and then by answer.
#[derive(Debug)]
pub(crate) struct OrderedRequest<T> {
    pub(crate) request: Request,
    pub(crate) with: T,
    number: u64,
}

impl<T> OrderedRequest<T> {
    fn key(&self) -> (Nanos, u64) {
        (self.request.arrival, self.number)
    }
}

impl<T> PartialEq for OrderedRequest<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for OrderedRequest<T> {}

impl<T> PartialOrd for OrderedRequest<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for OrderedRequest<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Restores the order of arrival within [`ORDER_WINDOW`].
#[derive(Debug)]
pub(crate) struct ArrivalOrder<T> {
    waiting: BinaryHeap<Reverse<OrderedRequest<T>>>,
    /// The instant of the latest answer.
    newest: Nanos,
    /// Arrival of the last returned request.
    returned: Nanos,
    count: u64,
    /// Number of requests that took so long that they were moved to a later arrival.
    late: u64,
    is_ended: bool,
}

impl<T> Default for ArrivalOrder<T> {
    fn default() -> Self {
        let newest = Nanos::ZERO;
        let returned = Nanos::ZERO;
        Self { waiting: BinaryHeap::new(), newest, returned, count: 0, late: 0, is_ended: false }
    }
}

impl<T> ArrivalOrder<T> {
    /// Takes the next request in the order of answers; it was answered at `answered`.
    ///
    /// # Errors
    /// When answers go back in time by more than clocks explain: the clock was set back, or two processes
    /// wrote.
    pub(crate) fn push(&mut self, request: Request, answered: Nanos, with: T) -> Result<(), TraceErrorKind> {
        if answered.0.saturating_add(ANSWERS_BACK_MAX.0) < self.newest.0 {
            return Err(TraceErrorKind::Unsorted { previous_ns: self.newest.0, arrival_ns: answered.0 });
        }
        self.newest = self.newest.max(answered);
        self.count += 1;
        self.waiting.push(Reverse(OrderedRequest { request, with, number: self.count }));
        Ok(())
    }

    /// Marks the end of the input.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Returns true if the input has ended and no request is buffered.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_ended && self.waiting.is_empty()
    }

    /// Returns the next request in the order of arrival, once no earlier one can follow.
    pub(crate) fn pop(&mut self) -> Option<OrderedRequest<T>> {
        let Reverse(first) = self.waiting.peek()?;
        let is_due = first.request.arrival.0.saturating_add(ORDER_WINDOW.0) < self.newest.0;
        if !(is_due || self.is_ended || self.waiting.len() > WAITING_MAX) {
            return None;
        }
        let Reverse(mut first) = self.waiting.pop()?;
        self.late += u64::from(first.request.arrival < self.returned);
        first.request.arrival = first.request.arrival.max(self.returned);
        self.returned = first.request.arrival;
        Some(first)
    }

    /// Returns the number of requests so far that took so long that they were moved to a later arrival.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Op;
    use units::Bytes;

    const S: u64 = 1_000_000_000;

    /// Returns the arrivals in the order of output, and the number of moved ones.
    fn ordered(answers: &[(u64, u64)]) -> Result<(Vec<u64>, u64), TraceErrorKind> {
        let mut order = ArrivalOrder::default();
        let mut arrivals = Vec::new();
        for &(arrival, answered) in answers {
            let size = Bytes(1);
            let op = Op::Read;
            let request = Request { arrival: Nanos(arrival), size, op, offset: None, response: None };
            order.push(request, Nanos(answered), ())?;
            arrivals.extend(std::iter::from_fn(|| order.pop()).map(|first| first.request.arrival.0));
        }
        order.end();
        arrivals.extend(std::iter::from_fn(|| order.pop()).map(|first| first.request.arrival.0));
        Ok((arrivals, order.late()))
    }

    #[test]
    fn the_order_of_answers_becomes_that_of_arrivals() {
        let answers = [(3 * S, 4 * S), (2 * S, 5 * S), (S, 6 * S), (20 * S, 30 * S), (21 * S, 30 * S)];
        assert_eq!(ordered(&answers).unwrap(), (vec![S, 2 * S, 3 * S, 20 * S, 21 * S], 0));
    }

    #[test]
    fn who_takes_longer_than_the_window_is_moved_and_counted() {
        let answers = [(5 * S, 6 * S), (40 * S, 41 * S), (2 * S, 42 * S), (43 * S, 44 * S)];
        assert_eq!(ordered(&answers).unwrap(), (vec![5 * S, 5 * S, 40 * S, 43 * S], 1));
    }

    #[test]
    fn a_clock_that_was_set_back_is_an_error() {
        assert!(ordered(&[(10 * S, 11 * S), (9 * S, 10 * S)]).is_ok());
        assert!(matches!(ordered(&[(10 * S, 11 * S), (3 * S, 4 * S)]), Err(TraceErrorKind::Unsorted { .. })));
    }
}
