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
        let from = request.at(RequestPoint::Wire);
        let until = request.at(RequestPoint::Transmitted);
        // No later arrival is in these.
        while open.front().is_some_and(|client| client.received < from) {
            open.pop_front();
            result.missing += 1;
        }
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
    result.missing += sent.values().map(|requests| requests.len() as u64).sum::<u64>();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::POINTS;
    use crate::testing::request;
    use proptest::prelude::*;

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

    /// The rule without the order of arrivals: all free requests of clients are looked at for each observed one.
    fn looking_at_all(requests: &[ObservedRequest], clients: &[ClientRequest]) -> RequestNesting {
        let mut arrived = requests.to_vec();
        arrived.sort_by_key(|request| (request.points[0], request.points[POINTS - 1]));
        let mut free = clients.to_vec();
        free.sort_unstable();
        let mut result = RequestNesting::default();
        for request in &arrived {
            let is_around = |client: &ClientRequest| {
                let from = request.points[0];
                let until = request.points[POINTS - 1];
                client.client == request.peer && client.sent <= from && until <= client.received
            };
            let around = free.iter().enumerate().filter(|(_, client)| is_around(client));
            if let Some((place, _)) = around.min_by_key(|(_, client)| client.received) {
                free.remove(place);
                result.nested += 1;
            } else if clients.iter().any(|client| client.client == request.peer) {
                result.outside += 1;
            }
        }
        result.missing = free.len() as u64;
        result
    }

    proptest! {
        #[test]
        fn what_no_later_arrival_is_in_is_missing(
            clients in prop::collection::vec((5u16..7, 0u64..60, 0u64..30), 0..20),
            requests in prop::collection::vec((5u16..8, 0u64..60, 0u64..20), 0..20),
        ) {
            let at = |port: u16, sent, length| ClientRequest {
                client: ([10, 0, 0, 1], port).into(), sent, received: sent + length,
            };
            let clients: Vec<_> = clients.iter().map(|(port, sent, length)| at(*port, *sent, *length)).collect();
            let requests: Vec<_> =
                requests.iter().map(|(port, from, length)| observed(*port, *from, from + length)).collect();
            prop_assert_eq!(nesting(&requests, &clients), looking_at_all(&requests, &clients));
        }
    }
}
