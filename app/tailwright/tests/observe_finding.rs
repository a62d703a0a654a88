//! The sentence that `tailwright observe` begins with, judged by those who know what was done to the server. Takes root.
//!
//! The machine may be busy with other things. So the server runs on the last CPU, and where nothing is injected it has a
//! real-time policy, and the kernel's own count of how long its thread waited for the CPU says whether that held.

mod support;

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::Folder;
use support::observer::printed_document;
use support::servers::{Running, server_at, signal};

/// The time of an observation in which something is injected.
const OBSERVED: Duration = Duration::from_secs(4);

/// Clients that nothing is done to, and requests of each in a second. Each waits for its answers, so that of each one
/// request meets a pause of the server, however long that is: with one client that would be less than one in a hundred.
const CLIENTS: usize = 4;
const RATE: u64 = 400;

/// The policy of a server that others of this machine leave alone.
const REAL_TIME: &[&str] = &["chrt", "-f", "50"];

/// One test at a time has the last CPU.
static LAST_CPU: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    LAST_CPU.lock().unwrap_or_else(PoisonError::into_inner)
}

fn last_cpu() -> String {
    (std::thread::available_parallelism().expect("there are CPUs").get() - 1).to_string()
}

fn wait(time: Duration) {
    let end = Instant::now() + time;
    while let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

/// A program that runs on the last CPU until the value is dropped.
fn on_last_cpu(program: &[&str]) -> Running {
    let mut command = Command::new("taskset");
    command.args(["-c", &last_cpu()]).args(program).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().expect("util-linux is installed"))
}

/// A memcached with one thread on the last CPU, with values of 100 bytes (`small`) and 1,000,000 (`large`).
fn memcached(policy: &[&str]) -> Option<(Running, SocketAddr)> {
    testkit::program("memcached")?;
    testkit::program("taskset")?;
    let address = testkit::free_address();
    let cpu = last_cpu();
    let words = [
        &["-c", &cpu],
        policy,
        &["memcached", "-t", "1", "-m", "64", "-I", "4m", support::servers::MEMCACHED],
    ];
    let (running, address) = server_at(address, "taskset", &words.concat().join(" "))?;
    let mut stream = TcpStream::connect(address).expect("it listens");
    for (key, bytes) in [("small", 100), ("large", 1_000_000)] {
        write!(stream, "set {key} 0 0 {bytes}\r\n").expect("it reads");
        stream.write_all(&vec![b'x'; bytes]).and_then(|()| stream.write_all(b"\r\n")).expect("it reads");
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).expect("it answers");
        assert_eq!(&answer, b"STORED\r\n");
    }
    Some((running, address))
}

/// Asks a memcached for values at a steady rate, one request at a time, until it is over.
fn ask(server: SocketAddr, is_over: &AtomicBool, key: impl Fn(u64) -> &'static str) {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let begin = Instant::now();
    let mut answer = vec![0; 1 << 20];
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        number += 1;
        wait(Duration::from_micros(number * 1_000_000 / RATE).saturating_sub(begin.elapsed()));
        write!(stream, "get {}\r\n", key(number)).expect("the server reads");
        let mut filled = 0;
        while !answer[..filled].ends_with(b"END\r\n") {
            let count = stream.read(&mut answer[filled..]).expect("the server answers");
            assert!(count > 0, "the server goes on");
            filled += count;
        }
    }
}

/// The finding of an observation of a server while clients ask and something is injected.
fn finding(server: SocketAddr, clients: impl Fn(&AtomicBool) + Sync, injected: impl FnOnce()) -> Value {
    /// Ends the clients also when this thread fails, which otherwise waits for them.
    struct EndOnDrop<'a>(&'a AtomicBool);
    impl Drop for EndOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = EndOnDrop(&is_over);
        let asking = scope.spawn(|| clients(&is_over));
        // The first requests of a connection are not usual.
        wait(Duration::from_millis(200));
        let program = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        let child: Child = support::observer::observing(program, server.port(), &["--json"]);
        injected();
        signal(&child, "INT");
        let view = printed_document(child, 0);
        drop(end);
        asking.join().expect("clients go on");
        view["finding"].clone()
    })
}

fn usual_clients(server: SocketAddr) -> impl Fn(&AtomicBool) + Sync {
    move |is_over| {
        std::thread::scope(|scope| {
            (0..CLIENTS).for_each(|_| {
                scope.spawn(|| ask(server, is_over, |_| "small"));
            });
        });
    }
}

fn sentence(finding: &Value) -> &str {
    finding["sentence"].as_str().expect("there is a sentence")
}

#[track_caller]
fn check_named(finding: &Value, causes: &[&str], words: &str) {
    println!("{}", sentence(finding));
    assert_eq!(finding["verdict"], "unusual", "{finding:#}");
    let cause = finding["dominating"]["cause"].as_str().expect("a cause dominates");
    assert!(causes.contains(&cause), "{finding:#}");
    assert!(sentence(finding).contains(words), "{words}: {}", sentence(finding));
    assert!(sentence(finding).contains("; next: "), "{}", sentence(finding));
}

/// What the kernel counted for the threads of a process: the time in which they waited for a CPU, in nanoseconds.
fn waited_ns(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten();
    let waited = |path: PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or_default()
    };
    threads.map(|thread| waited(thread.path())).sum()
}

/// CPU time that the hypervisor took.
fn stolen() -> u64 {
    machine::cpu_time::stolen().unwrap_or_default()
}

/// A thread of a high priority on the last CPU that measures how much later than due it wakes up: also when the machine
/// itself does not run, which the kernel does not always count.
struct Canary {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Duration>,
}

impl Canary {
    const PERIOD: Duration = Duration::from_millis(2);
    /// Delay of a timer and a wake-up on a quiet CPU, at most.
    const USUAL: Duration = Duration::from_micros(150);

    fn start() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let told = Arc::clone(&is_over);
        let cpu = last_cpu().parse().expect("a number");
        let thread = std::thread::spawn(move || {
            machine::affinity::pin(cpu).expect("there is this CPU");
            let _ = machine::realtime::fifo(80);
            let mut late = Duration::ZERO;
            while !told.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(Self::PERIOD);
                late += begun.elapsed().saturating_sub(Self::PERIOD + Self::USUAL);
            }
            late
        });
        Self { is_over, thread }
    }

    /// Returns the sum of its delays.
    fn end(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it measures")
    }
}

/// Counts of disturbances that no finding is about, independent of it.
struct Disturbance {
    process: u32,
    waited: u64,
    stolen: u64,
    canary: Canary,
}

/// The counts of a round, nanoseconds.
struct Disturbed {
    waited: u64,
    stolen: u64,
    late: u64,
}

impl Disturbance {
    fn begin(server: &Running) -> Self {
        let process = server.0.id();
        Self { process, waited: waited_ns(process), stolen: stolen(), canary: Canary::start() }
    }

    fn end(self) -> Disturbed {
        Disturbed {
            late: u64::try_from(self.canary.end().as_nanos()).expect("some seconds"),
            waited: waited_ns(self.process) - self.waited,
            stolen: stolen() - self.stolen,
        }
    }
}

impl Disturbed {
    fn is_quiet(&self) -> bool {
        [self.waited, self.stolen, self.late].iter().all(|ns| *ns <= 20_000_000)
    }
}

impl std::fmt::Display for Disturbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "its server waited {} ns for its CPU, the hypervisor took {} ns, and a thread of that CPU woke up {} ns late",
            self.waited, self.stolen, self.late
        )
    }
}

/// The time that the requests of the tail would have lost, by a finding that calls them unusual: nanoseconds.
fn claimed_ns(finding: &Value) -> f64 {
    let number = |name: &str| finding[name].as_f64().unwrap_or_else(|| panic!("{name}: {finding:#}"));
    number("requests") / 100.0 * (number("p99_s") - number("usual_p99_s")) * 1e9
}

/// Ten servers beside busy neighbours, to which nothing was done. A round in which something else disturbed them, by
/// independent counts, does not count.
#[test]
fn nothing_unusual_is_said_of_servers_that_nobody_disturbs() {
    let _alone = alone();
    if !Folder::new().may_observe() || testkit::program("chrt").is_none() {
        return;
    }
    let neighbours: Vec<Running> = (0..2)
        .map(|_| {
            Command::new("taskset").args(["-c", "0", "yes"]).stdout(Stdio::null()).spawn().expect("yes runs")
        })
        .map(Running)
        .collect();
    let mut quiet = 0;
    for round in 0..10 {
        let Some((server, address)) = memcached(REAL_TIME) else { return };
        let count = Disturbance::begin(&server);
        let found = finding(address, usual_clients(address), || wait(Duration::from_secs(2)));
        let disturbance = count.end();
        let Disturbed { waited, stolen, late } = disturbance;
        println!("{}", sentence(&found));
        // A hundredth of the requests would have waited for more than the p99 of others. And what the finding claims may
        // be true: each pause meets a request of each client at most.
        let disturbed = (waited + stolen) as f64 + CLIENTS as f64 * late as f64;
        let is_true = found["verdict"] != "nothing-unusual" && claimed_ns(&found) <= disturbed;
        if waited > 20_000_000 || stolen > 20_000_000 || is_true {
            testkit::skip(&format!("round {round} was not quiet: {disturbance}"));
            continue;
        }
        quiet += 1;
        assert_eq!(found["verdict"], "nothing-unusual", "{found:#}");
        assert!(sentence(&found).contains("tested in"), "{found:#}");
    }
    println!("{quiet} of 10 rounds were quiet");
    drop(neighbours);
}

#[test]
fn processes_on_the_servers_cpu_are_named() {
    let _alone = alone();
    if !Folder::new().may_observe() || testkit::program("chrt").is_none() {
        return;
    }
    for policy in [&["yes"][..], &["chrt", "-f", "80", "yes"]] {
        let Some((server, address)) = memcached(&[]) else { return };
        let found = finding(address, usual_clients(address), || {
            let hogs: Vec<Running> = (0..3).map(|_| on_last_cpu(policy)).collect();
            let end = Instant::now() + OBSERVED;
            // In pulses: one with a real-time policy would leave nothing to the server.
            while Instant::now() < end {
                for (name, time) in [("STOP", 30), ("CONT", 15)] {
                    hogs.iter().for_each(|hog| hog.signal(name));
                    wait(Duration::from_millis(time));
                }
            }
        });
        check_named(&found, &["other processes"], "waits behind ");
        let next = found["next"]["command"].as_str().expect("there is a knob");
        assert!(next.contains(&format!(" --pid {} --port {}", server.0.id(), address.port())), "{next}");
        let name = found["dominating"]["culprit"]["name"].as_str();
        assert!(name.is_none_or(|name| name == "yes"), "{found:#}");
    }
}

#[test]
fn a_server_that_is_stopped_is_called_stopped() {
    let _alone = alone();
    if !Folder::new().may_observe() {
        return;
    }
    let Some((server, address)) = memcached(REAL_TIME) else { return };
    let found = finding(address, usual_clients(address), || {
        let end = Instant::now() + OBSERVED;
        while Instant::now() < end {
            for (name, time) in [("STOP", 20), ("CONT", 150)] {
                server.signal(name);
                wait(Duration::from_millis(time));
            }
        }
    });
    check_named(&found, &["stopped"], "stopped by a signal");
}

/// A server of this process that answers each byte as `answer` does, which is told the number of the request.
fn byte_server(answer: impl Fn(u64, &mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("a listener has an address");
    std::thread::spawn(move || {
        // Others of this machine leave it alone then.
        let _ = machine::realtime::fifo(50);
        let (mut stream, _) = listener.accept().expect("a client connects");
        let mut byte = [0];
        let mut number = 0;
        while stream.read_exact(&mut byte).is_ok() {
            number += 1;
            answer(number, &mut stream);
        }
    });
    address
}

/// Sends a byte and waits for an answer of so many bytes, with a pause between.
fn ask_bytes(server: SocketAddr, is_over: &AtomicBool, bytes: usize) {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    let mut answer = vec![0; bytes];
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(&[7]).and_then(|()| stream.read_exact(&mut answer)).expect("the server answers");
        wait(Duration::from_millis(1));
    }
}

#[test]
fn a_slow_disk_leads_to_block_devices() {
    const O_DIRECT: i32 = 0x4000;
    let _alone = alone();
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let path = folder.join("data");
    std::fs::write(&path, vec![7; 1 << 22]).expect("a file can be written");
    let Ok(file) = std::fs::OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path) else {
        testkit::skip("files are where there is no direct I/O");
        return;
    };
    let server = byte_server(move |number, stream| {
        if number % 20 == 0 {
            let mut room = vec![0; (1 << 22) + 4096];
            let begin = room.as_ptr().align_offset(4096);
            let _ = (&file).read(&mut room[begin..begin + (1 << 22)]);
            let _ = std::io::Seek::rewind(&mut &file);
        }
        stream.write_all(&[7]).expect("the client reads");
    });
    let found = finding(server, |is_over| ask_bytes(server, is_over, 1), || wait(OBSERVED));
    check_named(&found, &["waiting for I/O"], "waits for disks");
    assert_eq!(found["next"]["command"], "tailwright observe --block --duration 10s", "{found:#}");
}

/// The second write of an answer waits until the client acknowledges the first one, for which it takes its time.
#[test]
fn delayed_acknowledgements_lead_to_nodelay() {
    let _alone = alone();
    if !Folder::new().may_observe() {
        return;
    }
    let server = byte_server(|_, stream| {
        stream.write_all(&[7]).and_then(|()| stream.write_all(&[7])).expect("the client reads");
    });
    // 40 ms each.
    let found = finding(server, |is_over| ask_bytes(server, is_over, 2), || wait(2 * OBSERVED));
    check_named(&found, &["network, going out"], "waits for the network");
    let next = found["next"]["command"].as_str().expect("there is a knob");
    assert!(next.starts_with("tailwright experiment nodelay --pid "), "{next}");
    assert!(found["times_ideal"].as_f64().is_some_and(|ratio| ratio > 10.0), "{found:#}");
}

/// A round in which something else disturbed the server, by independent counts, may have a tail of another cause.
#[test]
fn large_answers_are_called_large() {
    let _alone = alone();
    if !Folder::new().may_observe() {
        return;
    }
    let Some((server, address)) = memcached(REAL_TIME) else { return };
    let key = |number: u64| if number.is_multiple_of(25) { "large" } else { "small" };
    for round in 0..8 {
        let count = Disturbance::begin(&server);
        let found = finding(address, |is_over| ask(address, is_over, key), || wait(OBSERVED));
        let disturbance = count.end();
        println!("{}", sentence(&found));
        if disturbance.is_quiet() {
            check_named(&found, &["work", "network, going out"], "large answers");
            return;
        }
        testkit::skip(&format!("round {round} was not quiet: {disturbance}"));
    }
}

/// The command that a sentence ends with is one that the program takes: the knob exists, and its value is one of its own.
#[test]
fn the_knobs_of_findings_exist() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../measure/measure/src/observation/finding/rows.rs");
    let rows = std::fs::read_to_string(page).expect("the sources are here");
    let named: Vec<&str> =
        rows.split("Step::Knob(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(named.len() >= 4, "{named:?}");
    for name in named.into_iter().chain(["demote", "fifo"]) {
        let knob = experiment::knob(name).unwrap_or_else(|| panic!("no knob {name}"));
        assert!(knob.default.is_some() || name == "demote", "{name} has no default value");
    }
}

/// Clients of two kinds at once: `tailwright load`, whose requests come at random and take connections in turn, and clients
/// with other addresses that wait for each answer. Verdicts are about the client that they are true of, or there is none.
#[test]
fn kinds_of_clients_are_not_confused() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let _alone = alone();
    let Some((_server, server)) = memcached(&[]) else { return };
    let workload = |name: &str, address: &str, arrivals: &str, connections: usize| {
        format!(
            "[[workload]]\nname = \"{name}\"\ntarget = \"memcached://{server}\"\nbind = \"{address}\"\n\
             connections = {connections}\n{arrivals}\n\n"
        )
    };
    let open = |connections, arrivals: &str| {
        workload("open", "127.0.0.1", &format!("arrivals = \"{arrivals}\"\nsize = \"100B\""), connections)
    };
    let closed = |address: &str, outstanding: usize| {
        let closed = format!("closed = {{ outstanding = {outstanding}, op = \"read\", size = \"100B\" }}");
        workload("closed", address, &closed, outstanding)
    };
    for (name, workloads, has_closed, has_open) in [
        ("turns", open(4, "poisson(2000/s)"), false, true),
        ("many-turns", open(32, "poisson(4000/s)"), false, true),
        ("constant", open(4, "constant(1500/s)"), false, true),
        ("bursts", open(8, "mmpp(500/s 50ms, 6000/s 10ms)"), false, true),
        ("closed", closed("127.0.0.1", 1), true, false),
        ("both", open(4, "poisson(2000/s)") + &closed("127.0.0.2", 1), true, true),
        ("both-one-address", open(4, "poisson(2000/s)") + &closed("127.0.0.1", 1), true, true),
    ] {
        folder.write("load.toml", &format!("duration = \"10min\"\n\n{workloads}"));
        let load = Command::new(env!("CARGO_BIN_EXE_tailwright"))
            .args(["load", &folder.join("load.toml").display().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let _load = Running(load.expect("the program starts"));
        wait(Duration::from_millis(700));
        let port = server.port().to_string();
        let view =
            folder.run(&["observe", "--port", &port, "--duration", "4s", "--json"]).expect_code(0).json();
        let clients = &view["ideal"]["clients"];
        let [closed_share, open_share] =
            ["closed_share", "open_loop_share"].map(|name| clients[name].as_f64().expect("a share"));
        println!("| {name} | {} | {closed_share:.3} | {open_share:.3} |", clients["verdict"]);
        assert!(has_closed || closed_share == 0.0, "{name}: {clients}");
        assert!(has_open || open_share == 0.0, "{name}: {clients}");
        let is_of_all = clients["verdict"] != "cannot tell";
        assert!(
            !is_of_all || (has_closed != has_open) || closed_share.max(open_share) < 1.0,
            "{name}: {clients}"
        );
        // One address has one verdict, which both kinds would contradict.
        assert!(name != "both-one-address" || !is_of_all, "{name}: {clients}");
    }
}
