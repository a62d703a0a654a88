//! Whose requests the slowest ones wait behind, and whether that client sends far more than the others.
//!
//! A few clients are named if the slowest requests wait mostly for theirs: those that send more than others, or all at
//! once.

use crate::observation::sample::RequestRun;
use observe::{ObservedRequest, RequestPoint};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// The largest clients that are named together have this share of the time that is waited behind requests.
const NAMED_SHARE: f64 = 0.8;

/// A client floods the server if its connections send this many times what the others do.
const FLOOD_FACTOR: f64 = 3.0;

/// A client is not named for one request that was held up: no single request may have more than this share of the time.
const SINGLE_REQUEST_SHARE_MAX: f64 = 0.5;

/// A client that the tail waits behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BusyClient {
    /// Its address, or one of its connections where all clients have one address.
    pub(super) name: String,
    /// How many connections there are beside the one named.
    pub(super) others: usize,
    /// Its share of the time in which workers are busy, in thousandths, if it sends far more than the others; otherwise 0.
    pub(super) load_permille: u64,
}

/// A client as requests tell them apart: by address, or by connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Client {
    Host(IpAddr),
    Connection(SocketAddr),
}

#[derive(Debug, Clone, Copy, Default)]
struct ClientLoad {
    requests: u64,
    busy_ns: u64,
    /// Time of the slowest requests in which their worker answered this client.
    ahead_ns: u64,
    /// The part of it for the request with most.
    single_ahead_ns: u64,
}

/// The clients on whose requests most of the time is spent in which requests of at least `slow_ns` wait for their worker,
/// if they are at most half of the clients.
pub(super) fn client_ahead(runs: &[RequestRun], slow_ns: u64) -> Option<BusyClient> {
    let hosts: BTreeSet<IpAddr> =
        runs.iter().flat_map(|run| &run.requests).map(|request| request.peer.ip()).collect();
    let client_of = |request: &ObservedRequest| {
        if hosts.len() > 1 { Client::Host(request.peer.ip()) } else { Client::Connection(request.peer) }
    };
    let mut loads: BTreeMap<Client, ClientLoad> = BTreeMap::new();
    for run in runs {
        let mut workers: BTreeMap<u32, Vec<&ObservedRequest>> = BTreeMap::new();
        run.requests.iter().for_each(|request| workers.entry(request.writer).or_default().push(request));
        for requests in workers.values_mut() {
            requests.sort_by_key(|request| request.at(RequestPoint::Written));
            add_worker(requests, slow_ns, client_of, &mut loads);
        }
    }
    largest(&loads)
}

/// Adds the requests of a worker, in the order of their answers.
fn add_worker(
    requests: &[&ObservedRequest],
    slow_ns: u64,
    client_of: impl Fn(&ObservedRequest) -> Client,
    loads: &mut BTreeMap<Client, ClientLoad>,
) {
    // When the worker was busy with each, without overlaps.
    let mut busy: Vec<(u64, u64, Client)> = Vec::with_capacity(requests.len());
    let mut busy_until = 0;
    for request in requests {
        let from = request.at(RequestPoint::Scheduled).max(busy_until);
        let until = request.at(RequestPoint::Written).max(from);
        busy_until = until;
        let client = client_of(request);
        busy.push((from, until, client));
        let load = loads.entry(client).or_default();
        load.requests += 1;
        load.busy_ns += until - from;
    }
    let mut ahead_of_each = vec![0u64; busy.len()];
    for (place, request) in requests.iter().enumerate() {
        if request.at(RequestPoint::Transmitted) - request.at(RequestPoint::Stack) < slow_ns {
            continue;
        }
        let ready = request.at(RequestPoint::Ready);
        let before = busy[..place].iter().enumerate().rev().take_while(|(_, (_, until, _))| *until > ready);
        for (place, (from, until, _)) in before {
            ahead_of_each[place] += until - from.max(&ready);
        }
    }
    for (ahead, (_, _, client)) in ahead_of_each.into_iter().zip(busy) {
        let load = loads.entry(client).or_default();
        load.ahead_ns += ahead;
        load.single_ahead_ns = load.single_ahead_ns.max(ahead);
    }
}

/// The fewest clients that have most of the time ahead, if they are at most half of all.
fn largest(loads: &BTreeMap<Client, ClientLoad>) -> Option<BusyClient> {
    let ahead: u64 = loads.values().map(|load| load.ahead_ns).sum();
    let busy: u64 = loads.values().map(|load| load.busy_ns).sum();
    let mut by_ahead: Vec<(&Client, &ClientLoad)> = loads.iter().collect();
    by_ahead.sort_by_key(|(client, load)| (std::cmp::Reverse(load.ahead_ns), **client));
    let mut reached = 0;
    let few = 1 + by_ahead.iter().position(|(_, load)| {
        reached += load.ahead_ns;
        reached as f64 >= NAMED_SHARE * ahead as f64
    })?;
    let (named, rest) = by_ahead.split_at(few);
    // Of equal clients, most are needed for most of the time.
    if ahead == 0 || named.len() > rest.len() {
        return None;
    }
    let single = named.iter().map(|(_, load)| load.single_ahead_ns).max().unwrap_or(0);
    if single as f64 > SINGLE_REQUEST_SHARE_MAX * ahead as f64 {
        return None;
    }
    let mean = |loads: &[(&Client, &ClientLoad)]| {
        loads.iter().map(|(_, load)| load.requests as f64).sum::<f64>() / loads.len().max(1) as f64
    };
    let is_flood = mean(named) >= FLOOD_FACTOR * mean(rest);
    let of_named: u64 = named.iter().map(|(_, load)| load.busy_ns).sum();
    let name = match named[0].0 {
        Client::Host(address) => address.to_string(),
        Client::Connection(address) => address.to_string(),
    };
    let load_permille = if is_flood { of_named * 1000 / busy.max(1) } else { 0 };
    Some(BusyClient { name, others: few - 1, load_permille })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;

    fn from(address: [u8; 4], port: u16, arrival: u64, start: u64) -> ObservedRequest {
        ObservedRequest { peer: (address, port).into(), ..request(arrival, start, 100) }
    }

    /// A worker that takes 100 ns for each of bursts of `burst` requests from one client, and a request of another one
    /// that arrives with them.
    fn flooded(burst: u64, flooder: ([u8; 4], u16)) -> RequestRun {
        let mut requests = Vec::new();
        for round in 0..100u64 {
            let begin = round * 100_000;
            for n in 0..burst {
                requests.push(from(flooder.0, flooder.1, begin, begin + n * 100));
            }
            requests.push(from([10, 0, 0, 1], 5, begin, begin + burst * 100));
        }
        RequestRun::new(requests, 0)
    }

    #[test]
    fn the_client_that_sends_most_is_named() {
        let of_host = client_ahead(&[flooded(50, ([10, 0, 0, 2], 7))], 5000).expect("it floods");
        assert_eq!((of_host.name.as_str(), of_host.others), ("10.0.0.2", 0));
        let of_connection = client_ahead(&[flooded(50, ([10, 0, 0, 1], 7))], 5000).expect("it floods");
        assert_eq!(of_connection.name, "10.0.0.1:7");
        assert!((970..990).contains(&of_connection.load_permille), "{of_connection:?}");
    }

    /// All clients send a request at once, again and again, each time in another order.
    fn equal(clients: u64) -> RequestRun {
        let sent = |round: u64| {
            (0..clients).map(move |n| {
                let port = u16::try_from((n + round) % clients).expect("there are few clients");
                from([10, 0, 0, 1], port, round * 100_000, round * 100_000 + n * 100)
            })
        };
        RequestRun::new((0..100).flat_map(sent).collect(), 0)
    }

    /// Of four clients that take turns, one has a request that is held up while those of the others come.
    #[test]
    fn no_client_is_named_for_one_request_that_was_held_up() {
        let requests = (0..10_000u64).map(|n| {
            let arrival = n * 1_000;
            let port = u16::try_from(n % 4).expect("there are four");
            let held_up = 500_000..550_000;
            let mut made = from([10, 0, 0, 1], port, arrival, arrival);
            if held_up.contains(&arrival) {
                made = from([10, 0, 0, 1], port, arrival, held_up.end + (arrival - held_up.start) / 10);
                if arrival == held_up.start {
                    made = from([10, 0, 0, 1], port, arrival, arrival);
                    (made.points[6], made.points[7]) = (held_up.end, held_up.end);
                }
            }
            made
        });
        let run = RequestRun::new(requests.collect(), 0);
        assert_eq!(client_ahead(&[run], 2_000), None);
    }

    #[test]
    fn equal_clients_flood_nothing() {
        assert_eq!(client_ahead(&[equal(4)], 200), None);
        let alone = (0..100).map(|n| from([10, 0, 0, 1], 5, 0, n * 100)).collect();
        assert_eq!(client_ahead(&[RequestRun::new(alone, 0)], 5000), None);
        assert_eq!(client_ahead(&[], 0), None);
    }
}
