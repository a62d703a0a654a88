//! How long each request kept its worker busy, from the stages that it passed.
//!
//! A worker is the thread that answers. It is busy with a request from T3 to T4 (reading) and from e4 to T6 (processing
//! and transmitting); the other stages are waiting, for the worker or for a CPU, or are those of the network stack. An
//! instant counts once: requests that are read together share the reading, and what is transmitted after the worker has
//! turned to the next request is not the worker's time. What is known to have held the worker up meanwhile (others on its CPU, signals, quotas,
//! interrupts) is not service. So the times of a worker's requests add up to the time in which it worked. They are too
//! small by what it does for no request in particular, such as waiting for events.
//!
//! A write goes on after T6: the client is woken in it. Where the next request waits, that shows as the time until the
//! worker turns to it, and is service of the request that was written. The worker may have lost its CPU by then, so it
//! counts no more than twice the median.
//!
//! If a worker's return to its CPU is not reported, the time since it left cannot be divided between waiting and service.
//! It does not count as service if few requests have such time: a pause of milliseconds beside a service of
//! microseconds would be most of the variance.

use observe::{ObservedRequest, RequestPoint};
use std::collections::BTreeMap;

/// What the requests of a run took of their workers.
#[derive(Debug, Default)]
pub(super) struct RunOccupancy {
    /// For each request, in the order of the run, the time in nanoseconds.
    pub(super) times: Vec<u64>,
    /// The times between answers while the next request was waiting already: what a request takes a worker that has no
    /// pause.
    pub(super) between_answers: Vec<u64>,
}

/// Up to this share of requests, time in which their worker was not seen is not service. Where it is more, nothing else is
/// known of the service, as with a thread for each request.
const UNSEEN_SHARE_MAX: f64 = 0.1;

/// The occupancy of every request.
pub(super) fn occupancy(requests: &[ObservedRequest]) -> RunOccupancy {
    let mut workers: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        workers.entry(request.writer).or_default().push(place);
    }
    let mut found = RunOccupancy { times: vec![0; requests.len()], between_answers: Vec::new() };
    let unseen = requests.iter().filter(|request| request.held_up.unseen > 0).count();
    let is_seen = unseen as f64 <= UNSEEN_SHARE_MAX * requests.len() as f64;
    for mut places in workers.into_values() {
        places.sort_by_key(|place| {
            let request = &requests[*place];
            (request.at(RequestPoint::Written), request.at(RequestPoint::Transmitted), *place)
        });
        follow_worker(requests, &places, &mut found);
        if is_seen {
            places.iter().for_each(|place| {
                let time = &mut found.times[*place];
                *time = time.saturating_sub(requests[*place].held_up.unseen);
            });
        }
        end_writes(requests, &places, &mut found.times);
    }
    found
}

/// Adds what writes take after T6.
fn end_writes(requests: &[ObservedRequest], places: &[usize], times: &mut [u64]) {
    let rests: Vec<(usize, u64)> = places
        .windows(2)
        .filter_map(|pair| {
            let request = &requests[pair[0]];
            let next = &requests[pair[1]];
            let end = end_of_work(request, Some(next));
            let is_read = next.at(RequestPoint::Read) <= end;
            let turns = if is_read { RequestPoint::Started } else { RequestPoint::Scheduled };
            let is_waiting = next.at(RequestPoint::Ready) <= end && next.reader == request.writer;
            is_waiting.then(|| (pair[0], next.at(turns).saturating_sub(end)))
        })
        .collect();
    let mut sorted: Vec<u64> = rests.iter().map(|(_, rest)| *rest).collect();
    sorted.sort_unstable();
    let most = sorted.get(sorted.len() / 2).map_or(0, |median| 2 * median);
    for (place, rest) in rests {
        times[place] += rest.min(most);
    }
}

/// Follows a worker through its requests, in the order of its answers.
fn follow_worker(requests: &[ObservedRequest], places: &[usize], found: &mut RunOccupancy) {
    let mut busy_until = 0;
    for (number, place) in places.iter().enumerate() {
        let request = &requests[*place];
        let end = end_of_work(request, places.get(number + 1).map(|next| &requests[*next]));
        let read = (request.at(RequestPoint::Scheduled), request.at(RequestPoint::Read));
        let is_own = request.reader == request.writer;
        let reading = if is_own { after(busy_until, read) } else { read.1 - read.0 };
        let working = after(busy_until, (request.at(RequestPoint::Started), end));
        let held_up = request.held_up;
        found.times[*place] =
            reading.saturating_sub(held_up.reading) + working.saturating_sub(held_up.processing);
        if number > 0 && request.at(RequestPoint::Ready) <= busy_until && end > busy_until {
            found.between_answers.push(end - busy_until);
        }
        busy_until = busy_until.max(end);
    }
}

/// When the worker is done with a request. If it is transmitted after the worker has turned to the next one, then not by
/// the worker.
fn end_of_work(request: &ObservedRequest, next: Option<&ObservedRequest>) -> u64 {
    let written = request.at(RequestPoint::Written);
    let transmitted = request.at(RequestPoint::Transmitted);
    let is_elsewhere = next.is_some_and(|next| {
        let scheduled = next.at(RequestPoint::Scheduled);
        transmitted > next.at(RequestPoint::Written) || scheduled > written && transmitted > scheduled
    });
    if is_elsewhere { written } else { transmitted }
}

/// The length of what an interval has after an instant.
fn after(instant: u64, (begin, end): (u64, u64)) -> u64 {
    end.saturating_sub(begin.max(instant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;

    #[test]
    fn unseen_time_is_service_only_where_most_requests_have_it() {
        for (every, served) in [(100, 10), (1, 8_000_010)] {
            let request = |n: u64| {
                let mut made = request(n * 10_000_000, n * 10_000_000, 10);
                if n.is_multiple_of(every) {
                    made.points[4..].iter_mut().for_each(|point| *point += 8_000_000);
                    made.last_awaited_write += 8_000_000;
                    made.held_up.unseen = 8_000_000;
                }
                made
            };
            let requests: Vec<ObservedRequest> = (0..1_000).map(request).collect();
            assert!(occupancy(&requests).times.iter().all(|time| *time == served), "{every}");
        }
    }

    #[test]
    fn one_after_the_other_each_has_its_own_time() {
        let requests = [request(0, 5, 10), request(3, 15, 20), request(100, 100, 8)];
        let found = occupancy(&requests);
        assert_eq!(found.times, [10, 20, 8]);
        assert_eq!(found.between_answers, [20], "the third did not wait for the second");
    }

    #[test]
    fn what_is_read_together_is_counted_once() {
        // Read from 10 to 14 together; the first is answered at 20, the second is started then and answered at 30.
        let mut first = request(0, 10, 10);
        let mut second = request(1, 10, 10);
        first.points = [0, 0, 0, 10, 14, 14, 18, 20];
        second.points = [1, 1, 1, 10, 14, 20, 28, 30];
        let found = occupancy(&[first, second]);
        assert_eq!((found.times, found.between_answers), (vec![10, 10], vec![10]));
    }

    #[test]
    fn a_late_transmission_is_not_the_workers_time() {
        // Written at 18, but on its way at 500 only; the worker answers another one meanwhile.
        let mut first = request(0, 10, 10);
        let mut second = request(100, 100, 10);
        first.points = [0, 0, 0, 10, 14, 14, 18, 500];
        second.points = [100, 100, 100, 100, 104, 104, 108, 110];
        let found = occupancy(&[first, second]);
        assert_eq!((found.times, found.between_answers), (vec![8, 10], vec![]));
    }

    #[test]
    fn workers_do_not_share_time() {
        let first = request(0, 0, 10);
        let mut second = request(0, 0, 10);
        (second.reader, second.writer) = (2, 2);
        assert_eq!(occupancy(&[first, second]).times, [10, 10]);
        // Another thread reads: its time is part of what the request takes.
        second.reader = 3;
        assert_eq!(occupancy(&[first, second]).times, [10, 10]);
    }
}
