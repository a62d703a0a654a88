//! Clients that send when they mean to, whatever the server does.

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::io::Read;
use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Priority of threads that send on time.
const PRIORITY: u32 = 20;

/// The last requests are answered in this time.
const ANSWER_TIME: Duration = Duration::from_millis(200);

/// Requests that are spread over connections at random, with Poisson arrivals.
pub(crate) struct Load {
    pub(crate) server: SocketAddr,
    pub(crate) request: &'static [u8],
    pub(crate) connections: usize,
    pub(crate) rate: f64,
    pub(crate) time: Duration,
    pub(crate) seed: u64,
}

/// Numbers that are evenly spread, the same for a seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// An exponential time.
    pub(crate) fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-self.unit().ln())
    }
}

/// Waits until shortly before an instant asleep.
pub(crate) fn sleep_until(instant: Instant) {
    std::thread::sleep(instant.saturating_duration_since(Instant::now()));
}

/// The calling thread runs before all others of its CPU, on time.
pub(crate) fn be_on_time() {
    machine::realtime::fifo(PRIORITY).unwrap_or_else(|error| panic!("{error}"));
    machine::realtime::exact_timers().expect("threads may have exact timers");
}

fn connection(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    stream
}

/// A connection from this address of loopback.
pub(crate) fn connection_from(client: Ipv4Addr, server: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("sockets can be made");
    bind(&socket, &SocketAddr::from((client, 0))).expect("all of 127.0.0.0/8 is here");
    connect(&socket, &server).expect("the server listens");
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).expect("a TCP socket has this option");
    stream
}

/// Sends the requests, and reads answers until each connection has all.
pub(crate) fn open_loop(load: &Load) {
    let streams: Vec<TcpStream> = (0..load.connections).map(|_| connection(load.server)).collect();
    std::thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| read_all(stream));
        }
        let sending = scope.spawn(|| {
            be_on_time();
            let mut random = Random(load.seed);
            let begin = Instant::now();
            let mut due = Duration::ZERO;
            while due < load.time {
                let place = random.next() % load.connections as u64;
                let place = usize::try_from(place).expect("there are few connections");
                sleep_until(begin + due);
                (&streams[place]).write_all(load.request).expect("the server reads");
                due += random.exponential(Duration::from_secs_f64(1.0 / load.rate));
            }
        });
        sending.join().expect("the server reads");
        // The last ones are answered.
        std::thread::sleep(ANSWER_TIME);
        for stream in &streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
}

/// Reads what comes until the server closes the connection.
pub(crate) fn read_all(mut stream: &TcpStream) {
    machine::realtime::fifo(PRIORITY).unwrap_or_else(|error| panic!("{error}"));
    let mut buffer = vec![0; 1 << 16];
    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
}
