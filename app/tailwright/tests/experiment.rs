//! `tailwright experiment` as users run it, on a real server: what helps is found, and whatever ends it, the knob is
//! undone. Takes root.

mod support;

use machine::scheduling::{SchedulingPolicy, ThreadScheduling, scheduling, set_cpus, set_scheduling};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::Folder;
use support::servers::signal;

const LIMIT: Duration = Duration::from_secs(120);

/// memcached, and a client that asks a thousand times a second until the value is dropped.
struct LoadedServer {
    server: Child,
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl LoadedServer {
    /// `None`, with a line that says why, where there is no memcached or observing is refused.
    fn start(folder: &Folder) -> Option<Self> {
        testkit::program("memcached")?;
        if !folder.may_observe() {
            return None;
        }
        let address = testkit::free_address();
        let mut server = Command::new("memcached")
            .args(["-u", "nobody", "-t", "2", "-l", "127.0.0.1", "-p", &address.port().to_string()])
            .spawn()
            .expect("memcached starts");
        let stream = testkit::connect_when_ready(&mut server, || TcpStream::connect(address));
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        std::thread::spawn(move || ask(stream, &told));
        Some(Self { server, address, is_over })
    }

    fn threads(&self) -> Vec<u32> {
        let process = experiment::identity(self.server.id()).expect("memcached runs");
        experiment::threads(process).iter().map(|thread| thread.id).collect()
    }

    fn scheduled(&self) -> Vec<ThreadScheduling> {
        self.threads().into_iter().map(|thread| scheduling(thread).expect("the thread runs")).collect()
    }

    /// Whether all threads are real-time ones.
    fn is_real_time(&self) -> bool {
        self.scheduled().iter().all(|now| now.policy == SchedulingPolicy::Fifo && now.priority == 7)
    }

    /// An experiment with real-time priority on this server, in periods that a test has time to look into.
    fn begin(&self, folder: &Folder) -> Child {
        self.begin_with(folder, &[])
    }

    /// As [`Self::begin`], with other processes besides.
    fn begin_with(&self, folder: &Folder, others: &[u32]) -> Child {
        let mut command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
        command.args(["experiment", "fifo=7", "--period", "3s", "--guard", "100ms", "--state"]);
        let processes = std::iter::once(self.server.id()).chain(others.iter().copied());
        let processes: Vec<String> = processes.map(|id| id.to_string()).collect();
        command.arg(folder.state()).args(["--pid", &processes.join(",")]);
        command.args(["--port", &self.address.port().to_string()]);
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        testkit::wait_until(LIMIT, "the knob is on", || self.is_real_time());
        child
    }
}

impl Drop for LoadedServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn ask(mut stream: TcpStream, is_over: &AtomicBool) {
    let mut answer = [0; 5];
    while !is_over.load(Ordering::Relaxed)
        && stream.write_all(b"get nothing\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_experiment_is_undone_by_the_next_run() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let before = server.scheduled();
    let mut child = server.begin(&folder);
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    assert!(server.is_real_time(), "killed in the middle of a period");
    let state = folder.state();
    let process = server.server.id().to_string();
    let port = server.address.port().to_string();
    let refused = folder
        .run(&["experiment", "nothing", "--pid", &process, "--port", &port, "--state", &state])
        .expect_code(3);
    // The command that is named undoes it: without --state it would find nothing, and say so.
    let named = format!("tailwright experiment --undo --state {state}`");
    assert!(refused.stderr.contains("not undone") && refused.stderr.contains(&named), "{}", refused.stderr);
    // A process that has got the number since, and another boot: nothing is touched.
    let journal = folder.read("state/experiment.jsonl");
    let start = journal.split("\"start\":").nth(1).and_then(|rest| rest.split(['}', ',']).next());
    let start = start.expect("the journal says when the process began");
    for (what, with) in
        [(format!("\"start\":{start}"), "\"start\":7"), (experiment::boot().expect("a boot"), "x")]
    {
        folder.write("state/experiment.jsonl", &journal.replace(&what, with));
        let undone = folder.run(&["experiment", "--undo", "--state", &state, "--json"]).expect_code(0).json();
        let outcomes: Vec<_> =
            undone["changes"].as_array().expect("a list").iter().map(|change| &change["outcome"]).collect();
        assert!(
            outcomes.len() > before.len() && outcomes.iter().all(|outcome| *outcome == "gone"),
            "{undone}"
        );
        assert!(server.is_real_time());
    }
    folder.write("state/experiment.jsonl", &journal);
    let undone = folder.run(&["experiment", "--undo", "--state", &state]).expect_code(0);
    assert!(undone.stdout.contains("restored: scheduling of thread"), "{}", undone.stdout);
    assert_eq!(server.scheduled(), before);
    let again = folder.run(&["experiment", "--undo", "--state", &state]).expect_code(0);
    assert_eq!(again.stdout, format!("there is nothing to undo by the journals in {state}\n"));
    let missing = folder.run(&["experiment", "--undo", "--state", "no-such"]).expect_code(2);
    assert!(missing.stderr.contains("there is no folder no-such"), "{}", missing.stderr);
    assert!(!folder.join("no-such").exists());
}

#[test]
fn signals_undo_the_knob() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let before = server.scheduled();
    for name in ["INT", "TERM", "HUP"] {
        let child = server.begin(&folder);
        signal(&child, name);
        let output = child.wait_with_output().expect("the program ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said} {}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("ended because it was stopped"), "{said}");
        assert_eq!(server.scheduled(), before, "{name}");
        assert_eq!(folder.read("state/experiment.jsonl"), "");
    }
}

#[test]
fn what_somebody_else_sets_is_left_alone() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let child = server.begin(&folder);
    let thread = server.threads()[1];
    let theirs = ThreadScheduling::real_time(SchedulingPolicy::RoundRobin, 3);
    set_scheduling(thread, &theirs).expect("root may");
    let output = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("another program changed") && said.contains("not restored"), "{said}");
    for (other, now) in server.threads().into_iter().zip(server.scheduled()) {
        assert!(if other == thread { now == theirs } else { !now.policy.is_real_time() }, "{other}: {now}");
    }
}

/// A program that never sleeps, on the CPU that the server is kept on.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn priority_helps_beside_a_hog() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let hog = Hog(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("there is a shell"));
    for thread in server.threads().into_iter().chain([hog.0.id()]) {
        set_cpus(thread, &[0].into()).expect("root may");
    }
    // One that counts so much that a server that wakes up beside it waits for the end of its slice.
    for thread in server.threads() {
        set_scheduling(thread, &ThreadScheduling::ordinary(0)).expect("root may");
    }
    set_scheduling(hog.0.id(), &ThreadScheduling::ordinary(-10)).expect("root may");
    let before = server.scheduled();
    let process = server.server.id().to_string();
    let port = server.address.port().to_string();
    let state = folder.state();
    let args = ["experiment", "fifo", "--percentile", "99", "--period", "500ms", "--guard", "100ms"];
    let more = ["--pid", &process, "--port", &port, "--state", &state, "--json"];
    let view = folder.run(&[&args[..], &more[..]].concat()).expect_code(0).json();
    let value = &view["values"][0];
    assert_eq!(
        (value["verdict"].as_str(), view["ended"].as_str()),
        (Some("helps"), Some("it is decided")),
        "{view}"
    );
    let off = value["tested"]["off"].as_f64();
    let on = value["tested"]["on"].as_f64();
    assert!(off.zip(on).is_some_and(|(off, on)| on < off), "{value}");
    assert!(value["cpu_per_request"]["on"].is_f64(), "{value}");
    let rounds = view["rounds"].as_u64().expect("a number");
    assert!(
        (6..=40).contains(&rounds)
            && view["periods"].as_array().is_some_and(|all| all.len() as u64 == rounds)
    );
    assert_eq!(server.scheduled(), before);
}

#[test]
fn a_command_is_applied_and_reverted_with_its_value() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let port = server.address.port().to_string();
    let state = folder.state();
    let log = folder.join("log").display().to_string();
    let apply = format!("echo on {{}} >> {log}");
    let revert = format!("echo off {{}} >> {log}");
    let args =
        ["experiment", "command=a,b", "--port", &port, "--state", &state, "--period", "50ms", "--guard"];
    let more = ["20ms", "--apply", &apply, "--revert", &revert, "--max-periods", "21", "--seed", "3"];
    let outcome = folder.run(&[&args[..], &more[..]].concat());
    assert!(outcome.code <= 1, "{}", outcome.stderr);
    // Sentences are broken where the terminal ends; tables cannot be.
    let cells: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains("  ")).collect();
    assert!(cells.len() > 10 && cells.iter().all(|line| line.chars().count() <= 100), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("command=a") && outcome.stdout.contains("p99, tested"),
        "{}",
        outcome.stdout
    );
    let log = folder.read("log");
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() >= 24 && lines.len().is_multiple_of(2), "{log}");
    for pair in lines.chunks(2) {
        assert_eq!(pair[0].replace("on", "off"), pair[1], "{log}");
    }
    assert!(lines.contains(&"on a") && lines.contains(&"on b"), "{log}");
}

#[test]
fn the_end_of_the_server_ends_it() {
    let folder = Folder::new();
    let Some(mut server) = LoadedServer::start(&folder) else { return };
    let child = server.begin(&folder);
    server.server.kill().expect("a child can be killed");
    let output = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("the server ended"), "{said}");
    assert_eq!(folder.read("state/experiment.jsonl"), "");
}

/// The rest of the server is as it was, and what was measured is printed.
#[test]
fn the_end_of_one_of_several_processes_ends_it() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let before = server.scheduled();
    let mut other = Command::new("sleep").arg("1000").spawn().expect("there is a sleep");
    let child = server.begin_with(&folder, &[other.id()]);
    other.kill().and_then(|()| other.wait()).expect("it is our child");
    let output = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said} {errors}");
    assert!(said.contains(&format!("ended because process {} of the server ended", other.id())), "{said}");
    assert_eq!(server.scheduled(), before);
    assert_eq!(folder.read("state/experiment.jsonl"), "");
}

/// Nothing is played that nobody can be told about, and what was begun is undone.
#[test]
fn whoever_stops_reading_ends_it() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["experiment", "nothing", "--port", "80", "--state", &folder.state()]).stdout(writer);
    let output = command.stderr(Stdio::piped()).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("nobody reads the standard output"), "{said}");
    assert!(!folder.join("state/experiment.jsonl").exists(), "nothing was begun");
    let Some(server) = LoadedServer::start(&folder) else { return };
    let before = server.scheduled();
    let mut child = server.begin(&folder);
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("nobody reads the standard output"), "{said}");
    assert_eq!(server.scheduled(), before);
    assert_eq!(folder.read("state/experiment.jsonl"), "");
}

#[test]
fn the_end_of_the_load_ends_it() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let port = server.address.port().to_string();
    let state = folder.state();
    let args = ["experiment", "nothing", "--port", &port, "--state", &state, "--load-command", "sleep 1"];
    let outcome = folder.run(&[&args[..], &["--period", "100ms", "--guard", "50ms"]].concat()).expect_code(1);
    assert!(outcome.stdout.contains("ended because the load ended"), "{}", outcome.stdout);
}

#[test]
fn without_load_or_rights_nothing_is_changed() {
    let folder = Folder::new();
    let Some(server) = LoadedServer::start(&folder) else { return };
    let before = server.scheduled();
    let process = server.server.id().to_string();
    let state = folder.state();
    let idle = testkit::free_address().port().to_string();
    let args = ["experiment", "fifo", "--pid", &process, "--port", &idle, "--state", &state];
    let outcome = folder.run(&[&args[..], &["--period", "100ms"]].concat()).expect_code(3);
    assert!(outcome.stderr.contains("no request arrived"), "{}", outcome.stderr);
    assert_eq!(server.scheduled(), before);
    if testkit::program("setpriv").is_none() {
        return;
    }
    let copy = folder.join("tailwright");
    std::fs::copy(env!("CARGO_BIN_EXE_tailwright"), &copy).expect("the program can be copied");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let as_nobody = |knob: &str, of: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["--inh-caps=-all,+bpf,+perfmon", "--ambient-caps=-all,+bpf,+perfmon"]);
        command.arg(&copy).args([
            "experiment",
            knob,
            "--pid",
            of,
            "--port",
            &idle,
            "--period",
            "100ms",
            "--state",
        ]);
        let output = command.arg(folder.join("nobody")).output().expect("setpriv runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    std::fs::create_dir(folder.join("nobody")).expect("it is ours");
    std::os::unix::fs::chown(folder.join("nobody"), Some(65534), Some(65534)).expect("root may");
    // memcached runs as nobody, too: to make it SCHED_IDLE is allowed, to make it an ordinary process again is not.
    for knob in ["fifo", &format!("demote={process}"), "nice=-3"] {
        let (code, said) = as_nobody(knob, &process);
        assert!(code == Some(3) && said.contains("CAP_SYS_NICE"), "{knob}: {said}");
        assert_eq!(server.scheduled(), before, "{knob}");
    }
}

/// Root of a user namespace has CAP_SYS_NICE, with which it may nothing here.
/// Listens with MPTCP, and answers each line on connections of several clients.
const MULTIPATH_SERVER: &str = r"
import socket, threading
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listening.bind(('127.0.0.1', 0))
listening.listen(16)
print(listening.getsockname()[1], flush=True)
def serve(connection):
    while connection.recv(64): connection.sendall(b'END\r\n')
while True: threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
";

/// Sends a line every millisecond by MPTCP.
const MULTIPATH_CLIENT: &str = r"
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
s.connect(('127.0.0.1', int(sys.argv[1])))
while True:
    s.sendall(b'get nothing\r\n')
    s.recv(64)
    time.sleep(0.001)
";

/// Starts a script of Python; none where it is not installed.
fn python(script: &str, argument: &str) -> Option<support::servers::Running> {
    testkit::program("python3")?;
    let child = Command::new("python3").args(["-c", script, argument]).stdout(Stdio::piped()).spawn();
    Some(support::servers::Running(child.expect("it was found")))
}

/// One client's requests are seen, and another's are not: a verdict would be about the first one alone.
#[test]
fn a_server_that_is_seen_in_part_is_not_judged() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let Some(mut server) = python(MULTIPATH_SERVER, "") else { return };
    let mut line = String::new();
    let output = server.0.stdout.take().expect("it is piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("it prints");
    let Ok(port) = line.trim().parse::<u16>() else {
        testkit::skip("a kernel with MPTCP");
        return;
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let plain = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        let stream = TcpStream::connect(address).expect("it listens");
        move || ask(stream, &is_over)
    });
    let state = folder.state();
    let process = server.0.id().to_string();
    let port = port.to_string();
    let args = ["experiment", "nothing", "--pid", &process, "--port", &port, "--state", &state];
    let args = [&args[..], &["--period", "200ms", "--guard", "50ms", "--max-periods", "14"]].concat();
    folder.run(&args).expect_code(1);
    let client = python(MULTIPATH_CLIENT, &port);
    let refused = folder.run(&args).expect_code(3);
    assert!(
        refused.stderr.contains(&format!("port {port}: no verdict, because the server took"))
            && refused.stderr.contains("MPTCP"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stdout.contains("helps"), "{}", refused.stdout);
    is_over.store(true, Ordering::Relaxed);
    plain.join().expect("it ends");
    let refused = folder.run(&args).expect_code(3);
    assert!(
        refused.stderr.contains("no verdict") && !refused.stderr.contains("no request"),
        "{}",
        refused.stderr
    );
    drop(client);
}

#[test]
fn rights_of_a_user_namespace_do_not_count() {
    let folder = Folder::new();
    if testkit::program("unshare").is_none() {
        return;
    }
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user"]);
        command
    };
    if !unshared().arg("true").status().is_ok_and(|status| status.success()) {
        return testkit::skip("user namespaces cannot be made");
    }
    let own = std::process::id().to_string();
    let nice = (scheduling(std::process::id()).expect("it runs").nice - 1).to_string();
    let mut command = unshared();
    command.arg(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["experiment", &format!("nice={nice}"), "--port", "80", "--pid", &own, "--state"]);
    let output = command.arg(folder.state()).output().expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("CAP_SYS_NICE"), "{said}");
}

#[test]
fn knobs_are_listed_with_what_is_known_about_them() {
    let folder = Folder::new();
    let narrow = folder.run_on_terminal(&["experiment", "--list"]).shown;
    assert!(narrow.lines().all(|line| line.chars().count() <= 100), "{narrow}");
    let table = folder.run(&["experiment", "--list", "--wide"]).expect_code(0).stdout;
    for knob in experiment::KNOBS {
        assert!(table.contains(knob.sets), "nothing is cut: {}: {table}", knob.name);
    }
    let listed: Value = folder.run(&["experiment", "--list", "--json"]).expect_code(0).json();
    let listed = listed["knobs"].as_array().expect("a list");
    assert_eq!(listed.len(), experiment::KNOBS.len());
    for knob in listed {
        let name = knob["knob"].as_str().expect("a name");
        assert!(table.lines().any(|line| line.starts_with(name)), "{name}");
        assert_eq!(knob["available"] == true, knob["why_not"].is_null(), "{knob}");
        let details = folder.run(&["experiment", "--list", name]).expect_code(0).stdout;
        assert!(details.starts_with(name) && details.contains("undone"), "{details}");
        assert!(details.lines().all(|line| line.chars().count() <= 130), "{details}");
    }
}

/// Without a file system of BPF, the experiment says so before its load begins, and so does the list.
#[test]
fn a_missing_bpffs_is_found_before_the_run() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = server.local_addr().expect("it is bound").port();
    let pid = std::process::id();
    let program = env!("CARGO_BIN_EXE_tailwright");
    let state = folder.state();
    let script = format!(
        "mount -t tmpfs none /sys/fs/bpf || exit 77\n{program} experiment --list > list.txt\n\
         exec {program} experiment nodelay=on --pid {pid} --port {port} --state {state} --load-command 'touch ran'"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(folder.path());
    let Ok(done) = command.output() else { return testkit::skip("there is no unshare") };
    if done.status.code() == Some(77) {
        return testkit::skip("nothing may be mounted here");
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("no file system of BPF") && stderr.contains("mount -t bpf"), "{stderr}");
    assert!(!folder.join("ran").exists(), "the load has begun");
    let list = folder.read("list.txt");
    let row = list.lines().find(|line| line.starts_with("nodelay ")).expect("a row");
    assert!(row.contains(" no ") && list.contains("nodelay: /sys/fs/bpf: no file system of BPF"), "{list}");
}

/// A knob that lacks nothing but a flag names it; other flags make it available.
#[test]
fn the_list_names_the_flags_that_a_knob_needs() {
    let folder = Folder::new();
    let list = folder.run(&["experiment", "--list"]).expect_code(0).stdout;
    for (knob, flag) in [
        ("rps", "with --device"),
        ("command", "with --apply and --revert"),
        ("load", "with --load-command and --load-off"),
    ] {
        let row = list.lines().find(|line| line.starts_with(&format!("{knob} "))).expect("a row");
        assert!(row.contains(flag), "{row}");
    }
    assert!(!list.contains(": expected --"), "{list}");
    let given = ["experiment", "--list", "--apply", "true", "--revert", "true"];
    let list = folder.run(&given).expect_code(0).stdout;
    let row = list.lines().find(|line| line.starts_with("command ")).expect("a row");
    assert!(row.contains(" yes "), "{row}");
    let given = [&given[..], &["--json"]].concat();
    let knobs: Value = folder.run(&given).expect_code(0).json();
    let rps = knobs["knobs"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|knob| knob["knob"] == "rps")
        .expect("it is listed");
    assert_eq!(rps["missing_flags"], serde_json::json!(["--device"]), "{rps}");
}

#[test]
fn what_is_wrong_says_how() {
    let folder = Folder::new();
    let state = folder.state();
    let own = std::process::id().to_string();
    let same_nice = format!("nice={}", scheduling(std::process::id()).expect("it runs").nice);
    for (args, part) in [
        (&["experiment", "fifi", "--port", "80"][..], "there is no knob 'fifi'"),
        (&["experiment", "fifi", "--port", "80"], "did you mean fifo?"),
        (&["experiment", "fifo=0", "--port", "80", "--pid", &own], "a number from 1 to 99"),
        (&["experiment", "fifo", "--port", "80"], "fifo: it is about threads: expected --pid"),
        (&["experiment", "fifo", "--port", "80", "--pid", "999999999"], "no process 999999999"),
        (&["experiment", "nice=1,1", "--port", "80", "--pid", &own], "different values"),
        (&["experiment", &same_nice, "--port", "80", "--pid", &own], "it is so already"),
        (&["experiment", "pin=x", "--port", "80", "--pid", &own], "expected CPUs"),
        (&["experiment", "pin=8191", "--port", "80", "--pid", &own], "there is no CPU 8191"),
        (&["experiment", "rps=0", "--port", "80"], "--device"),
        (&["experiment", "rps=0", "--port", "80", "--device", "../lo"], "no network device"),
        (&["experiment", "queue-depth", "--port", "80", "--disk", "nodisk"], "no disk 'nodisk'"),
        (&["experiment", "demote", "--port", "80"], "expected a value"),
        (&["experiment", "congestion-control=x", "--port", "80"], "expected one of"),
        (&["experiment", "command", "--port", "80"], "--apply"),
        (&["experiment", "load", "--port", "80"], "load: expected a value"),
        (&["experiment", "load=a", "--port", "80"], "load=a: expected --load-command COMMAND with {}"),
        (
            &["experiment", "load=a", "--port", "80", "--load-command", "true", "--load-off", "b"],
            "expected --load-command COMMAND with {}",
        ),
        (
            &["experiment", "load=a", "--port", "80", "--load-command", "true {}", "--load-off", "a"],
            "nothing to compare with",
        ),
        (&["experiment", "nothing", "--port", "80", "--load-restart"], "--load-command"),
        (&["experiment", "nothing", "--port", "80", "--period", "0s"], "at least 10ms"),
        (&["experiment", "nothing", "--port", "80", "--period", "1ns"], "at least 10ms"),
        (&["experiment", "nothing", "--port", "80", "--max-periods", "10"], "expected 12 to 400"),
        (&["experiment", "nothing", "--port", "80", "--confidence", "1"], "from 0.5 to below 1"),
        (&["experiment", "nothing"], "--port"),
        (&["experiment"], "KNOB"),
    ] {
        let needs_state = args.len() > 2;
        let more = if needs_state { vec!["--state", &state] } else { Vec::new() };
        let outcome = folder.run(&[args, &more[..]].concat()).expect_code(2);
        assert!(outcome.stderr.contains(part), "{args:?}: {part}: {}", outcome.stderr);
    }
    folder.write("state/experiment.jsonl", "nonsense\n");
    let refused = folder.run(&["experiment", "nothing", "--port", "80", "--state", "state"]).expect_code(3);
    let named = format!("`tailwright experiment --undo --state {state}`");
    assert!(refused.stderr.contains(&named), "the path is that of any folder: {}", refused.stderr);
    let damaged = folder.run(&["experiment", "--undo", "--state", &state]).expect_code(3);
    assert!(damaged.stderr.contains("line 1: expected a record"), "{}", damaged.stderr);
}
