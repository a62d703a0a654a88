//! Cost of a hop: this proxy beside proxies that only forward, before real servers, in one run.
//!
//! `cargo bench -p enforce --bench peers [-- ROUNDS] [-- --row TEXT]`. Rows are servers and numbers of connections
//! or of requests in flight; `--row` selects those that contain a text. In each round every way to the server is measured in turn, in a
//! closed loop. Shown are medians of the rounds: the rate over the direct one of the same round, CPU time of the
//! proxy per request, and the memory that a connection takes. haproxy, nginx with its stream module, and nutcracker
//! are left out, with a word, where they are not installed. Client, proxy and server share the machine's CPUs.

#[path = "../tests/proxy/mod.rs"]
mod proxy;

use enforce::storage::{Proxy, ProxyOptions};
use proxy::{Server, apart, deployment, profile};
use rustix::event::epoll;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wire::nbd::client::read;

/// Role of this program as a proxy: protocol, server, loops, and `shared` or `own` connections.
const ROLE: &str = "TAILWRIGHT_PEER_PROXY";
/// Time of a measurement.
const TIME: Duration = Duration::from_secs(2);
/// Time before it, in which caches and connections warm up.
const WARM_UP: Duration = Duration::from_millis(300);
const VALUE: usize = 100;
const NBD_SIZE: u32 = 4096;

/// A closed loop of one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Memcached,
    Redis,
    /// With this many requests in flight.
    Nbd(usize),
}

impl Load {
    fn protocol(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Redis => "resp",
            Self::Nbd(_) => "nbd",
        }
    }

    /// Appends the next request to `out`.
    fn ask(self, out: &mut Vec<u8>, number: u64) {
        match self {
            Self::Memcached => out.extend(b"get k\r\n"),
            Self::Redis => out.extend(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
            Self::Nbd(_) => read(out, number, number * 7919 % 4096 * u64::from(NBD_SIZE), NBD_SIZE),
        }
    }

    /// Returns the length of each reply.
    fn reply_len(self) -> usize {
        match self {
            Self::Memcached => format!("VALUE k 0 {VALUE}\r\n").len() + VALUE + 2 + 5,
            Self::Redis => format!("${VALUE}\r\n").len() + VALUE + 2,
            Self::Nbd(_) => 16 + NBD_SIZE as usize,
        }
    }

    fn depth(self) -> usize {
        if let Self::Nbd(depth) = self { depth } else { 1 }
    }

    /// Stores the value that is asked for.
    fn prepare(self, server: SocketAddr) {
        let value = "v".repeat(VALUE);
        let set = match self {
            Self::Memcached => format!("set k 0 0 {VALUE}\r\n{value}\r\n"),
            Self::Redis => format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE}\r\n{value}\r\n"),
            Self::Nbd(_) => return,
        };
        let mut stream = TcpStream::connect(server).expect("the server listens");
        stream.write_all(set.as_bytes()).expect("the server reads");
        let _ = stream.read(&mut [0; 64]).expect("the server answers");
    }

    /// Connects the client with this index. Clients come from eight addresses, as the proxy gives no address more
    /// than half of its places once they are scarce.
    fn connect(self, address: SocketAddr, index: usize) -> TcpStream {
        let last = u8::try_from(1 + index % 8).expect("it is small");
        let stream = match self {
            Self::Nbd(_) => proxy::nbd(address, ""),
            _ => testkit::connect_from(Ipv4Addr::new(127, 0, 0, last), address).expect("it listens"),
        };
        stream.set_nodelay(true).expect("a socket of TCP");
        stream.set_nonblocking(true).expect("a socket");
        stream
    }
}

/// A connection of the closed loop.
struct Caller {
    stream: TcpStream,
    /// Bytes of replies that have arrived, behind the last complete one.
    arrived: usize,
    sent_at: Instant,
}

/// Result of a measurement.
#[derive(Debug, Clone, Copy)]
struct Measured {
    rate: f64,
    p99_ms: f64,
    /// CPU time of the proxy per request, microseconds.
    cpu_us: f64,
    /// CPU time of the thread that schedules per request, microseconds.
    scheduler_us: f64,
    /// Memory of the proxy for each connection, KiB.
    memory_kib: f64,
}

/// Calls through `address` for a while; `process` is the proxy's.
fn measure(
    load: Load,
    address: SocketAddr,
    connections: usize,
    process: Option<u32>,
) -> io::Result<Measured> {
    let memory_before = process.map_or(0.0, memory_kib);
    let watched = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut callers: Vec<Caller> = (0..connections)
        .map(|index| Caller { stream: load.connect(address, index), arrived: 0, sent_at: Instant::now() })
        .collect();
    let mut number = 0;
    let mut out = Vec::new();
    for (index, caller) in callers.iter_mut().enumerate() {
        epoll::add(&watched, &caller.stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        out.clear();
        for _ in 0..load.depth() {
            load.ask(&mut out, number);
            number += 1;
        }
        caller.sent_at = Instant::now();
        caller.stream.write_all(&out)?;
    }
    let begun = Instant::now();
    let mut counted_from = None;
    let mut served = 0;
    let mut latencies = Vec::new();
    let mut events = Vec::with_capacity(1024);
    let mut input = vec![0; 1 << 18];
    loop {
        let now = Instant::now();
        if counted_from.is_none() && now - begun >= WARM_UP {
            (served, counted_from) = (0, Some((now, process.map(cpu_times))));
            latencies.clear();
        }
        if now - begun >= WARM_UP + TIME {
            break;
        }
        events.clear();
        let most = epoll::wait(&watched, rustix::buffer::spare_capacity(&mut events), None);
        most?;
        for event in &events {
            let caller = &mut callers[usize::try_from(event.data.u64()).expect("an index")];
            let count = caller.stream.read(&mut input)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            caller.arrived += count;
            let replies = caller.arrived / load.reply_len();
            if replies == 0 {
                continue;
            }
            caller.arrived %= load.reply_len();
            latencies.push(caller.sent_at.elapsed());
            served += replies;
            out.clear();
            for _ in 0..replies {
                load.ask(&mut out, number);
                number += 1;
            }
            caller.sent_at = Instant::now();
            caller.stream.write_all(&out)?;
        }
    }
    let (from, cpu_before) = counted_from.expect("it has warmed up");
    let took = from.elapsed();
    let cpu_after = process.map(cpu_times);
    let memory = process.map_or(0.0, memory_kib) - memory_before;
    latencies.sort_unstable();
    let p99 = latencies[confidence::nearest_rank(99.0, latencies.len()) - 1];
    let per_request = |times: fn(&(f64, f64)) -> f64| match (&cpu_before, &cpu_after) {
        (Some(before), Some(after)) => (times(after) - times(before)) * 1e6 / served as f64,
        _ => 0.0,
    };
    Ok(Measured {
        rate: served as f64 / took.as_secs_f64(),
        p99_ms: p99.as_secs_f64() * 1e3,
        cpu_us: per_request(|times| times.0),
        scheduler_us: per_request(|times| times.1),
        memory_kib: memory / connections as f64,
    })
}

/// Returns the CPU time of a process and its children, and of the main thread of the process, seconds.
fn cpu_times(process: u32) -> (f64, f64) {
    let nanos = |path: String| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
    };
    let of_process = |process: u32| -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        tasks.map(|task| nanos(format!("{}/schedstat", task.path().display()))).sum()
    };
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    let all = std::iter::once(process).chain(children).map(of_process).sum();
    (all, nanos(format!("/proc/{process}/task/{process}/schedstat")))
}

/// Returns the resident memory of a process, KiB.
fn memory_kib(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}

/// A process that is killed on drop, with its children.
struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Starts a program that listens at `address`, in a process group of its own.
    fn start(command: &mut Command, address: SocketAddr) -> Self {
        use std::os::unix::process::CommandExt as _;
        let child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let peer = Self { child: child.expect("a program starts"), address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(5), "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        peer
    }

    /// Starts this program as a proxy.
    fn ours(load: Load, server: SocketAddr, loops: u8, connections: &str) -> Self {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
        command.env(ROLE, format!("{} {server} {loops} {connections}", load.protocol())).process_group(0);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("this program starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        Self { child, address: line.trim().parse().expect("an address") }
    }

    fn haproxy(folder: &Path, server: SocketAddr) -> Option<Self> {
        let program = testkit::program("haproxy")?;
        let address = testkit::free_address();
        let text = format!(
            "global\n maxconn 6000\ndefaults\n mode tcp\n maxconn 6000\n timeout connect 5s\n timeout client 60s\n \
             timeout server 60s\nlisten l\n bind {address}\n server s {server}\n"
        );
        let file = folder.join("haproxy.cfg");
        std::fs::write(&file, text).expect("a folder to write to");
        Some(Self::start(Command::new(program).arg("-f").arg(&file).arg("-db"), address))
    }

    fn nginx(folder: &Path, server: SocketAddr) -> Option<Self> {
        let program = testkit::program("nginx")?;
        let module = Path::new("/usr/lib/nginx/modules/ngx_stream_module.so");
        if !module.exists() {
            println!("nginx has no stream module: install libnginx-mod-stream");
            return None;
        }
        let address = testkit::free_address();
        let text = format!(
            "load_module {};\nworker_processes 1;\ndaemon off;\npid {}/nginx.pid;\nerror_log {}/nginx.log;\n\
             worker_rlimit_nofile 20000;\nevents {{ worker_connections 16000; }}\n\
             stream {{ server {{ listen {address}; proxy_pass {server}; }} }}\n",
            module.display(),
            folder.display(),
            folder.display()
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, text).expect("a folder to write to");
        let mut command = Command::new(program);
        Some(Self::start(command.arg("-c").arg(&file).arg("-p").arg(folder).stderr(Stdio::null()), address))
    }

    fn nutcracker(folder: &Path, load: Load, server: SocketAddr) -> Option<Self> {
        if matches!(load, Load::Nbd(_)) {
            return None;
        }
        let program =
            ["/usr/sbin/nutcracker", "/usr/bin/nutcracker"].into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            println!("there is no nutcracker: install it");
            return None;
        };
        let address = testkit::free_address();
        let redis = load == Load::Redis;
        let text = format!("p:\n  listen: {address}\n  redis: {redis}\n  servers:\n   - {server}:1\n");
        let file = folder.join("nutcracker.yml");
        std::fs::write(&file, text).expect("a folder to write to");
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).args(["-m", "16384", "-s", &testkit::free_address().port().to_string()]);
        Some(Self::start(command.stderr(Stdio::null()), address))
    }
}

/// Serves as the proxy that the environment describes.
fn serve(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    enforce::storage::raise_open_files();
    let server: SocketAddr = words[1].parse().expect("an address");
    let mut hosts = deployment(words[0], server, "outstanding = 1000", "");
    if words[3] == "own" {
        hosts = apart(hosts);
    }
    let mut options = ProxyOptions::new("ssd", hosts, None, profile());
    options.connections_max = 6000;
    options.loops = words[2].parse().expect("a number");
    let proxy = Proxy::bind(options).unwrap_or_else(|error| panic!("{error}"));
    println!("{}", proxy.addresses()[0]);
    proxy.run().unwrap_or_else(|error| panic!("{error}"));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures all ways to a server, and prints a line for each.
fn compare(name: &str, load: Load, server: SocketAddr, connections: usize, rounds: usize) {
    // Client and proxy have a descriptor for each connection, and the proxy another one to the server.
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    if files < 2 * connections as u64 + 100 {
        return println!("{name}: left out, a process may open {files} files");
    }
    load.prepare(server);
    let folder = tempfile::tempdir().expect("a folder");
    let mut ways = vec![("direct", None)];
    let shares = load == Load::Memcached;
    ways.push((
        if shares { "tailwright, shared" } else { "tailwright" },
        Some(Peer::ours(load, server, 0, "shared")),
    ));
    if shares {
        ways.push(("tailwright, own", Some(Peer::ours(load, server, 0, "own"))));
    }
    ways.push(("tailwright, 2 loops", Some(Peer::ours(load, server, 2, "shared"))));
    ways.extend(Peer::haproxy(folder.path(), server).map(|peer| ("haproxy", Some(peer))));
    ways.extend(Peer::nginx(folder.path(), server).map(|peer| ("nginx", Some(peer))));
    ways.extend(Peer::nutcracker(folder.path(), load, server).map(|peer| ("nutcracker", Some(peer))));
    let mut measured: Vec<Vec<Measured>> = ways.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for ((way, peer), results) in ways.iter().zip(&mut measured) {
            let address = peer.as_ref().map_or(server, |peer| peer.address);
            let result = measure(load, address, connections, peer.as_ref().map(|peer| peer.child.id()));
            results.push(result.unwrap_or_else(|error| panic!("{name}, {way}: {error}")));
        }
    }
    let direct: Vec<f64> = measured[0].iter().map(|result| result.rate).collect();
    for ((way, _), results) in ways.iter().zip(&measured) {
        let shares = results.iter().zip(&direct).map(|(result, direct)| result.rate / direct).collect();
        let of = |value: fn(&Measured) -> f64| median(results.iter().map(value).collect());
        println!(
            "{name:<24} {way:<20} {:>9.0} {:>6.2} {:>8.2} {:>8.1} {:>10.1} {:>8.1}",
            of(|result| result.rate),
            median(shares),
            of(|result| result.p99_ms),
            of(|result| result.cpu_us),
            of(|result| result.scheduler_us),
            // Memory is not given back between rounds.
            results.first().map_or(0.0, |result| result.memory_kib),
        );
    }
}

fn main() {
    if let Ok(role) = std::env::var(ROLE) {
        return serve(&role);
    }
    enforce::storage::raise_open_files();
    let arguments: Vec<String> = std::env::args().collect();
    let rounds = arguments.iter().filter_map(|argument| argument.parse().ok()).next().unwrap_or(3);
    let wanted = arguments.iter().position(|argument| argument == "--row");
    let wanted = wanted.and_then(|place| arguments.get(place + 1)).map_or("", String::as_str);
    println!("medians of {rounds} rounds of {} s, in turn", TIME.as_secs());
    println!(
        "{:<24} {:<20} {:>9} {:>6} {:>8} {:>8} {:>10} {:>8}",
        "row", "way", "requests/s", "share", "p99 ms", "CPU µs", "scheduler", "KiB"
    );
    for connections in [1, 100, 500, 5000] {
        let name = format!("memcached {connections}");
        if name.contains(wanted) {
            let Some(server) = Server::start("memcached", "-u root -l 127.0.0.1 -p PORT -U 0 -c 16000 -t 4")
            else {
                return;
            };
            compare(&name, Load::Memcached, server.address, connections, rounds);
        }
        let name = format!("redis {connections}");
        if name.contains(wanted) {
            let args = "--port PORT --save --bind 127.0.0.1 --maxclients 16000";
            let Some(server) = Server::start("redis-server", args) else { return };
            compare(&name, Load::Redis, server.address, connections, rounds);
        }
    }
    for depth in [1, 4, 16, 64] {
        let name = format!("nbdkit depth {depth}");
        if name.contains(wanted) {
            let Some(server) = Server::nbdkit("memory 32M") else { return };
            compare(&name, Load::Nbd(depth), server.address, 1, rounds);
        }
    }
}
