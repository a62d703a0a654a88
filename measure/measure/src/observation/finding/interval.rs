//! The interval in which p99 lies, given that neighbouring requests are slow together.

use crate::observation::sample::RequestRun;
use confidence::{design_effect, needed_for_quantile, quantile};
use observe::RequestPoint;

/// Confidence of the interval, and of all that is called unusual.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The rank of the tail.
pub(super) const RANK: f64 = 0.99;

/// Slow requests in a block below which dependence cannot be seen.
const SLOW_MIN: usize = 64;

/// Parts of a run, as many requests in each.
const PARTS: usize = 32;

/// A long tail recurs if it is that of so many parts.
const RECURRING_PARTS: usize = 4;

/// Whether requests take longer than `limit_ns` (T6 − T0) again and again: in several parts of the run, those are as many
/// as make its p99. What happens once says little about the server.
pub(super) fn recurs(runs: &[RequestRun], limit_ns: f64) -> bool {
    let is_long: Vec<bool> = runs
        .iter()
        .flat_map(|run| run.requests.iter().filter(|request| run.counts(request)))
        .map(|request| request.latency_from_wire() as f64 >= limit_ns)
        .collect();
    let part = is_long.len().div_ceil(PARTS).max(1);
    let has_long_tail = |part: &&[bool]| {
        let long = part.iter().filter(|is_long| **is_long).count();
        long as f64 >= (1.0 - RANK) * part.len() as f64 && long > 0
    };
    is_long.chunks(part).filter(has_long_tail).count() >= RECURRING_PARTS
}

/// Ends of the interval of p99, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TailInterval {
    pub(super) low: u64,
    /// `None`: the sample is too small for an upper end.
    pub(super) high: Option<u64>,
    /// The number of independent requests from which on there is an upper end.
    pub(super) needed: usize,
}

/// The interval of p99 of T6 − T1; `None` without requests.
pub(super) fn tail_interval(runs: &[RequestRun]) -> Option<TailInterval> {
    // In the order of arrival: requests that meet in a queue are neighbours.
    let in_order: Vec<u64> = runs
        .iter()
        .flat_map(|run| run.requests.iter().filter(|request| run.counts(request)))
        .map(|request| request.at(RequestPoint::Transmitted) - request.at(RequestPoint::Stack))
        .collect();
    if in_order.is_empty() {
        return None;
    }
    let mut sorted = in_order.clone();
    sorted.sort_unstable();
    let slow_rank = if in_order.len() / 100 >= SLOW_MIN { RANK } else { 0.9 };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the count")]
    let slow = sorted[(in_order.len() as f64 * slow_rank) as usize];
    let positions = in_order.iter().enumerate().filter(|(_, latency)| **latency >= slow).map(|(at, _)| at);
    let effect = design_effect(positions, in_order.len());
    let bounds = quantile(in_order.len(), RANK, CONFIDENCE, effect);
    Some(TailInterval {
        low: sorted[bounds.low],
        high: bounds.high.ok().map(|place| sorted[place]),
        needed: needed_for_quantile(RANK, CONFIDENCE, 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;

    /// Requests every 100 µs, of which those that `is_slow` says take a millisecond and the others one to ten µs.
    fn interval(count: u64, is_slow: impl Fn(u64) -> bool) -> TailInterval {
        let latency = |n: u64| if is_slow(n) { 1_000_000 } else { 1_000 + n * 7919 % 9_000 };
        let requests = (0..count).map(|n| request(n * 100_000, n * 100_000, latency(n))).collect();
        tail_interval(&[RequestRun::new(requests, 0)]).expect("there are requests")
    }

    #[test]
    fn spread_slow_requests_are_the_tail() {
        let found = interval(20_000, |n| n % 50 == 0);
        assert_eq!((found.low, found.high), (1_000_000, Some(1_000_000)));
        let rare = interval(20_000, |n| n % 500 == 0);
        assert!(rare.low < 10_000 && rare.high.is_some_and(|high| high < 10_000), "{rare:?}");
    }

    /// As many slow requests, all at once: it may not happen again.
    #[test]
    fn one_episode_shows_little() {
        let found = interval(20_000, |n| (5000..5400).contains(&n));
        assert!(found.low < 10_000, "{found:?}");
    }

    #[test]
    fn few_requests_have_no_upper_end() {
        let few = interval(100, |_| false);
        assert!(few.high.is_none() && few.needed > 300, "{few:?}");
        assert!(interval(4 * few.needed as u64, |_| false).high.is_some());
        assert_eq!(tail_interval(&[]), None);
    }
}
