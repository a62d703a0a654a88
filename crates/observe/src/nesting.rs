//! Whether requests as the server's machine saw them lie inside of what a client on the same clock saw of them.

use crate::request::{ObservedRequest, RequestPoint};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A request as a client saw it, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientRequest {
    /// The address of the client.
    pub client: SocketAddr,
    /// Before it was sent.
    pub sent: u64,
    /// After its answer was received.
    pub received: u64,
}

/// How observed requests and those of clients fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestNesting {
    /// Observed requests from T0 to T6 inside of one of a client, each in another one.
    pub nested: u64,
    /// Observed requests of these clients that are in none.
    pub outside: u64,
    /// Requests of clients in which no observed request is.
    pub missing: u64,
}

/// Assigns each observed request, in the order of arrival, to the free request of its client around it that was answered
/// first.
pub fn nesting(observed: &[ObservedRequest], clients: &[ClientRequest]) -> RequestNesting {
    let mut sent: BTreeMap<SocketAddr, VecDeque<ClientRequest>> = BTreeMap::new();
    for request in clients {
        sent.entry(request.client).or_default().push_back(*request);
    }
    sent.values_mut().for_each(|requests| requests.make_contiguous().sort_unstable());
    let mut arrived: Vec<&ObservedRequest> = observed.iter().collect();
    arrived.sort_by_key(|request| (request.at(RequestPoint::Wire), request.at(RequestPoint::Transmitted)));
    let mut result = RequestNesting::default();
    for request in arrived {
        let Some(open) = sent.get_mut(&request.peer) else { continue };
        let (from, until) = (request.at(RequestPoint::Wire), request.at(RequestPoint::Transmitted));
        let around = open.iter().enumerate().take_while(|(_, client)| client.sent <= from);
        let around = around.filter(|(_, client)| until <= client.received);
        match around.min_by_key(|(_, client)| client.received).map(|(place, _)| place) {
            Some(place) => {
                open.remove(place);
                result.nested += 1;
            }
            None => result.outside += 1,
        }
    }
    result.missing = sent.values().map(|requests| requests.len() as u64).sum();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::POINTS;
    use crate::testing::request;

    fn observed(client: u16, from: u64, until: u64) -> ObservedRequest {
        let mut points = [from; POINTS];
        points[POINTS - 1] = until;
        request(client, 80, points)
    }

    #[test]
    fn each_interval_holds_one_request() {
        let client = |sent, received| ClientRequest { client: ([10, 0, 0, 1], 5).into(), sent, received };
        let clients = [client(0, 100), client(10, 110), client(200, 300)];
        let requests = [
            observed(5, 20, 90),
            observed(5, 30, 95),
            observed(5, 40, 99),
            observed(5, 150, 250),
            observed(6, 0, 1),
        ];
        let found = nesting(&requests, &clients);
        assert_eq!(found, RequestNesting { nested: 2, outside: 2, missing: 1 });
    }
}
