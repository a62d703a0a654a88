//! What the requests of the last seconds have in common, in memory that does not grow.
//!
//! A request counts in the second in which it was reported, so that a second that is over never changes. The window
//! consists of whole seconds that are over; it is shorter at the beginning.

use crate::request::ObservedRequest;
use crate::statistics::RequestStatistics;
use std::collections::VecDeque;
use std::time::Duration;

/// Sums over the requests of the last whole seconds, about 2.4 MB for each second of the window.
#[derive(Debug, Clone)]
pub struct RecentStatistics {
    /// Seconds that are over, the oldest first.
    over: VecDeque<RequestStatistics>,
    /// The second that is not over.
    open: RequestStatistics,
    second: u64,
    seconds_max: usize,
}

impl RecentStatistics {
    /// A window of so many seconds without requests.
    ///
    /// # Panics
    /// When the window has no second.
    pub fn new(seconds: usize) -> Self {
        assert!(seconds > 0, "a window has a length");
        Self { over: VecDeque::new(), open: RequestStatistics::default(), second: 0, seconds_max: seconds }
    }

    /// Takes a request into the second that is not over.
    pub fn add(&mut self, request: &ObservedRequest) {
        self.open.add(request);
    }

    /// Ends the seconds that are over at this time since the beginning, which never goes back. Returns how many.
    pub fn advance(&mut self, elapsed: Duration) -> u64 {
        let ended = elapsed.as_secs().saturating_sub(self.second);
        self.second += ended;
        // After a pause longer than the window there is nothing of what was before.
        for _ in 0..ended.min(self.seconds_max as u64 + 1) {
            let mut next = match self.over.len() < self.seconds_max {
                true => RequestStatistics::default(),
                false => self.over.pop_front().expect("a window has a length"),
            };
            next.clear();
            self.over.push_back(std::mem::replace(&mut self.open, next));
        }
        ended
    }

    /// The number of whole seconds in the window.
    pub fn seconds(&self) -> usize {
        self.over.len()
    }

    /// The sums over all requests in the window.
    pub fn sum(&self) -> RequestStatistics {
        let mut sum = RequestStatistics::default();
        self.over.iter().for_each(|second| sum.merge(second));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whenever requests come and whenever somebody looks: the window has those of its whole seconds, as if each
        /// had been kept.
        #[test]
        fn the_window_has_what_was_reported_in_it(
            window in 1usize..5,
            steps in prop::collection::vec((0u64..2_500, prop::option::of(1u64..1_000_000)), 1..16),
        ) {
            let mut recent = RecentStatistics::new(window);
            let mut kept: Vec<(u64, ObservedRequest)> = Vec::new();
            let mut now = 0;
            for (wait_ms, latency) in steps {
                now += wait_ms;
                recent.advance(Duration::from_millis(now));
                if let Some(latency) = latency {
                    let request = testing::request(1, 80, [0, 0, latency, latency, latency, latency, latency, latency]);
                    recent.add(&request);
                    kept.push((now / 1000, request));
                }
                let from = (now / 1000).saturating_sub(window as u64);
                let mut expected = RequestStatistics::default();
                let inside = |second: &u64| (from..now / 1000).contains(second);
                kept.iter().filter(|(second, _)| inside(second)).for_each(|(_, request)| expected.add(request));
                let found = recent.sum();
                prop_assert_eq!(recent.seconds() as u64, (now / 1000).min(window as u64));
                prop_assert_eq!(found.count(), expected.count());
                prop_assert_eq!(found.from_stack(), expected.from_stack());
                prop_assert_eq!(found.stages(), expected.stages());
            }
        }
    }
}
