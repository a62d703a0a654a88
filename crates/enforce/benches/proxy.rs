//! What the proxy costs: an NBD server in memory, read 4 KiB at a time at a fixed queue depth, directly and
//! through the proxy in turn, in one run. Ratios, and the spread of the rounds.
//!
//! `cargo bench -p tailwright-enforce --bench proxy [-- ROUNDS]`; as root, server, proxy and client run under
//! SCHED_FIFO. The server answers from memory: a device takes longer, and the cost is a smaller part of that.

#[path = "../tests/proxy/mod.rs"]
#[allow(unreachable_pub)]
mod proxy;

use proxy::{Server, deployment, profile};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;
use tailwright_enforce::storage::{Options, Proxy, Remote};
use units::Nanos;
use wire::nbd::client::{Ask, Handshake, Progress, read};

const SIZE: usize = 4096;
const FIFO: u32 = 20;
/// Of a simple reply, before the data.
const HEAD: usize = 16;

fn connect(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    let mut handshake = Handshake::new(b"", Ask::Go);
    let (mut input, mut out) = (Vec::new(), Vec::new());
    loop {
        let progress = handshake.next(&input, &mut out).expect("the server grants it");
        stream.write_all(&out).expect("the server reads");
        out.clear();
        match progress {
            Progress::NeedMore { .. } => {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).expect("the server answers");
                input.extend_from_slice(&piece[..count]);
            }
            Progress::Used(count) => drop(input.drain(..count)),
            Progress::Done { .. } => return stream,
        }
    }
}

/// Requests per second and latencies in nanoseconds, of `count` reads, `depth` at a time.
fn measure(address: SocketAddr, depth: usize, count: usize) -> (f64, Vec<u64>) {
    let mut stream = connect(address);
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_nanos()).expect("less than centuries");
    let (mut sent, mut latencies, mut starts) = (0, Vec::with_capacity(count), vec![0; depth]);
    let (mut input, mut filled, mut out) = (vec![0; 1 << 20], 0, Vec::new());
    while latencies.len() < count {
        out.clear();
        while sent < count && sent - latencies.len() < depth {
            starts[sent % depth] = now();
            let offset = (sent * 7919 % 8192 * SIZE) as u64;
            read(&mut out, sent as u64, offset, SIZE as u32);
            sent += 1;
        }
        stream.write_all(&out).expect("the server reads");
        filled += stream.read(&mut input[filled..]).expect("the server answers");
        let mut used = 0;
        while filled - used >= HEAD + SIZE {
            let cookie = u64::from_be_bytes(input[used + 8..used + 16].try_into().expect("eight bytes"));
            latencies.push(now() - starts[cookie as usize % depth]);
            used += HEAD + SIZE;
        }
        input.copy_within(used..filled, 0);
        filled -= used;
    }
    (count as f64 / begun.elapsed().as_secs_f64(), latencies)
}

fn percentile(latencies: &mut [u64], percent: f64) -> f64 {
    latencies.sort_unstable();
    latencies[((latencies.len() as f64 * percent / 100.0) as usize).min(latencies.len() - 1)] as f64 / 1e3
}

fn start(forward: SocketAddr, spin: u64, realtime: bool) -> (SocketAddr, Remote) {
    let fields = "outstanding = 64";
    let mut options = Options::new("ssd", deployment("nbd", forward, fields, ""), None, profile());
    options.spin = Nanos(spin);
    let proxy = Proxy::bind(options).expect("an address");
    let (address, remote) = (proxy.addresses()[0], proxy.remote());
    std::thread::spawn(move || {
        if realtime {
            machine::realtime::fifo(FIFO).expect("it went before");
        }
        proxy.run()
    });
    (address, remote)
}

fn main() {
    let rounds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(5);
    let realtime = machine::realtime::fifo(FIFO).is_ok();
    // Children inherit the priority.
    let Some(server) = Server::nbdkit("-t 2 memory 32M") else { return };
    println!(
        "nbdkit memory, 4 KiB reads, one connection, {rounds} rounds, {}",
        if realtime { "all under SCHED_FIFO" } else { "no real-time priority here: expect noise" }
    );
    let ways = [("direct", None), ("proxy", Some(0)), ("proxy, spin 50us", Some(50_000))];
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
    for depth in [1, 16, 64] {
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
            let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
            println!(
                "{depth:>5}  {name:<18} {mean:>9.0} {:>7.2} {:>15} {p99:>9.1} {:>7.2}",
                ratios[ratios.len() / 2],
                format!("{low:.2} to {high:.2}"),
                p99 / first
            );
        }
    }
    ways.iter().flat_map(|way| &way.2).for_each(Remote::stop);
}
