//! Costs and precision of the network enforcer on the real kernel: conformance of traffic to its token
//! buckets, latency of small replies beside a bulk transfer, and time to apply. Requires root.
//!
//! Figures are ratios within one run; absolute times are shown for context. Senders and callers of
//! requests run with real-time priority, and a row whose generator was late is marked.

#[path = "../tests/traffic/mod.rs"]
mod traffic;

use enforce::command::Programs;
use enforce::network::{ApplyOptions, apply};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use traffic::{
    Arrivals, Calls, Latencies, Tenant, Testbed, answer, call, conformance, greedy, lacking, policy, pour,
    record, spans,
};

fn main() {
    if let Some(lack) = lacking() {
        println!("SKIPPED: {lack}");
        return;
    }
    limits();
    priority();
    applying();
}

/// Returns a hosts file with one client per workload, distinguished by the server's ports from 7001.
fn hosts(testbed: &Testbed, workloads: &[&str], protocol: &str) -> String {
    let address = testbed.ipv4("server");
    let mut more = format!(
        "[[server]]\nname = \"s\"\nhost = \"server\"\naddress = [\"{address}\"]\nprotocol = \"{protocol}\"\n"
    );
    for (port, workload) in (7001..).zip(workloads) {
        more +=
            &format!("[[client]]\nworkload = \"{workload}\"\nhost = \"client\"\nserver_port = [{port}]\n");
    }
    testbed.hosts_file("100Mbps", None, &more)
}

const TENANTS: [Tenant; 4] = [
    Tenant("one", 0, &[(1e6, 100e3)]),
    Tenant("nested", 1, &[(1e6, 200e3), (3e6, 20e3)]),
    Tenant("triple", 2, &[(800e3, 400e3), (2e6, 60e3), (6e6, 10e3)]),
    Tenant("slow", 3, &[(200e3, 20e3)]),
];

fn limits() {
    const SECONDS: u64 = 8;
    println!(
        "token buckets: greedy senders for {SECONDS} s on a 100 Mbit/s link, windows of 100 ms and longer"
    );
    println!(
        "{:<8} {:>12} {:>10} {:>22} {:>14}",
        "workload", "rate B/s", "burst B", "fullest / (rt+b+MTU)", "steady / rate"
    );
    let testbed = Testbed::new(&["client", "server"]);
    let names: Vec<&str> = TENANTS.iter().map(|tenant| tenant.0).collect();
    testbed.apply_all(&policy(&TENANTS), &hosts(&testbed, &names, "udp"));
    let stop = Arc::new(AtomicBool::new(false));
    let to = |port| SocketAddr::from((testbed.ipv4("server"), port));
    let is_enough = |arrivals: &Arrivals, _: bool| spans(arrivals, Duration::from_secs(SECONDS));
    let recorders: Vec<_> =
        (7001..=7004).map(|port| record(testbed.netns("server"), port, false, is_enough)).collect();
    let senders: Vec<_> =
        (7001..=7005).map(|port| greedy(testbed.netns("client"), to(port), &stop)).collect();
    let recorded: Vec<_> =
        recorders.into_iter().map(|recorder| recorder.join().expect("a recorder ends")).collect();
    stop.store(true, Ordering::Relaxed);
    senders.into_iter().for_each(|sender| sender.join().expect("a sender ends"));
    for (arrivals, Tenant(name, _, pairs)) in recorded.into_iter().zip(&TENANTS) {
        for (index, (rate, burst)) in pairs.iter().enumerate() {
            let kept = conformance(&arrivals, *rate, *burst);
            // Only the slowest bucket decides the long run.
            let steady = if index == 0 { format!("{:.4}", kept.steady) } else { "-".into() };
            println!("{name:<8} {rate:>12} {burst:>10} {:>22.4} {steady:>14}", kept.fullest);
        }
    }
}

const CALLS: Calls = Calls { per_s: 50.0, reply_bytes: 20_000, seconds: 20.0 };

fn priority() {
    println!(
        "\npriority: {} replies/s of {} bytes on a 100 Mbit/s link beside a bulk transfer (Reno)",
        CALLS.per_s, CALLS.reply_bytes
    );
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>12} {:>12} {:>10}",
        "", "p50 ms", "p99 ms", "p99.9 ms", "p50 / alone", "p99 / alone", "lag p99 ms"
    );
    let alone = measured("rpc", false);
    for (name, latencies) in
        [("alone", &alone), ("unprotected", &measured("other", true)), ("protected", &measured("rpc", true))]
    {
        let ms = |quantile| latencies.at(quantile) * 1e3;
        let ratio = |quantile| latencies.at(quantile) / alone.at(quantile);
        // The reply rate is a twelfth of the link's: a connection that joins a full queue late gets less
        // than that.
        let behind =
            if latencies.at(0.99) > 0.1 * CALLS.seconds { " (falls behind: grows with the run)" } else { "" };
        let late = if latencies.lag_p99 > 0.2 * latencies.at(0.99) { " (late)" } else { "" };
        println!(
            "{name:<12} {:>9.2} {:>9.2} {:>9.2} {:>12.2} {:>12.2} {:>10.3}{late}{behind}",
            ms(0.5),
            ms(0.99),
            ms(0.999),
            ratio(0.5),
            ratio(0.99),
            latencies.lag_p99 * 1e3
        );
    }
}

fn measured(owner: &str, beside_bulk: bool) -> Latencies {
    let testbed = Testbed::new(&["client", "server"]);
    let text = hosts(&testbed, &["rpc", "other"], "tcp");
    testbed.apply_all(&policy(&[Tenant(owner, 0, &[])]), &text);
    let stop = Arc::new(AtomicBool::new(false));
    let server = answer(testbed.netns("server"), 7001, CALLS.reply_bytes);
    let bulk = beside_bulk
        .then(|| pour(testbed.netns("server"), testbed.netns("client"), testbed.ipv4("client"), 9000, &stop));
    std::thread::sleep(Duration::from_secs(1));
    let to = SocketAddr::from((testbed.ipv4("server"), 7001));
    let latencies = call(testbed.netns("client"), to, CALLS).join().expect("the caller ends");
    stop.store(true, Ordering::Relaxed);
    bulk.into_iter().flatten().for_each(|end| end.join().expect("the bulk ends"));
    server.join().expect("the server ends");
    latencies
}

fn applying() {
    println!("\napplying: 50 workloads with two token buckets each on one device");
    let testbed = Testbed::new(&["client", "server"]);
    let names: Vec<String> = (0..50).map(|n| format!("w{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tenants = |rate: f64| -> Vec<(f64, f64)> { vec![(rate, 1e5), (4e5, 1e4)] };
    let fixed = tenants(1e5);
    let changed = tenants(2e5);
    let of = |first: &[(f64, f64)]| -> Vec<traffic::Workload> {
        names
            .iter()
            .enumerate()
            .map(|(n, name)| (*name, 0, if n == 0 { first.to_vec() } else { fixed.clone() }))
            .collect()
    };
    let text = hosts(&testbed, &names, "tcp");
    for (what, workloads) in
        [("first", of(&fixed)), ("again", of(&fixed)), ("one limit changed", of(&changed))]
    {
        let tenants: Vec<Tenant> =
            workloads.iter().map(|(name, priority, pairs)| Tenant(name, *priority, pairs)).collect();
        let desired = testbed.desired_hosts(&policy(&tenants), &text);
        let start = Instant::now();
        let report = apply(&mut Programs, &desired[0], &testbed.store(), ApplyOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let lines: usize = report.commands.iter().map(|command| command.lines().count()).sum();
        println!("{what:<18} {:>8.1} ms {lines:>6} lines", start.elapsed().as_secs_f64() * 1e3);
    }
}
