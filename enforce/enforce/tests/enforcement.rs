//! What a policy promises holds for the requests of real clients on their way to a real NBD server. The proxy's own
//! record of when it let each request go is the witness; nothing here depends on how fast the machine is.

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

/// The device time that was dispatched: when, and how much.
fn dispatched_work(observations: &Observations, name: &str) -> Vec<(Nanos, f64)> {
    let mut sent: Vec<Nanos> = requests_of(observations, name).iter().map(|request| request.sent).collect();
    sent.sort_unstable();
    sent.into_iter().map(|at| (at, 0.001)).collect()
}

fn nbdkit() -> Option<Server> {
    Server::nbdkit("memory 32M")
}

/// Several buckets at once, in queue mode: nothing is dispatched before all of them allow it, counted from the first
/// request; a machine that keeps the proxy waiting makes it later, never earlier. The benchmark measures how late.
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
    // The slower bucket is not made to wait longer than it must, but for what the machine adds.
    let needed = (0.6 - 0.2) / 0.4;
    let took = (work[599].0 - first).as_secs();
    assert!(took >= needed, "{took}");
}

/// Beyond its limits a workload goes on where nobody else wants the device, and behind everybody who does.
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
    // Gold's burst is 10 requests, and hardly one more comes in time. While silver waits, nothing else of gold goes,
    // but for one when silver has just used up what came in so far.
    let overtaken = |request: &&&Observation| {
        let passed = gold.iter().filter(|gold| gold.sent > request.intended && gold.sent < request.sent);
        passed.count() > 12
    };
    let unlucky = silver.iter().filter(overtaken).count();
    assert_eq!(unlucky, 0, "silver within its limits goes before gold beyond them");
}

/// With one request at the device at a time, whoever has the higher priority waits for one request at most.
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

/// No more at the server at any instant.
fn at_most_outstanding(observations: &Observations, most: i64) {
    let mut changes: Vec<(Nanos, i64)> = Vec::new();
    for request in &observations.requests {
        let RequestOutcome::Done(end) = request.outcome else { panic!("all are answered") };
        changes.extend([(request.sent, 1), (end, -1)]);
    }
    // What ends in an instant ends before the next begins.
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

/// The policy changes all the time: nothing is lost, and what holds in the end is the last one.
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

/// Writes that go on where the one before ended go together to a disk, as many as a batch may have.
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
