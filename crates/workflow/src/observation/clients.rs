//! Whether clients wait for answers before they send more: a closed loop.
//!
//! If the requests of a connection came whenever they like, some would come before the answer to the one before. The
//! connection's rate and the time in which it had a request open say how many to expect of Poisson arrivals; when far
//! fewer came, clients wait for answers. Clients that send several requests at a time and then wait are not recognised.

use super::sample::RequestRun;
use observe::{ObservedRequest, RequestPoint};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// At least so many requests must be expected to come before an answer, for their absence to say something.
const EXPECTED_MIN: f64 = 10.0;

/// Clients wait for answers if this share of what is expected comes before the answer at most.
const OVERLAP_SHARE_MAX: f64 = 0.1;

/// A client that has a request open for less than this share of the time sends for reasons of its own, in the main.
const OPEN_SHARE_MIN: f64 = 0.05;

/// What was seen of the connections, or of the clients' ports for UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClientBehaviour {
    /// The number of connections.
    pub connections: usize,
    /// Requests that came before the answer to the one before on their connection.
    pub overlapping: u64,
    /// How many of these Poisson arrivals of the same rate on each connection would have.
    pub overlapping_expected: f64,
    /// The share of the time, over connections, in which a request was open.
    pub open_share: f64,
}

impl ClientBehaviour {
    /// Whether clients wait for answers, and their arrivals depend on the latency.
    pub fn is_closed_loop(&self) -> bool {
        self.overlapping_expected >= EXPECTED_MIN
            && self.open_share >= OPEN_SHARE_MIN
            && self.overlapping as f64 <= OVERLAP_SHARE_MAX * self.overlapping_expected
    }
}

/// Sums over connections of all runs.
pub(super) fn client_behaviour(runs: &[RequestRun]) -> ClientBehaviour {
    let mut found = ClientBehaviour::default();
    let (mut open_ns, mut time_ns) = (0.0, 0.0);
    let mut peers: BTreeMap<(SocketAddr, u16, bool), usize> = BTreeMap::new();
    for run in runs {
        let mut connections: BTreeMap<(SocketAddr, u16, bool), Vec<&ObservedRequest>> = BTreeMap::new();
        for request in &run.requests {
            let connection = (request.peer, request.port, request.udp);
            connections.entry(connection).or_default().push(request);
            *peers.entry(connection).or_default() += 1;
        }
        for requests in connections.values().filter(|requests| requests.len() > 1) {
            let of_connection = ConnectionUse::new(requests);
            found.overlapping += of_connection.overlapping;
            found.overlapping_expected += of_connection.overlapping_expected();
            open_ns += of_connection.open_ns;
            time_ns += of_connection.time_ns;
        }
    }
    found.connections = peers.len();
    found.open_share = if time_ns > 0.0 { open_ns / time_ns } else { 0.0 };
    found
}

/// What a connection was used for, from its first request to its last.
struct ConnectionUse {
    overlapping: u64,
    requests: f64,
    open_ns: f64,
    time_ns: f64,
}

impl ConnectionUse {
    /// Of at least one request, in the order of arrival.
    fn new(requests: &[&ObservedRequest]) -> Self {
        let (first, last) =
            (requests[0].at(RequestPoint::Stack), requests[requests.len() - 1].at(RequestPoint::Stack));
        let mut found = Self { overlapping: 0, requests: 0.0, open_ns: 0.0, time_ns: (last - first) as f64 };
        let mut open_until = requests[0].at(RequestPoint::Transmitted);
        let mut open_since = first;
        for request in &requests[1..] {
            let arrival = request.at(RequestPoint::Stack);
            found.requests += 1.0;
            if arrival < open_until {
                found.overlapping += 1;
            } else {
                found.open_ns += (open_until - open_since) as f64;
                open_since = arrival;
            }
            open_until = open_until.max(request.at(RequestPoint::Transmitted));
        }
        found.open_ns += (open_until.min(last) - open_since) as f64;
        found
    }

    /// Poisson arrivals see the connection as it is on average.
    fn overlapping_expected(&self) -> f64 {
        if self.time_ns > 0.0 {
            self.requests * (self.open_ns / self.time_ns).min(1.0)
        } else {
            self.requests
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::request;
    use super::*;
    use arrivals::ArrivalPattern;

    fn behaviour(requests: Vec<ObservedRequest>) -> ClientBehaviour {
        client_behaviour(&[RequestRun::new(requests, 0)])
    }

    #[test]
    fn who_sends_after_the_answer_is_a_closed_loop() {
        for pause in [0, 5, 100, 1500] {
            let found =
                behaviour((0..1000).map(|n| request(n * (100 + pause), n * (100 + pause), 100)).collect());
            assert_eq!((found.overlapping, found.connections), (0, 1));
            assert!(found.is_closed_loop(), "pause {pause}: {found:?}");
        }
        let rare = behaviour((0..1000).map(|n| request(n * 100_000, n * 100_000, 100)).collect());
        assert!(!rare.is_closed_loop(), "{rare:?}");
    }

    #[test]
    fn poisson_arrivals_are_none() {
        for (gap, seed) in [("poisson(1000/s)", 1), ("poisson(5000/s)", 2), ("poisson(9000/s)", 3)] {
            let pattern: ArrivalPattern = gap.parse().expect("a process");
            let mut free = 0;
            let requests = pattern.instants(seed).expect("the rate is fine").take(3000).map(|at| {
                let start = free.max(at.0);
                free = start + 100_000;
                request(at.0, start, 100_000)
            });
            let found = behaviour(requests.collect());
            assert!(!found.is_closed_loop(), "{found:?}");
            let ratio = found.overlapping as f64 / found.overlapping_expected;
            assert!((0.8..1.2).contains(&ratio), "Poisson arrivals see time averages: {found:?}");
        }
    }

    #[test]
    fn one_request_says_nothing() {
        assert!(!behaviour(vec![request(0, 0, 10)]).is_closed_loop());
        assert_eq!(behaviour(Vec::new()), ClientBehaviour::default());
    }
}
