//! Bounds with the links of client hosts, against a packet by packet simulation of the whole network.
//!
//! The network here knows no bound: hosts with a shaper on the link out of them, a port of a switch before every server,
//! servers with a shaper on the link out of them, and a port before every host. A shaper has all token buckets of a
//! workload, takes tokens when a packet is sent, serves priorities strictly and equal ones in turn; a port serves
//! priorities strictly and each first come, first served. Best effort never pauses on any link. Sources send as much as
//! their curves allow, at instants that an adversary chooses.

use calculus::{ArrivalCurve, EnforcedClass};
use model::{PerStage, RateLimit, Slo, Stage};
use placement::{
    ClientLinks, ClientPlace, LimitMethod, PlannedServer, PlanningClass, PlanningHost, PlanningProblem,
    PlanningWorkload, WorkloadOnClass, client_links,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Percentile, Seconds};

/// The largest frame, bytes.
const FRAME: f64 = 1500.0;
/// Rate of a server's links, bytes per second.
const SERVER_LINK: f64 = 10e6;
/// Time in which sources send, seconds.
const SENDING: f64 = 0.3;

/// A workload of the network: its host and server, and the token buckets of what it sends and of what it is answered,
/// bytes per second and bytes.
#[derive(Debug, Clone)]
struct Source {
    host: usize,
    server: usize,
    slo: f64,
    request: (f64, f64),
    requests: Vec<(f64, f64)>,
    answers: Vec<(f64, f64)>,
    /// Instants at which it begins to send again all that it may.
    wakes: Vec<f64>,
}

fn any_source() -> impl Strategy<Value = Source> {
    let buckets = || {
        (0.2e6..1.5e6f64, 10e3..80e3f64)
            .prop_map(|(rate, burst)| vec![(rate, burst), (rate * 4.0, burst / 3.0)])
    };
    let wakes = prop::collection::vec(prop_oneof![Just(0.0), 0.0..SENDING], 1..4);
    let request = (200.0..6000.0f64, 200.0..9000.0f64);
    let slo = prop::sample::select(vec![0.05, 0.1, 0.2, 0.4]);
    (0usize..2, 0usize..2, slo, request, buckets(), buckets(), wakes).prop_map(
        |(host, server, slo, request, requests, answers, wakes)| Source {
            host,
            server,
            slo,
            request,
            requests,
            answers,
            wakes,
        },
    )
}

/// A token bucket that passes while it is not in debt.
#[derive(Debug, Clone)]
struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    since: f64,
}

impl Bucket {
    fn new((rate, burst): (f64, f64)) -> Self {
        Self { rate, burst, tokens: burst, since: 0.0 }
    }

    fn fill(&mut self, now: f64) {
        self.tokens = (self.tokens + self.rate * (now - self.since)).min(self.burst);
        self.since = now;
    }

    /// The instant from which it has at least `tokens`.
    fn due(&mut self, now: f64, tokens: f64) -> f64 {
        self.fill(now);
        if self.tokens >= tokens - 1e-6 { now } else { now + (tokens - self.tokens) / self.rate }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Packet {
    workload: usize,
    request: usize,
    bytes: f64,
    is_last: bool,
}

/// A queue before a link.
#[derive(Debug)]
struct Link {
    rate: f64,
    priorities: Vec<usize>,
    /// The buckets of each workload; those of a port are none.
    buckets: Vec<Vec<Bucket>>,
    is_shaper: bool,
    queues: Vec<VecDeque<(u64, Packet)>>,
    /// The number of packets that each workload had sent last, for turns.
    last_turn: Vec<u64>,
    sent: u64,
    is_busy: bool,
}

impl Link {
    /// Takes the packet that is sent next; `Err` has the instant at which one may be.
    fn next(&mut self, now: f64) -> Result<Packet, f64> {
        let mut chosen: Option<(usize, u64, usize)> = None;
        let mut due = f64::INFINITY;
        for workload in 0..self.queues.len() {
            let Some((order, _)) = self.queues[workload].front() else { continue };
            let ready =
                self.buckets[workload].iter_mut().map(|bucket| bucket.due(now, 0.0)).fold(now, f64::max);
            if ready > now {
                due = due.min(ready);
                continue;
            }
            let order = if self.is_shaper { self.last_turn[workload] } else { *order };
            let candidate = (self.priorities[workload], order, workload);
            if chosen.is_none_or(|best| candidate < best) {
                chosen = Some(candidate);
            }
        }
        let Some((_, _, workload)) = chosen else { return Err(due) };
        let (_, packet) = self.queues[workload].pop_front().expect("it has a packet");
        self.sent += 1;
        self.last_turn[workload] = self.sent;
        for bucket in &mut self.buckets[workload] {
            bucket.tokens -= packet.bytes;
        }
        Ok(packet)
    }
}

/// An event of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Arrival(usize),
    /// A link has sent this packet, or one of best effort.
    Sent(usize, Option<Packet>),
    /// A bucket of a link has paid its debt.
    Due(usize),
}

#[derive(Debug, PartialEq)]
struct Timed(f64, u64, Event);
impl Eq for Timed {}
impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// The whole network: links out of hosts, ports before servers, links out of servers, ports before hosts.
struct Network<'a> {
    sources: &'a [Source],
    links: Vec<Link>,
    hosts: usize,
    servers: usize,
    events: BinaryHeap<Reverse<Timed>>,
    count: u64,
    /// Arrival of each request by workload, and the longest latency.
    arrivals: Vec<Vec<f64>>,
    longest: Vec<f64>,
    answered: usize,
}

impl Network<'_> {
    fn at(&mut self, time: f64, event: Event) {
        self.count += 1;
        self.events.push(Reverse(Timed(time, self.count, event)));
    }

    fn path(&self, workload: usize) -> [usize; 4] {
        let Source { host, server, .. } = self.sources[workload];
        let hosts = self.hosts;
        let servers = self.servers;
        [host, hosts + server, hosts + servers + server, hosts + 2 * servers + host]
    }

    fn enqueue(&mut self, now: f64, link: usize, packet: Packet) {
        self.count += 1;
        let order = self.count;
        self.links[link].queues[packet.workload].push_back((order, packet));
        self.serve(now, link);
    }

    fn enqueue_message(&mut self, now: f64, link: usize, workload: usize, request: usize, bytes: f64) {
        let mut left = bytes;
        while left > 0.0 {
            let bytes = left.min(FRAME);
            left -= bytes;
            self.enqueue(now, link, Packet { workload, request, bytes, is_last: left <= 0.0 });
        }
    }

    fn serve(&mut self, now: f64, link: usize) {
        if self.links[link].is_busy {
            return;
        }
        let packet = match self.links[link].next(now) {
            Ok(packet) => Some(packet),
            Err(due) => {
                if due.is_finite() {
                    self.at(due, Event::Due(link));
                }
                // Best effort sends one packet after the other, and is in the way of who comes next.
                if now > SENDING {
                    return;
                }
                None
            }
        };
        let bytes = packet.map_or(FRAME, |packet| packet.bytes);
        self.links[link].is_busy = true;
        let end = now + bytes / self.links[link].rate;
        self.at(end, Event::Sent(link, packet));
    }

    fn deliver(&mut self, now: f64, link: usize, packet: Packet) {
        let path = self.path(packet.workload);
        let hop = path.iter().position(|hop| *hop == link).expect("it is on the path");
        let Packet { workload, request, is_last, .. } = packet;
        match hop {
            0 | 2 => self.enqueue(now, path[hop + 1], packet),
            1 if is_last => {
                let answer = self.sources[workload].request.1;
                self.enqueue_message(now, path[2], workload, request, answer);
            }
            3 if is_last => {
                let latency = now - self.arrivals[workload][request];
                self.longest[workload] = self.longest[workload].max(latency);
                self.answered += 1;
            }
            _ => {}
        }
    }

    fn run(&mut self) {
        for link in 0..self.links.len() {
            self.serve(0.0, link);
        }
        while let Some(Reverse(Timed(now, _, event))) = self.events.pop() {
            match event {
                Event::Arrival(workload) => {
                    let request = self.arrivals[workload].len();
                    self.arrivals[workload].push(now);
                    let bytes = self.sources[workload].request.0;
                    self.enqueue_message(now, self.path(workload)[0], workload, request, bytes);
                }
                Event::Sent(link, packet) => {
                    self.links[link].is_busy = false;
                    if let Some(packet) = packet {
                        self.deliver(now, link, packet);
                    }
                    self.serve(now, link);
                }
                Event::Due(link) => self.serve(now, link),
            }
        }
    }
}

/// The instants at which a source sends requests: as soon as its curves allow it, from each wake on for a tenth of the
/// time.
fn arrivals(source: &Source) -> Vec<f64> {
    let mut requests: Vec<Bucket> = source.requests.iter().map(|limit| Bucket::new(*limit)).collect();
    let mut answers: Vec<Bucket> = source.answers.iter().map(|limit| Bucket::new(*limit)).collect();
    let mut wakes = source.wakes.clone();
    wakes.sort_by(f64::total_cmp);
    let mut times = Vec::new();
    let mut now = 0.0_f64;
    for wake in wakes {
        now = now.max(wake);
        let end = now + SENDING / 10.0;
        loop {
            let (request, answer) = source.request;
            let due = requests.iter_mut().map(|bucket| bucket.due(now, request));
            let due = due.chain(answers.iter_mut().map(|bucket| bucket.due(now, answer)));
            let due = due.fold(now, f64::max);
            if due > end {
                break;
            }
            now = due;
            for (buckets, bytes) in [(&mut requests, request), (&mut answers, answer)] {
                for bucket in buckets {
                    bucket.fill(now);
                    bucket.tokens -= bytes;
                }
            }
            times.push(now);
        }
    }
    times
}

fn curve(limits: &[(f64, f64)], capacity: f64) -> ArrivalCurve {
    let limits: Vec<(f64, f64)> =
        limits.iter().map(|(rate, burst)| (rate / capacity, burst / capacity)).collect();
    ArrivalCurve::from_limits(&limits)
}

fn on_link(source: &Source, capacity: f64) -> WorkloadOnClass {
    let curves = PerStage::from_fn(|stage| match stage {
        Stage::NetworkIn => curve(&source.requests, capacity),
        Stage::Storage => ArrivalCurve::from_limits(&[(0.0, 0.0)]),
        Stage::NetworkOut => curve(&source.answers, capacity),
    });
    let mean_rate = PerStage::from_fn(|stage| curves[stage].sustained_rate());
    WorkloadOnClass { curves, mean_rate, largest_request: 0.0, base_latency: 0.0, overtaking: 0.0 }
}

fn enforced(capacity: f64) -> EnforcedClass {
    let packet = FRAME / capacity;
    EnforcedClass {
        channels: 1,
        best_effort_request: 0.0,
        packet,
        link_burst: packet,
        proxy: 0.0,
        densest_answer: 0.0,
        levels_max: 7,
    }
}

fn workload(number: usize, source: &Source, capacity: f64) -> PlanningWorkload {
    PlanningWorkload {
        name: format!("w{number}"),
        slo: Slo::new(Percentile::new(99.9).unwrap(), Seconds(source.slo)).unwrap(),
        on_class: vec![on_link(source, capacity)],
    }
}

/// A plan of the network: the links of each workload's host, and the servers with their guarantees.
struct Plan {
    clients: Vec<ClientLinks>,
    servers: Vec<Option<PlannedServer>>,
    bounds: Vec<f64>,
    priorities: Vec<usize>,
}

/// Plans the network, or finds that the SLOs do not fit.
fn plan(sources: &[Source], host_link: f64) -> Option<Plan> {
    let mut places: Vec<Option<ClientPlace>> = vec![None; sources.len()];
    for host in 0..2 {
        let members: Vec<usize> = (0..sources.len()).filter(|&w| sources[w].host == host).collect();
        let workloads = members.iter().map(|&w| workload(w, &sources[w], host_link)).collect();
        let host = PlanningHost { name: format!("h{host}"), enforced: Some(enforced(host_link)), workloads };
        for (member, place) in members.into_iter().zip(client_links(&host)) {
            places[member] = Some(place);
        }
    }
    let places: Vec<ClientPlace> = places.into_iter().map(|place| place.unwrap()).collect();
    let clients: Option<Vec<ClientLinks>> = places.iter().map(|place| place.served().cloned()).collect();
    let clients = clients?;
    let class = PlanningClass { name: "c".into(), count: 2, enforced: Some(enforced(SERVER_LINK)) };
    let workloads = sources.iter().enumerate().map(|(w, source)| workload(w, source, SERVER_LINK)).collect();
    let problem =
        PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
            .unwrap()
            .with_clients(places);
    let mut servers = Vec::new();
    let mut bounds = vec![0.0; sources.len()];
    let mut priorities = vec![0; sources.len()];
    for server in 0..2 {
        let members: Vec<usize> = (0..sources.len()).filter(|&w| sources[w].server == server).collect();
        if members.is_empty() {
            servers.push(None);
            continue;
        }
        let fitted = LimitMethod::Exact.fit(&problem, 0, members).ok()?;
        assert_eq!(fitted.verify(&problem), Ok(()));
        for guarantee in fitted.guarantees(&problem) {
            bounds[guarantee.workload] = guarantee.total;
            priorities[guarantee.workload] = guarantee.priority;
            assert!(guarantee.total <= sources[guarantee.workload].slo);
            assert!(guarantee.client >= clients[guarantee.workload].delay());
        }
        servers.push(Some(fitted));
    }
    Some(Plan { clients, servers, bounds, priorities })
}

/// The buckets of a workload where its requests or answers enter the network: those of its server and of its host.
fn buckets(plan: &Plan, sources: &[Source], workload: usize, stage: Stage, host_link: f64) -> Vec<Bucket> {
    let server = plan.servers[sources[workload].server].as_ref().expect("it has this workload");
    let of_server = server.limits_of(workload)[stage];
    let client = &plan.clients[workload];
    let of_host = if stage == Stage::NetworkIn { client.requests } else { client.answers };
    [(of_server, SERVER_LINK), (of_host, host_link)]
        .map(|(RateLimit { rate, burst }, capacity)| Bucket::new((rate * capacity, burst * capacity)))
        .to_vec()
}

/// Plays the network and returns the longest latency of each workload.
fn play(sources: &[Source], plan: &Plan, host_link: f64) -> Vec<f64> {
    let count = sources.len();
    let of_host: Vec<usize> = plan.clients.iter().map(|client| client.priority).collect();
    let link = |rate: f64, priorities: &[usize], stage: Option<Stage>| Link {
        rate,
        priorities: priorities.to_vec(),
        buckets: (0..count)
            .map(|w| stage.map_or_else(Vec::new, |stage| buckets(plan, sources, w, stage, host_link)))
            .collect(),
        is_shaper: stage.is_some(),
        queues: vec![VecDeque::new(); count],
        last_turn: vec![0; count],
        sent: 0,
        is_busy: false,
    };
    let mut links = Vec::new();
    for _ in 0..2 {
        links.push(link(host_link, &of_host, Some(Stage::NetworkIn)));
    }
    for _ in 0..2 {
        links.push(link(SERVER_LINK, &plan.priorities, None));
    }
    for _ in 0..2 {
        links.push(link(SERVER_LINK, &plan.priorities, Some(Stage::NetworkOut)));
    }
    for _ in 0..2 {
        links.push(link(host_link, &of_host, None));
    }
    let mut network = Network {
        sources,
        links,
        hosts: 2,
        servers: 2,
        events: BinaryHeap::new(),
        count: 0,
        arrivals: vec![Vec::new(); count],
        longest: vec![0.0; count],
        answered: 0,
    };
    let mut sent = 0;
    for (workload, source) in sources.iter().enumerate() {
        for time in arrivals(source) {
            network.at(time, Event::Arrival(workload));
            sent += 1;
        }
    }
    network.run();
    assert_eq!(network.answered, sent, "every request is answered");
    network.longest
}

/// Plays a network and returns the largest latency as a share of its bound; `None` if the SLOs do not fit.
fn closest(sources: &[Source], host_link: f64) -> Option<f64> {
    let plan = plan(sources, host_link)?;
    let longest = play(sources, &plan, host_link);
    let mut closest = 0.0_f64;
    for ((longest, bound), source) in longest.iter().zip(&plan.bounds).zip(sources) {
        assert!(
            longest <= bound,
            "{longest} s is above {bound} s: {source:?} of {sources:#?}, {host_link} bytes/s"
        );
        closest = closest.max(longest / bound);
    }
    Some(closest)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn no_request_exceeds_its_bound(
        sources in prop::collection::vec(any_source(), 2..9),
        host_link in prop::sample::select(vec![3e6, 6e6, 10e6, 40e6]),
    ) {
        prop_assume!(closest(&sources, host_link).is_some());
    }
}

/// Bounds are not far from what some network does: a judge that sees no request near its bound judges little.
#[test]
fn some_requests_come_near_their_bounds() {
    let mut runner = TestRunner::deterministic();
    let networks =
        (prop::collection::vec(any_source(), 2..9), prop::sample::select(vec![3e6, 6e6, 10e6, 40e6]));
    let mut shares = Vec::new();
    for _ in 0..400 {
        let (sources, host_link) = networks.new_tree(&mut runner).expect("it has values").current();
        shares.extend(closest(&sources, host_link));
    }
    shares.sort_by(f64::total_cmp);
    let [median, most] = [shares[shares.len() / 2], shares[shares.len() - 1]];
    println!("of {} networks: median {median:.3}, closest {most:.3}", shares.len());
    assert!(shares.len() > 50 && median > 0.1 && most > 0.4, "{} networks: {median}, {most}", shares.len());
}

/// Two workloads of different servers share a slow link out of their host: what a plan for servers alone promises does not
/// hold there, and what a plan with hosts promises does.
#[test]
fn a_shared_slow_host_breaks_bounds_that_do_not_count_it() {
    let source = |server: usize| Source {
        host: 0,
        server,
        slo: 0.4,
        request: (3000.0, 300.0),
        requests: vec![(0.8e6, 90e3)],
        answers: vec![(0.1e6, 10e3)],
        wakes: vec![0.0],
    };
    let sources = [source(0), source(1)];
    let host_link = 2e6;
    let counted = plan(&sources, host_link).expect("the SLOs are loose");
    let longest = play(&sources, &counted, host_link);
    let alone: Vec<f64> = (0..2).map(|w| counted.bounds[w] - counted.clients[w].delay()).collect();
    let exceeds = |bounds: &[f64]| longest.iter().zip(bounds).any(|(longest, bound)| longest > bound);
    assert!(exceeds(&alone), "{longest:?} s, without the links of hosts {alone:?} s");
    assert!(!exceeds(&counted.bounds), "{longest:?} s, with them {:?} s", counted.bounds);
    let share = longest[0].max(longest[1]) / counted.bounds[0];
    assert!(share > 0.3, "the bound is {share} of what happens");
}

/// A host whose links cannot carry what its workloads send serves those that come first, and says what would be enough.
#[test]
fn the_first_workloads_of_a_full_host_are_served() {
    let source = || Source {
        host: 0,
        server: 0,
        slo: 0.2,
        request: (3000.0, 3000.0),
        requests: vec![(1e6, 30e3)],
        answers: vec![(1e6, 30e3)],
        wakes: Vec::new(),
    };
    let host = |link: f64| PlanningHost {
        name: "app".into(),
        enforced: Some(enforced(link)),
        workloads: (0..5).map(|w| workload(w, &source(), link)).collect(),
    };
    let link = 3.5e6;
    let places = client_links(&host(link));
    assert!(places[..3].iter().all(|place| place.served().is_some()), "{places:?}");
    for place in &places[3..] {
        let ClientPlace::Refused { host, sufficient, .. } = place else { panic!("{place:?}") };
        assert_eq!(host, "app");
        assert_eq!(*sufficient, Some(1.25), "four of 1 MB/s fit on 4.375 MB/s");
    }
    assert!(client_links(&host(10e6)).iter().all(|place| place.served().is_some()));
    assert_eq!(client_links(&PlanningHost { workloads: Vec::new(), ..host(link) }), []);
}
