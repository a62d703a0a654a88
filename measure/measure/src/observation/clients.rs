//! Whether clients wait for answers before they send more: a closed loop.
//!
//! In a closed loop the next request of a connection follows the answer to the one before: it comes later by as much as
//! the answer does. Requests of an open loop come when they come. The times from request to request and from answer to
//! request, beside the latency between them, tell the two apart, unless latencies hardly vary. An open loop that takes
//! whichever connection is free looks like a closed one on each of them; but all its connections together have requests
//! whatever is open, where those of a closed loop have fewer the more is open. A client counts as a closed loop only if
//! both say so. Several requests that are sent at a time leave it open.

use crate::observation::sample::RequestRun;
use observe::{ObservedRequest, RequestPoint};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Standard deviations from which on a rank correlation is there.
const IS_THERE: f64 = 6.0;

/// Standard deviations up to which a rank correlation is not there.
const IS_NOT_THERE: f64 = 2.5;

/// Nor is one of up to this share of the other one, which is there.
const SHARE_NOT_THERE: f64 = 0.2;

/// A correlation of at least this size, however sure a smaller one is.
const CORRELATION_MIN: f64 = 0.1;

/// The logarithm of the least ratio of two likelihoods that decides.
const LIKELIHOOD_MIN: f64 = 10.0;

/// The most requests of a connection in a run that are compared: more say nothing new.
const COMPARED_MAX: usize = 20_000;

/// Requests that came before the answer to the one before are those of an open loop if so many times as many came as
/// Poisson arrivals have, at least and at most.
const OVERLAP_RATIOS: [f64; 2] = [0.5, 2.0];

/// At least so many, for that to say something.
const OVERLAPPING_MIN: f64 = 20.0;

/// Up to this share of the requests, those that come before an answer do not hide what the others do.
const OVERLAP_SHARE_MAX: f64 = 0.1;

/// Requests that are sent as long as a number of others is open come when the most of them are. The logarithm of the ratio
/// of likelihoods up to which this is not so.
const WINDOW_LIKELIHOOD_MAX: f64 = -3.0;

/// Of the time between a request and its answer: where the next request is on average, if it does not follow at once.
const OVERLAP_PLACES: [f64; 2] = [0.2, 0.8];

/// A verdict on all clients together is that on the clients of this share of the requests.
const DECIDING_SHARE: f64 = 0.9;

/// What a client waits for before it sends the next request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientLoop {
    /// For the answer to the one before.
    Closed,
    /// For nothing that the server does.
    Open,
    /// Too little was seen to tell, or it is neither.
    #[default]
    Unknown,
}

/// What was seen of the connections, or of the clients' ports for UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct ClientBehaviour {
    /// The share of the requests whose client is a closed loop.
    pub closed_share: f64,
    /// The share of the requests whose client is an open loop.
    pub open_loop_share: f64,
    /// The number of clients: their addresses.
    pub clients: usize,
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
    /// The kind of loop in which most requests are sent.
    pub fn verdict(&self) -> ClientLoop {
        if self.closed_share >= DECIDING_SHARE {
            ClientLoop::Closed
        } else if self.open_loop_share >= DECIDING_SHARE {
            ClientLoop::Open
        } else {
            ClientLoop::Unknown
        }
    }

    /// Whether clients are known to wait for answers, and their arrivals depend on the latency.
    pub fn is_closed_loop(&self) -> bool {
        self.verdict() == ClientLoop::Closed
    }
}

/// Sums over connections of all runs.
pub(super) fn client_behaviour(runs: &[RequestRun]) -> ClientBehaviour {
    let mut found = ClientBehaviour::default();
    let mut open_ns = 0.0;
    let mut time_ns = 0.0;
    let mut peers: BTreeMap<(SocketAddr, u16, bool), usize> = BTreeMap::new();
    let mut clients: BTreeMap<IpAddr, ClientEvidence> = BTreeMap::new();
    for run in runs {
        let mut connections: BTreeMap<(SocketAddr, u16, bool), Vec<&ObservedRequest>> = BTreeMap::new();
        let mut of_clients: BTreeMap<IpAddr, Vec<&ObservedRequest>> = BTreeMap::new();
        for request in &run.requests {
            let connection = (request.peer, request.port, request.udp);
            connections.entry(connection).or_default().push(request);
            of_clients.entry(request.peer.ip()).or_default().push(request);
            *peers.entry(connection).or_default() += 1;
        }
        for ((peer, ..), requests) in &connections {
            let evidence = clients.entry(peer.ip()).or_default();
            evidence.connections += 1;
            if requests.len() > 1 {
                let of_connection = ConnectionUse::new(requests);
                found.overlapping += of_connection.overlapping;
                found.overlapping_expected += of_connection.overlapping_expected();
                open_ns += of_connection.open_ns;
                time_ns += of_connection.time_ns;
                evidence.add_connection(requests, &of_connection);
            }
        }
        for (client, requests) in of_clients {
            let evidence = clients.entry(client).or_default();
            evidence.requests += requests.len() as f64;
            evidence.shared_window_likelihood += closed_likelihood(&requests, most_open(&requests));
            evidence.closed_likelihood +=
                closed_likelihood(&requests, std::mem::take(&mut evidence.connections));
        }
    }
    let requests: f64 = clients.values().map(|client| client.requests).sum();
    let share = |verdict| {
        let of_verdict = clients.values().filter(|client| client.verdict() == verdict);
        of_verdict.fold(0.0, |sum, client| sum + client.requests) / requests.max(1.0)
    };
    found.closed_share = share(ClientLoop::Closed);
    found.open_loop_share = share(ClientLoop::Open);
    found.connections = peers.len();
    found.clients = clients.len();
    found.open_share = if time_ns > 0.0 { open_ns / time_ns } else { 0.0 };
    found
}

/// What the requests of a client say.
#[derive(Debug, Default)]
struct ClientEvidence {
    requests: f64,
    /// In the current run.
    connections: usize,
    after_request: RankCorrelation,
    after_answer: RankCorrelation,
    overlapping: f64,
    overlapping_expected: f64,
    /// Sum over overlapping requests.
    overlap_places: f64,
    /// Logarithm of the likelihood as windows of as many requests as were ever open on each connection ÷ as Poisson arrivals.
    window_likelihood: f64,
    /// The same with all connections of the client together: an answer on one may be followed by a request on another.
    shared_window_likelihood: f64,
    /// Logarithm of the likelihood as a closed loop ÷ as Poisson arrivals.
    closed_likelihood: f64,
}

impl ClientEvidence {
    fn add_connection(&mut self, requests: &[&ObservedRequest], of_connection: &ConnectionUse) {
        self.overlapping += of_connection.overlapping as f64;
        self.overlapping_expected += of_connection.overlapping_expected();
        self.overlap_places += of_connection.overlap_places;
        if of_connection.overlapping > 0 {
            self.window_likelihood += closed_likelihood(requests, most_open(requests));
        }
        let pairs = requests.windows(2).take(COMPARED_MAX);
        let [mut latencies, mut after_request, mut after_answer] = [Vec::new(), Vec::new(), Vec::new()];
        for pair in pairs {
            let arrival = pair[0].at(RequestPoint::Stack);
            let answered = pair[0].at(RequestPoint::Transmitted);
            let next = pair[1].at(RequestPoint::Stack);
            if next >= answered {
                latencies.push(answered - arrival);
                after_request.push(next - arrival);
                after_answer.push(next - answered);
            }
        }
        let latencies = ranks(&latencies);
        self.after_request.add(&latencies, &ranks(&after_request));
        self.after_answer.add(&latencies, &ranks(&after_answer));
    }

    fn verdict(&self) -> ClientLoop {
        if self.overlapping >= OVERLAPPING_MIN {
            let ratio = self.overlapping / self.overlapping_expected.max(1.0);
            let place = self.overlap_places / self.overlapping;
            let is_spread = (OVERLAP_PLACES[0]..=OVERLAP_PLACES[1]).contains(&place);
            let is_as_often = (OVERLAP_RATIOS[0]..=OVERLAP_RATIOS[1]).contains(&ratio);
            if is_as_often
                && is_spread
                && self.window_likelihood <= WINDOW_LIKELIHOOD_MAX
                && self.shared_window_likelihood <= WINDOW_LIKELIHOOD_MAX
            {
                return ClientLoop::Open;
            }
            if self.overlapping > OVERLAP_SHARE_MAX * self.requests {
                return ClientLoop::Unknown;
            }
        }
        let [after_request, after_answer] = [&self.after_request, &self.after_answer];
        let follows_requests = self.shared_window_likelihood <= WINDOW_LIKELIHOOD_MAX
            && after_request.is_absent_beside(after_answer)
            && after_answer.is_there(-1.0);
        let is_closed = self.overlapping < OVERLAPPING_MIN;
        let follows_answers =
            is_closed && after_answer.is_absent_beside(after_request) && after_request.is_there(1.0);
        if follows_answers && self.closed_likelihood >= LIKELIHOOD_MIN {
            ClientLoop::Closed
        } else if follows_requests || (follows_answers && self.closed_likelihood <= -LIKELIHOOD_MIN) {
            ClientLoop::Open
        } else {
            ClientLoop::Unknown
        }
    }
}

/// Rank correlations of several connections, each weighted by its pairs.
#[derive(Debug, Default)]
struct RankCorrelation {
    weighted: f64,
    pairs: f64,
}

impl RankCorrelation {
    /// Pairs of ranks around zero.
    fn add(&mut self, a: &[f64], b: &[f64]) {
        let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let scale = (product(a, a) * product(b, b)).sqrt();
        if scale > 0.0 {
            self.weighted += a.len() as f64 * product(a, b) / scale;
        }
        self.pairs += a.len() as f64;
    }

    /// The mean, and that in standard deviations of pairs without a connection.
    fn mean_and_deviations(&self) -> (f64, f64) {
        let mean = if self.pairs > 0.0 { self.weighted / self.pairs } else { 0.0 };
        (mean, mean * self.pairs.sqrt())
    }

    /// Whether none was seen, or next to none where the other one is there.
    fn is_absent_beside(&self, other: &Self) -> bool {
        let (mean, deviations) = self.mean_and_deviations();
        deviations.abs() <= IS_NOT_THERE
            || mean.abs() <= SHARE_NOT_THERE * other.mean_and_deviations().0.abs()
    }

    /// Whether there is one of this sign.
    fn is_there(&self, sign: f64) -> bool {
        let (mean, deviations) = self.mean_and_deviations();
        mean * sign >= CORRELATION_MIN && deviations * sign >= IS_THERE
    }
}

/// Ranks around zero, equal ones for equal values.
fn ranks(values: &[u64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|place| values[*place]);
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let last = first + equal.len() - 1;
        for place in equal {
            ranks[*place] = (first + last) as f64 / 2.0 - middle;
        }
        first = last + 1;
    }
    ranks
}

/// The most requests that were open at a time.
fn most_open(requests: &[&ObservedRequest]) -> usize {
    let mut answers: Vec<u64> =
        requests.iter().map(|request| request.at(RequestPoint::Transmitted)).collect();
    answers.sort_unstable();
    let mut answered = 0;
    let mut most = 0;
    for (sent, request) in requests.iter().enumerate() {
        while answers.get(answered).is_some_and(|answer| *answer <= request.at(RequestPoint::Stack)) {
            answered += 1;
        }
        most = most.max((sent + 1).saturating_sub(answered));
    }
    most
}

/// With so many connections, a closed loop has requests in proportion to the connections that have none open; Poisson
/// arrivals have them whatever is open. The logarithm of the ratio of the likelihoods of a client's requests.
fn closed_likelihood(requests: &[&ObservedRequest], connections: usize) -> f64 {
    let mut changes: Vec<(u64, i64)> = Vec::with_capacity(requests.len() * 2);
    for request in requests {
        changes.push((request.at(RequestPoint::Stack), 1));
        changes.push((request.at(RequestPoint::Transmitted), -1));
    }
    changes.sort_unstable();
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return 0.0 };
    let whole = (last.0 - first.0) as f64;
    let free_of = |open: i64| (connections as f64 - open as f64).max(0.0);
    let mut open = 0;
    let mut since = first.0;
    let mut free_time = 0.0;
    let mut logarithms = 0.0;
    let mut arrivals: f64 = 0.0;
    for (time, change) in changes {
        free_time += free_of(open) * (time - since) as f64;
        if change > 0 {
            // A request too many is one that a closed loop hardly has.
            logarithms += free_of(open).max(0.01).ln();
            arrivals += 1.0;
        }
        (open, since) = (open + change, time);
    }
    if free_time <= 0.0 || whole <= 0.0 {
        return 0.0;
    }
    logarithms + arrivals * (whole / free_time).ln()
}

/// What a connection was used for, from its first request to its last.
struct ConnectionUse {
    overlapping: u64,
    /// Sum over these: where they came between the request before (0) and its answer (1).
    overlap_places: f64,
    requests: f64,
    open_ns: f64,
    time_ns: f64,
}

impl ConnectionUse {
    /// Of at least one request, in the order of arrival.
    fn new(requests: &[&ObservedRequest]) -> Self {
        let first = requests[0].at(RequestPoint::Stack);
        let last = requests[requests.len() - 1].at(RequestPoint::Stack);
        let mut found = Self {
            overlapping: 0,
            overlap_places: 0.0,
            requests: 0.0,
            open_ns: 0.0,
            time_ns: (last - first) as f64,
        };
        let mut open_until = requests[0].at(RequestPoint::Transmitted);
        let mut open_since = first;
        for pair in requests.windows(2) {
            let before = pair[0];
            let request = pair[1];
            let arrival = request.at(RequestPoint::Stack);
            found.requests += 1.0;
            if arrival < open_until {
                found.overlapping += 1;
                let began = before.at(RequestPoint::Stack);
                let latency = before.at(RequestPoint::Transmitted).saturating_sub(began).max(1);
                found.overlap_places += (arrival - began) as f64 / latency as f64;
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
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "simulated instants, nanoseconds")]
mod tests {
    use super::*;
    use crate::observation::testing::request;
    use arrivals::ArrivalPattern;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// Numbers that look random, from 0 to 1.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn exponential(&mut self, mean: f64) -> f64 {
            -mean * (1.0 - self.unit()).ln()
        }
    }

    /// When clients of a test send.
    #[derive(Debug, Clone, Copy)]
    enum Clients {
        /// Each connection after a pause that begins with the answer: constant, or random with this mean.
        Closed { connections: usize, pause: f64, is_random: bool },
        /// At these gaps on average: on connections in turn, or on the one that has been free for the shortest time.
        Open { connections: usize, gap: f64, is_constant: bool, takes_turns: bool },
        /// Sessions that come at random, each of several requests after each other on a new connection.
        Sessions { gap: f64, length: usize, pause: f64 },
    }

    /// What the clients see of a server with one worker, nanoseconds; `varies`: its service does.
    fn play(clients: Clients, varies: bool, seed: u64) -> ClientBehaviour {
        const REQUESTS: usize = 8000;
        let mut random = Random(seed);
        // Instants at which a connection sends, with the number of requests that it sends after each other.
        let mut next: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::new();
        let cast = |time: f64| time.max(1.0) as u64;
        match clients {
            Clients::Closed { connections, .. } => {
                next.extend(
                    (0..connections)
                        .map(|connection| Reverse((connection as u64 * 997, connection, REQUESTS))),
                );
            }
            Clients::Open { connections, gap, is_constant, .. } => {
                let mut time = 0.0;
                for number in 0..REQUESTS {
                    next.push(Reverse((cast(time), number % connections, 1)));
                    time += if is_constant { gap } else { random.exponential(gap) };
                }
            }
            Clients::Sessions { gap, length, .. } => {
                let mut time = 0.0;
                for number in 0..REQUESTS / length {
                    next.push(Reverse((cast(time), number, length)));
                    time += random.exponential(gap);
                }
            }
        }
        let mut free_connections: Vec<(u64, usize)> = Vec::new();
        let mut opened = 0;
        let mut free = 0;
        let mut requests = Vec::new();
        while let Some(Reverse((arrival, connection, left))) = next.pop() {
            if requests.len() >= REQUESTS {
                break;
            }
            let service = if varies { random.exponential(50_000.0) + 5_000.0 } else { 55_000.0 };
            let start = free.max(arrival);
            free = start + cast(service);
            // Whoever opens connections as needed takes the one that has been free for the shortest time.
            let connection = match clients {
                Clients::Open { takes_turns: false, .. } => {
                    let found = free_connections.iter().filter(|(since, _)| *since <= arrival).max().copied();
                    free_connections.retain(|one| Some(*one) != found);
                    let taken = found.map_or(opened, |(_, connection)| connection);
                    opened = opened.max(taken + 1);
                    free_connections.push((free, taken));
                    taken
                }
                _ => connection,
            };
            let mut made = request(arrival, start, free - start);
            made.peer.set_port(1000 + u16::try_from(connection % 50_000).unwrap());
            let answered = made.at(RequestPoint::Transmitted);
            requests.push(made);
            let pause = match clients {
                Clients::Closed { pause, is_random: true, .. } | Clients::Sessions { pause, .. } => {
                    random.exponential(pause)
                }
                Clients::Closed { pause, .. } => pause,
                Clients::Open { .. } => continue,
            };
            if left > 1 {
                next.push(Reverse((answered + cast(pause), connection, left - 1)));
            }
        }
        requests.sort_by_key(|request| request.at(RequestPoint::Stack));
        behaviour(requests)
    }

    fn behaviour(requests: Vec<ObservedRequest>) -> ClientBehaviour {
        client_behaviour(&[RequestRun::new(requests, 0)])
    }

    /// No kind of client is taken for the other one, and most are known where service times vary.
    #[test]
    fn kinds_of_clients_are_told_apart_or_not_decided() {
        let closed = [
            (1, 0.0, false),
            (1, 200_000.0, true),
            (1, 100_000.0, false),
            (3, 0.0, false),
            (8, 400_000.0, true),
            (16, 2e6, true),
        ]
        .map(|(connections, pause, is_random)| Clients::Closed { connections, pause, is_random });
        let open = [
            (1, 120_000.0, false, true),
            (4, 120_000.0, false, true),
            (64, 90_000.0, false, true),
            (16, 200_000.0, true, true),
            (1, 100_000.0, true, true),
            (1, 70_000.0, false, false),
            (1, 100_000.0, true, false),
            (1, 300_000.0, false, false),
        ]
        .map(|(connections, gap, is_constant, takes_turns)| Clients::Open {
            connections,
            gap,
            is_constant,
            takes_turns,
        });
        let sessions = [(1e6, 8, 50_000.0), (5e5, 3, 100_000.0)]
            .map(|(gap, length, pause)| Clients::Sessions { gap, length, pause });
        let mut known = 0;
        let mut all = 0;
        let kinds = closed.map(|clients| (clients, ClientLoop::Closed)).into_iter();
        let kinds = kinds.chain(open.map(|clients| (clients, ClientLoop::Open)));
        let kinds = kinds.chain(sessions.map(|clients| (clients, ClientLoop::Unknown)));
        for (clients, truth) in kinds {
            let mut verdicts = Vec::new();
            for (varies, seed) in [(true, 1), (true, 2), (true, 3), (false, 4)] {
                let found = play(clients, varies, seed);
                let verdict = found.verdict();
                assert!(
                    verdict == truth || verdict == ClientLoop::Unknown,
                    "{clients:?}, {varies}: {found:?}"
                );
                if varies && truth != ClientLoop::Unknown {
                    all += 1;
                    known += usize::from(verdict == truth);
                }
                verdicts.push(verdict);
            }
            println!("| {clients:?} | {truth:?} | {verdicts:?} |");
        }
        assert!(known * 2 >= all, "{known} of {all} are known");
    }

    /// Stalls of the whole machine delay an answer and the next request. Gaps are 500 µs otherwise, and latencies 20 µs.
    #[test]
    fn stalls_of_the_whole_machine_make_no_closed_loop() {
        for seed in 1..4 {
            let mut random = Random(seed);
            let mut time = 0;
            let requests = (0..8_000).map(|_| {
                let stall = if random.unit() < 0.02 { random.exponential(3e6) as u64 } else { 0 };
                let made = request(time, time, 20_000 + random.exponential(3_000.0) as u64 + stall);
                time += 500_000 + stall;
                made
            });
            let found = behaviour(requests.collect());
            assert_ne!(found.verdict(), ClientLoop::Closed, "{found:?}");
        }
    }

    /// Two clients at once have a verdict each; none is about both.
    #[test]
    fn clients_of_two_kinds_have_no_verdict_together() {
        let mut random = Random(5);
        let mut requests = Vec::new();
        let mut time = 0;
        for _ in 0..6_000 {
            let latency = (random.exponential(40_000.0) + 5_000.0) as u64;
            requests.push(request(time, time, latency));
            time += latency + (random.exponential(20_000.0) + 1_000.0) as u64;
        }
        let mut arrival = 0;
        let mut free = 0;
        for _ in 0..6_000 {
            arrival += random.exponential(120_000.0) as u64;
            let start = free.max(arrival);
            free = start + (random.exponential(50_000.0) + 5_000.0) as u64;
            let mut made = request(arrival, start, free - start);
            made.peer.set_ip([10, 0, 0, 2].into());
            requests.push(made);
        }
        requests.sort_by_key(|request| request.at(RequestPoint::Stack));
        let found = behaviour(requests);
        assert_eq!((found.verdict(), found.clients), (ClientLoop::Unknown, 2));
        assert!(
            (0.4..0.6).contains(&found.closed_share) && (0.4..0.6).contains(&found.open_loop_share),
            "{found:?}"
        );
    }

    #[test]
    fn latencies_that_do_not_vary_tell_nothing() {
        let rare = behaviour((0..1000).map(|n| request(n * 100_000, n * 100_000, 100)).collect());
        assert_eq!(rare.verdict(), ClientLoop::Unknown, "{rare:?}");
    }

    #[test]
    fn poisson_arrivals_are_an_open_loop() {
        for (gap, seed) in [("poisson(1000/s)", 1), ("poisson(5000/s)", 2), ("poisson(9000/s)", 3)] {
            let pattern: ArrivalPattern = gap.parse().expect("a process");
            let mut free = 0;
            let requests = pattern.instants(seed).expect("the rate is fine").take(3000).map(|at| {
                let start = free.max(at.0);
                free = start + 100_000;
                request(at.0, start, 100_000)
            });
            let found = behaviour(requests.collect());
            assert_eq!(found.verdict(), ClientLoop::Open, "{found:?}");
            let ratio = found.overlapping as f64 / found.overlapping_expected;
            assert!((0.8..1.2).contains(&ratio), "Poisson arrivals see time averages: {found:?}");
        }
    }

    /// Sixteen requests at a time, and then it waits for all answers.
    #[test]
    fn requests_that_are_sent_together_are_not_decided() {
        let mut random = Random(7);
        let mut time = 0;
        let mut requests = Vec::new();
        for _ in 0..300 {
            let mut free = time;
            for place in 0..16 {
                let service = random.exponential(20_000.0) as u64 + 1000;
                requests.push(request(time + place * 10, free.max(time + place * 10), service));
                free = free.max(time + place * 10) + service;
            }
            time = free + 5000;
        }
        let found = behaviour(requests);
        assert_eq!(found.verdict(), ClientLoop::Unknown, "{found:?}");
    }

    /// A window of requests is open on a connection; each answer is followed by the next request.
    #[test]
    fn windows_of_requests_are_no_open_loop() {
        for (window, pause) in [(2, 0.0), (2, 40_000.0), (4, 0.0), (4, 150_000.0), (16, 500_000.0)] {
            for seed in 1..4 {
                let mut random = Random(seed);
                let mut next: BinaryHeap<Reverse<u64>> = (0..window).map(|n| Reverse(n * 1000)).collect();
                let mut free = 0;
                let mut requests = Vec::new();
                while let Some(Reverse(arrival)) = next.pop().filter(|_| requests.len() < 6000) {
                    let start = free.max(arrival);
                    free = start + random.exponential(50_000.0) as u64 + 5000;
                    requests.push(request(arrival, start, free - start));
                    next.push(Reverse(free + random.exponential(pause) as u64 + 10));
                }
                let found = behaviour(requests);
                assert_ne!(found.verdict(), ClientLoop::Open, "{window}, {pause}: {found:?}");
            }
        }
    }

    #[test]
    fn one_request_says_nothing() {
        assert!(!behaviour(vec![request(0, 0, 10)]).is_closed_loop());
        assert_eq!(behaviour(Vec::new()).verdict(), ClientLoop::Unknown);
    }
}
