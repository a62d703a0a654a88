//! Real servers, observed while clients of this test measure on the same clock: every request lies inside of what its
//! client saw. Takes the rights to observe.

mod block;
mod causes;
mod clients;
mod counters;
mod guests;
mod kernel_nfs;
mod nfs;
mod other_reads;
mod protocols;
mod sampled;
mod server_end;

use clients::{Dialogue, Exchange};
use observe::{
    AttachedProbes, ClientRequest, IntendedWaits, ObservationReport, ObservationSettings, ObservedRequest,
    ProbeSettings, RequestNesting, RequestQuality, nesting, observe, self_test,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::live_servers::{RunningServer, memcached, nginx};

const CLIENTS: usize = 4;

fn probes(port: u16) -> ProbeSettings {
    ProbeSettings::of_ports([port])
}

/// Whether this process may observe; says what is missing.
fn may_observe() -> bool {
    match AttachedProbes::attach(&probes(1)) {
        Ok(_) => true,
        Err(error) => {
            testkit::skip(&error.to_string());
            false
        }
    }
}

struct Watched {
    report: ObservationReport,
    requests: Vec<ObservedRequest>,
    nesting: RequestNesting,
    sent: u64,
}

/// Observes a server while clients talk to it.
fn watch(server: SocketAddr, exchange: &Exchange) -> Watched {
    watch_with(server, || clients::run(server, exchange, CLIENTS))
}

fn watch_with(server: SocketAddr, clients: impl FnOnce() -> Vec<ClientRequest> + Send) -> Watched {
    observe_while(probes(server.port()), IntendedWaits::Included, clients)
}

/// Observes until the clients are done.
fn observe_while(
    probes: ProbeSettings,
    intended_waits: IntendedWaits,
    clients: impl FnOnce() -> Vec<ClientRequest> + Send,
) -> Watched {
    let settings = ObservationSettings {
        probes,
        duration: Duration::from_secs(120),
        cost_duration: Duration::ZERO,
        intended_waits,
        cost_limit: None,
    };
    let stop = AtomicBool::new(false);
    let mut requests = Vec::new();
    let (report, sent) = std::thread::scope(|scope| {
        let mut running = None;
        let attached = || {
            running = Some(scope.spawn(|| {
                let sent = clients();
                stop.store(true, Ordering::Relaxed);
                sent
            }));
        };
        let report = observe(&settings, &stop, attached, &mut |request| requests.push(*request));
        let sent = running.map(|clients| clients.join().expect("clients do not fail"));
        (report.unwrap_or_else(|error| panic!("{error}")), sent.expect("clients were started"))
    });
    let nesting = nesting(&requests, &sent);
    Watched { report, requests, nesting, sent: sent.len() as u64 }
}

impl Watched {
    /// Every request of a client was seen once, inside of what the client saw, and adds up; but for a few where the
    /// kernel skipped runs of programs.
    #[track_caller]
    fn expect_all(&self) {
        let counts = self.report.counts;
        let lost = self.report.lost_events;
        let said = format!("{counts:?}, {lost} events lost, {} skipped", self.report.skipped_runs);
        expect_nested(self.nesting, self.sent, self.report.skipped_runs, &said);
        if self.report.skipped_runs == 0 {
            assert_eq!((counts.unrequested, counts.unseen_arrivals, counts.gaps), (0, 0, 0), "{said}");
        }
        for request in &self.requests {
            assert!(request.points.is_sorted(), "{request:?}");
            assert_eq!(request.stages().iter().sum::<u64>(), request.latency_from_wire());
        }
    }
}

/// The largest share of requests that are missing or misplaced where runs of programs were skipped.
const MISSING_SHARE_MAX: f64 = 0.05;

#[track_caller]
fn expect_nested(found: RequestNesting, sent: u64, skipped_runs: u64, said: &str) {
    if skipped_runs == 0 {
        let expected = RequestNesting { nested: sent, outside: 0, missing: 0 };
        return assert_eq!(found, expected, "{said}");
    }
    let allowed = sent as f64 * MISSING_SHARE_MAX;
    assert!((found.missing.max(found.outside) as f64) < allowed, "{found:?} of {sent}: {said}");
}

fn addresses(server: &RunningServer) -> [SocketAddr; 2] {
    [
        SocketAddr::from(([127, 0, 0, 1], server.port())),
        SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, server.port())),
    ]
}

#[test]
fn memcached_over_tcp() {
    let Some(server) = may_observe().then(|| memcached(1)).flatten() else { return };
    for address in addresses(&server) {
        watch(address, &Exchange::new(Dialogue::Memcached, 500)).expect_all();
    }
}

#[test]
fn memcached_with_threads_and_requests_in_flight() {
    let Some(server) = may_observe().then(|| memcached(4)).flatten() else { return };
    for address in addresses(&server) {
        watch(address, &Exchange::new(Dialogue::Memcached, 800).in_flight(4)).expect_all();
    }
}

#[test]
fn memcached_over_udp() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    for address in addresses(&server) {
        let watched = watch(address, &Exchange::new(Dialogue::MemcachedUdp, 500));
        watched.expect_all();
        let is_written = |request: &&ObservedRequest| {
            let is_seen = !request.quality.has(RequestQuality::WRITE_UNSEEN);
            request.udp && is_seen && request.points[6] < request.points[7]
        };
        let written = watched.requests.iter().filter(is_written).count() as f64;
        let sent = (CLIENTS * 500) as f64;
        let missing_max = if watched.report.skipped_runs == 0 { 0.0 } else { sent * MISSING_SHARE_MAX };
        assert!(written <= sent && written >= sent - missing_max, "seen to be written: {written} of {sent}");
    }
}

#[test]
fn nginx_keeps_connections_and_takes_several_writes() {
    let Some(server) = may_observe().then(nginx).flatten() else { return };
    for address in addresses(&server) {
        watch(address, &Exchange::new(Dialogue::Http, 300)).expect_all();
    }
}

/// 40 KB come in many packets, and are read in several goes.
#[test]
fn requests_of_many_packets() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    watch(addresses(&server)[0], &Exchange::new(Dialogue::MemcachedSet(40_000), 200)).expect_all();
}

#[test]
fn clients_in_another_network_namespace() {
    if !may_observe() {
        return;
    }
    let Some(network) = testkit::ServerAndClient::create() else { return };
    let Some(server) = network.memcached() else { return };
    for address in network.addresses(server.port()) {
        watch(address, &Exchange::new(Dialogue::Memcached, 300).from(network.client())).expect_all();
    }
}

#[test]
fn a_share_of_connections() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let settings = ProbeSettings { share: 0.5, ..probes(server.port()) };
    let mut probes = AttachedProbes::attach(&settings).unwrap_or_else(|error| panic!("{error}"));
    let sent = clients::run(addresses(&server)[0], &Exchange::new(Dialogue::Memcached, 2), 64);
    let mut flows = BTreeSet::new();
    probes.drain(|event, _| {
        flows.insert(event.flow);
    });
    // 65 connections, one of which stores the keys: all or none has a chance of 2^-64.
    assert!(!flows.is_empty() && flows.len() < 65, "{} of {}", flows.len(), sent.len());
}

#[test]
fn other_ports_are_left_alone() {
    let Some(server) = may_observe().then(|| memcached(1)).flatten() else { return };
    let mut probes = AttachedProbes::attach(&probes(1)).unwrap_or_else(|error| panic!("{error}"));
    clients::run(addresses(&server)[0], &Exchange::new(Dialogue::Memcached, 50), 2);
    assert_eq!(probes.drain(|event, _| panic!("{event:?}")), 0);
}

#[test]
fn lost_events_are_counted_and_nothing_false_is_told() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let settings = ProbeSettings { ring_bytes: 1 << 16, ..probes(server.port()) };
    let mut probes = AttachedProbes::attach(&settings).unwrap_or_else(|error| panic!("{error}"));
    let mut joiner = observe::RequestJoiner::new();
    let mut sent = Vec::new();
    let mut found = Vec::new();
    for _ in 0..2 {
        sent.extend(clients::run(addresses(&server)[0], &Exchange::new(Dialogue::Memcached, 500), 2));
        probes.drain(|event, _| joiner.handle(&event, &mut found));
    }
    joiner.finish(&mut found);
    assert!(probes.lost().is_ok_and(|lost| lost > 0), "{:?}", probes.lost());
    assert!(joiner.counts().gaps >= 1 && !found.is_empty());
    assert_eq!(nesting(&found, &sent).outside, 0);
}

#[test]
fn the_self_test_finds_that_all_is_right() {
    if may_observe() {
        let report = self_test(500).unwrap_or_else(|error| panic!("{error}"));
        let skipped = report.observed.skipped_runs;
        expect_nested(report.nesting, 2000, skipped, &format!("{skipped} skipped"));
    }
}
