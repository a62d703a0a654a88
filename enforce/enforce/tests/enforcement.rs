//! A policy's promises hold for requests of real clients to a real NBD server. The proxy's own record of
//! dispatch times is the witness; nothing here depends on the speed of the machine.

mod proxy;

use enforce::storage::{ProxyOptions, ProxyReport, UNKNOWN_WORKLOAD};
use model::{Observation, Observations, RequestOutcome};
use proxy::{Running, Server, deployment, flood, nbd, policy, profile};
use std::io::{Read, Write};
use units::Nanos;
use wire::nbd::client::write;

const CLIENTS: &str = r#"
    [[client]]
    workload = "gold"
    host = "here"
    export = "gold"
    [[client]]
    workload = "silver"
    host = "here"
    export = "silver""#;

fn start(server: &Server, fields: &str, promises: &[proxy::Promise<'_>]) -> Running {
    let deployment = deployment("nbd", server.address, fields, CLIENTS);
    let mut options = ProxyOptions::new("ssd", deployment, Some(policy(promises)), profile());
    options.record = 100_000;
    Running::start(options)
}

fn requests_of<'a>(observations: &'a Observations, name: &str) -> Vec<&'a Observation> {
    let workload = observations.workloads.iter().position(|other| other == name);
    observations.requests.iter().filter(|request| Some(request.workload as usize) == workload).collect()
}

/// Returns the dispatched device time: instants and amounts.
fn dispatched_work(observations: &Observations, name: &str) -> Vec<(Nanos, f64)> {
    let mut sent: Vec<Nanos> = requests_of(observations, name).iter().map(|request| request.sent).collect();
    sent.sort_unstable();
    sent.into_iter().map(|at| (at, 0.001)).collect()
}

fn nbdkit() -> Option<Server> {
    Server::nbdkit("memory 32M")
}

/// Several buckets at once, in queue mode: nothing is dispatched before all of them allow it, counted
/// from the first request. A machine that delays the proxy makes a dispatch later, never earlier. The
/// benchmark measures the delay.
#[test]
fn limits_hold_and_are_used_up() {
    let Some(server) = nbdkit() else { return };
    let limits = [(0.9, 0.010), (0.4, 0.200)];
    let proxy = start(&server, "over = \"queue\"\noutstanding = 1000", &[("gold", 0, &limits)]);
    let requests = 600;
    flood(proxy.address, "gold", requests);
    let ProxyReport { observations, .. } = proxy.drain();
    let first = observations.requests[0].intended;
    let work = dispatched_work(&observations, "gold");
    assert_eq!(work.len() as u64, requests);
    for (rate, burst) in limits {
        let mut sum = 0.0;
        for (at, amount) in &work {
            sum += amount;
            let allowed = burst + rate * (*at - first).as_secs();
            assert!(sum <= allowed + 1e-9, "{sum} s of device time at {at:?}, {allowed} allowed");
        }
    }
    // The slower bucket delays no longer than necessary, apart from delays by the machine.
    let needed = (0.6 - 0.2) / 0.4;
    let took = (work[599].0 - first).as_secs();
    assert!(took >= needed, "{took}");
}

/// Beyond its limits a workload is served while no other request wants the device, and behind all that
/// do.
#[test]
fn beyond_their_limits_requests_are_best_effort() {
    let Some(server) = nbdkit() else { return };
    let proxy = start(
        &server,
        "outstanding = 1",
        &[("gold", 0, &[(0.000_01, 0.010)]), ("silver", 1, &[(1.0, 10.0)])],
    );
    let address = proxy.address;
    std::thread::scope(|scope| {
        scope.spawn(|| flood(address, "gold", 200));
        scope.spawn(|| flood(address, "silver", 200));
    });
    let ProxyReport { observations, .. } = proxy.drain();
    let gold = requests_of(&observations, "gold");
    let silver = requests_of(&observations, "silver");
    assert_eq!((gold.len(), silver.len()), (200, 200));
    // Gold's burst is 10 requests, and hardly one more refills in time. While silver waits, no other
    // request of gold goes, except one when silver has just exhausted its own refill.
    let overtaken = |request: &&&Observation| {
        let passed = gold.iter().filter(|gold| gold.sent > request.intended && gold.sent < request.sent);
        passed.count() > 12
    };
    let unlucky = silver.iter().filter(overtaken).count();
    assert_eq!(unlucky, 0, "silver within its limits goes before gold beyond them");
}

/// With one request at the device at a time, a request of the higher priority waits for at most one
/// other.
#[test]
fn priority_is_strict() {
    let Some(server) = nbdkit() else { return };
    let proxy = start(&server, "outstanding = 1", &[("gold", 0, &[]), ("silver", 1, &[])]);
    let address = proxy.address;
    std::thread::scope(|scope| {
        scope.spawn(|| flood(address, "silver", 3000));
        scope.spawn(|| (0..50).for_each(|_| drop(flood(address, "gold", 10))));
    });
    let ProxyReport { observations, .. } = proxy.drain();
    let gold = requests_of(&observations, "gold");
    let silver = requests_of(&observations, "silver");
    assert_eq!((gold.len(), silver.len()), (500, 3000));
    for request in &gold {
        let passed = silver.iter().filter(|other| other.sent > request.intended && other.sent < request.sent);
        assert_eq!(passed.count(), 0, "{request:?} was overtaken");
    }
    at_most_outstanding(&observations, 1);
}

/// Beside best effort alone the last place stays free; a workload of the policy takes it.
#[test]
fn best_effort_leaves_the_reserve_free() {
    let Some(server) = nbdkit() else { return };
    let proxy = start(&server, "outstanding = 4\nreserve = 1", &[("gold", 0, &[])]);
    let address = proxy.address;
    std::thread::scope(|scope| {
        scope.spawn(|| flood(address, "stranger", 3000));
        scope.spawn(|| (0..50).for_each(|_| drop(flood(address, "gold", 10))));
    });
    let ProxyReport { observations, .. } = proxy.drain();
    at_most_outstanding(&observations, 4);
    let requests: Vec<Observation> =
        requests_of(&observations, UNKNOWN_WORKLOAD).into_iter().cloned().collect();
    assert_eq!((requests_of(&observations, "gold").len(), requests.len()), (500, 3000));
    at_most_outstanding(&Observations { requests, ..observations }, 3);
}

/// Asserts that there are at most this many at the server at any instant.
fn at_most_outstanding(observations: &Observations, most: i64) {
    let mut changes: Vec<(Nanos, i64)> = Vec::new();
    for request in &observations.requests {
        let RequestOutcome::Done(end) = request.outcome else { panic!("all are answered") };
        changes.extend([(request.sent, 1), (end, -1)]);
    }
    // At one instant, ends are ordered before beginnings.
    changes.sort_unstable();
    let mut outstanding = 0;
    for (at, change) in changes {
        outstanding += change;
        assert!(outstanding <= most, "{outstanding} at {at:?}");
    }
}

#[test]
fn bounds_on_requests_and_bytes_hold() {
    let Some(server) = nbdkit() else { return };
    let proxy = start(&server, "outstanding = 100\noutstanding_bytes = \"20KiB\"", &[("gold", 0, &[])]);
    let address = proxy.address;
    std::thread::scope(|scope| {
        for export in ["gold", "silver", "other"] {
            scope.spawn(move || flood(address, export, 300));
        }
    });
    let ProxyReport { observations, .. } = proxy.drain();
    assert_eq!(observations.requests.len(), 900);
    at_most_outstanding(&observations, 5);
}

/// The policy changes continually: no request is lost, and the last policy is in force at the end.
#[test]
fn policies_change_while_traffic_flows() {
    let Some(server) = nbdkit() else { return };
    let proxy = start(&server, "outstanding = 4", &[("gold", 0, &[]), ("silver", 1, &[])]);
    let address = proxy.address;
    std::thread::scope(|scope| {
        let floods = ["gold", "silver", "other"]
            .map(|export| scope.spawn(move || (0..20).for_each(|_| drop(flood(address, export, 200)))));
        let mut changes = 0;
        while floods.iter().any(|flood| !flood.is_finished()) {
            let promises: &[proxy::Promise<'_>] = match changes % 3 {
                0 => &[("silver", 0, &[(0.5, 0.1)]), ("gold", 7, &[(0.9, 0.001), (0.5, 0.01)])],
                1 => &[("gold", 3, &[])],
                _ => &[("gold", 1, &[(1.0, 5.0)]), ("silver", 1, &[])],
            };
            proxy.remote.configure(Some(policy(promises)), None).expect("it is right");
            changes += 1;
        }
        assert!(changes > 5, "{changes}");
    });
    let wrong = proxy.remote.configure(None, Some(deployment_without_storage()));
    assert!(wrong.is_err(), "a server without storage is refused");
    let ProxyReport { snapshot, observations, .. } = proxy.drain();
    assert_eq!((observations.requests.len(), snapshot.cut, snapshot.buffered_bytes), (3 * 20 * 200, 0, 0));
}

fn deployment_without_storage() -> enforce::deployment::Deployment {
    let text = "[[host]]\nname = \"here\"\ndevice.lo = \"1Gbps\"";
    enforce::deployment::Deployment::parse(text).expect("a hosts file")
}

/// Consecutive sequential writes go to a disk together, up to the size of a batch.
#[test]
fn sequential_writes_go_together() {
    let Some(server) = nbdkit() else { return };
    let proxy = start(&server, "outstanding = 1\nbatch = 8", &[("gold", 0, &[]), ("silver", 0, &[])]);
    let address = proxy.address;
    let sequential = |export: &'static str| {
        let mut stream = nbd(address, export);
        let mut out = Vec::new();
        (0..160u64).for_each(|cookie| write(&mut out, cookie, cookie * 4096, &[7; 4096]));
        stream.write_all(&out).expect("the proxy reads");
        stream.read_exact(&mut [0; 160 * 16]).expect("every write is answered");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| sequential("gold"));
        scope.spawn(|| sequential("silver"));
    });
    let ProxyReport { observations, .. } = proxy.drain();
    let mut by_sent: Vec<&Observation> = observations.requests.iter().collect();
    by_sent.sort_by_key(|request| request.sent);
    let batches: Vec<usize> = by_sent.chunk_by(|one, other| one.sent == other.sent).map(<[_]>::len).collect();
    assert_eq!(batches.iter().sum::<usize>(), 320);
    assert!(batches.iter().all(|batch| *batch <= 8), "{batches:?}");
    assert!(batches.iter().filter(|batch| **batch == 8).count() > 10, "{batches:?}");
}
