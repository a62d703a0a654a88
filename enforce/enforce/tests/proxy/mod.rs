//! A proxy on a separate thread, before a server on a loopback address.

#![allow(dead_code, unreachable_pub, reason = "several test programs use parts of it")]

use enforce::deployment::Deployment;
use enforce::storage::{Proxy, ProxyHandle, ProxyOptions, ProxyReport};
use model::{OperationError, Policy};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::nbd::client::{ClientHandshake, ExportOption, HandshakeStep, read};
use workload::device::StorageProfile;

/// Device time of 1 ms for 4 KiB, and in proportion.
pub const PROFILE: &str = r#"{ "bandwidthTable": [
    { "requestSize": 512, "readBandwidth": 4096000, "writeBandwidth": 4096000 },
    { "requestSize": 1048576, "readBandwidth": 4096000, "writeBandwidth": 4096000 } ] }"#;

pub fn profile() -> StorageProfile {
    StorageProfile::from_json(PROFILE).expect("the profile of the tests is right")
}

/// Returns hosts with one server, whose storage has `fields`, and `clients`.
pub fn deployment(protocol: &str, forward: SocketAddr, fields: &str, clients: &str) -> Deployment {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let text = testkit::one_server_hosts(&[(protocol, listen, forward)], fields, clients);
    Deployment::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Gives every client a connection of its own to the server.
pub fn apart(mut deployment: Deployment) -> Deployment {
    let storage = deployment.servers.iter_mut().filter_map(|server| server.storage.as_mut());
    storage.flat_map(|storage| &mut storage.front).for_each(|front| front.share = false);
    deployment
}

/// Name, level, limits as ⟨seconds of device time per second, seconds⟩.
pub type Promise<'a> = (&'a str, u32, &'a [(f64, f64)]);

pub fn policy(workloads: &[Promise<'_>]) -> Policy {
    let limit = |(rate, burst): &(f64, f64)| {
        format!(
            r#"{{ "stage": "storage", "rate": {rate}, "burst": {burst}, "rate_per_s": {rate}, "burst_work": {burst} }}"#
        )
    };
    let workload = |(name, level, limits): &Promise<'_>| {
        let limits = limits.iter().map(limit).collect::<Vec<_>>().join(",");
        format!(
            r#"{{ "name": "{name}", "admitted": true, "server": "ssd", "priority": {level}, "slo": "99% < 1s",
            "slo_percentile": 99.0, "slo_s": 1.0, "bound_s": 0.5, "limits": [{limits}] }}"#
        )
    };
    let workloads = workloads.iter().map(workload).collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{ "format": "tailwright-policy-1", "policy_name": "tests", "servers": [{{ "name": "ssd", "class": "ssd",
        "network_bytes_per_s": 1e9, "storage_profile": "p" }}], "workloads": [{workloads}] }}"#
    );
    Policy::from_json(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Number of loops for the proxies of a whole test program, so that all its cases also play with loops.
fn loops_asked_for() -> u8 {
    std::env::var("TAILWRIGHT_TEST_LOOPS").ok().map_or(0, |text| text.parse().expect("a number of loops"))
}

pub struct Running {
    pub address: SocketAddr,
    pub remote: ProxyHandle,
    thread: Option<JoinHandle<Result<ProxyReport, OperationError>>>,
}

impl Running {
    /// Starts a proxy, with loops if the environment asks for them.
    pub fn start(mut options: ProxyOptions) -> Self {
        options.loops = options.loops.max(loops_asked_for());
        let proxy = Proxy::bind(options).unwrap_or_else(|error| panic!("{error}"));
        let address = proxy.addresses()[0];
        let remote = proxy.handle();
        Self { address, remote, thread: Some(std::thread::spawn(move || proxy.run())) }
    }

    /// Starts a proxy before a server, without a policy.
    pub fn plain(protocol: &str, forward: SocketAddr) -> Self {
        Self::start(ProxyOptions::new("ssd", deployment(protocol, forward, "", ""), None, profile()))
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the proxy listens");
        stream.set_nodelay(true).expect("a socket of TCP");
        // Lets a failing test end.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream
    }

    /// Ends the proxy once everything is answered. In its observations, the sending time is that of the
    /// proxy's dispatch.
    pub fn drain(mut self) -> ProxyReport {
        self.remote.drain();
        let mut report = self.join();
        let stages = report.observations.stage_times.chunks(2);
        for (request, stages) in report.observations.requests.iter_mut().zip(stages) {
            request.sent = request.intended + stages[0];
        }
        report
    }

    pub fn stop(mut self) -> ProxyReport {
        self.remote.stop();
        self.join()
    }

    fn join(&mut self) -> ProxyReport {
        let thread = self.thread.take().expect("it is joined once");
        thread.join().expect("the proxy does not panic").expect("it can wait for events")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.remote.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server that is killed on drop.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts a program with PORT in `args` replaced by a free port; it listens when this returns. `None`
    /// without the program.
    pub fn start(program: &str, args: &str) -> Option<Self> {
        let path = testkit::program(program)?;
        Some(Self::start_at(&path, args, testkit::free_address()))
    }

    /// The same for a server whose complaints about its clients are of no interest.
    pub fn start_quietly(program: &str, args: &str) -> Option<Self> {
        let path = testkit::program(program)?;
        Some(Self::start_with(&path, args, testkit::free_address(), Stdio::null()))
    }

    pub fn start_at(path: &std::path::Path, args: &str, address: SocketAddr) -> Self {
        Self::start_with(path, args, address, Stdio::inherit())
    }

    fn start_with(path: &std::path::Path, args: &str, address: SocketAddr, errors: Stdio) -> Self {
        let args = args.replace("PORT", &address.port().to_string());
        let mut command = Command::new(path);
        command.args(args.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().expect("a server starts");
        let mut server = Self { child, address };
        testkit::connect_when_ready(&mut server.child, || TcpStream::connect(address));
        server
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub fn memcached() -> Option<Self> {
        Self::start("memcached", "-u root -l 127.0.0.1 -p PORT -U 0 -t 1 -m 256 -I 8m")
    }

    pub fn redis() -> Option<Self> {
        // Nothing is saved: it is killed long before.
        Self::start(
            "redis-server",
            "--bind 127.0.0.1 --port PORT --save 90000000 1 --dir /tmp --dbfilename no-such.rdb --enable-debug-command yes",
        )
    }

    pub fn nbdkit(args: &str) -> Option<Self> {
        Self::start("nbdkit", &format!("-f -i 127.0.0.1 -p PORT {args}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// Sends and reads until the answer ends with `end`.
pub fn say(stream: &mut TcpStream, text: &[u8], end: &[u8]) -> Vec<u8> {
    stream.write_all(text).expect("the proxy takes it");
    let mut answer = Vec::new();
    let mut piece = [0; 65536];
    while !answer.ends_with(end) {
        let read = stream.read(&mut piece).expect("an answer");
        assert!(read > 0, "it hung up after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
    }
    answer
}

/// Opens a connection with a granted export.
pub fn nbd(address: SocketAddr, export: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    nbd_on(stream, export).expect("the server grants it")
}

/// Completes the handshake of a connection.
pub fn nbd_on(mut stream: TcpStream, export: &str) -> std::io::Result<TcpStream> {
    let mut handshake = ClientHandshake::new(export.as_bytes(), ExportOption::Go);
    let mut input = Vec::new();
    let mut out = Vec::new();
    loop {
        let progress = handshake.advance(&input, &mut out).map_err(std::io::Error::other)?;
        stream.write_all(&out)?;
        out.clear();
        match progress {
            HandshakeStep::NeedMore { .. } => {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece)?;
                if count == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                input.extend_from_slice(&piece[..count]);
            }
            HandshakeStep::Used(count) => drop(input.drain(..count)),
            HandshakeStep::Done { .. } => return Ok(stream),
        }
    }
}

/// Size of a request of 1 ms of device time, by the profile of the tests.
const SIZE: u32 = 4096;

/// Sends `count` reads at once, and takes all replies.
pub fn flood(address: SocketAddr, export: &str, count: u64) -> TcpStream {
    let mut stream = nbd(address, export);
    let mut out = Vec::new();
    (0..count).for_each(|cookie| read(&mut out, cookie, cookie % 1000 * 4096, SIZE));
    stream.write_all(&out).expect("the proxy reads");
    let mut replies = vec![0; usize::try_from(count).unwrap() * (16 + SIZE as usize)];
    stream.read_exact(&mut replies).expect("every request is answered");
    stream
}
