//! Webhooks of a controller, with a receiver that is down, deaf, or refuses, and a controller that is killed: every change of
//! an alert arrives, signed, and nothing waits for it.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::Folder;
use support::service::Service;

/// Only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(60);
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Behaviour of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Takes,
    /// Answers with HTTP 500.
    Refuses,
    /// Reads, and never answers.
    Deaf,
    /// Answers with headers that never end.
    EndlessHead,
    /// Answers with HTTP 200 and a body that never ends.
    EndlessBody,
}

/// A post as it came: its signature and its body.
#[derive(Debug)]
struct Post {
    signature: String,
    body: String,
}

/// A small HTTP server.
struct Ear {
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    /// Posts that were answered with 200.
    taken: Receiver<Post>,
    /// Posts that were not, by their bodies.
    others: Receiver<Post>,
}

impl Ear {
    fn open(address: SocketAddr, mood: Mood) -> Self {
        let listener = TcpListener::bind(address).expect("a free address");
        let address = listener.local_addr().expect("it listens");
        let mood = Arc::new(Mutex::new(mood));
        let (take, taken) = channel();
        let (other, others) = channel();
        let shared = Arc::clone(&mood);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let mood = *shared.lock().expect("no panic");
                if let Some(stream) = hear(stream, mood, &take, &other) {
                    held.push(stream);
                }
            }
        });
        Self { address, mood, taken, others }
    }

    fn set(&self, mood: Mood) {
        *self.mood.lock().expect("no panic") = mood;
    }

    /// Waits until these changes have come, each at least once: alert and state. Returns the posts.
    fn wait_for(&self, wanted: &[(&str, &str)]) -> Vec<Post> {
        let begun = Instant::now();
        let mut missing: BTreeSet<(String, String)> =
            wanted.iter().map(|(alert, state)| ((*alert).to_owned(), (*state).to_owned())).collect();
        let mut posts = Vec::new();
        while !missing.is_empty() {
            match self.taken.recv_timeout(Duration::from_millis(100)) {
                Ok(post) => {
                    for (alert, state, _) in alerts(&post) {
                        missing.remove(&(alert, state));
                    }
                    posts.push(post);
                }
                Err(RecvTimeoutError::Timeout) => {
                    assert!(begun.elapsed() < TIMEOUT, "in vain: {missing:?}; {posts:?}");
                }
                Err(RecvTimeoutError::Disconnected) => panic!("the receiver has ended"),
            }
        }
        posts
    }
}

/// Reads a post and answers as the mood is. Returns the connection if it is to stay open.
fn hear(mut stream: TcpStream, mood: Mood, take: &Sender<Post>, other: &Sender<Post>) -> Option<TcpStream> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    let (head, body) = loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
        };
        let length: usize =
            header("content-length").and_then(|length| length.parse().ok()).expect("a length");
        if body.len() >= length {
            break (header("tailwright-signature").unwrap_or_default().to_owned(), body.to_owned());
        }
    };
    let post = Post { signature: head, body };
    let (answer, to) = match mood {
        Mood::Takes => ("200 OK", take),
        Mood::Refuses => ("500 Internal Server Error", other),
        Mood::Deaf => {
            let _ = other.send(post);
            return Some(stream);
        }
        Mood::EndlessHead | Mood::EndlessBody => {
            let _ = other.send(post);
            std::thread::spawn(move || answer_endlessly(stream, mood));
            return None;
        }
    };
    let _ = to.send(post);
    let _ = write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    None
}

/// Answers until the other side has enough.
fn answer_endlessly(mut stream: TcpStream, mood: Mood) {
    let begin = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n";
    let end = if mood == Mood::EndlessBody { "\r\n" } else { "" };
    let line = format!("x-more: {}\r\n", "a".repeat(1000)).repeat(64);
    let mut is_read = stream.write_all(format!("{begin}{end}").as_bytes()).is_ok();
    while is_read {
        is_read = stream.write_all(line.as_bytes()).is_ok();
    }
}

/// Kind, state and position of each alert of a post.
fn alerts(post: &Post) -> Vec<(String, String, u64)> {
    let read: Value = serde_json::from_str(&post.body).expect("JSON");
    let alerts = read["alerts"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    alerts.map(|it| (text(&it["alert"]), text(&it["state"]), it["seq"].as_u64().expect("a number"))).collect()
}

/// Checks a signature by Python's own HMAC.
fn check_signature(post: &Post) {
    let Some(python) = testkit::program("python3") else { return };
    let script = "import hmac, hashlib, sys\n\
        parts = dict(part.split('=') for part in sys.argv[1].split(','))\n\
        body = sys.stdin.buffer.read()\n\
        tag = hmac.new(sys.argv[2].encode(), parts['t'].encode() + b'.' + body, hashlib.sha256).hexdigest()\n\
        sys.exit(not hmac.compare_digest(tag, parts['v1']))";
    let is_right = |secret: &str| {
        let mut child = Command::new(&python)
            .args(["-c", script, &post.signature, secret])
            .stdin(Stdio::piped())
            .spawn()
            .expect("it starts");
        child.stdin.take().expect("a pipe").write_all(post.body.as_bytes()).expect("it reads");
        child.wait().expect("it ends").success()
    };
    assert!(is_right(SECRET), "{post:?}");
    assert!(!is_right("another secret"), "{post:?}");
}

fn service(urls: &[String], more: &[&str]) -> Service {
    let folder = Folder::new();
    folder.write("hook.secret", &format!("{SECRET}\n"));
    let mut arguments: Vec<&str> = urls.iter().flat_map(|url| ["--webhook", url]).collect();
    arguments.extend(["--webhook-secret", "hook.secret"]);
    arguments.extend(more);
    let mut service = Service::start_with(folder, &arguments);
    service.request("shop", "mail", "99% < 100ms", "127.0.0.6").expect_code(0);
    service.apply();
    service
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/hook")
}

const DIFFERS: (&str, &str) = ("enforcement_differs", "firing");
const AGREES: (&str, &str) = ("enforcement_differs", "resolved");

#[test]
fn changes_of_alerts_are_posted_and_signed() {
    let ear = Ear::open(testkit::free_address(), Mood::Takes);
    let mut service = service(&[url(ear.address)], &["--silence-max", "1s"]);
    service.fall_back();
    service.apply();
    let mut posts = ear.wait_for(&[DIFFERS, AGREES, ("agent_silent", "firing")]);
    service.apply();
    posts.extend(ear.wait_for(&[("agent_silent", "resolved")]));
    posts.iter().for_each(check_signature);
    for post in &posts {
        let read: Value = serde_json::from_str(&post.body).expect("JSON");
        assert_eq!(read["has_missed"], false);
        assert!(read["cluster"].as_str().is_some_and(|cluster| cluster.len() == 16), "{read}");
        for alert in read["alerts"].as_array().expect("a list") {
            assert_eq!(alert["host"], "here");
            assert!(alert["reason"].as_str().is_some_and(|reason| reason.contains("host here")), "{alert}");
        }
    }
    // Alerts that were taken do not come again.
    let mut known = BTreeSet::new();
    for alert in posts.iter().flat_map(alerts) {
        assert!(known.insert(alert.clone()), "{alert:?} came twice");
    }
}

#[test]
fn nothing_is_lost_when_receiver_and_controller_end() {
    // Nothing listens there at first.
    let address = testkit::free_address();
    let mut service = service(&[url(address)], &[]);
    service.fall_back();
    service.apply();
    // Killed while the change waits, and again while a receiver refuses it.
    service.run_controller();
    let ear = Ear::open(address, Mood::Refuses);
    let refused = ear.others.recv_timeout(TIMEOUT).expect("it tries");
    assert_eq!(
        alerts(&refused).iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
        ["enforcement_differs"; 2]
    );
    service.run_controller();
    ear.set(Mood::Takes);
    let posts = ear.wait_for(&[DIFFERS, AGREES]);
    posts.iter().for_each(check_signature);
    // Taken before a kill, it comes again only if the answer was not noted.
    std::thread::sleep(Duration::from_millis(300));
    service.run_controller();
    assert!(ear.taken.recv_timeout(Duration::from_secs(2)).is_err(), "it was noted that it was taken");
}

#[test]
fn a_deaf_receiver_holds_up_nothing() {
    let deaf = Ear::open(testkit::free_address(), Mood::Deaf);
    let other = Ear::open(testkit::free_address(), Mood::Takes);
    let mut service = service(&[url(deaf.address), url(other.address)], &[]);
    service.fall_back();
    service.apply();
    deaf.others.recv_timeout(TIMEOUT).expect("it was asked");
    other.wait_for(&[DIFFERS, AGREES]);
    // Decisions are made meanwhile, and the controller ends when it is told to.
    let begun = Instant::now();
    service.request("shop", "web", "99% < 150ms", "127.0.0.7").expect_code(0);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let controller = service.controller.take().expect("it runs");
    controller.signal("TERM");
    assert!(controller.ends_well());
}

/// Resident memory of the controller, bytes.
fn resident(service: &Service) -> u64 {
    let process = service.controller.as_ref().expect("it runs").0.id();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Receivers that never take anything, or answer without end, cost a bounded memory, and no other receiver a change.
#[test]
fn bad_receivers_cost_little() {
    /// More than the alerts of this test need, and less than an endless answer sends in a second.
    const MORE_MAX: u64 = 64 << 20;
    let bad = [Mood::Deaf, Mood::EndlessHead, Mood::EndlessBody]
        .map(|mood| Ear::open(testkit::free_address(), mood));
    let other = Ear::open(testkit::free_address(), Mood::Takes);
    let urls: Vec<String> = bad.iter().chain([&other]).map(|ear| url(ear.address)).collect();
    let mut service = service(&urls, &[]);
    service.fall_back();
    service.apply();
    for ear in &bad {
        ear.others.recv_timeout(TIMEOUT).expect("it was asked");
    }
    other.wait_for(&[DIFFERS, AGREES]);
    let before = resident(&service);
    let mut most = before;
    for _ in 0..300 {
        service.fall_back();
        service.apply();
        most = most.max(resident(&service));
    }
    let mut count = 0;
    let begun = Instant::now();
    while count < 600 {
        assert!(begun.elapsed() < TIMEOUT, "{count} of 600 changes");
        count += other.taken.recv_timeout(TIMEOUT).map_or(0, |post| alerts(&post).len());
        most = most.max(resident(&service));
    }
    println!("resident memory: {} KiB, at most {} KiB", before >> 10, most >> 10);
    assert!(most < before + MORE_MAX, "{before} bytes, at most {most}");
}

/// Late requests burn the error budget: both alerts fire, once, and end when the workload leaves.
#[test]
fn burn_rates_alert() {
    let ear = Ear::open(testkit::free_address(), Mood::Takes);
    let mut service = service(&[url(ear.address)], &[]);
    let counted = |requests: u64, late: u64| {
        json!([{ "server": "cache-1", "counters": "one", "waiting": 0, "outstanding": 0, "workloads": [{
            "workload": "shop/mail", "requests": requests, "bytes": 0, "late": late,
            "beyond_limits": 0, "beyond_limits_waited_s": 0.0, "latency_s": 1.0,
            "latencies": [[1_000_000, requests - late], [200_000_000, late]],
        }] }])
    };
    service.observe(&counted(0, 0));
    service.observe(&counted(1000, 1));
    service.observe(&counted(1100, 101));
    let posts = ear.wait_for(&[("budget_burns_slowly", "firing")]);
    // 9.2 % of the requests are late, where 1 % may be: above 6, and below 14.4.
    assert!(posts.iter().flat_map(alerts).all(|alert| alert.0 != "budget_burns_fast"), "{posts:?}");
    service.observe(&counted(1500, 401));
    let posts = ear.wait_for(&[("budget_burns_fast", "firing")]);
    let read: Value = serde_json::from_str(&posts.last().expect("one").body).expect("JSON");
    let found =
        read["alerts"].as_array().expect("a list").iter().find(|it| it["alert"] == "budget_burns_fast");
    let alert = found.expect("it was waited for");
    assert_eq!((alert["tenant"].as_str(), alert["workload"].as_str()), (Some("shop"), Some("mail")));
    let reason = alert["reason"].as_str().expect("text");
    assert!(reason.starts_with("401 of 1500 requests of the last hour took longer than 100ms"), "{reason}");
    // The states are in the history: another run says nothing again, and ends them when the workload leaves.
    service.run_controller();
    service.report(&Value::Null);
    service.observe(&counted(1600, 401));
    service.observe(&counted(2600, 401));
    service.ctl(&["remove", "mail", "--tenant", "shop"]).expect_code(0);
    let posts = ear.wait_for(&[("budget_burns_fast", "resolved"), ("budget_burns_slowly", "resolved")]);
    // A kill between answer and note makes the same change come again.
    let known = alert["seq"].as_u64().expect("a number");
    let fired = posts.iter().flat_map(alerts).filter(|alert| alert.1 == "firing" && alert.2 != known);
    assert_eq!(fired.collect::<Vec<_>>(), []);
}

#[test]
fn bad_settings_are_refused() {
    let folder = Folder::new();
    folder.write("short.secret", "abc\n");
    folder.write("hook.secret", SECRET);
    for (arguments, part) in [
        (&["--webhook", "http://127.0.0.1:1/a"][..], "--webhook-secret"),
        (&["--webhook", "http://127.0.0.1:1/a", "--webhook-secret", "none"], "none"),
        (&["--webhook", "http://127.0.0.1:1/a", "--webhook-secret", "short.secret"], "at least 16"),
        (&["--webhook", "http://10.0.0.1/a", "--webhook-secret", "hook.secret"], "on the way"),
        (&["--webhook", "ftp://10.0.0.1/a", "--webhook-secret", "hook.secret"], "expected https://"),
        (
            &[
                "--webhook",
                "http://[::1]/a",
                "--webhook",
                "http://[::1]/a",
                "--webhook-secret",
                "hook.secret",
            ],
            "given twice",
        ),
    ] {
        let outcome =
            folder.run(&[&["controller", "cluster", "--listen", "127.0.0.1:0"][..], arguments].concat());
        assert!(outcome.code == 2 && outcome.stderr.contains(part), "{arguments:?}: {}", outcome.stderr);
    }
}
