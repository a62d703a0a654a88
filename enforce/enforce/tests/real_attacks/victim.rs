//! The client of the highest priority: a request every millisecond, some of them on a new connection.

use crate::proxy::nbd_on;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use wire::nbd::client::read;

const GOLD: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
/// Below the proxy.
const CLIENT_FIFO: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(1);
/// One request of this many uses a new connection.
const CONNECTS: u64 = 50;
/// Time within which a request is served.
const PATIENCE: Duration = Duration::from_secs(3);
/// Key and value of memcached.
pub const KEY: &str = "small";
pub const VALUE: &[u8] = &[b'v'; 100];

/// Latencies of a client.
#[derive(Debug, Clone, Default)]
pub struct VictimSample {
    /// In milliseconds, ascending; one that was not served counts as its patience.
    pub latencies: Vec<f64>,
    pub served: usize,
    /// True if it ran under real-time priority.
    pub is_realtime: bool,
}

impl VictimSample {
    pub fn p99(&self) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get(last * 99 / 100).copied().unwrap_or(f64::NAN)
    }

    pub fn asked(&self) -> usize {
        self.latencies.len()
    }
}

fn connect(target: SocketAddr, is_nbd: bool) -> io::Result<TcpStream> {
    let stream = testkit::connect_from(GOLD, target)?;
    let stream = if is_nbd { nbd_on(stream, "")? } else { stream };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn ask(stream: &mut TcpStream, is_nbd: bool, cookie: u64) -> io::Result<()> {
    if is_nbd {
        let mut request = Vec::new();
        read(&mut request, cookie, cookie % 1000 * 4096, 4096);
        stream.write_all(&request)?;
        return stream.read_exact(&mut [0; 16 + 4096]);
    }
    stream.write_all(format!("get {KEY}\r\n").as_bytes())?;
    let expected = format!("VALUE {KEY} 0 100\r\n").len() + VALUE.len() + "\r\nEND\r\n".len();
    stream.read_exact(&mut vec![0; expected])
}

/// Measures a client for a time, on a thread of its own.
pub fn measure(target: SocketAddr, is_nbd: bool, time: Duration) -> VictimSample {
    let measured = thread::spawn(move || {
        let is_realtime = machine::realtime::fifo(CLIENT_FIFO).is_ok();
        let mut sample = VictimSample { is_realtime, ..VictimSample::default() };
        let mut stream = None;
        let begun = Instant::now();
        let mut turn = 0;
        while begun.elapsed() < time {
            if turn % CONNECTS == 0 {
                stream = None;
            }
            let asked = Instant::now();
            let answered = stream
                .take()
                .map_or_else(|| connect(target, is_nbd), Ok)
                .and_then(|mut stream| ask(&mut stream, is_nbd, turn).map(|()| stream));
            let took = if answered.is_ok() { asked.elapsed() } else { PATIENCE };
            sample.served += usize::from(answered.is_ok());
            stream = answered.ok();
            sample.latencies.push(took.as_secs_f64() * 1e3);
            turn += 1;
            thread::sleep(INTERVAL.saturating_sub(asked.elapsed()));
        }
        sample.latencies.sort_unstable_by(f64::total_cmp);
        sample
    });
    measured.join().expect("the client does not panic")
}
