//! The cost of reading everything to those that ask for a decision: the time of decisions over HTTP alone, while a
//! scraper reads metrics without a pause, and while a client reads all observations.
//!
//! `cargo bench -p api --bench scrape -- --workloads 10000` fills a cluster whose workloads have traffic of an hour, and prints
//! the ratios of one run. Questions without commitment are asked, which wait for the lock as decisions do and not for a disk.

#[path = "../../controller/tests/simulation/simulated/traffic.rs"]
#[expect(dead_code, unreachable_pub, reason = "the simulation of the controller shares it")]
mod traffic;

use agent::{Abilities, AgentMode, AgentReport, ClientPlace, ServerObservation, WorkloadCounters};
use api::{Cluster, ServiceSettings, hash_of_secret};
use controller::{
    Admission, ClassDescription, ClassesDescription, Command, Controller, Event, HostsDescription,
    NetworkEnforcement, Role, ServerPlace, TokenRecord, WorkloadRequest,
};
use model::PerStage;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Store;
use traffic::{CLASS, MARGIN, PROFILE, class, footprint};
use units::{Nanos, Work};
use workload::live::{LiveArrival, LiveCurves};

const S: u64 = 1_000_000_000;
const TOKEN: &str = "0123456789abcdef";
/// Decisions of each kind that are timed.
const DECISIONS: usize = 300;

fn number(option: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != option);
    arguments.nth(1)?.parse().ok()
}

fn server(number: u64) -> String {
    format!("{CLASS}-{number}")
}

fn host(number: u64) -> String {
    format!("store-{number}")
}

/// A controller with its store.
struct Filled {
    controller: Controller,
    store: Store,
}

impl Filled {
    fn apply(&mut self, event: Event) {
        let recorded = self.store.append(0, event).expect("room");
        self.controller.apply(&recorded).expect("it was decided");
    }

    /// Founds a cluster of so many servers.
    fn found(&mut self, servers: u64) {
        let place =
            |number: u64| ServerPlace { server: server(number), class: CLASS.to_owned(), host: host(number) };
        let classes = vec![ClassDescription { class: class(), profile: PROFILE.to_owned() }];
        let hosts = HostsDescription {
            text: String::new(),
            hosts: (1..=servers).map(host).collect(),
            servers: (1..=servers).map(place).collect(),
            network: NetworkEnforcement::Assumed,
        };
        let hash = hash_of_secret(TOKEN);
        self.apply(Event::Founded { cluster: "bench".to_owned() });
        self.apply(Event::TokenIssued(TokenRecord { name: "bench".to_owned(), role: Role::Operator, hash }));
        self.apply(Event::ClassesDescribed(ClassesDescription { safety_margin: MARGIN, classes }));
        self.apply(Event::HostsDescribed(hosts));
        for number in 1..=servers {
            let abilities = Abilities { storage: BTreeSet::from([server(number)]), network: false };
            self.apply(Event::AgentSeen { host: host(number), mode: AgentMode::Applying, abilities });
        }
    }

    /// Admits workloads until there are `count`: the first of each place in a server is decided, and the others are as it.
    fn fill(&mut self, count: u64) {
        let footprints = [(2, 50), (5, 100), (8, 300)].map(|(burst, every_ms)| footprint(burst, every_ms));
        for number in 0..count {
            let request = WorkloadRequest {
                tenant: format!("t{}", number % 100),
                name: format!("w{number}"),
                slo: "99% < 300ms".parse().expect("an SLO"),
                clients: vec![ClientPlace { host: None, address: vec![format!("a{number}")], export: None }],
                key: None,
                footprints: BTreeMap::from([(
                    CLASS.to_owned(),
                    footprints[usize::try_from(number % 3).expect("below 3")].clone(),
                )]),
            };
            let event = self.controller.decide(&Command::Request(Box::new(request))).expect("right");
            let Event::WorkloadAdmitted(admission) = &event else { panic!("the cluster is full") };
            let Admission { change, .. } = &**admission;
            let host =
                host(change.server.rsplit('-').next().and_then(|it| it.parse().ok()).expect("a number"));
            self.apply(event);
            let epoch = self.controller.state().wanted_epoch(&host);
            self.apply(Event::Applied { host, epoch });
        }
    }

    /// Reports traffic of an hour from all hosts.
    fn observe(&mut self, servers: u64) {
        for number in 1..=servers {
            let view = self.controller.state().server(&server(number)).expect("it is known");
            let names: Vec<String> =
                view.decided.workloads.iter().map(|workload| workload.name.clone()).collect();
            let mut live = LiveCurves::new("bench".to_owned());
            for round in 0..120 {
                let now = round * 30 * S;
                let mut workloads = Vec::new();
                for (at, name) in names.iter().enumerate() {
                    for request in 0..40u64 {
                        let at_ns = now + request * 700_000_000 + at as u64;
                        let work = PerStage::from_fn(|_| Work(1_000_000 * (1 + (request * 7919) % 50)));
                        let workload = u32::try_from(at).expect("few");
                        live.add(workload, LiveArrival { at: Nanos(at_ns), work }, at_ns);
                    }
                    let requests = (round + 1) * 1000;
                    let buckets = (0..40).map(|bucket| (Some(1_000_000 << (bucket % 12)), requests / 40));
                    workloads.push(WorkloadCounters {
                        workload: name.clone(),
                        requests: requests / 40 * 40,
                        late: round,
                        latencies: buckets.collect(),
                        ..WorkloadCounters::default()
                    });
                }
                let ticket = self.controller.answer(&host(number), 0).ticket;
                let curves = live.report(now, None, |at| names.get(at as usize).cloned());
                let observation = ServerObservation {
                    server: server(number),
                    counters: "bench".to_owned(),
                    workloads,
                    curves: Some(curves),
                    ..ServerObservation::default()
                };
                let report = AgentReport {
                    cluster: Some("bench".to_owned()),
                    ticket: Some(ticket),
                    mode: AgentMode::Applying,
                    abilities: Abilities { storage: BTreeSet::from([server(number)]), network: false },
                    applied: 0,
                    refused: None,
                    advice: None,
                    observations: vec![observation],
                    warnings: Vec::new(),
                };
                for event in self.controller.observe(&host(number), &report, now) {
                    self.apply(event);
                }
            }
        }
    }
}

/// Sends a request and returns the length of the answer.
fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> usize {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer[..answer.len().min(300)])
    );
    answer.len()
}

/// Reads all pages of a list, and returns their number and the longest time of one.
fn pages(address: SocketAddr, path: &str) -> (usize, Duration) {
    let mut after = String::new();
    let mut longest = Duration::ZERO;
    for page in 1.. {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(
            stream,
            "GET {path}?after={after} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        longest = longest.max(begun.elapsed());
        let (_, next) = answer.rsplit_once("\"next\":\"").unwrap_or_default();
        match next.split_once('"') {
            Some((next, _)) => after = next.replace('/', "%2F"),
            None => return (page, longest),
        }
    }
    unreachable!("a list ends")
}

/// Times decisions while `meanwhile` is done again and again by another client. Returns p50 and p99, and how often it was done
/// with the longest time.
fn decisions(address: SocketAddr, meanwhile: Option<&(dyn Fn() + Sync)>) -> ([Duration; 2], usize, Duration) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = meanwhile.map(|read| {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    read();
                    times.push(begun.elapsed());
                }
                times
            })
        });
        let mut times = Vec::new();
        for number in 0..DECISIONS {
            let body = format!(
                r#"{{"tenant":"t1","name":"new{number}","slo":"99% < 300ms","trace":"bench","clients":[{{"address":["127.0.1.1"]}}]}}"#
            );
            let begun = Instant::now();
            send(address, "POST", "/v1/what-if", &body);
            times.push(begun.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        let read = reader.map_or_else(Vec::new, |reader| reader.join().expect("no panic"));
        times.sort();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        ([at(50), at(99)], read.len(), read.into_iter().max().unwrap_or_default())
    })
}

fn main() {
    let count = number("--workloads").unwrap_or(1000);
    let servers = count.div_ceil(4) + 4;
    let folder = std::env::temp_dir().join(format!("tailwright-scrape-{}", std::process::id()));
    let (store, _) = Store::open(&folder).expect("a new store");
    let mut filled = Filled { controller: Controller::new(1), store };
    filled.found(servers);
    filled.fill(count);
    filled.observe(servers);
    filled
        .store
        .keep_trace("t1", "bench", &BTreeMap::from([(CLASS.to_owned(), footprint(2, 50))]))
        .expect("room");
    let Filled { controller, store } = filled;
    let cluster = Arc::new(Cluster::new(controller, store, &folder));
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("it listens")
    };
    let settings = ServiceSettings { listen: address, tls: None, silence_max: Duration::from_secs(3600) };
    std::thread::spawn(move || api::serve(cluster, settings, |_| ()));
    while TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let begun = Instant::now();
    let length = send(address, "GET", "/metrics", "");
    println!("{count} workloads; one scrape alone: {:.0} ms, {} KiB", ms(begun.elapsed()), length >> 10);
    for path in ["/v1/workloads", "/v1/observations"] {
        let (number, longest) = pages(address, path);
        println!("{path}: {number} pages, the slowest in {:.1} ms", ms(longest));
    }
    let (alone, _, _) = decisions(address, None);
    println!("decisions alone: p50 {:.2} ms, p99 {:.2} ms", ms(alone[0]), ms(alone[1]));
    let scrape = || {
        send(address, "GET", "/metrics", "");
    };
    let observe = || {
        pages(address, "/v1/observations");
    };
    for (what, read) in [("scraped", &scrape as &(dyn Fn() + Sync)), ("observed", &observe)] {
        let (times, read, longest) = decisions(address, Some(read));
        println!(
            "decisions while {what} without a pause ({read} times, the slowest {:.0} ms): p50 {:.2} ms, p99 {:.2} ms; \
             p99 is {:.1} times that of decisions alone",
            ms(longest),
            ms(times[0]),
            ms(times[1]),
            times[1].as_secs_f64() / alone[1].as_secs_f64()
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
