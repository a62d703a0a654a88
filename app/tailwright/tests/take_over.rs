//! `tailwright proxy --take-over` under load, before real servers: what clients notice, and what they get.

mod support;

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::Folder;
use support::servers::{MEMCACHED, Running, server};

/// Number of take-overs in a row.
const TAKE_OVERS: usize = 20;
/// A device that reads and writes 4 KiB in 100 µs.
const PROFILE: &str = r#"{ "bandwidthTable": [
    { "requestSize": 4096, "readBandwidth": 40960000, "writeBandwidth": 40960000 } ] }"#;
/// The share of the device that the policy allows, and how much at once, in seconds.
const RATE: f64 = 0.05;
const BURST: f64 = 0.05;
const POLICY: &str = r#"{ "format": "tailwright-policy-1", "policy_name": "by hand",
  "servers": [{ "name": "cache", "class": "ssd", "network_bytes_per_s": 1.25e8, "storage_profile": "p" }],
  "workloads": [{ "name": "web", "admitted": true, "server": "cache", "priority": 0, "slo": "50% < 10s",
    "slo_percentile": 50.0, "slo_s": 10.0, "bound_s": 10.0,
    "limits": [{ "stage": "storage", "rate": 0.05, "burst": 0.05, "rate_per_s": 0.05, "burst_work": 0.05 }] }] }"#;

fn hosts(protocol: &str, forward: SocketAddr) -> String {
    format!(
        r#"
[[host]]
name = "here"
device.nothing = "1Gbps"
[[server]]
name = "cache"
host = "here"
address = ["127.0.0.1"]
[server.storage]
profile = "profile.json"
over = "queue"
front = [{{ protocol = "{protocol}", listen = "127.0.0.1:0", forward = "{forward}" }}]
[[client]]
workload = "web"
host = "here"
address = ["127.0.0.1"]
"#
    )
}

/// A proxy before a server, and the folder of its files.
struct Stand {
    folder: Folder,
    policy: Option<&'static str>,
    running: Running,
    lines: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl Stand {
    fn new(protocol: &str, server: SocketAddr, policy: Option<&'static str>) -> Self {
        let folder = Folder::new();
        folder.write("hosts.toml", &hosts(protocol, server));
        folder.write("profile.json", PROFILE);
        folder.write("policy.json", POLICY);
        let (running, mut lines) = start(&folder, policy, &[]);
        let line = line_with(&mut lines, "proxy: listening on ");
        let address = line.rsplit(' ').next().unwrap().parse().unwrap();
        Self { folder, policy, running, lines, address }
    }

    /// Lets another process take over, and waits until the one before has ended well. Returns the longest time that it
    /// can have taken.
    fn take_over(&mut self) -> Duration {
        self.take_over_with(&[])
    }

    /// The same for a process with more arguments.
    fn take_over_with(&mut self, more: &[&str]) -> Duration {
        let begun = Instant::now();
        let (running, mut lines) = start(&self.folder, self.policy, &[&["--take-over"], more].concat());
        let line = line_with(&mut lines, "proxy: took over ");
        let process = self.running.0.id();
        assert!(line.ends_with(&format!("from process {process}")), "{line}");
        let before = std::mem::replace(&mut self.running, running);
        assert!(before.ends_well(), "the proxy that was replaced ends well");
        self.lines = lines;
        begun.elapsed()
    }

    fn status(&self) -> Value {
        let asked = ["proxy", "--status", "--server", "cache", "--state", "state", "--json"];
        self.folder.run(&asked).expect_code(0).json()
    }

    /// The identity of the counters, as agents ask for it.
    fn counters(&self) -> String {
        let mut stream = UnixStream::connect(self.folder.join("state/proxy-cache.sock")).unwrap();
        stream.write_all(b"\"observe\"\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let reply: Value = serde_json::from_str(&reply).unwrap();
        reply["observed"]["counters"].as_str().unwrap().to_owned()
    }

    /// The number of reads and writes of all workloads.
    fn requests(&self) -> u64 {
        let status = self.status();
        let workloads = status["workloads"].as_array().unwrap();
        workloads.iter().map(|seen| seen["requests"].as_u64().unwrap()).sum()
    }
}

fn start(folder: &Folder, policy: Option<&str>, more: &[&str]) -> (Running, BufReader<ChildStderr>) {
    let fixed = ["--hosts", "hosts.toml", "--server", "cache", "--state", "state"];
    let child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .arg("proxy")
        .args(policy)
        .args(fixed)
        .args(more)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap());
    (Running(child), lines)
}

/// Reads lines up to one that begins so; fails with all lines if there is none.
fn line_with(lines: &mut BufReader<ChildStderr>, beginning: &str) -> String {
    let mut said = String::new();
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it has ended instead: {said}");
        if line.starts_with(beginning) {
            return line.trim().to_owned();
        }
        said += &line;
    }
}

fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    BufReader::new(stream)
}

/// Sends a request, and reads as many bytes as the expected answer has.
fn ask(client: &mut BufReader<TcpStream>, request: &[u8], expected: &[u8]) {
    client.get_mut().write_all(request).expect("the connection stays");
    let mut answer = vec![0; expected.len()];
    client.read_exact(&mut answer).expect("the connection stays");
    assert!(answer == expected, "{} instead of {}", text(&answer), text(expected));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

/// Threads that call a function again and again until told to stop. Returns its calls and the longest one.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<(u64, Duration)>>,
}

impl Load {
    fn new() -> Self {
        Self { stop: Arc::default(), threads: Vec::new() }
    }

    fn add(&mut self, mut act: impl FnMut(u64) + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(thread::spawn(move || {
            let mut longest = Duration::ZERO;
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let begun = Instant::now();
                act(count);
                longest = longest.max(begun.elapsed());
                count += 1;
            }
            (count, longest)
        }));
    }

    /// Ends the threads, which panic if a client has noticed an error.
    fn end(self) -> Vec<(u64, Duration)> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("no client sees an error")).collect()
    }
}

/// A value of a few kibibytes that depends on a number.
fn value(number: u64) -> Vec<u8> {
    (0..3000 + number % 1000).map(|place| b'a' + u8::try_from((place * 7 + number) % 26).unwrap()).collect()
}

/// Stores a value and reads it, both in one write.
fn set_and_get(client: &mut BufReader<TcpStream>, key: &str, number: u64) {
    let value = value(number);
    let head = format!("set {key} 0 0 {}\r\n", value.len());
    let request = [head.as_bytes(), &value, format!("\r\nget {key}\r\n").as_bytes()].concat();
    let found = format!("STORED\r\nVALUE {key} 0 {}\r\n", value.len());
    ask(client, &request, &[found.as_bytes(), &value, b"\r\nEND\r\n"].concat());
}

#[test]
fn clients_of_memcached_notice_no_take_over() {
    let Some((_memcached, server)) = server("memcached", MEMCACHED) else { return };
    let mut stand = Stand::new("memcached", server, None);
    let address = stand.address;
    let mut load = Load::new();
    for client in 0..4 {
        let mut connection = connect(address);
        load.add(move |number| set_and_get(&mut connection, &format!("key{client}"), number));
    }
    // Requests without answers, with a barrier behind them.
    let mut connection = connect(address);
    load.add(move |number| {
        let request = format!("set quiet 0 0 6 noreply\r\n{:06}\r\nget quiet\r\n", number % 1_000_000);
        let found = format!("VALUE quiet 0 6\r\n{:06}\r\nEND\r\n", number % 1_000_000);
        ask(&mut connection, request.as_bytes(), found.as_bytes());
    });
    // Binary.
    let mut connection = connect(address);
    load.add(move |_| {
        let noop = |magic: u8| [&[magic, 0x0a][..], &[0; 22]].concat();
        ask(&mut connection, &noop(0x80), &noop(0x81));
    });
    // A connection for each request.
    load.add(move |number| {
        set_and_get(&mut connect(address), "new", number);
        thread::sleep(Duration::from_millis(1));
    });
    // Half a request is sent before, and half after.
    let mut halved = connect(address);
    let counters = stand.counters();
    let mut counted = 0;
    let mut longest = Duration::ZERO;
    for round in 0..TAKE_OVERS {
        halved.get_mut().write_all(b"set half 0 0 4\r\nab").unwrap();
        thread::sleep(Duration::from_millis(10));
        longest = longest.max(stand.take_over());
        ask(&mut halved, b"cd\r\nget half\r\n", b"STORED\r\nVALUE half 0 4\r\nabcd\r\nEND\r\n");
        let status = stand.status();
        assert_eq!(status["take_overs"], round as u64 + 1);
        let requests = stand.requests();
        assert!(requests >= counted, "counters fall: {requests} after {counted}");
        assert_eq!(stand.counters(), counters, "they are continued");
        counted = requests;
    }
    let calls = load.end();
    println!("{TAKE_OVERS} take-overs, the longest in {longest:?}; calls and the longest one: {calls:?}");
    assert!(calls.iter().all(|(count, _)| *count > TAKE_OVERS as u64), "all were served: {calls:?}");
    let sent: u64 = calls[..4].iter().map(|(count, _)| 2 * count).sum();
    assert!(stand.requests() >= sent, "{} of at least {sent} requests are counted", stand.requests());
    assert_eq!(stand.status()["cut"], 0);
    let other = Stand::new("memcached", server, None);
    assert_ne!(other.counters(), counters, "another proxy counts for itself");
}

#[test]
fn a_redis_session_keeps_its_database_and_its_transaction() {
    let Some((_redis, server)) = server("redis-server", "--bind 127.0.0.1 --port PORT --save ") else {
        return;
    };
    let mut stand = Stand::new("resp", server, None);
    let mut load = Load::new();
    let address = stand.address;
    for client in 0..3 {
        let mut connection = connect(address);
        let select = format!("SELECT {}\r\n", client + 1);
        ask(&mut connection, select.as_bytes(), b"+OK\r\n");
        load.add(move |number| {
            let request = format!("SET k {number:06}\r\nGET k\r\n");
            let answer = format!("+OK\r\n$6\r\n{number:06}\r\n");
            ask(&mut connection, request.as_bytes(), answer.as_bytes());
        });
    }
    let mut transaction = connect(address);
    for _ in 0..TAKE_OVERS / 2 {
        ask(&mut transaction, b"MULTI\r\nSET t 1\r\n", b"+OK\r\n+QUEUED\r\n");
        stand.take_over();
        ask(&mut transaction, b"INCR t\r\nEXEC\r\n", b"+QUEUED\r\n*2\r\n+OK\r\n:2\r\n");
    }
    let calls = load.end();
    println!("{calls:?}");
    assert!(calls.iter().all(|(count, _)| *count > TAKE_OVERS as u64), "all were served: {calls:?}");
}

#[test]
fn an_image_is_copied_through_take_overs() {
    let Some((_nbdkit, server)) = server("nbdkit", "-f -i 127.0.0.1 -p PORT memory 64M") else { return };
    let Some(nbdcopy) = testkit::program("nbdcopy") else { return };
    let mut stand = Stand::new("nbd", server, None);
    let image: Vec<u8> = (0..16_u64 << 20).map(|place| ((place * place) >> 7).to_le_bytes()[0]).collect();
    let [from, to] = ["from", "to"].map(|name| stand.folder.path().join(name));
    std::fs::write(&from, &image).unwrap();
    let url = format!("nbd://{}", stand.address);
    let is_over = Arc::new(AtomicBool::new(false));
    let copies = Arc::new(AtomicU64::new(0));
    let copier = {
        let is_over = Arc::clone(&is_over);
        let copies = Arc::clone(&copies);
        let to = to.clone();
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                for (from, to) in [(from.as_os_str(), url.as_ref()), (url.as_ref(), to.as_os_str())] {
                    let done = Command::new(&nbdcopy).args([from, to]).status().unwrap();
                    assert!(done.success(), "nbdcopy sees an error");
                }
                copies.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    for _ in 0..TAKE_OVERS / 2 {
        stand.take_over();
    }
    is_over.store(true, Ordering::Relaxed);
    copier.join().expect("no copy fails");
    let mut copied = std::fs::read(&to).unwrap();
    copied.truncate(image.len());
    assert!(copied == image, "the image is the same after {} copies", copies.load(Ordering::Relaxed));
    assert_eq!(stand.status()["cut"], 0);
}

#[test]
fn a_series_of_take_overs_grants_no_new_bursts() {
    let Some((_memcached, server)) = server("memcached", MEMCACHED) else { return };
    let mut stand = Stand::new("memcached", server, Some("policy.json"));
    let value = vec![b'v'; 4096];
    let head = format!("set large 0 0 {}\r\n", value.len());
    let mut connection = connect(stand.address);
    let begun = Instant::now();
    ask(&mut connection, &[head.as_bytes(), &value, b"\r\n"].concat(), b"STORED\r\n");
    let mut load = Load::new();
    let found = [format!("VALUE large 0 {}\r\n", value.len()).as_bytes(), &value, b"\r\nEND\r\n"].concat();
    for _ in 0..8 {
        let mut connection = connect(stand.address);
        let found = found.clone();
        load.add(move |_| ask(&mut connection, b"get large\r\n", &found));
    }
    for _ in 0..TAKE_OVERS {
        stand.take_over();
        // A new burst would pass within a few milliseconds.
        thread::sleep(Duration::from_millis(20));
    }
    let served: u64 = load.end().iter().map(|(count, _)| count).sum();
    let elapsed = begun.elapsed().as_secs_f64();
    // Each read takes 100 µs of the device; those of the last moment may be on their way.
    let used = served as f64 * 1e-4;
    let allowed = RATE * elapsed + BURST;
    println!("{served} reads in {elapsed:.2} s: {used:.3} s of the device, and {allowed:.3} s are allowed");
    assert!(used <= allowed + 16.0 * 1e-4, "{used} s of the device, and {allowed} s are allowed");
    assert!(used >= allowed / 2.0, "the limit is used: {used} s of {allowed} s");
}

/// What is wrong with a new proxy that does not take over.
fn attempt(stand: &Stand, begin: &[u8], then: &[u8]) -> String {
    let path = stand.folder.path().join("state/proxy-cache.sock");
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(begin).unwrap();
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while !heard.contains(&b'\n') {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "it answers");
        heard.extend_from_slice(&piece[..count]);
    }
    if !then.is_empty() {
        stream.write_all(then).unwrap();
        thread::sleep(Duration::from_millis(30));
        let _ = stream.read(&mut piece);
    }
    text(&heard)
}

#[test]
fn a_proxy_that_does_not_take_over_leaves_the_other_one_serving() {
    let Some((_memcached, server)) = server("memcached", MEMCACHED) else { return };
    let mut stand = Stand::new("memcached", server, None);
    let address = stand.address;
    let mut load = Load::new();
    for client in 0..3 {
        let mut connection = connect(address);
        load.add(move |number| set_and_get(&mut connection, &format!("key{client}"), number));
    }
    load.add(move |number| set_and_get(&mut connect(address), "new", number));
    let process = stand.running.0.id();
    for _ in 0..5 {
        // It ends before it is prepared, and before it serves.
        assert!(attempt(&stand, b"{\"takeover\":{\"version\":1}}\n", b"").contains("fronts"));
        assert!(attempt(&stand, b"{\"takeover\":{\"version\":1}}\n", b"r").contains("fronts"));
    }
    assert!(attempt(&stand, b"{\"takeover\":{\"version\":2}}\n", b"").contains("version 1"));
    // A wrong policy, other fronts.
    stand.folder.write("policy.json", "{}");
    stand.policy = Some("policy.json");
    let args = |policy: Option<&'static str>| {
        let fixed =
            ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state", "--take-over"];
        fixed.into_iter().chain(policy).collect::<Vec<_>>()
    };
    stand.folder.run(&args(stand.policy)).expect_code(2);
    stand.policy = None;
    let right = std::fs::read_to_string(stand.folder.path().join("hosts.toml")).unwrap();
    stand.folder.write("hosts.toml", &right.replace("127.0.0.1:0", "127.0.0.2:0"));
    assert!(stand.folder.run(&args(None)).expect_code(2).stderr.contains("other fronts"));
    stand.folder.write("hosts.toml", &right);
    let status = stand.status();
    assert_eq!((&status["take_overs"], &status["taken_over_from"]), (&Value::from(0), &Value::Null));
    assert!(stand.running.0.try_wait().unwrap().is_none(), "it still runs");
    // After all that another one takes over.
    stand.take_over();
    assert_eq!(stand.status()["taken_over_from"], process);
    let calls = load.end();
    assert!(calls.iter().all(|(count, _)| *count > 10), "all were served: {calls:?}");
    // Without a proxy there is nothing to take over.
    stand.running.signal("TERM");
    assert!(stand.running.0.wait().unwrap().success());
    assert!(stand.folder.run(&args(None)).expect_code(3).stderr.contains("no proxy answers"));
}

/// Connections move to a proxy with loops, and from one they do not: it says so, and serves on.
#[test]
fn a_proxy_with_loops_takes_over_and_is_not_taken_over() {
    let Some((_memcached, server)) = server("memcached", MEMCACHED) else { return };
    let mut stand = Stand::new("memcached", server, None);
    let mut load = Load::new();
    for client in 0..3 {
        let mut connection = connect(stand.address);
        load.add(move |number| set_and_get(&mut connection, &format!("key{client}"), number));
    }
    stand.take_over_with(&["--loops", "2"]);
    let args = ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state", "--take-over"];
    assert!(stand.folder.run(&args).expect_code(3).stderr.contains("--loops"));
    assert!(stand.running.0.try_wait().unwrap().is_none(), "it still runs");
    thread::sleep(Duration::from_millis(100));
    let calls = load.end();
    assert!(calls.iter().all(|(count, _)| *count > 10), "all were served: {calls:?}");
    let mut late = connect(stand.address);
    set_and_get(&mut late, "late", 1);
}

/// A thread that asks over one connection until an error, and the number of answers so far.
struct Asking {
    answers: Arc<AtomicU64>,
    has_failed: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Asking {
    fn start(address: SocketAddr) -> Self {
        let mut stream = connect(address);
        let answers = Arc::<AtomicU64>::default();
        let has_failed = Arc::<AtomicBool>::default();
        let counted = Arc::clone(&answers);
        let failed = Arc::clone(&has_failed);
        let thread = thread::spawn(move || {
            let mut answer = [0; 5];
            while stream.get_mut().write_all(b"get missing\r\n").is_ok() {
                if stream.read_exact(&mut answer).is_err() {
                    break;
                }
                assert_eq!(&answer, b"END\r\n");
                counted.fetch_add(1, Ordering::Relaxed);
            }
            failed.store(true, Ordering::Relaxed);
        });
        Self { answers, has_failed, thread: Some(thread) }
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Waits for three more answers, or an error. Returns true if they came.
    fn is_served(&self) -> bool {
        let before = self.answers.load(Ordering::Relaxed);
        let has_more = || self.answers.load(Ordering::Relaxed) >= before + 3;
        testkit::wait_until(Duration::from_secs(20), "an answer or an error", || {
            has_more() || self.has_failed()
        });
        !self.has_failed()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // The proxy has been killed by now, or is about to be, so that the thread meets an error.
        drop(self.thread.take());
    }
}

/// Times from the start of a new process until a kill, which cover its start, the conversation and the first requests.
fn moments() -> impl Iterator<Item = Duration> {
    (0..25).map(|step| Duration::from_millis(4 * step))
}

#[test]
fn a_new_proxy_killed_at_any_moment_leaves_one_that_serves_or_has_served() {
    let Some((_memcached, server)) = server("memcached", MEMCACHED) else { return };
    let mut stand = Stand::new("memcached", server, None);
    let mut asking = Asking::start(stand.address);
    let mut survived = 0;
    for moment in moments() {
        let (new, mut lines) = start(&stand.folder, None, &["--take-over"]);
        thread::sleep(moment);
        new.signal("KILL");
        drop(new);
        let mut said = String::new();
        lines.read_to_string(&mut said).expect("it ended");
        if asking.is_served() {
            survived += 1;
            assert!(stand.running.0.try_wait().unwrap().is_none(), "the old one serves: {said}");
            assert_eq!(stand.status()["take_overs"], 0);
            continue;
        }
        // Only a proxy that had taken over takes connections with it.
        assert!(stand.running.ends_well(), "the old one has been replaced: {said}");
        stand = Stand::new("memcached", server, None);
        asking = Asking::start(stand.address);
    }
    println!("{survived} of {} times the old proxy served on", moments().count());
    assert!(survived > 0, "a kill at once comes before the new proxy serves");
    stand.take_over();
    assert!(asking.is_served(), "after all that another one takes over");
}

#[test]
fn an_old_proxy_killed_at_any_moment_leaves_one_that_serves_or_ends() {
    let Some((_memcached, server)) = server("memcached", MEMCACHED) else { return };
    let mut taken = 0;
    for moment in moments() {
        let stand = Stand::new("memcached", server, None);
        let asking = Asking::start(stand.address);
        let (mut new, mut lines) = start(&stand.folder, None, &["--take-over"]);
        thread::sleep(moment);
        stand.running.signal("KILL");
        let mut line = String::new();
        let mut said = String::new();
        while !line.starts_with("proxy: took over ") && {
            line.clear();
            lines.read_line(&mut line).unwrap() > 0
        } {
            said += &line;
        }
        if line.starts_with("proxy: took over ") {
            taken += 1;
            assert!(asking.is_served(), "a connection that was taken over stays: {said}");
            assert!(new.0.try_wait().unwrap().is_none(), "it serves: {said}");
        } else {
            assert_eq!(new.0.wait().unwrap().code(), Some(3), "{said}");
            assert!(said.contains("without --take-over") || said.contains("no proxy answers"), "{said}");
        }
    }
    println!("{taken} of {} times the new proxy had taken over", moments().count());
    assert!(taken < moments().count(), "a kill at once comes before that");
}
