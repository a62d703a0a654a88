//! Effect of a high priority beside a workload that saturates the device. Cases: alone; beside it without a
//! proxy; behind the proxy with as many outstanding requests as channels, and with more; and with one place
//! reserved. In the last case the device always has a request more than channels, and an arrival finds a
//! place at once.
//!
//! The emulated SSDs have 4, 8 and 16 channels and equal capacity, so that a request takes 1, 2 and 4 ms. A
//! lower bound for any discipline that keeps all channels busy is printed too. A request finds all k channels
//! busy with requests of length S, which began independently of each other, and waits for the first that
//! ends. The 99th percentile of the least of k uniform residuals is S (1 - 0.01^(1/k)).
//!
//! `cargo bench -p lab --bench protection [-- SECONDS]`; as root everything runs under SCHED_FIFO.

use enforce::deployment::Deployment;
use enforce::storage::{Proxy, ProxyHandle, ProxyOptions};
use lab::device::{LinearServiceTime, SsdModel};
use lab::nbd::{ExportedVolume, NbdServer, NbdServerConfig};
use load::{ClientHost, LoadOptions, LoadTarget, LoadWorkload, OfferedLoad};
use model::{Op, Policy, Request, RequestOutcome};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};

const FIFO: u32 = 20;
const CAPACITY: u64 = 4000;
/// High-priority requests per second: a tenth of the device.
const HIGH: u64 = 400;
const SIZE: Bytes = Bytes(4096);

struct Found {
    p50: f64,
    p99: f64,
    p999: f64,
    high: f64,
    low: f64,
    lag: f64,
}

fn main() {
    let seconds: u64 = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(30);
    let realtime = machine::realtime::fifo(FIFO).is_ok();
    println!(
        "{HIGH} reads/s (Poisson) beside a closed loop of 64, 4 KiB each, emulated SSD of {CAPACITY} reads/s, {seconds} s each; {}",
        if realtime { "all under SCHED_FIFO" } else { "no real-time priority: expect noise" }
    );
    println!(
        "{:>8} {:<24} {:>8} {:>8} {:>8} {:>7} {:>7} {:>6} {:>10} {:>8}",
        "channels",
        "way",
        "p50 ms",
        "p99 ms",
        "p99.9",
        "x alone",
        "x alone",
        "least",
        "low reads/s",
        "device %"
    );
    for channels in [4, 8, 16] {
        device(channels, seconds);
    }
}

fn device(channels: u32, seconds: u64) {
    let service = u64::from(channels) * 1_000_000_000 / CAPACITY;
    let service_time = LinearServiceTime::new(Nanos(service), 0);
    let model = SsdModel { channels, read: service_time, write: service_time, bandwidth: None };
    let exports = ["high", "low"].map(|name| ExportedVolume { name: name.into(), size: 1 << 26 }).to_vec();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let config = NbdServerConfig { model, exports, spin: Nanos(0) };
    let server = NbdServer::start(listener, config, Box::new(|_| {})).expect("a server");
    let alone = measure(server.address(), seconds, false);
    // Lower bound for any discipline: alone, plus the wait for a channel.
    let wait = service as f64 / 1e6 * (1.0 - 0.01f64.powf(1.0 / f64::from(channels)));
    let least = (service as f64 / 1e6 + wait) / (service as f64 / 1e6);
    let row = |way: &str, found: &Found| {
        println!(
            "{channels:>8} {way:<24} {:>8.3} {:>8.3} {:>8.3} {:>7.2} {:>7.2} {least:>6.2} {:>10.0} {:>8.1}   lag {:.3} ms",
            found.p50,
            found.p99,
            found.p999,
            found.p99 / alone.p99,
            found.p999 / alone.p999,
            found.low,
            (found.low + found.high) / CAPACITY as f64 * 100.0,
            found.lag,
        );
    };
    row("alone", &alone);
    row("unprotected", &measure(server.address(), seconds, true));
    let k = channels;
    for (outstanding, reserve) in [(k, 0), (k, 1), (k + 2, 1), (2 * k, 0)] {
        let (address, remote) = proxy(server.address(), &model, outstanding, reserve);
        row(&format!("{outstanding} outstanding, {reserve} reserved"), &measure(address, seconds, true));
        remote.stop();
    }
}

/// Priorities by export, no limits.
fn proxy(server: SocketAddr, model: &SsdModel, outstanding: u32, reserve: u32) -> (SocketAddr, ProxyHandle) {
    let fields = format!("outstanding = {outstanding}\nbeside = {outstanding}\nreserve = {reserve}");
    let clients = "[[client]]\nworkload = \"high\"\nhost = \"here\"\nexport = \"high\"";
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let hosts = testkit::one_server_hosts(&[("nbd", listen, server)], &fields, clients);
    let policy = r#"{ "format": "tailwright-policy-1", "policy_name": "by hand", "servers": [], "workloads": [
        { "name": "high", "admitted": true, "server": "ssd", "priority": 0, "slo": "99% < 1s", "slo_percentile": 99.0,
          "slo_s": 1.0, "bound_s": 1.0, "limits": [] } ] }"#;
    let policy = Policy::from_json(policy).expect("a policy");
    let deployment = Deployment::parse(&hosts).expect("a hosts file");
    let options = ProxyOptions::new("ssd", deployment, Some(policy), model.profile(&[SIZE]));
    let proxy = Proxy::bind(options).expect("an address");
    let address = proxy.addresses()[0];
    let remote = proxy.handle();
    std::thread::spawn(move || {
        let _ = machine::realtime::fifo(FIFO);
        proxy.run()
    });
    (address, remote)
}

fn measure(address: SocketAddr, seconds: u64, beside: bool) -> Found {
    let target = |export: &str| LoadTarget::Nbd { server: address, export: export.into() };
    let workload = |name: &str, demand| LoadWorkload {
        name: name.into(),
        target: target(name),
        client: ClientHost::default(),
        connections: 1,
        requests_per_connection: None,
        offered: demand,
    };
    let mut workloads = vec![workload("high", OfferedLoad::Open(poisson(seconds + 1)))];
    if beside {
        let closed = OfferedLoad::Closed { in_flight: 64, op: Op::Read, size: SIZE, sequential: false };
        workloads.push(workload("low", closed));
    }
    let options = LoadOptions {
        duration: Nanos(seconds * 1_000_000_000),
        realtime: Some(FIFO),
        ..LoadOptions::default()
    };
    let ran = load::run(workloads, &options, &mut |_| {}, &AtomicBool::new(false)).expect("load");
    let mut latencies: Vec<u64> = Vec::new();
    let mut low = 0u64;
    for request in &ran.observations.requests {
        match (request.workload, request.outcome) {
            (0, RequestOutcome::Done(end)) => latencies.push((end - request.intended).0),
            (1, RequestOutcome::Done(_)) => low += 1,
            _ => panic!("a request was not answered: {request:?}"),
        }
    }
    latencies.sort_unstable();
    let mut lags: Vec<Nanos> = ran.generator_lags(0).collect();
    lags.sort_unstable();
    let at = |percent: f64, of: &[u64]| of[confidence::nearest_rank(percent, of.len()) - 1] as f64 / 1e6;
    let rate = |count: u64| count as f64 / seconds as f64;
    Found {
        p50: at(50.0, &latencies),
        p99: at(99.0, &latencies),
        p999: at(99.9, &latencies),
        high: rate(latencies.len() as u64),
        low: rate(low),
        lag: lags[confidence::nearest_rank(99.0, lags.len()) - 1].0 as f64 / 1e6,
    }
}

fn poisson(seconds: u64) -> Vec<Request> {
    let process = arrivals::RateProcess::Poisson { rate: HIGH as f64 };
    let end = Nanos(seconds * 1_000_000_000);
    let stream = process.arrivals(7).expect("a rate");
    stream
        .take_while(|at| *at < end)
        .map(|arrival| Request { arrival, size: SIZE, op: Op::Read, offset: None, response: None })
        .collect()
}
