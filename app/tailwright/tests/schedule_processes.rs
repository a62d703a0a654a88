//! The processes of `tailwright schedule`: they end when they should, and a tier serves only what it understands.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::Folder;
use support::bench::{alone, has_two_cpus, number};
use support::servers::signal;
use testkit::wait_until;

/// How long a process may take to go: far above what it takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A bench that goes on for long, with the processes of its tiers.
struct LongBench(Child);

impl LongBench {
    fn start(folder: &Folder) -> Self {
        let options = [
            "schedule",
            "demo",
            "--json",
            "--duration",
            "200ms",
            "--repetitions",
            "500",
            "--modes",
            "fcfs,limited",
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        command.args(options).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("the program starts"))
    }

    /// Its children: the tiers of the play that goes on.
    fn tiers(&self) -> Vec<u32> {
        let id = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
    }

    /// All tiers until it has had so many.
    fn wait_for_tiers(&self, count: usize) -> Vec<u32> {
        let mut seen: Vec<u32> = Vec::new();
        wait_until(PATIENCE, "tiers were started", || {
            let tiers = self.tiers();
            seen.extend(tiers.iter().filter(|id| !seen.contains(id)).copied().collect::<Vec<_>>());
            seen.len() >= count
        });
        seen
    }
}

/// Whether a process is there and no zombie.
fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn an_interrupt_ends_it_with_what_is_complete_and_leaves_nothing() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    let mut bench = LongBench::start(&folder);
    // Two tiers in each of two modes are a repetition.
    let tiers = bench.wait_for_tiers(9);
    signal(&bench.0, "INT");
    let mut text = String::new();
    bench.0.stdout.take().expect("it is piped").read_to_string(&mut text).expect("it is text");
    assert_eq!(bench.0.wait().expect("it ends").code(), Some(3), "{text}");
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let run = &document["runs"][0];
    assert_eq!(run["stopped"], true);
    assert!((1.0..500.0).contains(&number(&run["repetitions"])), "{run}");
    assert!(!tiers.into_iter().any(is_alive));
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0, "files are left");
}

#[test]
fn tiers_do_not_outlive_a_bench_that_is_killed() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let mut bench = LongBench::start(&Folder::new());
    let tiers = bench.wait_for_tiers(2);
    bench.0.kill().expect("it runs");
    bench.0.wait().expect("it ends");
    wait_until(PATIENCE, "all tiers are gone", || !tiers.iter().any(|id| is_alive(*id)));
}

/// A tier that is told what to do by hand.
struct HandledTier {
    child: Child,
    port: u16,
    output: BufReader<std::process::ChildStdout>,
}

impl HandledTier {
    fn start(mode: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        command.args(["schedule", "tier"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut tier = Self { child, port: 0, output };
        let port = tier.hear();
        tier.port = u16::try_from(port["port"].as_u64().expect("a port")).expect("a port");
        let settings =
            format!(r#"{{"tier":0,"cpus":[0],"mode":"{mode}","limit":1,"tiers":["127.0.0.1:1"]}}"#);
        let input = tier.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "{settings}").expect("it listens");
        assert!(tier.hear()["lacks"].is_null());
        tier
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it speaks");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends bytes on a connection of their own and returns what comes back until it is closed or answered.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).expect("it answers");
        String::from_utf8_lossy(&answer[..count]).into_owned()
    }

    fn finish(mut self) -> Value {
        drop(self.child.stdin.take());
        let report = self.hear();
        assert!(self.child.wait().expect("it ends").success());
        report
    }
}

#[test]
fn a_tier_serves_what_it_understands_and_reports_it_once() {
    let tier = HandledTier::start("fcfs");
    let request = |number: u32, headers: &str| {
        format!("GET / HTTP/1.1\r\ntailwright-request: {number}\r\n{headers}\r\n")
    };
    let good = tier.ask(&request(1, "tailwright-route: 0:1000000\r\nbaggage: user=7,tailwright-start=5\r\n"));
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
    for (bad, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("POST / HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (request(2, ""), "400"),
        (request(3, "tailwright-route: 7:1\r\n"), "400"),
        (request(4, "tailwright-route: 0:-1\r\n"), "400"),
        (format!("GET /{}", "x".repeat((16 << 10) - 5)), "400"),
        // Nobody is at the next tier.
        (request(5, "tailwright-route: 0:1,9:1\r\n"), "502"),
    ] {
        let answer = tier.ask(&bad);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bad:.60}: {answer}");
    }
    let without = tier.ask(&request(6, "tailwright-route: 0:1000000\r\nbaggage: tailwright-start=x\r\n"));
    assert!(without.starts_with("HTTP/1.1 200"), "{without}");
    let report = tier.finish();
    let visits = report["visits"].as_array().expect("visits");
    let numbers: Vec<&Value> = visits.iter().map(|visit| &visit["request"]).collect();
    assert_eq!(numbers, [1, 5, 6]);
    assert!(visits.iter().all(|visit| number(&visit["arrival"]) < number(&visit["end"])));
    // A start in 1970 is held to the greatest age.
    assert!(number(&visits[0]["key"]) < number(&visits[2]["key"]), "{report}");
    assert!(number(&report["cpu_ns"]) >= 1e6);
}

/// What is not a deadline that an entry point gives orders nobody before others.
#[test]
fn a_tier_by_deadline_orders_by_deadlines_that_can_be() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let tier = HandledTier::start("deadline-admission");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let start = u64::try_from(since.as_nanos()).expect("before 2554");
    let deadlines =
        [Some(start + 50_000_000), None, Some(start - 1), Some(1), Some(start + DAY_NS + 1), Some(u64::MAX)];
    for (number, deadline) in deadlines.into_iter().enumerate() {
        let deadline = deadline.map(|ns| format!(",tailwright-deadline={ns}")).unwrap_or_default();
        let headers = format!("tailwright-route: 0:1000\r\nbaggage: tailwright-start={start}{deadline}\r\n");
        let answer = tier.ask(&format!("GET / HTTP/1.1\r\ntailwright-request: {number}\r\n{headers}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let report = tier.finish();
    let keys = report["visits"]
        .as_array()
        .expect("visits")
        .iter()
        .map(|visit| visit["key"].as_u64().expect("a key"));
    let last = start + DAY_NS;
    assert_eq!(keys.collect::<Vec<u64>>(), [start + 50_000_000, last, last, last, last, last]);
}

#[test]
fn a_tier_that_is_told_nonsense_ends() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["schedule", "tier"]).stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tailwright schedule bench"));
}
