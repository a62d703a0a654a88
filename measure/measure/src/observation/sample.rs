//! The requests of which the ideal is asked: all of them, or whole seconds of them when there are too many.
//!
//! An ideal needs the arrivals one after the other, so single requests cannot be left out. When there are more requests
//! than may be kept, every second window of time goes; when there are too many again, every second one of those that are
//! left. A window is then played alone: what it begins with is only played, to fill the queue, and not counted. So is each
//! run of an observation that had pauses.

use observe::{ObservedRequest, RequestPoint};
use std::collections::BTreeMap;

/// The most requests that are kept: about 70 MB.
pub(super) const REQUESTS_MAX: usize = 1 << 19;

/// The length of a window.
const WINDOW_NS: u64 = 1_000_000_000;

/// The beginning of a window that is played and not counted.
const WARM_UP_NS: u64 = WINDOW_NS / 10;

/// Requests by the window in which they arrive (T1), and the pauses before.
#[derive(Debug)]
pub(super) struct RequestSample {
    windows: BTreeMap<(u64, u64), Vec<ObservedRequest>>,
    /// How often requests were missing for a while.
    pauses: u64,
    kept: usize,
    kept_max: usize,
    /// Windows whose number is a multiple of this are kept.
    every: u64,
    seen: u64,
}

/// Requests that arrived one after the other, none left out between them.
#[derive(Debug)]
pub(super) struct RequestRun {
    /// In the order of arrival (T1).
    pub(super) requests: Vec<ObservedRequest>,
    /// Requests that arrived before are played and not counted.
    pub(super) counted_from: u64,
}

impl RequestSample {
    pub(super) fn new(kept_max: usize) -> Self {
        Self { windows: BTreeMap::new(), pauses: 0, kept: 0, kept_max, every: 1, seen: 0 }
    }

    /// Requests between those before and those after this are missing.
    pub(super) fn pause(&mut self) {
        self.pauses += 1;
    }

    pub(super) fn add(&mut self, request: &ObservedRequest) {
        self.seen += 1;
        let window = request.at(RequestPoint::Stack) / WINDOW_NS;
        if !window.is_multiple_of(self.every) {
            return;
        }
        let requests = self.windows.entry((self.pauses, window)).or_default();
        // A second with more requests than all may be: its end is left out.
        if requests.len() < self.kept_max {
            requests.push(*request);
            self.kept += 1;
        }
        if self.kept > self.kept_max && self.windows.len() > 1 {
            self.every *= 2;
            self.windows.retain(|(_, window), _| window.is_multiple_of(self.every));
            self.kept = self.windows.values().map(Vec::len).sum();
        }
    }

    /// How many requests were given.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The requests in the order of arrival; at equal instants in that of their answers.
    pub(super) fn into_runs(self) -> Vec<RequestRun> {
        if self.every == 1 && self.pauses == 0 {
            return vec![RequestRun::new(self.windows.into_values().flatten().collect(), 0)];
        }
        let every = self.every;
        let has_pauses = self.pauses > 0;
        let mut runs: Vec<((u64, u64), Vec<ObservedRequest>)> = Vec::new();
        for (place, requests) in self.windows {
            match runs.last_mut() {
                // Goes on where the window before it has ended.
                Some((last, run)) if every == 1 && *last == (place.0, place.1.wrapping_sub(1)) => {
                    *last = place;
                    run.extend(requests);
                }
                _ => runs.push((place, requests)),
            }
        }
        let run = |((_, window), requests): ((u64, u64), Vec<_>)| {
            let mut run = RequestRun::new(requests, window * WINDOW_NS + WARM_UP_NS);
            if let Some(first) = run.requests.first().filter(|_| has_pauses) {
                run.counted_from = first.at(RequestPoint::Stack) + WARM_UP_NS;
            }
            run
        };
        runs.into_iter().map(run).collect()
    }
}

impl RequestRun {
    pub(super) fn new(mut requests: Vec<ObservedRequest>, counted_from: u64) -> Self {
        requests
            .sort_by_key(|request| (request.at(RequestPoint::Stack), request.at(RequestPoint::Transmitted)));
        Self { requests, counted_from }
    }

    /// Whether a request is counted.
    pub(super) fn counts(&self, request: &ObservedRequest) -> bool {
        request.at(RequestPoint::Stack) >= self.counted_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;

    fn arrivals(run: &RequestRun) -> Vec<u64> {
        run.requests.iter().map(|request| request.at(RequestPoint::Stack)).collect()
    }

    #[test]
    fn all_that_fit_are_one_run() {
        let mut sample = RequestSample::new(4);
        for at in [5_000_000_000, 1_000_000_000, 1_000_000_001, 9_000_000_000] {
            sample.add(&request(at, at, 10));
        }
        let runs = sample.into_runs();
        assert_eq!(runs.len(), 1);
        assert_eq!(arrivals(&runs[0]), [1_000_000_000, 1_000_000_001, 5_000_000_000, 9_000_000_000]);
        assert!(runs[0].counts(&runs[0].requests[0]));
    }

    #[test]
    fn of_too_many_whole_windows_are_kept() {
        // 100 requests a second for 64 seconds, and room for ten seconds of them.
        let mut sample = RequestSample::new(1000);
        for number in 0..6400u64 {
            let at = number * 10_000_000;
            sample.add(&request(at, at, 10));
        }
        assert_eq!(sample.seen(), 6400);
        let runs = sample.into_runs();
        let starts: Vec<u64> =
            runs.iter().map(|run| run.requests[0].at(RequestPoint::Stack) / WINDOW_NS).collect();
        assert_eq!(starts, [0, 8, 16, 24, 32, 40, 48, 56]);
        for run in &runs {
            assert_eq!(run.requests.len(), 100, "no request inside is left out");
            assert_eq!(run.requests.iter().filter(|request| run.counts(request)).count(), 90);
        }
    }

    #[test]
    fn pauses_divide_runs_and_seconds_do_not() {
        let ms = |number: u64| number * 1_000_000;
        let mut sample = RequestSample::new(1000);
        for (pauses, from) in [(false, 700), (true, 1800), (true, 2300)] {
            if pauses {
                sample.pause();
            }
            (0..50)
                .for_each(|number| sample.add(&request(ms(from + 10 * number), ms(from + 10 * number), 10)));
        }
        let runs = sample.into_runs();
        let firsts: Vec<u64> = runs.iter().map(|run| run.requests[0].at(RequestPoint::Stack)).collect();
        assert_eq!(firsts, [ms(700), ms(1800), ms(2300)]);
        for run in &runs {
            assert_eq!((run.requests.len(), run.counted_from), (50, arrivals(run)[0] + WARM_UP_NS));
            assert!(arrivals(run).is_sorted());
        }
    }

    #[test]
    fn a_second_with_more_than_may_be_kept_is_cut() {
        let mut sample = RequestSample::new(10);
        (0..1000).for_each(|at| sample.add(&request(at, at, 10)));
        let runs = sample.into_runs();
        assert_eq!(arrivals(&runs[0]), (0..10).collect::<Vec<_>>());
    }
}
