//! `tailwright experiment` with a load of its own: one that it starts, switches, and ends whatever comes. Takes root.

mod support;

use experiment::{ProcessIdentity, identity, is_alive};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::Folder;
use support::servers::{Running, signal};

const LIMIT: Duration = Duration::from_secs(120);

/// memcached by TCP and UDP at one port; none, with a line that says why, without it or where observing is refused.
fn memcached(folder: &Folder) -> Option<(Running, SocketAddr)> {
    testkit::program("memcached")?;
    if !folder.may_observe() {
        return None;
    }
    let address = testkit::free_address();
    let port = address.port().to_string();
    let child = Command::new("memcached")
        .args(["-u", "nobody", "-t", "2", "-l", "127.0.0.1", "-p", &port, "-U", &port])
        .stdin(Stdio::null())
        .spawn();
    let mut server = Running(child.expect("memcached starts"));
    testkit::connect_when_ready(&mut server.0, || TcpStream::connect(address));
    Some((server, address))
}

/// Load files `NAME.toml` for 500 requests per second at a target, with more lines for the workload.
fn write_load(folder: &Folder, name: &str, target: &str, more: &str) {
    let text = format!(
        "duration = \"10min\"\ndrain = \"100ms\"\n\n[[workload]]\nname = \"clients\"\ntarget = \"{target}\"\n\
         arrivals = \"poisson(500/s)\"\nsize = \"64B\"\nconnections = 4\n{more}"
    );
    folder.write(&format!("{name}.toml"), &text);
}

/// A command that notes the value and the number of its process, and becomes a generator.
fn generator(folder: &Folder) -> String {
    let log = folder.join("log");
    let program = env!("CARGO_BIN_EXE_tailwright");
    format!("echo {{}} $$ >> {}; exec {program} load {}/{{}}.toml", log.display(), folder.path().display())
}

/// What was noted: values and processes.
fn noted(folder: &Folder) -> Vec<(String, u32)> {
    let noted = |line: &str| {
        let (value, process) = line.split_once(' ')?;
        Some((value.to_owned(), process.parse().ok()?))
    };
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    log.lines().filter_map(noted).collect()
}

fn is_any_left(folder: &Folder) -> bool {
    noted(folder).into_iter().any(|(_, id)| identity(id).is_some_and(is_alive))
}

#[test]
fn tcp_is_compared_with_udp_of_the_same_port() {
    let folder = Folder::new();
    let Some((server, address)) = memcached(&folder) else { return };
    write_load(&folder, "tcp", &format!("memcached://{address}?keys=10"), "");
    write_load(&folder, "udp", &format!("memcached+udp://{address}?keys=10"), "");
    let command = generator(&folder);
    let state = folder.state();
    let port = address.port().to_string();
    let process = server.0.id().to_string();
    let args = ["experiment", "load=udp", "--load-off", "tcp", "--load-command", &command, "--port", &port];
    let more = ["--pid", &process, "--state", &state, "--period", "500ms", "--guard", "500ms"];
    let outcome = folder.run(&[&args[..], &more[..], &["--max-periods", "12", "--json"]].concat());
    assert!(outcome.code <= 1, "{} {}", outcome.stdout, outcome.stderr);
    let view = outcome.json();
    assert_eq!(view["knob"], "load");
    assert_eq!(view["values"][0]["value"], "load=udp");
    let rounds = view["periods"].as_array().expect("a list");
    assert!(rounds.len() >= 5, "{view}");
    // 250 are expected in each; a busy machine sends them later.
    let requests =
        |arm: usize| -> u64 { rounds.iter().filter_map(|round| round[arm]["requests"].as_u64()).sum() };
    let expected = 250 * rounds.len() as u64;
    for arm in [0, 1] {
        assert!((expected / 2..expected * 2).contains(&requests(arm)), "{arm}: {} {view}", requests(arm));
    }
    // The first one is there before the first period.
    let values: Vec<String> = noted(&folder).into_iter().map(|(value, _)| value).collect();
    let tcp = values.iter().filter(|value| *value == "tcp").count();
    let udp = values.len();
    assert_eq!((values[0].as_str(), tcp), ("tcp", (udp - 1) / 2 + 1), "{values:?}");
    assert!(!is_any_left(&folder));
    assert_eq!(folder.read("state/experiment-load.jsonl"), "");
}

/// An experiment whose load has started something that does not end when it is asked to, and the processes of that load.
fn begin(folder: &Folder, address: SocketAddr) -> (Child, Vec<ProcessIdentity>) {
    write_load(folder, "a", &format!("memcached://{address}?keys=10"), "");
    write_load(folder, "b", &format!("memcached://{address}?keys=10"), "");
    let log = folder.join("log").display().to_string();
    let other = format!("(trap '' TERM INT HUP; exec sleep 1000) & echo other $! >> {log}; ");
    let mut command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["experiment", "load=b", "--load-off", "a", "--load-command"]);
    command.arg(other + &generator(folder)).args(["--period", "1h", "--state", &folder.state()]);
    command.args(["--port", &address.port().to_string()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // The first load waits for requests, and the second one is that of the first period.
    testkit::wait_until(LIMIT, "the load of a period", || noted(folder).len() >= 4);
    let processes = noted(folder)[2..].iter().map(|(_, id)| identity(*id).expect("it runs")).collect();
    (child, processes)
}

#[test]
fn signals_end_the_load() {
    let folder = Folder::new();
    let Some((_server, address)) = memcached(&folder) else { return };
    for name in ["INT", "TERM", "HUP"] {
        let _ = std::fs::remove_file(folder.join("log"));
        let (child, processes) = begin(&folder, address);
        signal(&child, name);
        let output = child.wait_with_output().expect("the program ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(!processes.into_iter().any(is_alive) && !is_any_left(&folder), "{name}: {said}");
        assert_eq!(folder.read("state/experiment-load.jsonl"), "");
    }
}

#[test]
fn a_load_is_ended_by_the_next_run_after_a_kill() {
    let folder = Folder::new();
    let Some((_server, address)) = memcached(&folder) else { return };
    let (mut child, processes) = begin(&folder, address);
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    assert!(processes.iter().all(|process| is_alive(*process)), "nobody has ended the load");
    let state = folder.state();
    let port = address.port().to_string();
    let refused = folder.run(&["experiment", "nothing", "--port", &port, "--state", &state]).expect_code(3);
    assert!(refused.stderr.contains("experiment-load.jsonl: not undone"), "{}", refused.stderr);
    // A process that has got the number since.
    let journal = folder.read("state/experiment-load.jsonl");
    let start = journal.split("\"start\":").nth(1).and_then(|rest| rest.split('}').next()).expect("a start");
    let other = journal.replace(&format!("\"start\":{start}"), "\"start\":7");
    folder.write("state/experiment-load.jsonl", &other);
    folder.run(&["experiment", "--undo", "--state", &state]).expect_code(0);
    assert!(processes.iter().all(|process| is_alive(*process)), "it is not the recorded one");
    folder.write("state/experiment-load.jsonl", &journal);
    // The other journal is damaged, which keeps nothing of this one from being undone.
    folder.write("state/experiment.jsonl", "nonsense\n");
    let undone = folder.run(&["experiment", "--undo", "--state", &state]).expect_code(3);
    assert!(undone.stdout.contains("ended: load `"), "{}", undone.stdout);
    assert!(!processes.into_iter().any(is_alive));
    let said = &undone.stderr;
    assert!(
        said.contains("experiment.jsonl: line 1: expected a record") && said.contains("hint: "),
        "{said}"
    );
    assert_eq!(folder.read("state/experiment.jsonl"), "nonsense\n");
    let again = folder.run(&["experiment", "--undo", "--state", &state, "--json"]).expect_code(3).json();
    assert_eq!(again["changes"], serde_json::json!([]), "{again}");
    let unread = &again["unread"][0];
    assert!(unread["journal"].as_str().is_some_and(|path| path.ends_with("experiment.jsonl")), "{again}");
    assert!(unread["remedy"].is_string() && again["unread"].as_array().map(Vec::len) == Some(1), "{again}");
    std::fs::remove_file(folder.join("state/experiment.jsonl")).expect("it is ours");
    let again = folder.run(&["experiment", "--undo", "--state", &state]).expect_code(0);
    assert_eq!(again.stdout, format!("there is nothing to undo by the journals in {state}\n"));
}

#[test]
fn a_load_that_ends_or_is_silent_is_an_error() {
    let folder = Folder::new();
    let Some((_server, address)) = memcached(&folder) else { return };
    write_load(&folder, "a", &format!("memcached://{address}?keys=10"), "");
    let port = address.port().to_string();
    let state = folder.state();
    let run = |command: &str| {
        let args = ["experiment", "load=b", "--load-off", "a", "--load-command", command, "--port", &port];
        folder.run(&[&args[..], &["--state", &state, "--period", "200ms", "--guard", "300ms"]].concat())
    };
    let program = env!("CARGO_BIN_EXE_tailwright");
    let real = format!("exec {program} load {}/{{}}.toml", folder.path().display());
    // There is no b.toml.
    for (command, said) in [
        ("no-such-generator {}", "ended by itself with exit status: 127"),
        ("sleep 0.2; : {}", "ended by itself with exit status: 0"),
        (&real, "b.toml"),
    ] {
        let outcome = run(command).expect_code(2);
        assert!(
            outcome.stderr.contains(said) && outcome.stderr.contains("run it alone first"),
            "{}",
            outcome.stderr
        );
        assert_eq!(folder.read("state/experiment-load.jsonl"), "");
    }
    let silent = format!("case {{}} in b) exec sleep 1000;; esac; {real}");
    let outcome = run(&silent).expect_code(3);
    assert!(
        outcome.stderr.contains("no request arrived") && outcome.stderr.contains("load=b\n"),
        "{}",
        outcome.stderr
    );
}

/// Clients connect anew in every period, so that what is for connections that begin later acts on them.
#[test]
fn connections_begin_in_the_period_of_their_knob() {
    let folder = Folder::new();
    let Some((_server, address)) = memcached(&folder) else { return };
    if testkit::program("ss").is_none() {
        return;
    }
    let sysctl = "/proc/sys/net/ipv4/tcp_congestion_control";
    let before = std::fs::read_to_string(sysctl).expect("it can be read").trim().to_owned();
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let available = available.expect("it can be read");
    let Some(other) = available.split_whitespace().find(|name| *name != before) else {
        return testkit::skip("there is one congestion control");
    };
    write_load(&folder, "keeps", &format!("memcached://{address}?keys=10"), "");
    let port = address.port().to_string();
    let state = folder.state();
    let knob = format!("congestion-control={other}");
    let command = generator(&folder).replace("{}", "keeps");
    let mut experiment = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    experiment.args(["experiment", &knob, "--port", &port, "--state", &state, "--load-restart"]);
    experiment.args(["--load-command", &command, "--period", "1s", "--max-periods", "12", "--json"]);
    let mut child = Running(experiment.stdout(Stdio::null()).spawn().expect("the program starts"));
    let seen = |name: &str| {
        let filter = format!("( sport = :{port} )");
        let listed = Command::new("ss").args(["-tinH", "state", "established", &filter]).output();
        let text = String::from_utf8_lossy(&listed.expect("ss runs").stdout).into_owned();
        text.lines().any(|line| line.split_whitespace().any(|word| word == name))
    };
    testkit::wait_until(LIMIT, "connections with the knob on", || seen(other));
    testkit::wait_until(LIMIT, "connections with the knob off", || seen(&before) && !seen(other));
    child.signal("TERM");
    let _ = child.0.wait();
    assert_eq!(std::fs::read_to_string(sysctl).expect("it can be read").trim(), before);
}
