//! One rule for SIGINT, SIGTERM and SIGHUP, whatever the verb: runs that collect end with what is complete and say so,
//! everything else ends at once; the exit code is 3, files are whole or not there, and nothing is left beside them.

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Folder;
use support::cluster::Cluster;

/// What a verb does when it is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It prints what was complete, if anything was.
    WithResults,
    /// It ends at once.
    AtOnce,
}

struct InterruptedRun {
    args: &'static [&'static str],
    ending: Ending,
}

const SCENARIO: &str = "[run]\nrequests = 20000\nreplications = 9000\n[[station]]\nname = \"queue\"\nworkers = 1\n\
    discipline = \"fifo\"\n[[entry]]\narrivals = \"poisson(500/s)\"\nservice = { queue = \"exp(1ms)\" }\n";

/// Verbs with work for much longer than a test lasts.
const ROWS: [InterruptedRun; 7] = [
    InterruptedRun { args: &["simulate", "scenario.toml", "--report", "out"], ending: Ending::WithResults },
    // One replication that takes an hour ends at the first signal as well.
    InterruptedRun {
        args: &[
            "simulate",
            "scenario.toml",
            "--set",
            "run.replications=1",
            "--set",
            "run.requests=4000000000",
            "--report",
            "out",
        ],
        ending: Ending::WithResults,
    },
    InterruptedRun {
        args: &[
            "ideal",
            "--arrivals",
            "poisson(500/s)",
            "--service",
            "exp(1ms)",
            "--requests",
            "4000000000",
            "--discipline",
            "fifo,lifo",
            "--report",
            "out",
        ],
        ending: Ending::WithResults,
    },
    InterruptedRun { args: &["reproduce", "--report", "out"], ending: Ending::WithResults },
    InterruptedRun {
        args: &["plan", "cluster.toml", "--model", "replayed", "-o", "out"],
        ending: Ending::WithResults,
    },
    InterruptedRun {
        args: &["trace", "generate", "poisson", "--rate", "200000/s", "--duration", "60s", "-o", "out.csv"],
        ending: Ending::AtOnce,
    },
    InterruptedRun { args: &["demo", "--workloads", "1000", "--dir", "made"], ending: Ending::AtOnce },
];

/// Starts a verb so that its signals do what they do by default.
fn start(folder: &Folder, args: &[&str]) -> Child {
    let mut command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
    command.args(args);
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.join("cache"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Whether the thread that handles signals is there: a signal before it ends the program as it does by default.
fn is_watching(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGTERM has number 15, and bit 14.
    caught >> 14 & 1 == 1
}

fn partial_files(folder: &Folder) -> Vec<String> {
    let mut found = Vec::new();
    for place in [folder.path().to_owned(), folder.join("made"), folder.join("made/traces")] {
        // Not every verb has made these.
        let entries = std::fs::read_dir(place).into_iter().flatten();
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        found.extend(names.map(|name| name.to_string_lossy().into_owned()));
    }
    found.retain(|name| name.ends_with(".partial"));
    found
}

#[test]
fn every_verb_ends_by_the_same_rule() {
    for InterruptedRun { args, ending } in &ROWS {
        for signal in ["INT", "TERM", "HUP"] {
            // As many as take several times the wait below to place.
            let cluster = Cluster::new(240, 240);
            let folder = &cluster.folder;
            folder.write("scenario.toml", SCENARIO);
            let mut child = start(folder, args);
            testkit::wait_until(Duration::from_secs(60), "signals are handled", || is_watching(&child));
            let begun = Instant::now();
            // Long enough for work to begin; what has ended until then has nothing to interrupt.
            let is_over = |child: &mut Child| child.try_wait().expect("it is ours").is_some();
            while begun.elapsed() < Duration::from_millis(700) && !is_over(&mut child) {
                std::thread::yield_now();
            }
            if is_over(&mut child) {
                testkit::skip(&format!("{args:?} was over before the signal"));
                continue;
            }
            support::servers::signal(&child, signal);
            let status = child.wait().expect("it is ours");
            let mut said = String::new();
            let mut printed = String::new();
            child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("text");
            child.stdout.take().expect("it is piped").read_to_string(&mut printed).expect("text");
            let place = format!("{args:?} {signal}: {said}");
            assert_eq!(status.code(), Some(3), "{place}");
            assert!(said.contains("interrupted"), "{place}");
            assert_eq!(partial_files(folder), Vec::<String>::new(), "{place}");
            if *ending == Ending::AtOnce {
                assert_eq!(printed, "", "{place}");
            }
            // Whatever is there is whole.
            let written = std::fs::read_to_string(folder.join("out")).unwrap_or_default();
            assert!(
                written.is_empty() || written.ends_with("</html>\n") || written.ends_with("}\n"),
                "{place}"
            );
        }
    }
}

#[test]
fn replications_that_were_complete_are_shown() {
    let folder = Folder::new();
    folder.write("scenario.toml", &SCENARIO.replace("20000", "50"));
    let mut child = start(&folder, &["simulate", "scenario.toml", "--json", "--set", "run.requests=2000"]);
    testkit::wait_until(Duration::from_secs(60), "signals are handled", || is_watching(&child));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) && child.try_wait().expect("it is ours").is_none() {
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    if !killed.is_ok_and(|status| status.success()) || child.try_wait().is_ok_and(|ended| ended.is_some()) {
        return testkit::skip("the simulation was over before the signal");
    }
    let output = child.wait_with_output().expect("it is ours");
    assert_eq!(output.status.code(), Some(3));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["verdict"], "interrupted", "{found}");
    let replications = found["replications"].as_u64().expect("a number");
    assert!((1..9000).contains(&replications), "{replications}");
}

/// A program that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn load_writes_what_was_sent_until_a_signal() {
    let folder = Folder::new();
    let mut device = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    device.args(["lab", "device", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut device = Ended(device.spawn().expect("the program starts"));
    let mut said = String::new();
    let output = device.0.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut said).expect("it says where it listens");
    let address = said.trim().rsplit("nbd://").next().expect("an address").to_owned();
    folder.write(
        "load.toml",
        &format!(
            "duration = \"10min\"\n[[workload]]\nname = \"w\"\ntarget = \"nbd://{address}/ssd\"\n\
             closed = {{ outstanding = 1, op = \"read\", size = \"4KiB\" }}\n"
        ),
    );
    for signal in ["INT", "TERM", "HUP"] {
        let mut child = start(&folder, &["load", "load.toml", "-o", "run.parquet", "--json"]);
        testkit::wait_until(Duration::from_secs(60), "signals are handled", || is_watching(&child));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            assert!(child.try_wait().expect("it is ours").is_none(), "it ends too early");
            std::thread::yield_now();
        }
        support::servers::signal(&child, signal);
        let output = child.wait_with_output().expect("it is ours");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{signal}: {said}");
        assert!(said.contains("interrupted"), "{signal}: {said}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON");
        let judged = folder.run(&["verify", "run.parquet", "--slo", "w=50% < 10s"]);
        assert!(judged.code < 2, "{signal}: {}", judged.stderr);
    }
}
