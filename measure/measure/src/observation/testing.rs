//! Requests for the tests of this room.

use crate::observation::finding::{Culprit, DominatingCause, Finding, FindingVerdict, NextStep};
use arrivals::{ArrivalPattern, TimeDistribution, TimedRequest, TimedRequestSource};
use observe::{HeldUpTime, ObservedRequest, RequestQuality};

/// A request of one worker and client that arrives (T0 and T1), waits until `start` and is served for a time, half of
/// which is reading.
pub(super) fn request(arrival: u64, start: u64, service: u64) -> ObservedRequest {
    let read = start + service / 2;
    let end = start + service;
    ObservedRequest {
        points: [arrival, arrival, arrival, start, read, read, end, end],
        first_wire: arrival,
        last_awaited_write: end,
        peer: ([10, 0, 0, 1], 5).into(),
        port: 80,
        udp: false,
        request_bytes: 20,
        answer_bytes: 100,
        reader: 1,
        writer: 1,
        quality: RequestQuality::default(),
        held_up: HeldUpTime::default(),
    }
}

/// Requests of a random stream.
pub(super) fn stream(arrivals: &str, service: &str, count: usize) -> Vec<TimedRequest> {
    let arrivals: ArrivalPattern = arrivals.parse().expect("a process");
    let service: TimeDistribution = service.parse().expect("a distribution");
    let source = TimedRequestSource { arrivals, service };
    source.requests(1).expect("its parameters are fine").take(count).collect()
}

/// A server that does nothing but queue, with the network stack before it: whoever of the workers of a queue is free
/// first takes the next request. `queue_of` says in which queue a request waits.
pub(super) fn queueing_server(
    stream: &[TimedRequest],
    queues: usize,
    workers_per_queue: usize,
    stack: u64,
    queue_of: impl Fn(usize) -> usize,
) -> Vec<ObservedRequest> {
    let mut free = vec![vec![0u64; workers_per_queue]; queues];
    let mut requests = Vec::new();
    for (place, TimedRequest { arrival, service }) in stream.iter().enumerate() {
        let queue = queue_of(place);
        let worker =
            (0..workers_per_queue).min_by_key(|worker| free[queue][*worker]).expect("there are workers");
        let start = (arrival.0 + stack).max(free[queue][worker]);
        free[queue][worker] = start + service.0;
        let thread = u32::try_from(1 + queue * workers_per_queue + worker).expect("there are few workers");
        let mut observed = request(arrival.0, start, service.0);
        observed.points[2] = arrival.0 + stack;
        (observed.reader, observed.writer) = (thread, thread);
        requests.push(observed);
    }
    requests
}

/// A finding about a process that takes the server's CPU.
pub(super) fn unusual_finding() -> Finding {
    let next = "tailwright experiment demote=4711 --pid 9 --port 80";
    Finding {
        sentence: format!("p99 24.9ms, 650 times ideal; 97% of it waits behind hog (4711); next: {next}"),
        verdict: FindingVerdict::Unusual,
        caveats: Vec::new(),
        p99_s: Some(0.0249),
        p99_low_s: None,
        p99_high_s: None,
        times_ideal: Some(650.0),
        usual_p99_s: None,
        dominating: Some(DominatingCause {
            cause: "other processes",
            share: 0.97,
            culprit: Some(Culprit::Process { name: "hog".to_owned(), pid: 4711, further: 0 }),
        }),
        tested: Vec::new(),
        requests: 5000,
        requests_needed: None,
        next: Some(NextStep::Command(next.to_owned())),
    }
}
