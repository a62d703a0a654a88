//! Precision of limits, and the cost of the proxy.
//!
//! Limits: floods of requests in queue mode, by the proxy's own record of dispatch times. Shown are the
//! burst that the dispatched work needs over all intervals, relative to the limit's, and the rate after
//! the burst, relative to the limit's.
//!
//! Cost: an NBD server in memory, read 4 KiB at a time at a fixed queue depth, directly and through the
//! proxy in turn, in one run. Shown are ratios, and the spread of the rounds.
//!
//! Live burst curves: the time that they take of a request, beside that of the whole proxy at depth 64.
//!
//! `cargo bench -p enforce --bench proxy [-- ROUNDS]`; as root, server, proxy and client run under
//! SCHED_FIFO. The server answers from memory; with a slower device the proxy's share of the time is
//! smaller.

#[path = "../tests/proxy/mod.rs"]
mod proxy;

use enforce::storage::{Proxy, ProxyHandle, ProxyOptions};
use model::PerStage;
use proxy::{Server, deployment, profile};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Instant;
use units::{Nanos, Work};
use wire::nbd::client::read;
use workload::live::{LiveArrival, LiveCurves};

const SIZE: u32 = 4096;
/// Bytes of a simple reply with its data.
const REPLY: usize = 16 + 4096;
const FIFO: u32 = 20;

/// Returns requests per second and latencies in nanoseconds of `count` reads, `depth` at a time.
fn measure(address: SocketAddr, depth: usize, count: usize) -> (f64, Vec<u64>) {
    let mut stream = proxy::nbd(address, "");
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).expect("less than centuries");
    let mut sent = 0;
    let mut latencies = Vec::with_capacity(count);
    let mut starts = vec![0; count];
    let mut input = vec![0; 1 << 20];
    let mut filled = 0;
    let mut out = Vec::new();
    while latencies.len() < count {
        out.clear();
        while sent < count && sent - latencies.len() < depth {
            starts[sent] = now();
            let offset = sent as u64 * 7919 % 8192 * u64::from(SIZE);
            read(&mut out, sent as u64, offset, SIZE);
            sent += 1;
        }
        stream.write_all(&out).expect("the server reads");
        filled += stream.read(&mut input[filled..]).expect("the server answers");
        let mut used = 0;
        while filled - used >= REPLY {
            let cookie = u64::from_be_bytes(input[used + 8..used + 16].try_into().expect("eight bytes"));
            latencies.push(now() - starts[usize::try_from(cookie).expect("it is ours")]);
            used += REPLY;
        }
        input.copy_within(used..filled, 0);
        filled -= used;
    }
    (count as f64 / begun.elapsed().as_secs_f64(), latencies)
}

fn percentile(latencies: &mut [u64], percent: f64) -> f64 {
    latencies.sort_unstable();
    latencies[confidence::nearest_rank(percent, latencies.len()) - 1] as f64 / 1e3
}

fn start(forward: SocketAddr, spin: u64, realtime: bool) -> (SocketAddr, ProxyHandle) {
    let fields = "outstanding = 64";
    let mut options = ProxyOptions::new("ssd", deployment("nbd", forward, fields, ""), None, profile());
    options.busy_poll_max = Nanos(spin);
    let proxy = Proxy::bind(options).expect("an address");
    let address = proxy.addresses()[0];
    let remote = proxy.handle();
    std::thread::spawn(move || {
        if realtime {
            machine::realtime::fifo(FIFO).expect("it went before");
        }
        proxy.run()
    });
    (address, remote)
}

/// Returns the time in which live burst curves take a request of one of `workloads`, nanoseconds: some tens of thousands
/// a second, answered out of order.
fn live_curves_ns(workloads: u32) -> f64 {
    let count = 2_000_000u64;
    let mut curves = LiveCurves::new("bench".into());
    let begun = Instant::now();
    let mut dice = 1u64;
    let mut now = 2_000_000_000;
    for _ in 0..count {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        now += (dice >> 40) % 60_000;
        let at = Nanos(now - (dice >> 33) % 2_000_000);
        let work = PerStage::from_fn(|stage| Work(1_000_000 + (dice >> 20) % 4_000_000 * (1 + stage as u64)));
        let workload = u32::try_from(dice >> 50).expect("it fits") % workloads;
        curves.add(workload, LiveArrival { at, work }, now);
    }
    begun.elapsed().as_nanos() as f64 / count as f64
}

/// Each limit alone, then all at once.
fn limits(server: &Server) {
    println!(
        "{:<44} {:>8} {:>14} {:>14}",
        "limits: rate of the device, burst", "requests", "burst +%", "rate +%"
    );
    let sets: [&[(f64, f64)]; 4] =
        [&[(0.9, 0.010)], &[(0.3, 0.050)], &[(0.05, 0.200)], &[(0.9, 0.010), (0.6, 0.050), (0.3, 0.200)]];
    for limits in sets {
        let mut options = ProxyOptions::new(
            "ssd",
            deployment("nbd", server.address, "over = \"queue\"\noutstanding = 1000", CLIENT),
            Some(proxy::policy(&[("gold", 0, limits)])),
            profile(),
        );
        options.record = 1_000_000;
        let running = proxy::Running::start(options);
        let last = limits[limits.len() - 1];
        // Three seconds beyond the burst, at a millisecond per request.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let count = ((last.1 + 3.0 * last.0) * 1000.0) as u64;
        drop(proxy::flood(running.address, "gold", count));
        let seen = running.drain().observations;
        let work: Vec<_> = seen.requests.iter().map(|request| (request.sent, 0.001)).collect();
        let burst = limits.iter().map(|(rate, burst)| {
            verify::measure_conformance(work.iter().copied(), *rate, *burst).needed_burst / burst - 1.0
        });
        let burst = burst.fold(f64::NEG_INFINITY, f64::max);
        let took = (work[work.len() - 1].0 - work[0].0).as_secs();
        let rate = (work.len() as f64 * 0.001 - last.1) / took / last.0 - 1.0;
        println!("{:<44} {count:>8} {:>+14.4} {:>+14.4}", format!("{limits:?}"), burst * 100.0, rate * 100.0);
    }
}

const CLIENT: &str = "[[client]]\nworkload = \"gold\"\nhost = \"here\"\nexport = \"gold\"";

fn main() {
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5);
    let realtime = machine::realtime::fifo(FIFO).is_ok();
    // Child processes inherit the priority.
    let Some(server) = Server::nbdkit("-t 2 memory 32M") else { return };
    limits(&server);
    println!(
        "nbdkit memory, 4 KiB reads, one connection, {rounds} rounds, {}",
        if realtime { "all under SCHED_FIFO" } else { "no real-time priority here: expect noise" }
    );
    let ways =
        [("direct", None), ("proxy", Some(ProxyOptions::DEFAULT_BUSY_POLL.0)), ("proxy, no spin", Some(0))];
    let ways: Vec<_> = ways
        .into_iter()
        .map(|(name, spin)| match spin {
            None => (name, server.address, None),
            Some(spin) => {
                let (address, remote) = start(server.address, spin, realtime);
                (name, address, Some(remote))
            }
        })
        .collect();
    println!(
        "{:>5}  {:<18} {:>9} {:>7} {:>15} {:>9} {:>7}",
        "depth", "way", "IOPS", "ratio", "(rounds)", "p99 us", "ratio"
    );
    let mut request_ns = 0.0;
    for depth in [1, 4, 16, 64] {
        let count = if depth == 1 { 10_000 } else { 40_000 };
        let mut found = vec![(Vec::new(), Vec::new()); ways.len()];
        for _ in 0..rounds {
            for (index, (_, address, _)) in ways.iter().enumerate() {
                let (rate, latencies) = measure(*address, depth, count);
                found[index].0.push(rate);
                found[index].1.extend(latencies);
            }
        }
        let direct: Vec<f64> = found[0].0.clone();
        let mut first = 0.0;
        for ((name, _, _), (rates, latencies)) in ways.iter().zip(&mut found) {
            let mut ratios: Vec<f64> =
                rates.iter().zip(&direct).map(|(rate, direct)| rate / direct).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            let p99 = percentile(latencies, 99.0);
            first = if first == 0.0 { p99 } else { first };
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            if *name == "proxy" {
                request_ns = 1e9 / mean;
            }
            let low = ratios[0];
            let high = ratios[ratios.len() - 1];
            println!(
                "{depth:>5}  {name:<18} {mean:>9.0} {:>7.2} {:>15} {p99:>9.1} {:>7.2}",
                ratios[ratios.len() / 2],
                format!("{low:.2} to {high:.2}"),
                p99 / first
            );
        }
    }
    ways.iter().flat_map(|way| &way.2).for_each(ProxyHandle::stop);
    for workloads in [1, 100] {
        let took = live_curves_ns(workloads);
        println!(
            "live burst curves, {workloads} workloads: {took:.0} ns a request, {:.2} % of the {request_ns:.0} ns of a \
             request through the proxy",
            100.0 * took / request_ns
        );
    }
}
