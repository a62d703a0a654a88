//! Rate of sending of one core, and the delay of its wake-ups.
//!
//! Rates are compared with a plain blocking client in the same run: on one connection, it writes a window
//! of requests and then reads their replies. Server, reference client and generator share the machine, so
//! a rate includes the work of all three. An open-loop rate counts as sustained under two conditions in
//! one second under SCHED_FIFO: every request is answered at most a tenth of a second after the end, and
//! the 99th percentile of the generator's own lag is below a millisecond.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Server, options, play, volume, workload};
use load::{LoadOptions, LoadReport, LoadTarget, OfferedLoad};
use model::{Op, Request, RequestOutcome};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use units::{Bytes, Nanos};

const SIZE: u64 = 4096;
const WINDOW: usize = 32;
const FIFO: Option<u32> = Some(20);
/// The open-loop rates that are tried, relative to the rate of the reference.
const RELATIVE_RATES: [f64; 9] = [0.25, 0.5, 0.75, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0];

fn main() {
    rates();
    lags();
}

fn rates() {
    println!("reads of 4 KiB on one connection, requests per second");
    println!(
        "{:<10} {:>10} {:>10} {:>6} {:>10} {:>6}",
        "server", "reference", "closed", "ratio", "open", "ratio"
    );
    if let Some(server) = Server::nbdkit("64M") {
        let reference = windowed(nbd_connection(server.address), |out, index| {
            wire::nbd::client::read(out, index, (index % 1000) * SIZE, 4096);
            16 + 4096
        });
        row("nbdkit", &volume(server.address), reference);
    }
    if let Some(server) = Server::memcached() {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(format!("set k 0 0 {SIZE}\r\n{}\r\n", "x".repeat(4096)).as_bytes()).unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        let reference = windowed(stream, |out, _| {
            out.extend(b"get k\r\n");
            "VALUE k 0 4096\r\n".len() + 4096 + "\r\nEND\r\n".len()
        });
        row("memcached", &common::values(server.address, 1), reference);
    }
}

fn row(name: &str, target: &LoadTarget, reference: f64) {
    let in_flight = u32::try_from(WINDOW).unwrap();
    let offered = OfferedLoad::Closed { in_flight, op: Op::Read, size: Bytes(SIZE), sequential: true };
    let report = play(vec![workload("w", target.clone(), 1, offered)], &options(2000)).unwrap();
    let closed = report.observations.requests.len() as f64 / 2.0;
    let options = LoadOptions { realtime: FIFO, ..options(1000) };
    let play_at = |rate| play(vec![workload("w", target.clone(), 1, constant(rate))], &options).unwrap();
    // Other programs disturb: a rate that is sustained once in three times can be sustained.
    let is_sustained = |rate: &f64| (0..3).any(|_| keeps_up(&play_at(*rate)));
    let open =
        RELATIVE_RATES.iter().rev().map(|relative| relative * reference).find(is_sustained).unwrap_or(0.0);
    println!(
        "{name:<10} {reference:>10.0} {closed:>10.0} {:>6.2} {open:>10.0} {:>6.2}",
        closed / reference,
        open / reference
    );
}

fn constant(rate: f64) -> OfferedLoad {
    let instants = arrivals::RateProcess::Constant { rate }.arrivals(1).unwrap();
    let request =
        |arrival| Request { arrival, size: Bytes(SIZE), op: Op::Read, offset: None, response: None };
    OfferedLoad::Open(instants.take_while(|at| at.0 < 1_000_000_000).map(request).collect())
}

fn keeps_up(report: &LoadReport) -> bool {
    let requests = &report.observations.requests;
    let in_time = Nanos(1_100_000_000);
    let done =
        requests.iter().all(|request| matches!(request.outcome, RequestOutcome::Done(at) if at < in_time));
    done && quantiles(&mut report.generator_lags(0).collect::<Vec<_>>())[1] < Nanos(1_000_000)
}

/// The 50th, 99th and 99.9th percentile, and the largest value.
fn quantiles(values: &mut [Nanos]) -> [Nanos; 4] {
    values.sort_unstable();
    [500, 990, 999, 1000].map(|per_mille: usize| values[(values.len() * per_mille).div_ceil(1000).max(1) - 1])
}

/// Requests per second of a blocking client. `encode` appends a request and returns the length of its reply.
fn windowed(mut stream: TcpStream, mut encode: impl FnMut(&mut Vec<u8>, u64) -> usize) -> f64 {
    stream.set_nodelay(true).unwrap();
    let start = Instant::now();
    let mut count = 0u64;
    let mut answers = Vec::new();
    while start.elapsed() < Duration::from_secs(2) {
        let mut out = Vec::new();
        let mut expected = 0;
        for _ in 0..WINDOW {
            expected += encode(&mut out, count);
            count += 1;
        }
        stream.write_all(&out).unwrap();
        answers.resize(expected, 0);
        stream.read_exact(&mut answers).unwrap();
    }
    count as f64 / start.elapsed().as_secs_f64()
}

fn nbd_connection(address: SocketAddr) -> TcpStream {
    use wire::nbd::client::{ClientHandshake, ExportOption, HandshakeStep};
    let mut stream = TcpStream::connect(address).unwrap();
    let mut handshake = ClientHandshake::new(b"", ExportOption::Go);
    let mut input = Vec::new();
    let mut out = Vec::new();
    loop {
        let progress = handshake.advance(&input, &mut out).unwrap();
        stream.write_all(&std::mem::take(&mut out)).unwrap();
        match progress {
            HandshakeStep::Used(used) => drop(input.drain(..used)),
            HandshakeStep::Done { .. } => return stream,
            HandshakeStep::NeedMore { .. } => {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                input.extend(&piece[..count]);
            }
        }
    }
}

fn lags() {
    let Some(server) = Server::memcached() else { return };
    println!("\nlateness at 1000 Poisson arrivals per second, 5 s");
    println!("{:<34} {:>10} {:>10} {:>10} {:>10}", "", "p50", "p99", "p99.9", "max");
    let show = |name: &str, mut lags: Vec<Nanos>| {
        let [a, b, c, d] = quantiles(&mut lags).map(|lag| lag.to_string());
        println!("{name:<34} {a:>10} {b:>10} {c:>10} {d:>10}");
    };
    show("reference: a thread that sleeps", sleeper(None));
    show("reference, SCHED_FIFO", std::thread::spawn(|| sleeper(FIFO)).join().unwrap());
    for (name, realtime) in [("generator", None), ("generator, SCHED_FIFO", FIFO)] {
        let requests = common::poisson(1000.0, 5000, 9, &[100]);
        let target = common::values(server.address, 10);
        let options = LoadOptions { realtime, ..options(5000) };
        let report = play(vec![workload("w", target, 1, OfferedLoad::Open(requests))], &options).unwrap();
        report.warnings.iter().for_each(|warning| println!("{warning}"));
        show(name, report.generator_lags(0).collect());
    }
}

/// The lags of a thread that sleeps with `std::thread::sleep` until each of the same instants.
fn sleeper(realtime: Option<u32>) -> Vec<Nanos> {
    if let Some(Err(error)) = realtime.map(machine::realtime::fifo) {
        println!("{error}");
    }
    let start = machine::clock::now();
    let late = |request: Request| {
        let due = start + request.arrival.0;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(machine::clock::now())));
        Nanos(machine::clock::now() - due.min(machine::clock::now()))
    };
    common::poisson(1000.0, 5000, 9, &[100]).into_iter().map(late).collect()
}
