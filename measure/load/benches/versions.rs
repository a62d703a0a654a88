//! Cost of TLS and HTTP/2 in the generator: HTTP/1.1 and HTTP/2 of one file of nginx, with and without TLS.
//!
//! The versions take turns in every round, so that other load of the machine is shared by all. Medians over the rounds:
//! the rate of a closed loop, relative to HTTP/1.1 without TLS in the same round, and the generator's own lag and the
//! latency of Poisson arrivals. Generator and server share the machine.

#[path = "../tests/common/mod.rs"]
mod common;

use common::nginx::Nginx;
use common::{options, play, poisson, workload};
use load::{CertificateCheck, LoadOptions, LoadReport, LoadTarget, OfferedLoad};
use model::{Observation, Op, Request, RequestOutcome};
use units::{Bytes, Nanos};

const ROUNDS: usize = 5;
const CONNECTIONS: usize = 4;
/// Mean arrivals per second of the open loop.
const RATE: f64 = 4000.0;

fn main() {
    let Some(nginx) = Nginx::start("access_log off; keepalive_requests 100000000;") else { return };
    prefer(nginx.process());
    let versions = [
        ("HTTP/1.1", format!("http://{}/file", nginx.plain)),
        ("HTTP/1.1 in TLS", format!("https+h1://{}/file", nginx.tls)),
        ("HTTP/2", format!("http+h2://{}/file", nginx.plain_two)),
        ("HTTP/2 in TLS", format!("https+h2://{}/file", nginx.tls_two)),
    ];
    let mut ratios = [const { Vec::new() }; 4];
    let mut lags = [const { Vec::new() }; 4];
    let mut latencies = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let mut rates = Vec::new();
        for (index, (_, url)) in versions.iter().enumerate() {
            let closed =
                OfferedLoad::Closed { in_flight: 32, op: Op::Read, size: Bytes(10_000), sequential: false };
            rates.push(measure(url, closed).observations.requests.len() as f64);
            let requests = poisson(RATE, 1500, 5, &[10_000]).into_iter();
            let reads = requests.map(|request| Request { op: Op::Read, ..request }).collect();
            let report = measure(url, OfferedLoad::Open(reads));
            lags[index].push(p99(report.generator_lags(0).collect()));
            latencies[index].push(p99(report
                .observations
                .requests
                .iter()
                .filter_map(Observation::latency)
                .collect()));
        }
        for (ratios, rate) in ratios.iter_mut().zip(&rates) {
            ratios.push(rate / rates[0]);
        }
    }
    println!("{:<16} {:>12} {:>10} {:>12}", "", "closed rate", "lag p99", "latency p99");
    for (index, (name, _)) in versions.iter().enumerate() {
        ratios[index].sort_by(f64::total_cmp);
        let [lag, latency] = [&mut lags[index], &mut latencies[index]].map(|values| {
            values.sort_unstable();
            values[ROUNDS / 2].to_string()
        });
        println!("{name:<16} {:>12.2} {lag:>10} {latency:>12}", ratios[index][ROUNDS / 2]);
    }
}

/// Gives a process real-time priority below that of the generator, so that other programs disturb neither.
fn prefer(process: u32) {
    let chrt = std::process::Command::new("chrt").args(["-f", "-p", "10", &process.to_string()]).status();
    if !chrt.is_ok_and(|status| status.success()) {
        println!("nginx has no real-time priority (as root it has): other programs disturb the rates");
    }
}

/// Plays for a second after half a second of warm-up; every request has to be answered.
fn measure(url: &str, offered: OfferedLoad) -> LoadReport {
    let mut target: LoadTarget = url.parse().unwrap();
    if let LoadTarget::Tls { check, .. } = &mut target {
        *check = CertificateCheck::Nothing;
    }
    let options = LoadOptions { realtime: Some(20), warm_up: Nanos(500 * common::MS), ..options(1000) };
    let report = play(vec![workload("w", target, CONNECTIONS, offered)], &options).unwrap();
    let is_done = |request: &Observation| matches!(request.outcome, RequestOutcome::Done(_));
    assert!(report.observations.requests.iter().all(is_done), "{:?}", report.warnings);
    report
}

fn p99(mut values: Vec<Nanos>) -> Nanos {
    values.sort_unstable();
    values[values.len() * 99 / 100]
}
