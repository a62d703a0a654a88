//! Real traffic between network namespaces: greedy UDP senders, a receiver that keeps the kernel's time stamps, and
//! requests over TCP in open loop.
//!
//! A veth device hands a packet to its peer, and the kernel stamps it, while the queue of the sender's device lets
//! it go: the stamps are those of the shaper, whatever the receiving thread is delayed by. Their error is the order of
//! a microsecond.
#![allow(dead_code, reason = "tests and benchmark use their parts")]

use model::{POLICY_FORMAT, Policy, PolicyServer, PolicyWorkload, RateLimit, Stage, StageLimit};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tailwright_enforce::command::{Command, Programs, Run};
use tailwright_enforce::lab::{self, Lab};
use tailwright_enforce::network::{Deployment, Options, Report, Store, WantedHost, apply, wanted};

/// Of Ethernet, IPv4 and UDP, which a token bucket counts and a socket does not.
pub(crate) const HEADERS: u64 = 14 + 20 + 8;
/// What a UDP sender puts into a packet.
pub(crate) const PAYLOAD: usize = 1400;

/// Why traffic tests cannot run here.
pub(crate) fn lacking() -> Option<String> {
    if !tailwright_enforce::command::may_configure_networks() {
        return Some("without root no network namespaces can be made".into());
    }
    let abilities = match tailwright_enforce::network::probe(&mut Programs) {
        Ok(abilities) => abilities,
        Err(fault) => return Some(fault.to_string()),
    };
    let wanted = |name: &str| ["veth", "bridge"].contains(&name);
    let missing = abilities.iter().find(|a| (a.needed || wanted(a.name)) && a.lack.is_some());
    missing.map(|a| format!("this kernel lacks {}: {}", a.name, a.lack.as_deref().unwrap_or_default()))
}

/// A lab that goes with the value, and a folder for states.
pub(crate) struct Ground {
    pub(crate) lab: Lab,
    pub(crate) state: std::path::PathBuf,
}

impl Ground {
    pub(crate) fn new(names: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("twn-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let lab = Lab::up(&mut Programs, &prefix, names).unwrap_or_else(|fault| panic!("{fault}"));
        Self { lab, state: std::env::temp_dir().join(format!("{prefix}-state")) }
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(&self.state)
    }

    pub(crate) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("the lab has it").netns
    }

    pub(crate) fn ipv4(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("the lab has it").ipv4.into()
    }

    pub(crate) fn run(&self, line: &str) -> String {
        Programs.run(&Command::new(line)).unwrap_or_else(|fault| panic!("{line}: {fault}"))
    }

    /// Text of a hosts file: every host with its device at `link`, the switch, and the lines given.
    pub(crate) fn hosts_file(&self, link: &str, switch: Option<(&str, &str)>, more: &str) -> String {
        let mut text = String::new();
        for host in &self.lab.hosts {
            text += &format!(
                "[[host]]\nname = \"{}\"\nnetns = \"{}\"\ndevice.eth0 = \"{link}\"\n",
                host.name, host.netns
            );
        }
        if let Some((to, rate)) = switch {
            let port = &self.lab.host(to).expect("the lab has it").port;
            let netns = &self.lab.switch;
            text += &format!(
                "[[host]]\nname = \"switch\"\nnetns = \"{netns}\"\nswitch = true\ndevice.{port} = \"{rate}\"\n"
            );
        }
        text + more
    }

    pub(crate) fn apply_all(&self, policy: &Policy, hosts: &str) -> Vec<Report> {
        let report = |host: &WantedHost| {
            apply(&mut Programs, host, &self.store(), Options::default())
                .unwrap_or_else(|fault| panic!("{fault}"))
        };
        self.wanted(policy, hosts).iter().map(report).collect()
    }

    pub(crate) fn wanted(&self, policy: &Policy, hosts: &str) -> Vec<WantedHost> {
        let deployment = Deployment::parse(hosts).unwrap_or_else(|fault| panic!("{fault}\n{hosts}"));
        wanted(policy, &deployment).unwrap_or_else(|fault| panic!("{fault}")).hosts
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = self.lab.down(&mut Programs);
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

#[derive(Clone)]
/// A workload of a test policy: name, priority, and ⟨bytes/s, bytes⟩ at network-in and network-out.
pub(crate) struct Tenant<'a>(pub(crate) &'a str, pub(crate) u32, pub(crate) &'a [(f64, f64)]);

/// All on the server `s`.
pub(crate) fn policy(tenants: &[Tenant]) -> Policy {
    let workload = |Tenant(name, priority, pairs): &Tenant| PolicyWorkload {
        name: (*name).into(),
        admitted: true,
        server: Some("s".into()),
        priority: Some(*priority),
        priority_by_stage: None,
        slo: "99% < 1s".parse().expect("an SLO"),
        slo_percentile: 99.0,
        slo_s: 1.0,
        bound_s: Some(0.5),
        limits: [Stage::NetworkIn, Stage::NetworkOut]
            .iter()
            .flat_map(|stage| limits(*stage, pairs))
            .collect(),
        refusal: None,
    };
    Policy {
        format: POLICY_FORMAT.into(),
        policy_name: "by hand".into(),
        servers: vec![PolicyServer {
            name: "s".into(),
            class: "s".into(),
            network_bytes_per_s: 12.5e6,
            storage_profile: "none".into(),
        }],
        workloads: tenants.iter().map(workload).collect(),
    }
}

fn limits(stage: Stage, pairs: &[(f64, f64)]) -> Vec<StageLimit> {
    let limit = RateLimit::default();
    pairs
        .iter()
        .map(|&(rate_per_s, burst_work)| StageLimit { stage, limit, rate_per_s, burst_work })
        .collect()
}

/// Runs in a thread of its own within a network namespace.
pub(crate) fn within<T: Send + 'static>(
    netns: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let netns = netns.to_owned();
    std::thread::spawn(move || {
        lab::enter(&netns).unwrap_or_else(|fault| panic!("{fault}"));
        work()
    })
}

/// Sends UDP packets as fast as the queue takes them, until told to stop.
pub(crate) fn greedy(netns: &str, to: SocketAddr, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let stop = Arc::clone(stop);
    within(netns, move || {
        let socket = UdpSocket::bind(any(to.is_ipv6(), 0)).expect("a port is free");
        // Less than a queue of 1000 packets: the sender waits, and nothing is dropped at its own host.
        setsockopt(&socket, sockopt::SndBufForce, &500_000).expect("root may");
        socket.set_write_timeout(Some(Duration::from_millis(100))).expect("not zero");
        while !stop.load(Ordering::Relaxed) {
            // Refused: nobody listens yet. Would block: the queue is full.
            let _ = socket.send_to(&[0; PAYLOAD], to);
        }
    })
}

fn any(ipv6: bool, port: u16) -> SocketAddr {
    if ipv6 { format!("[::]:{port}") } else { format!("0.0.0.0:{port}") }.parse().expect("an address")
}

/// Arrivals of frames: nanoseconds and bytes.
pub(crate) type Arrivals = Vec<(u64, u64)>;

/// Records what comes to a UDP port until told to stop. Returns when the port is open.
pub(crate) fn record(netns: &str, port: u16, ipv6: bool, stop: &Arc<AtomicBool>) -> JoinHandle<Arrivals> {
    let stop = Arc::clone(stop);
    let (opened, ready) = std::sync::mpsc::channel();
    let recorder = within(netns, move || {
        let socket = UdpSocket::bind(any(ipv6, port)).expect("the port is free");
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).expect("the kernel stamps");
        setsockopt(&socket, sockopt::RcvBufForce, &64_000_000).expect("root may");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("not zero");
        until_stamped(&socket, port, ipv6);
        opened.send(()).expect("somebody waits");
        let mut arrivals = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            arrivals.extend(arrival(&socket));
        }
        arrivals
    });
    ready.recv().expect("the recorder starts");
    recorder
}

/// Returns when the kernel stamps packets as they come: it begins some time after it was asked to, and until then
/// a packet gets the time at which it is read. Told apart by packets to oneself that are left waiting.
fn until_stamped(socket: &UdpSocket, port: u16, ipv6: bool) {
    const WAIT: Duration = Duration::from_millis(10);
    let itself: SocketAddr =
        if ipv6 { format!("[::1]:{port}") } else { format!("127.0.0.1:{port}") }.parse().expect("an address");
    for _ in 0..500 {
        socket.send_to(&[0], itself).expect("the loopback device is up");
        std::thread::sleep(WAIT);
        let read = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let stamp = arrival(socket).map_or(u128::MAX, |(stamp, _)| u128::from(stamp));
        if stamp + WAIT.as_nanos() / 2 < read.as_nanos() {
            return;
        }
    }
    panic!("the kernel does not stamp packets as they come");
}

fn arrival(socket: &UdpSocket) -> Option<(u64, u64)> {
    let mut buffer = [0u8; 2048];
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())
            .ok()?;
    let stamp = message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    })?;
    Some((u64::try_from(stamp.as_nanos()).expect("this century"), message.bytes as u64 + HEADERS))
}

/// How traffic keeps to a token bucket.
#[derive(Debug)]
pub(crate) struct Conformance {
    /// The largest of bytes / (r·t + b + a packet) over all windows of 100 ms and longer.
    pub(crate) fullest: f64,
    /// Long-run rate / r, from when the burst is spent.
    pub(crate) steady: f64,
}

/// Over windows of at least 100 ms, however they lie.
pub(crate) fn conformance(arrivals: &[(u64, u64)], rate: f64, burst: f64) -> Conformance {
    const WINDOW_NS: u64 = 100_000_000;
    let packet = arrivals.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0) as f64;
    let (mut fullest, mut before) = (0f64, vec![0u64]);
    arrivals.iter().for_each(|(_, bytes)| before.push(before[before.len() - 1] + bytes));
    for first in 0..arrivals.len() {
        for last in first..arrivals.len() {
            let length = arrivals[last].0.saturating_sub(arrivals[first].0);
            if length >= WINDOW_NS {
                let bytes = (before[last + 1] - before[first]) as f64;
                fullest = fullest.max(bytes / (rate * length as f64 / 1e9 + burst + packet));
            }
        }
    }
    Conformance { fullest, steady: steady(arrivals, burst) / rate }
}

/// Bytes per second once the burst is spent twice over and half a second has passed.
fn steady(arrivals: &[(u64, u64)], burst: f64) -> f64 {
    let Some(&(start, _)) = arrivals.first() else { return 0.0 };
    let mut sum = 0.0;
    let spent = arrivals.iter().position(|(at, bytes)| {
        sum += *bytes as f64;
        sum > 2.0 * burst && at - start > 500_000_000
    });
    let rest = &arrivals[spent.unwrap_or(arrivals.len())..];
    let [first, .., last] = rest else { return 0.0 };
    // The first opens the interval and is not in it.
    let bytes: u64 = rest[1..].iter().map(|(_, bytes)| bytes).sum();
    bytes as f64 / ((last.0 - first.0) as f64 / 1e9)
}

/// Requests over one TCP connection in open loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) per_s: f64,
    pub(crate) reply_bytes: usize,
    pub(crate) seconds: f64,
}

/// Latencies in seconds from the time at which each request was to be sent, ascending, and the 99th percentile of
/// how late the generator was.
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
        let (reply, mut request) = (vec![0; reply_bytes], [0; 64]);
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

/// Reno, which fills queues and knows no rates of its own; no delay for small segments.
fn prepare(stream: &TcpStream) {
    setsockopt(stream, sockopt::TcpCongestion, &"reno".into()).expect("every kernel has reno");
    stream.set_nodelay(true).expect("TCP can");
}

/// Calls the server from a host; latencies from intended times.
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
                std::thread::sleep(due(number).saturating_duration_since(Instant::now()));
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

/// Real-time priority for the calling thread, where it is to be had: what is measured is the network, not the CPU.
fn urgent() {
    let thread = thread_id();
    let _ = Programs.run(&Command::new(&format!("chrt --fifo --pid 20 {thread}")));
}

fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Pours bytes over TCP from one host to another until told to stop.
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

/// A tenant that owns its limits.
pub(crate) type Workload<'a> = (&'a str, u32, Vec<(f64, f64)>);
