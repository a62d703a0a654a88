//! Open-loop requests over TCP, and bulk transfers beside them.

use super::{any, within};
use enforce::command::{CommandRunner, Programs, SystemCommand};
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Open-loop requests over one TCP connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) per_s: f64,
    pub(crate) reply_bytes: usize,
    pub(crate) seconds: f64,
}

/// Latencies in seconds from the intended sending times, ascending, and the 99th percentile of the
/// generator's delay.
pub(crate) struct Latencies {
    pub(crate) sorted: Vec<f64>,
    pub lag_p99: f64,
}

impl Latencies {
    pub(crate) fn at(&self, quantile: f64) -> f64 {
        percentile(&self.sorted, quantile)
    }
}

fn percentile(sorted: &[f64], quantile: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = (quantile * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Answers every byte with a reply, over one connection.
pub(crate) fn answer(netns: &str, port: u16, reply_bytes: usize) -> JoinHandle<()> {
    let (opened, ready) = std::sync::mpsc::channel();
    let server = within(netns, move || {
        let listener = TcpListener::bind(any(false, port)).expect("the port is free");
        opened.send(()).expect("somebody waits");
        let (mut stream, _) = listener.accept().expect("a client comes");
        urgent();
        prepare(&stream);
        let reply = vec![0; reply_bytes];
        let mut request = [0; 64];
        while let Ok(count @ 1..) = stream.read(&mut request) {
            for _ in 0..count {
                if stream.write_all(&reply).is_err() {
                    return;
                }
            }
        }
    });
    ready.recv().expect("the server starts");
    server
}

/// Uses Reno, which fills queues and has no pacing; disables the delay of small segments.
fn prepare(stream: &TcpStream) {
    setsockopt(stream, sockopt::TcpCongestion, &"reno".into()).expect("every kernel has reno");
    stream.set_nodelay(true).expect("TCP can");
}

/// Calls the server from a host; latencies count from intended times.
pub(crate) fn call(netns: &str, to: SocketAddr, calls: Calls) -> JoinHandle<Latencies> {
    within(netns, move || {
        let mut stream = TcpStream::connect(to).expect("the server listens");
        prepare(&stream);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let count = (calls.per_s * calls.seconds) as u32;
        let start = Instant::now() + Duration::from_millis(50);
        let due = move |number: u32| start + Duration::from_secs_f64(f64::from(number) / calls.per_s);
        let mut sending = stream.try_clone().expect("a socket can be shared");
        let sender = std::thread::spawn(move || {
            urgent();
            let lag = |number| {
                wait_for(due(number));
                let late = Instant::now().saturating_duration_since(due(number));
                sending.write_all(&[1]).expect("the server reads");
                late.as_secs_f64()
            };
            let mut lags: Vec<f64> = (0..count).map(lag).collect();
            lags.sort_by(f64::total_cmp);
            percentile(&lags, 0.99)
        });
        urgent();
        let mut reply = vec![0; calls.reply_bytes];
        let mut latency = |number| {
            stream.read_exact(&mut reply).expect("the server answers");
            Instant::now().saturating_duration_since(due(number)).as_secs_f64()
        };
        let mut sorted: Vec<f64> = (0..count).map(&mut latency).collect();
        sorted.sort_by(f64::total_cmp);
        Latencies { sorted, lag_p99: sender.join().expect("the sender ends") }
    })
}

/// Waits for the intended sending time of an open-loop generator, which does not shift when a request is
/// late.
pub(crate) fn wait_for(instant: Instant) {
    loop {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

/// Gives the calling thread real-time priority if possible: the test measures the network, not the CPU.
fn urgent() {
    let thread = thread_id();
    let _ = Programs.run(&SystemCommand::new(&format!("chrt --fifo --pid 20 {thread}")));
}

fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Sends bytes over TCP from one host to another until stopped.
pub(crate) fn pour(
    from: &str,
    to: &str,
    address: IpAddr,
    port: u16,
    stop: &Arc<AtomicBool>,
) -> [JoinHandle<()>; 2] {
    let (opened, ready) = std::sync::mpsc::channel();
    let sink = within(to, move || {
        let listener = TcpListener::bind(any(false, port)).expect("the port is free");
        opened.send(()).expect("somebody waits");
        let (mut stream, _) = listener.accept().expect("the source comes");
        let mut buffer = vec![0; 1 << 16];
        while let Ok(1..) = stream.read(&mut buffer) {}
    });
    ready.recv().expect("the sink starts");
    let stop = Arc::clone(stop);
    let source = within(from, move || {
        let mut stream = TcpStream::connect((address, port)).expect("the sink listens");
        prepare(&stream);
        stream.set_write_timeout(Some(Duration::from_millis(100))).expect("not zero");
        while !stop.load(Ordering::Relaxed) {
            match stream.write(&[0; 1 << 14]) {
                Err(error) if ![ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => return,
                _ => {}
            }
        }
    });
    [source, sink]
}
