//! `tailwright observe` as users run it: a real server, rights, signals, and nothing left behind. Takes root.

mod support;

use serde_json::Value;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use support::Folder;
use support::observer::{echo_server, observing, printed_document};
use support::servers::signal;

const LIMIT: Duration = Duration::from_secs(60);

fn ask(server: SocketAddr, requests: usize) {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nodelay(true).expect("a TCP socket has this option");
    for _ in 0..requests {
        let mut byte = [7];
        stream.write_all(&byte).expect("the server reads");
        stream.read_exact(&mut byte).expect("the server answers");
    }
}

/// Asks again and again for so long.
fn ask_until(server: SocketAddr, time: Duration) {
    let begin = std::time::Instant::now();
    while begin.elapsed() < time {
        ask(server, 50);
    }
}

fn program() -> Command {
    testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"))
}

#[test]
fn a_server_is_seen_until_a_signal() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = echo_server();
    for name in ["INT", "TERM", "HUP"] {
        let file = folder.join("live.parquet");
        let child = observing(program(), server.port(), &["--json", "-o", &file.display().to_string()]);
        ask(server, 200);
        signal(&child, name);
        let view = printed_document(child, 0);
        assert_eq!(
            (view["requests"].as_u64(), view["ended"].as_str()),
            (Some(200), Some("it was stopped")),
            "{view}"
        );
        let shares = view["stages"].as_array().expect("stages are a list").iter();
        let sum: f64 = shares.filter_map(|stage| stage["share_of_variance"].as_f64()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{view}");
        for near in view["causes"]["percentiles"].as_array().expect("percentiles are a list") {
            let of = |field: &str| {
                near["causes"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|cause| cause[field].as_f64())
                    .sum::<f64>()
            };
            let [least, most] =
                ["latency_min_s", "latency_max_s"].map(|field| near[field].as_f64().expect("a time"));
            assert!((of("share") - 1.0).abs() < 1e-9, "{near}");
            assert!((least..=most).contains(&of("mean_s")) || (of("mean_s") - most).abs() < 1e-12, "{near}");
        }
        let written = trace::observations::read(&file).expect("the file can be read");
        assert_eq!((written.requests.len(), written.stages.len()), (200, 7));
        for (request, times) in written.requests.iter().zip(written.stage_times.chunks(7)) {
            assert_eq!(request.latency().map(|time| time.0), Some(times.iter().map(|time| time.0).sum()));
        }
    }
}

#[test]
fn the_tables_have_100_columns_and_the_file_is_judged() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = echo_server();
    let child =
        observing(program(), server.port(), &["-o", &folder.join("live.parquet").display().to_string()]);
    ask(server, 200);
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the program ends");
    let text = String::from_utf8(output.stdout).expect("tables are text");
    assert!(
        text.contains("200 requests") && text.contains("T6-T1") && text.contains("what the tail is made of"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("programs in the kernel took "), "{text}");
    assert!(text.contains("joining events took ") && !text.contains("TCP connections"), "{text}");
    let slo = format!("port-{}=50% < 1h", server.port());
    let judged = folder.run(&["verify", "live.parquet", "--slo", &slo, "--json"]).expect_code(0).json();
    let workload = &judged["workloads"][0];
    assert_eq!(workload["verdict"], "met", "{judged}");
    assert!(judged.to_string().contains("socket-to-parse"), "{judged}");
}

#[test]
fn block_devices_as_users_ask_for_them() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let unknown = folder.run(&["observe", "--block", "--disk", "no/such"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("no/such") && unknown.stderr.contains("/sys/class/block"),
        "{}",
        unknown.stderr
    );
    assert_eq!(folder.run(&["observe", "--block", "--port", "1"]).code, 2);
    assert_eq!(folder.run(&["observe", "--disk", "sda", "--port", "1"]).code, 2);
    let alone = folder.run(&["observe", "--disk", "sda"]);
    assert!(alone.code == 2 && alone.stderr.contains("--disk needs --block"), "{}", alone.stderr);
    assert!(!alone.stderr.contains("--port"), "{}", alone.stderr);
    let some = folder.run(&["observe", "--block", "--duration", "50ms", "--json"]);
    let view: Value = serde_json::from_str(&some.stdout).expect("it prints JSON");
    let count = view["requesters"].as_array().expect("requesters are a list").len();
    assert_eq!(some.code, i32::from(count == 0), "{view}");
}

#[test]
fn the_tables_of_block_devices_give_way_to_a_terminal() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = writer_with_a_long_name(folder.join("written"), is_over.clone());
    let seen = folder.run_on_terminal(&["observe", "--block", "--duration", "1s"]);
    is_over.store(true, Ordering::Relaxed);
    writer.join().expect("files can be written");
    assert!(seen.shown.contains("block devices: "), "{}", seen.shown);
    assert!(seen.shown.lines().all(|line| line.chars().count() <= 100), "{}", seen.shown);
    if !seen.shown.contains(WRITER.split_at(15).0) {
        testkit::skip("files are on no device with requests of its own");
    }
}

/// The kernel keeps 15 bytes of it. Two of them do not fit 100 columns beside the numbers.
const WRITER: &str = "a_writer_with_a_long_name";

/// Writes a file to its device again and again.
fn writer_with_a_long_name(path: PathBuf, is_over: Arc<AtomicBool>) -> JoinHandle<()> {
    let write = move || {
        let mut file = std::fs::File::create(&path).expect("temporary files can be written");
        while !is_over.load(Ordering::Relaxed) {
            file.write_all(&[7; 65_536]).and_then(|()| file.sync_data()).expect("a file can be written");
            file.seek(SeekFrom::Start(0)).expect("a file has a beginning");
        }
    };
    std::thread::Builder::new().name(WRITER.to_owned()).spawn(write).expect("threads start")
}

#[test]
fn a_killed_observer_leaves_no_program() {
    let folder = Folder::new();
    if testkit::program("bpftool").is_none() || !folder.may_observe() {
        return;
    }
    let before = observing_programs();
    let mut child = observing(program(), echo_server().port(), &[]);
    // Those of other tests, which run at the same time, go as well when these end.
    let mut ours = observing_programs();
    ours.retain(|id| !before.contains(id));
    assert!(ours.len() >= 8, "{ours:?}");
    child.kill().expect("a child can be killed");
    child.wait().expect("a killed child ends");
    testkit::wait_until(LIMIT, "the kernel takes the programs away", || {
        let left = observing_programs();
        !ours.iter().any(|id| left.contains(id))
    });
}

/// The numbers of the programs in the kernel whose names are those of observers.
fn observing_programs() -> Vec<u64> {
    let output = Command::new("bpftool").args(["-j", "prog", "show"]).output().expect("bpftool runs");
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).expect("bpftool prints JSON");
    let is_ours = |program: &&Value| program["name"].as_str().is_some_and(|name| name.starts_with("tw_"));
    all.iter().filter(is_ours).filter_map(|program| program["id"].as_u64()).collect()
}

#[test]
fn the_end_of_the_server_ends_it() {
    let folder = Folder::new();
    if testkit::program("memcached").is_none() || !folder.may_observe() {
        return;
    }
    let address = testkit::free_address();
    let mut server = Command::new("memcached")
        .args(["-u", "nobody", "-l", "127.0.0.1", "-p", &address.port().to_string()])
        .spawn()
        .expect("memcached starts");
    let mut stream = testkit::connect_when_ready(&mut server, || TcpStream::connect(address));
    let child = observing(program(), address.port(), &["--json"]);
    stream.write_all(b"get nothing\r\n").expect("the server reads");
    stream.read_exact(&mut [0; 5]).expect("the server answers");
    server.kill().expect("a child can be killed");
    server.wait().expect("a killed child ends");
    let view = printed_document(child, 0);
    assert_eq!(
        (view["requests"].as_u64(), view["ended"].as_str()),
        (Some(1), Some("the server ended")),
        "{view}"
    );
}

#[test]
fn the_end_of_a_server_that_has_read_nothing_ends_it() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = server.local_addr().expect("a listener has an address").port();
    let mut child = observing(program(), port, &["--json"]);
    // It is looked for once a second.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().expect("a child can be asked").is_none(), "the server listens");
    drop(server);
    let view = printed_document(child, 1);
    assert_eq!(
        (view["requests"].as_u64(), view["ended"].as_str()),
        (Some(0), Some("the server ended")),
        "{view}"
    );
}

/// The program where everybody may run it, as nobody with these capabilities.
fn as_nobody(folder: &Folder, capabilities: &str) -> Command {
    let copy = folder.join("tailwright");
    if !copy.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_tailwright"), &copy).expect("the program can be copied");
        for path in [folder.path(), &copy] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
                .expect("the files are ours");
        }
    }
    nobody_runs(&copy, capabilities)
}

fn nobody_runs(program: &Path, capabilities: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args([format!("--inh-caps={capabilities}"), format!("--ambient-caps={capabilities}")]);
    command.arg(program);
    command
}

#[test]
fn nobody_with_two_capabilities_observes_and_without_is_told_which() {
    let folder = Folder::new();
    if testkit::program("setpriv").is_none() || !folder.may_observe() {
        return;
    }
    let server = echo_server();
    let child = observing(as_nobody(&folder, "-all,+bpf,+perfmon"), server.port(), &["--json"]);
    ask(server, 50);
    signal(&child, "INT");
    let view = printed_document(child, 0);
    assert_eq!((view["requests"].as_u64(), view["cost"].is_null()), (Some(50), true), "{view}");
    for (capabilities, missing) in [
        ("-all,+bpf", "observing takes CAP_PERFMON,"),
        ("-all,+perfmon", "observing takes CAP_BPF,"),
        ("-all", "observing takes CAP_BPF and CAP_PERFMON,"),
    ] {
        let output = as_nobody(&folder, capabilities).args(["observe", "--port", "80"]).output();
        let output = output.expect("setpriv runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(missing) && said.contains("hint"), "{said}");
    }
}

/// A sample says so, with its share, and is refused where a file or a scraper takes it for all requests.
#[test]
fn a_limit_of_the_cost_makes_a_sample_that_says_so() {
    let folder = Folder::new();
    for option in [
        "--record=rec",
        "-o=all.parquet",
        "--hdr=all.hlog",
        "--prometheus-file=all.prom",
        "--listen=127.0.0.1:0",
    ] {
        let outcome = folder.run(&["observe", "--port", "80", "--cost-limit", "3%", option]).expect_code(2);
        assert!(outcome.stderr.contains("cannot be used with --"), "{option}: {}", outcome.stderr);
    }
    if !folder.may_observe() {
        return;
    }
    let server = echo_server();
    let child = observing(program(), server.port(), &["--json", "--cost-limit", "100%", "--seed", "7"]);
    ask_until(server, Duration::from_secs(3));
    signal(&child, "INT");
    let view = printed_document(child, 0);
    let (sampled, of) = (&view["sampled"], |name: &str| view["sampled"][name].as_f64().expect("a number"));
    assert!(of("windows") >= 1.0 && of("cost_limit") == 1.0 && of("cost_share") > 0.0, "{sampled}");
    assert_eq!(of("seed"), 7.0);
    let observed_s = view["observed_s"].as_f64().expect("a number");
    assert!(of("counted_s") < observed_s && of("share_of_time") == of("counted_s") / observed_s, "{view}");
    let rate = view["requests"].as_f64().expect("a number") / of("counted_s");
    assert!((view["per_second"].as_f64().expect("a number") / rate - 1.0).abs() < 1e-9, "{view}");
    let outcome =
        folder.run(&["observe", "--port", "1", "--duration", "20ms", "--cost-limit", "1%"]).expect_code(1);
    assert!(outcome.stdout.contains("observed in one piece"), "{}", outcome.stdout);
    let outcome = folder
        .run(&["observe", "--port", "1", "--duration", "20ms", "--cost-limit", "0.0000001"])
        .expect_code(1);
    for part in [
        "the limit is 0.00001%\n",
        "programs in the kernel, attaching them, joining",
        "all is paid for after ",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    if testkit::program("setpriv").is_some() {
        let mut nobody = as_nobody(&folder, "-all,+bpf,+perfmon");
        let output =
            nobody.args(["observe", "--port", "80", "--cost-limit", "1%"]).output().expect("setpriv runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("takes CAP_SYS_ADMIN") && said.contains("hint"), "{said}");
    }
}

#[test]
fn the_self_test_answers_yes() {
    let folder = Folder::new();
    if folder.may_observe() {
        let view = folder.run(&["observe", "--selftest", "--json"]).expect_code(0).json();
        assert_eq!((view["right"].as_bool(), view["sent"].as_u64()), (Some(true), Some(20_000)), "{view}");
    }
}

#[test]
fn what_is_not_there_is_no_and_what_is_wrong_says_how() {
    let folder = Folder::new();
    for (args, part) in [
        (&["observe", "--port", "80", "--share", "0"][..], "share above 0"),
        (&["observe", "--port", "80", "--buffer", "5MB"], "power of two"),
        (&["observe", "--port", "80", "--buffer", "64GiB"], "from 64KiB to 1GiB, not 64GiB"),
        (&["observe", "--port", "80", "--duration", "0s"], "a time such as 30s"),
        (&["observe", "--port", "0"], "0 is not in 1..=65535"),
        (&["observe", "--port", "80", "--cost-limit", "0"], "share of one CPU above 0"),
        (&["observe", "--port", "80", "--cost-limit", "101%"], "share of one CPU above 0"),
        (&["observe", "--port", "80", "--cost-limit", "3%", "--record", "r"], "leave out one"),
        (&["observe", "--port", "80", "--cost-limit", "unlimited"], "--cost-limit"),
        (&["observe"], "--port"),
    ] {
        let outcome = folder.run(args).expect_code(2);
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    if folder.may_observe() {
        let outcome = folder.run(&["observe", "--port", "1", "--duration", "20ms"]).expect_code(1);
        assert!(
            outcome.stdout.starts_with(
                "no request was seen; next: start the server or give its port: no socket of this"
            ) && outcome.stdout.contains("\n\nport 1: 0 requests"),
            "{}",
            outcome.stdout
        );
        assert!(outcome.stderr.contains("no socket of this machine listens at port 1"), "{}", outcome.stderr);
    }
}

/// Whose rates these are, and that nobody may have been chosen.
#[test]
fn a_share_of_connections_is_said_wherever_rates_are() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = echo_server();
    let words = "about 50% of TCP connections observed; rates are of these";
    let page = folder.join("page.html").display().to_string();
    let child = observing(program(), server.port(), &["--share", "50%", "--report", &page]);
    (0..64).for_each(|_| ask(server, 3));
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the program ends");
    let text = String::from_utf8(output.stdout).expect("tables are text");
    assert!(text.starts_with("not seen: ") && text.contains("connections that --share left out\n"), "{text}");
    assert!(text.contains(&format!("\nport {}: {words}\n", server.port())), "{text}");
    assert!(folder.read("page.html").contains(words), "the page says so");
    let port = server.port().to_string();
    let none = folder
        .run(&["observe", "--port", &port, "--share", "0.1", "--duration", "20ms", "--json"])
        .expect_code(1);
    assert_eq!(none.json()["connection_share"], 0.1, "{}", none.stdout);
    assert!(none.stderr.contains("observing about 10% of TCP connections for 20ms"), "{}", none.stderr);
    assert!(none.stderr.contains("with --share 10%"), "{}", none.stderr);
}

/// Two servers are one distribution, and the output says so.
#[test]
fn several_ports_are_said_to_be_one_distribution() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let several = folder.run(&["observe", "--port", "1,2", "--duration", "20ms"]).expect_code(1);
    assert!(several.stdout.contains("all ports are taken together"), "{}", several.stdout);
    let one = folder.run(&["observe", "--port", "1", "--duration", "20ms"]).expect_code(1);
    assert!(!one.stdout.contains("together"), "{}", one.stdout);
}

/// The option that was given is not advised.
#[test]
fn a_protocol_that_the_server_does_not_speak_is_named() {
    let folder = Folder::new();
    if !folder.may_observe() {
        return;
    }
    let server = echo_server();
    let child = observing(program(), server.port(), &["--protocol", "nbd"]);
    ask(server, 200);
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the program ends");
    let text = String::from_utf8(output.stdout).expect("tables are text");
    assert!(text.contains("no message of nbd was found") && !text.contains("see --protocol"), "{text}");
    let child = observing(program(), server.port(), &["--protocol", "nbd", "--json"]);
    ask(server, 200);
    signal(&child, "INT");
    assert_eq!(printed_document(child, 0)["protocol_understood"], false);
}
