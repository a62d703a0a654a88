//! Servers for tests: real ones on free ports, and one in this process with programmable faults.

#![allow(dead_code, unreachable_pub)]

pub mod nginx;
pub mod volume;

use load::{
    ClientHost, LoadOptions, LoadReport, LoadTarget, LoadWorkload, MemcachedTransport, OfferedLoad, run,
};
use model::OperationError;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};

pub const MS: u64 = 1_000_000;

/// A server of its own process, which ends with this value.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts `program` with arguments for a port, and waits until it listens.
    pub fn start(program: &str, args: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        let path = testkit::program(program)?;
        let address = testkit::free_address();
        let mut command = Command::new(path);
        command.args(args(address.port())).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("a server starts");
        let mut server = Self { child, address };
        testkit::connect_when_ready(&mut server.child, || TcpStream::connect(address));
        Some(server)
    }

    pub fn memcached() -> Option<Self> {
        Self::start("memcached", |port| memcached_arguments(port, 0))
    }

    /// By TCP and UDP at the same port.
    pub fn memcached_with_udp() -> Option<Self> {
        Self::start("memcached", |port| memcached_arguments(port, port))
    }

    /// An empty volume in memory.
    pub fn nbdkit(size: &str) -> Option<Self> {
        let size = size.to_owned();
        Self::start("nbdkit", move |port| {
            let port = port.to_string();
            ["-f", "-i", "127.0.0.1", "-p", &port, "memory", &size].map(String::from).to_vec()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn workload(name: &str, target: LoadTarget, connections: usize, offered: OfferedLoad) -> LoadWorkload {
    LoadWorkload {
        name: name.to_owned(),
        target,
        client: ClientHost::default(),
        connections,
        requests_per_connection: None,
        offered,
    }
}

fn memcached_arguments(port: u16, udp_port: u16) -> Vec<String> {
    let port = port.to_string();
    let udp_port = udp_port.to_string();
    let arguments = ["-l", "127.0.0.1", "-U", &udp_port, "-m", "256", "-u", "nobody", "-p", &port];
    arguments.map(String::from).to_vec()
}

/// Values of memcached by TCP, with short keys.
pub fn values(server: SocketAddr, keys: u32) -> LoadTarget {
    LoadTarget::Memcached { server, transport: MemcachedTransport::Tcp, keys, key_size: None }
}

pub fn volume(server: SocketAddr) -> LoadTarget {
    LoadTarget::Nbd { server, export: String::new() }
}

/// Options without a warm-up, and with a drain that is long enough for a busy machine.
pub fn options(duration_ms: u64) -> LoadOptions {
    let drain = Nanos(20_000 * MS);
    LoadOptions { warm_up: Nanos::ZERO, duration: Nanos(duration_ms * MS), drain, ..LoadOptions::default() }
}

pub fn play(workloads: Vec<LoadWorkload>, options: &LoadOptions) -> Result<LoadReport, OperationError> {
    run(workloads, options, &mut |_| {}, &AtomicBool::new(false))
}

/// A seeded mixture of reads and writes at the instants of a Poisson process.
pub fn poisson(rate: f64, duration_ms: u64, seed: u64, sizes: &[u64]) -> Vec<model::Request> {
    let arrivals = arrivals::RateProcess::Poisson { rate }.arrivals(seed).unwrap();
    let request = |(index, arrival): (u64, Nanos)| {
        let drawn = arrivals::split_seed(seed, index);
        let size = Bytes(sizes[usize::try_from(drawn >> 8).unwrap() % sizes.len()]);
        let op = if drawn.is_multiple_of(2) { model::Op::Read } else { model::Op::Write };
        model::Request { arrival, size, op, offset: None, response: None }
    };
    (0..).zip(arrivals.take_while(|at| at.0 < duration_ms * MS)).map(request).collect()
}
