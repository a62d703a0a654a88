//! Proxies that `tailwright agent --run-proxies` starts and keeps, before a real memcached: whatever is killed, clients are
//! served, and there is one proxy before each server.

mod support;

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::servers::{Running, memcached};
use support::service::{HOSTS, start, write_cluster};
use support::{Folder, Outcome};

/// Only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A host whose agent runs its proxies.
struct Host {
    folder: Folder,
    url: String,
    /// Addresses of its fronts: before cache-1, and before cache-2.
    fronts: [SocketAddr; 2],
}

impl Drop for Host {
    fn drop(&mut self) {
        // The agent has ended: it is dropped before.
        self.agent_verb(&["--stop-proxies"]);
    }
}

impl Host {
    fn new(memcached: SocketAddr) -> Self {
        let folder = Folder::new();
        let url = format!("http://{}", testkit::free_address());
        let fronts = [testkit::free_address(), testkit::free_address()];
        let [first, second] = fronts.map(|front| front.to_string());
        let one = HOSTS.replace("127.0.0.1:11612", &first).replace("127.0.0.1:11611", &memcached.to_string());
        let (_, server) = one.split_once("[[server]]").expect("a server");
        let other = server.replace("cache-1", "cache-2").replace(&first, &second);
        write_cluster(&folder, &format!("{one}[[server]]{other}"));
        Self { folder, url, fronts }
    }

    fn controller(&self) -> Running {
        let listen = self.url.trim_start_matches("http://");
        start(&self.folder, &["controller", "cluster", "--listen", listen], "listening on")
    }

    fn describe(&self) {
        let described =
            ["describe", "--class-file", "cluster.toml", "--hosts", "hosts.toml", "--assume-network"];
        self.ctl(&described).expect_code(0);
        let token = self.ctl(&["token", "here", "--for-agent", "here"]).expect_code(0).stdout;
        self.folder.write("here.token", &token);
    }

    fn agent(&self) -> Running {
        let arguments =
            ["agent", "--controller", &self.url, "--token-file", "here.token", "--state", "state"];
        let more = ["--memory", "memory", "--enforce", "--run-proxies", "hosts.toml"];
        let log = std::fs::OpenOptions::new().append(true).create(true).open(self.folder.join("agent.log"));
        let child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
            .args([&arguments[..], &more].concat())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("ours"))
            .spawn();
        Running(child.expect("the program starts"))
    }

    fn agent_verb(&self, arguments: &[&str]) -> Outcome {
        let fixed = ["--state", "state", "--memory", "memory"];
        self.folder.run(&[&["agent"][..], arguments, &fixed].concat())
    }

    fn ctl(&self, arguments: &[&str]) -> Outcome {
        let fixed = ["--controller", &self.url, "--token-file", "cluster/operator.token"];
        self.folder.run(&[&["ctl"][..], arguments, &fixed].concat())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }

    /// The agent as the controller knows it.
    fn known(&self) -> Value {
        let listed = self.ctl(&["list", "agents"]);
        if listed.code == 0 { listed.json()[0].clone() } else { Value::Null }
    }

    fn warnings(&self) -> String {
        self.known()["warnings"].to_string()
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < TIMEOUT, "in vain: {what}\n{}\n{}", self.known(), self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Processes of proxies before a server.
    fn proxies(&self, server: &str) -> Vec<i32> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").expect("it is mounted").flatten() {
            let Ok(process) = entry.file_name().to_string_lossy().parse() else { continue };
            let is_here =
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == self.folder.path());
            let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let mut arguments = arguments.split(|byte| *byte == 0).map(std::ffi::OsStr::from_bytes);
            if is_here && arguments.nth(1) == Some("proxy".as_ref()) && arguments.any(|word| word == server) {
                found.push(process);
            }
        }
        found
    }

    /// The only process of the proxy before a server.
    fn proxy(&self, server: &str) -> i32 {
        let found = self.proxies(server);
        let [process] = found[..] else { panic!("{server}: {found:?}\n{}", self.said()) };
        process
    }

    fn answers(&self, front: usize) -> bool {
        let Ok(mut client) = TcpStream::connect(self.fronts[front]) else { return false };
        let mut answer = [0; 5];
        client.write_all(b"get a\r\n").is_ok()
            && client.read_exact(&mut answer).is_ok()
            && &answer == b"END\r\n"
    }

    fn standing(&self) -> String {
        self.ctl(&["list", "workloads"]).json()[0]["standing"].as_str().unwrap_or_default().to_owned()
    }
}

fn kill(process: i32, signal: &str) {
    let done = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(done.expect("kill runs").success(), "kill {signal} {process}");
}

/// A client on one connection, which sends one request after the other until it is dropped.
struct Client {
    ends: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
}

impl Client {
    fn start(front: SocketAddr) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&ends);
        let counted = Arc::clone(&answered);
        let thread = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(front)?;
            while !told.load(Ordering::Relaxed) {
                stream.write_all(b"get a\r\n")?;
                stream.read_exact(&mut [0; 5])?;
                counted.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(())
        });
        Self { ends, answered, thread: Some(thread) }
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn finish(mut self) -> std::io::Result<()> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

#[test]
fn an_agent_runs_the_proxies_of_its_host() {
    let Some((_memcached, address)) = memcached() else { return };
    let host = Host::new(address);
    // The address of one front is taken.
    let taken = TcpListener::bind(host.fronts[1]).expect("it is free");
    let controller = host.controller();
    host.describe();
    let agent = host.agent();
    host.wait_for("a proxy", || host.known()["storage"] == serde_json::json!(["cache-1"]));
    assert!(host.answers(0));

    // A proxy that cannot be started is a warning of the agent, with the reason, and a problem of nothing else.
    let reason = host.fronts[1].to_string();
    host.wait_for("a warning", || {
        let warnings = host.warnings();
        warnings.contains("the proxy before cache-2 cannot be started") && warnings.contains(&reason)
    });
    let asked = ["request", "mail", "99% < 100ms", "mail.csv", "--address", "127.0.0.2", "--tenant", "shop"];
    let yes = host.ctl(&asked).expect_code(0).stdout;
    assert!(yes.starts_with("yes: shop/mail on cache-1") && yes.contains("it is enforced"), "{yes}");
    let events = host.ctl(&["list", "events"]).expect_code(0).stdout;
    let warned = events.matches("agent-warned").count();

    // The agent is killed and started again: clients notice nothing, and the proxy stays the only one.
    let first = host.proxy("cache-1");
    let client = Client::start(host.fronts[0]);
    host.wait_for("requests", || client.answered() > 10);
    drop(agent);
    let before = client.answered();
    host.wait_for("requests without an agent", || client.answered() > before + 50);
    let agent = host.agent();
    host.wait_for("adoption", || host.said().contains("the proxy before cache-1 runs; it is adopted"));
    let before = client.answered();
    host.wait_for("requests of the adopted proxy", || client.answered() > before + 50);
    assert_eq!(host.proxy("cache-1"), first);
    client.finish().expect("no request was lost");

    // A proxy that is stopped is not doubled, and one that is killed is started again.
    kill(first, "-STOP");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(host.proxy("cache-1"), first);
    kill(first, "-CONT");
    let begun = Instant::now();
    kill(first, "-KILL");
    host.wait_for("another proxy", || host.answers(0));
    println!("from kill -9 of an adopted proxy to an answer: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    let second = host.proxy("cache-1");
    assert_ne!(second, first);
    host.wait_for("its warning", || host.warnings().contains("cache-1 has ended and is started again"));
    host.wait_for("enforcement", || host.standing() == "enforced");
    let begun = Instant::now();
    kill(second, "-KILL");
    host.wait_for("a third one", || host.answers(0));
    println!("from kill -9 of a started proxy to an answer: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    host.wait_for("the signal", || host.warnings().contains("signal: 9"));
    assert_ne!(host.proxy("cache-1"), second);

    // A hosts file with a mistake is a warning; the one before is kept.
    let hosts = host.folder.read("hosts.toml");
    host.folder.write("hosts.toml", "[[host]]\nnam = 1\n");
    host.wait_for("a warning", || host.warnings().contains("the hosts file before is kept"));
    assert!(host.answers(0));
    host.folder.write("hosts.toml", &hosts);

    // The address becomes free, and warnings end once proxies have run well.
    drop(taken);
    host.wait_for("the other proxy", || host.answers(1));
    host.wait_for("the end of warnings", || host.known()["warnings"].is_null());
    host.wait_for("both", || host.known()["storage"] == serde_json::json!(["cache-1", "cache-2"]));
    let events = host.ctl(&["list", "events"]).expect_code(0).stdout;
    let warned_at_all = events.matches("agent-warned").count();
    println!("changes of warnings in the history: {warned}, {warned_at_all}");
    assert!(warned_at_all < 30, "a loop of ends fills no history: {warned_at_all}");

    // SIGTERM ends the agent alone. It ends its proxies only when it is told to, and not beside a running agent.
    let refused = host.agent_verb(&["--stop-proxies"]).expect_code(3).stderr;
    assert!(refused.contains("an agent runs, which would start them again"), "{refused}");
    let third = host.proxy("cache-1");
    agent.signal("TERM");
    assert!(!agent.ends_well());
    assert!(host.answers(0) && host.answers(1));
    assert_eq!(host.proxy("cache-1"), third);

    // Without a controller, as after a reboot, proxies run with the policy that they had.
    drop(controller);
    let stopped = host.agent_verb(&["--stop-proxies"]).expect_code(0).stderr;
    assert!(stopped.contains("cache-1 has ended") && stopped.contains("cache-2 has ended"), "{stopped}");
    assert!(host.proxies("cache-1").is_empty() && host.proxies("cache-2").is_empty());
    assert!(!host.answers(0));
    let none = host.agent_verb(&["--stop-proxies"]).expect_code(0).stderr;
    assert!(none.contains("no proxy of an agent runs"), "{none}");
    std::fs::remove_dir_all(host.folder.join("state")).expect("it is gone with a reboot");
    let agent = host.agent();
    host.wait_for("a proxy without a controller", || host.answers(0));
    let saved = host.folder.join("state/proxy-cache-1/policy.json");
    host.wait_for("its policy", || {
        std::fs::read_to_string(&saved).is_ok_and(|text| text.contains("shop/mail"))
    });
    drop(agent);
}

/// A proxy that was started by hand is left alone.
#[test]
fn a_proxy_of_others_is_adopted_and_not_stopped() {
    let Some((_memcached, address)) = memcached() else { return };
    let host = Host::new(address);
    let _controller = host.controller();
    host.describe();
    let by_hand =
        ["proxy", "--hosts", "hosts.toml", "--server", "cache-1", "--state", "state", "--spin", "0s"];
    let by_hand = start(&host.folder, &by_hand, "listening on");
    let agent = host.agent();
    host.wait_for("both", || host.known()["storage"] == serde_json::json!(["cache-1", "cache-2"]));
    assert_eq!(host.proxy("cache-1"), by_hand.0.id().cast_signed());
    drop(agent);
    let stopped = host.agent_verb(&["--stop-proxies"]).expect_code(0).stderr;
    assert!(stopped.contains("cache-2 has ended") && !stopped.contains("cache-1"), "{stopped}");
    assert!(host.answers(0) && !host.answers(1));
}

/// Mistakes are said at once.
#[test]
fn a_hosts_file_that_is_none_is_refused() {
    let folder = Folder::new();
    folder.write("a.token", "abc");
    folder.write("hosts.toml", "[[host]]\nnam = 1\n");
    let agent =
        ["agent", "--controller", "http://127.0.0.1:1", "--token-file", "a.token", "--memory", "memory"];
    let outcome = folder.run(&[&agent[..], &["--run-proxies", "hosts.toml", "--state", "state"]].concat());
    assert!(outcome.expect_code(2).stderr.contains("hosts.toml"));
    assert!(!Path::new(&folder.join("state")).exists());
    folder.run(&["agent", "--stop-proxies", "--enforce"]).expect_code(2);
    folder.run(&["agent", "--enforce"]).expect_code(2);
}
