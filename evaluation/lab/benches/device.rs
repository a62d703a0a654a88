//! Accuracy of the emulated SSD over the network: throughput against the model with 1, k and 4k requests
//! outstanding, and the latency that the network adds to a single request.
//!
//! `chrt -f 10 cargo bench -p lab --bench device` measures it with real-time priority.

use lab::device::{LinearServiceTime, SsdModel};
use lab::nbd::{ExportedVolume, NbdServer, NbdServerConfig};
use model::Op;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use units::{Bytes, Nanos};
use wire::nbd::client::{self, ClientHandshake, ExportOption, HandshakeStep};

const RUN: Duration = Duration::from_secs(2);

fn main() {
    let read = LinearServiceTime::new(Nanos(400_000), 2000);
    let write = LinearServiceTime::new(Nanos(700_000), 5000);
    let model = SsdModel { channels: 4, read, write, bandwidth: None };
    println!("emulated SSD: {model}; {} s for each row", RUN.as_secs());
    println!(
        "{:<6} {:>8} {:>6} {:>9} {:>12} {:>12} {:>8} {:>14} {:>14}",
        "op", "size", "depth", "spin", "model req/s", "measured", "ratio", "p50 - model", "p99 - model"
    );
    for spin in [Nanos(0), Nanos(20_000)] {
        let export = ExportedVolume { name: "ssd".into(), size: 1 << 30 };
        let config = NbdServerConfig { model, exports: vec![export], spin };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = NbdServer::start(listener, config, Box::new(|_| {})).expect("a server");
        for (op, size) in [(Op::Read, 4096), (Op::Write, 4096), (Op::Read, 65536), (Op::Write, 65536)] {
            for depth in [1, model.channels, 4 * model.channels] {
                row(&server, &model, op, Bytes(size), depth, spin);
            }
        }
    }
}

fn row(server: &NbdServer, model: &SsdModel, op: Op, size: Bytes, depth: u32, spin: Nanos) {
    let (count, mut latencies) = closed_loop(server, op, size, depth);
    let measured = count as f64 / RUN.as_secs_f64();
    let expected = model.throughput(op, size, depth);
    // Each waits for those before it in its channel.
    let each = f64::from(depth) / expected;
    latencies.sort_unstable();
    let beyond = |part: f64| {
        let at = ((latencies.len() - 1) as f64 * part).round();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let found = latencies[at as usize];
        format!("{:.0} us", (found.as_secs_f64() - each) * 1e6)
    };
    println!(
        "{:<6} {:>8} {depth:>6} {:>9} {expected:>12.0} {measured:>12.0} {:>8.4} {:>14} {:>14}",
        format!("{op:?}"),
        size.to_string(),
        spin.to_string(),
        measured / expected,
        beyond(0.5),
        beyond(0.99),
    );
}

/// Keeps `depth` requests outstanding. Returns the number that were answered in the counted time, and
/// their latencies.
fn closed_loop(server: &NbdServer, op: Op, size: Bytes, depth: u32) -> (u64, Vec<Duration>) {
    let mut stream = connect(server);
    let data = vec![7; usize::try_from(size.0).expect("small")];
    let mut sent = vec![Instant::now(); depth as usize];
    let mut out = Vec::new();
    let mut head = [0; 16];
    let mut back = vec![0; data.len()];
    let ask = |out: &mut Vec<u8>, cookie: u64| match op {
        Op::Read => client::read(out, cookie, cookie * size.0, u32::try_from(size.0).expect("small")),
        Op::Write => client::write(out, cookie, cookie * size.0, &data),
    };
    (0..u64::from(depth)).for_each(|cookie| ask(&mut out, cookie));
    let mut count = 0;
    let mut latencies = Vec::new();
    let mut start = None;
    stream.write_all(&out).expect("the server is there");
    loop {
        stream.read_exact(&mut head).expect("the server answers");
        if op == Op::Read {
            stream.read_exact(&mut back).expect("the server answers");
        }
        let now = Instant::now();
        // Replies of the first 50 ms are not counted: the queue is not stationary yet.
        let begin = *start.get_or_insert(now + Duration::from_millis(50));
        let cookie = u64::from_be_bytes(head[8..].try_into().expect("eight bytes"));
        let asked = &mut sent[usize::try_from(cookie).expect("small")];
        if now >= begin + RUN {
            return (count, latencies);
        }
        if now >= begin {
            count += 1;
            latencies.push(now - *asked);
        }
        *asked = now;
        out.clear();
        ask(&mut out, cookie);
        stream.write_all(&out).expect("the server is there");
    }
}

fn connect(server: &NbdServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket");
    let mut handshake = ClientHandshake::new(b"ssd", ExportOption::Go);
    let mut input = Vec::new();
    let mut out = Vec::new();
    loop {
        match handshake.advance(&input, &mut out).expect("the export is granted") {
            HandshakeStep::Used(used) => drop(input.drain(..used)),
            HandshakeStep::Done { .. } => return stream,
            HandshakeStep::NeedMore { .. } => {
                stream.write_all(&out).expect("the server is there");
                out.clear();
                let mut piece = [0; 500];
                let read = stream.read(&mut piece).expect("the server answers");
                input.extend(&piece[..read]);
            }
        }
    }
}
