//! What percentiles would be without a cause: the requests again, with the time of the cause taken out.
//!
//! Each worker answers its requests in the order in which it has answered them. A request that waited until its worker was
//! done with others begins earlier by what these end earlier, but not before it was there: so what a cause has knocked on
//! goes with it. With nothing taken out, each request has exactly the latency that it had. What the replay does not know:
//! requests would have come at other times if their clients wait for answers, and time that is saved on one CPU may help
//! others.

use super::attribution::AttributedRequest;
use super::cause::Cause;
use super::profile::IntendedWaits;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What is taken out of the time of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenOut {
    /// Nothing: requests are as they were.
    Nothing,
    /// A cause. One that requests have only in queues, [`Cause::AllBusy`] and [`Cause::OtherIdle`], is taken out of each
    /// request's own waiting alone.
    Cause(Cause),
    /// Queues of workers, and any order but that of arrival: as many workers as there were take the oldest request of
    /// all.
    QueuesOfWorkers,
}

/// The latencies, in nanoseconds, that requests would have, in the order in which they were written.
pub fn replay(requests: &[AttributedRequest], taken_out: TakenOut, intended: IntendedWaits) -> Vec<u64> {
    let mut in_order: Vec<&AttributedRequest> = requests.iter().collect();
    in_order.sort_by_key(|request| (request.done, request.worker, request.ready));
    match taken_out {
        TakenOut::Nothing => in_order.iter().map(|request| latency(request, intended)).collect(),
        TakenOut::Cause(cause) => without_cause(&in_order, cause, intended),
        TakenOut::QueuesOfWorkers => one_queue(&in_order, intended),
    }
}

fn latency(request: &AttributedRequest, intended: IntendedWaits) -> u64 {
    let (own, queued) = intended.apply(request);
    own.iter().chain(&queued).sum()
}

fn without_cause(requests: &[&AttributedRequest], cause: Cause, intended: IntendedWaits) -> Vec<u64> {
    // By how much each worker is earlier now.
    let mut earlier: BTreeMap<u32, u64> = BTreeMap::new();
    let is_of_queues = matches!(cause, Cause::AllBusy | Cause::OtherIdle);
    let again = |request: &&AttributedRequest| {
        let own = request.own[cause as usize];
        let waited = request.start.saturating_sub(request.ready);
        let saved = if is_of_queues {
            request.queued[cause as usize]
        } else {
            let worker = earlier.entry(request.worker).or_default();
            let begins_earlier = (*worker).min(waited);
            *worker = begins_earlier + if is_of_network(cause) { 0 } else { own };
            begins_earlier + own
        };
        let left_out = request.latency() - latency(request, intended);
        let is_left_out = cause == Cause::Asleep && intended == IntendedWaits::Excluded;
        let saved = if is_left_out { saved - own } else { saved };
        request.latency() - left_out - saved
    };
    requests.iter().map(again).collect()
}

/// These times pass while no worker is busy with the request.
fn is_of_network(cause: Cause) -> bool {
    matches!(cause, Cause::NetworkIn | Cause::NetworkOut)
}

/// For each process: its workers, each free from some moment on, take requests in the order of arrival.
fn one_queue(requests: &[&AttributedRequest], intended: IntendedWaits) -> Vec<u64> {
    let mut of_process: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        of_process.entry(request.process).or_default().push(place);
    }
    let mut latencies = vec![0; requests.len()];
    for places in of_process.values_mut() {
        places.sort_by_key(|place| requests[*place].ready);
        let mut workers: Vec<u32> = places.iter().map(|place| requests[*place].worker).collect();
        workers.sort_unstable();
        workers.dedup();
        let mut free: BinaryHeap<Reverse<u64>> = workers.iter().map(|_| Reverse(0)).collect();
        for place in places {
            let request = requests[*place];
            let Reverse(since) = free.pop().expect("a process has a worker");
            let start = since.max(request.ready);
            free.push(Reverse(start + request.done.saturating_sub(request.start)));
            let before = request.start.saturating_sub(request.ready);
            latencies[*place] = latency(request, intended) + (start - request.ready) - before;
        }
    }
    latencies
}

/// How requests overtook each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OvertakenRequests {
    /// Requests that were still waiting when a worker of the same server began with one that came later.
    pub overtaken: u64,
    /// The longest that one of them waited after that, in nanoseconds.
    pub longest_ns: u64,
}

/// Counts the requests that were overtaken.
pub fn overtaken(requests: &[AttributedRequest]) -> OvertakenRequests {
    let mut by_process: BTreeMap<u32, Vec<&AttributedRequest>> = BTreeMap::new();
    for request in requests {
        by_process.entry(request.process).or_default().push(request);
    }
    let mut found = OvertakenRequests::default();
    for of_process in by_process.values_mut() {
        of_process.sort_by_key(|request| (request.ready, request.begun));
        // When the first of those that came later was begun.
        let mut first_later = u64::MAX;
        for request in of_process.iter().rev() {
            if first_later < request.begun {
                found.overtaken += 1;
                found.longest_ns = found.longest_ns.max(request.begun - first_later);
            }
            first_later = first_later.min(request.begun);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::cause::CAUSES;
    use proptest::prelude::*;

    /// A request that a worker begins with when it is done with those before, with work and the time of another process.
    fn request(worker: u32, ready: u64, free: u64, work: u64, other: u64) -> AttributedRequest {
        let start = free.max(ready);
        let (mut own, mut queued) = ([0; CAUSES], [0; CAUSES]);
        own[Cause::Work as usize] = work;
        own[Cause::OtherProcess as usize] = other;
        queued[Cause::AllBusy as usize] = start - ready;
        let done = start + work + other;
        let interferers = Vec::new();
        AttributedRequest { ready, start, begun: start, done, worker, process: 1, own, queued, interferers }
    }

    /// First come, first served by one worker: (arrival, work, other process).
    fn served(jobs: &[(u64, u64, u64)], worker: u32) -> Vec<AttributedRequest> {
        let mut free = 0;
        let serve = |&(ready, work, other): &(u64, u64, u64)| {
            let request = request(worker, ready, free, work, other);
            free = request.done;
            request
        };
        jobs.iter().map(serve).collect()
    }

    #[test]
    fn what_a_hog_knocked_on_goes_with_it() {
        // The first is held up for 100, and the next two wait for it.
        let requests = served(&[(0, 10, 100), (5, 10, 0), (10, 10, 0), (500, 10, 0)], 1);
        let nothing = replay(&requests, TakenOut::Nothing, IntendedWaits::Included);
        assert_eq!(nothing, [110, 115, 120, 10]);
        let without = TakenOut::Cause(Cause::OtherProcess);
        assert_eq!(replay(&requests, without, IntendedWaits::Included), [10, 15, 20, 10]);
        let arrivals = TakenOut::Cause(Cause::AllBusy);
        assert_eq!(replay(&requests, arrivals, IntendedWaits::Included), [110, 10, 10, 10]);
    }

    #[test]
    fn one_queue_for_two_workers() {
        let mut requests = served(&[(0, 100, 0), (1, 100, 0)], 1);
        requests.extend(served(&[(300, 5, 0)], 2));
        let one = replay(&requests, TakenOut::QueuesOfWorkers, IntendedWaits::Included);
        assert_eq!(one, [100, 100, 5]);
    }

    #[test]
    fn overtaking_is_counted() {
        let first = AttributedRequest { begun: 80, ..request(1, 0, 0, 10, 0) };
        let second = AttributedRequest { begun: 20, ..request(2, 10, 0, 10, 0) };
        let third = AttributedRequest { begun: 90, ..request(2, 15, 0, 10, 0) };
        let found = overtaken(&[first, second, third]);
        assert_eq!(found, OvertakenRequests { overtaken: 1, longest_ns: 60 });
        assert_eq!(overtaken(&served(&[(0, 5, 0), (1, 5, 0)], 1)).overtaken, 0);
    }

    proptest! {
        /// Taking a cause out of a queue gives what the queue without it gives.
        #[test]
        fn the_replay_is_the_queue_without_the_cause(jobs in prop::collection::vec((0u64..1000, 1u64..50, 0u64..50), 1..100)) {
            let mut jobs = jobs;
            jobs.sort_by_key(|job| job.0);
            let requests = served(&jobs, 1);
            let clean: Vec<_> = jobs.iter().map(|&(ready, work, _)| (ready, work, 0)).collect();
            let expected: Vec<u64> = served(&clean, 1).iter().map(AttributedRequest::latency).collect();
            let without = TakenOut::Cause(Cause::OtherProcess);
            prop_assert_eq!(replay(&requests, without, IntendedWaits::Included), expected);
            let own: Vec<u64> = requests.iter().map(AttributedRequest::latency).collect();
            let untouched = TakenOut::Cause(Cause::Softirq);
            prop_assert_eq!(&replay(&requests, untouched, IntendedWaits::Included), &own);
            prop_assert_eq!(replay(&requests, TakenOut::QueuesOfWorkers, IntendedWaits::Included), own);
        }
    }
}
