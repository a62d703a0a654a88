//! `tailwright lab` as users run it: an emulated SSD on its own, and a lab that comes and goes.

mod support;

use enforce::command::{CommandRunner, Programs, SystemCommand, may_configure_networks};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use support::{Folder, Outcome};

#[test]
fn a_device_serves_and_says_where() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["lab", "device", "--listen", "127.0.0.1:0", "--export", "tank=1MiB"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let uri = line.split_whitespace().last().unwrap().to_owned();
    let (start, address) = line.split_once(" at nbd://").unwrap();
    assert_eq!(start, "emulated SSD (4 channels, reads 400us+2ns/B, writes 700us+5ns/B)");
    let mut greeting = [0; 8];
    std::net::TcpStream::connect(address.trim()).unwrap().read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGIC");
    if let Some(nbdinfo) = testkit::program("nbdinfo") {
        let output = std::process::Command::new(nbdinfo).args(["--size", &format!("{uri}/tank")]).output();
        assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout).trim(), "1048576");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_device_gives_its_profile() {
    let folder = Folder::new();
    let args = ["lab", "device", "--profile", "ssd.json", "--profile-sizes", "4KiB,64KiB", "--channels", "2"];
    folder.run(&args).expect_code(0);
    let text = std::fs::read_to_string(folder.join("ssd.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &profile["device"]["ssd"]["bandwidth"][0];
    // 4096 bytes in 400 us + 8.192 us, on two channels.
    let expected = 2.0 * 4096.0 / 408.192e-6;
    assert!((row["read_bytes_per_s"].as_f64().unwrap() / expected - 1.0).abs() < 1e-9, "{row}");
}

#[test]
fn mistakes_say_what_to_do() {
    let folder = Folder::new();
    for (args, code, said) in [
        (&["device", "--read-time", "90"][..], 2, "90us+2ns/B"),
        (&["device", "--channels", "0"], 2, "1..=1024"),
        (&["device", "--export", "tank"], 2, "tank=1GiB"),
        (&["device", "--export", "a=1", "--export", "a=2"], 2, "twice"),
        (&["device", "--listen", "192.0.2.1:1"], 3, "--listen"),
        (&["run", "fig-0"], 2, "there are policies, fig-3.3"),
        (&["run", "fig-3.3"], 2, "--data FOLDER"),
        (&["run", "fig-3.3", "--data", "."], 2, "--data names the folder"),
        (&["run", "fig-3.3", "--data", ".", "--cases", "x"], 2, "own-bounds"),
        (&["run", "fig-3.3", "--data", ".", "--policies", "hope"], 2, "by-slo"),
        (&["run", "fig-3.7", "--policies", "edf"], 2, "it can run none, by-slo, tailwright"),
        (&["run", "polices"], 2, "did you mean policies?"),
        (&["run", "policies", "--policies", "fifo"], 2, "none, proportional"),
        (&["run", "policies", "--policies", "tailwrite"], 2, "did you mean tailwright?"),
        (&["run", "policies", "--cases", "flod"], 2, "did you mean flood?"),
        (&["run", "fig-3.5", "--report", "no/page.html"], 3, "cannot write the report"),
        (&["up", "teapot"], 2, "memcached"),
        (&["up", "--prefix", "a b"], 2, "letters and digits"),
    ] {
        let outcome = folder.run(&[&["lab"], args].concat()).expect_code(code);
        assert!(outcome.stderr.contains(said), "{said} in {}", outcome.stderr);
    }
}

/// Every policy that the help names runs on the emulated SSD, also one that the experiment does not compare by
/// itself.
#[test]
fn a_policy_that_is_offered_can_be_run() {
    let folder = Folder::new();
    for experiment in ["policies", "fig-3.5"] {
        for policies in ["none", "none,tailwright", "edf"] {
            let args = ["lab", "run", experiment, "--policies", policies, "--dry-run"];
            folder.run(&args).expect_code(0);
        }
    }
}

/// Runs a part of the verb on a lab of our own.
fn run_lab(folder: &Folder, args: &[&str]) -> Outcome {
    let prefix = format!("tv{}", std::process::id());
    folder.run(&[&["lab"], args, &["--state", "state", "--prefix", &prefix]].concat())
}

fn namespaces() -> String {
    Programs.run(&SystemCommand::new("ip netns list")).unwrap()
}

#[test]
fn up_and_down() {
    if !may_configure_networks() {
        return testkit::skip("namespaces need root");
    }
    if testkit::program("memcached").is_none() {
        return;
    }
    let folder = Folder::new();
    let ours = format!("tv{}-store", std::process::id());
    assert_eq!(run_lab(&folder, &["status"]).expect_code(1).stdout, "nothing is up\n");
    let up = ["up", "memcached", "ssd", "--clients", "1", "--json"];
    let first = run_lab(&folder, &up).expect_code(0);
    assert!(first.stderr.contains("new: client-1, store, memcached, ssd"), "{}", first.stderr);
    let second = run_lab(&folder, &up).expect_code(0);
    assert!(second.stderr.contains("nothing to do"), "{}", second.stderr);
    assert_eq!(first.stdout, second.stdout, "the same processes");
    assert!(namespaces().contains(&ours));
    // Another lab does not replace it.
    let other = run_lab(&folder, &["up", "--clients", "2"]).expect_code(2);
    assert!(other.stderr.contains("lab down"), "{}", other.stderr);
    // A server ends; it is seen, and started again.
    let servers = first.json()["servers"].clone();
    let pid = u32::try_from(servers[0]["pid"].as_u64().unwrap()).unwrap();
    let started = servers[0]["started"].as_u64().unwrap();
    lab::servers::kill(pid);
    while lab::servers::is_running(pid, started) {
        std::thread::yield_now();
    }
    assert!(run_lab(&folder, &["status"]).expect_code(1).stdout.contains("ENDED"));
    let third = run_lab(&folder, &up).expect_code(0);
    assert!(third.stderr.contains("new: memcached\n"), "{}", third.stderr);
    run_lab(&folder, &["status"]).expect_code(0);
    // As after a crash: nothing is remembered.
    std::fs::remove_file(folder.join("state/lab.json")).unwrap();
    let down = run_lab(&folder, &["down"]).expect_code(0);
    assert!(down.stdout.contains(&ours) && !namespaces().contains(&ours), "{}", down.stdout);
    assert_eq!(run_lab(&folder, &["down"]).expect_code(0).stdout, "nothing was up\n");
    let nothing = run_lab(&folder, &["down", "--json"]).expect_code(0).json();
    assert_eq!(nothing["namespaces"], serde_json::json!([]));
}

/// The addresses for clients are those that the proxy takes, not those of the servers behind it.
#[test]
fn clients_behind_a_proxy_are_given_its_address() {
    if !may_configure_networks() {
        return testkit::skip("namespaces need root");
    }
    let folder = Folder::new();
    let run = |args: &[&str]| {
        let prefix = format!("tq{}", std::process::id());
        folder.run(&[&["lab"], args, &["--state", "state", "--prefix", &prefix]].concat())
    };
    let shown = run(&["up", "ssd", "--clients", "1", "--behind-proxy"]).expect_code(0).stdout;
    let document = run(&["up", "ssd", "--clients", "1", "--behind-proxy", "--json"]).expect_code(0).json();
    let store = document["hosts"][1]["ipv4"].as_str().expect("an address").to_owned();
    let uri = format!("nbd://{store}:10809/ssd");
    assert_eq!(document["servers"][0]["uri"].as_str(), Some(uri.as_str()), "{document}");
    assert_eq!(document["servers"][0]["behind_proxy"], true, "{document}");
    assert!(shown.contains(&uri) && !shown.contains("//127.0.0.1"), "{shown}");
    assert!(shown.contains("when `tailwright proxy` listens there"), "{shown}");
    // Without the flag the server is started again, on the same address of its host.
    let open = run(&["up", "ssd", "--clients", "1"]).expect_code(0);
    assert!(open.stderr.contains("new: ssd") && open.stdout.contains(&uri), "{}", open.stderr);
    run(&["down"]).expect_code(0);
}

/// Held while a test plays an experiment, of which there is one at a time.
static EXPERIMENT: Mutex<()> = Mutex::new(());

/// Too short for verdicts, but not for a page.
#[test]
fn an_experiment_writes_a_page() {
    if !may_configure_networks() {
        return testkit::skip("namespaces need root");
    }
    let _alone = EXPERIMENT.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new();
    let args = [
        "lab",
        "run",
        "fig-3.5",
        "--cases",
        "c2-20",
        "--duration",
        "1s",
        "--warm-up",
        "0s",
        "--no-realtime",
        "--json",
    ];
    let outcome = folder.run(&[&args[..], &["--report", "page.html"]].concat());
    if outcome.stderr.contains("another experiment") {
        return testkit::skip("an experiment is being played");
    }
    let rows = outcome.json()["results"].clone();
    let policies: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["feedback", "tailwright"], "{}", outcome.stderr);
    assert!(outcome.stderr.contains("2 runs of 1s: about 2s"), "{}", outcome.stderr);
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    let slo = format!("W: 99% &lt; {}ms", (rows[0]["slo_s"].as_f64().unwrap() * 1e3).round());
    for said in
        [slo.as_str(), "Cake does at C² = 1", "c2-20", "W over time: feedback", "W over time: tailwright"]
    {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("c2-40: the analysis"), "only what was played");
    support::browser::judge(&folder, "page.html", "lab run");
}

/// Namespaces are gone after a signal, whatever signal it is.
#[test]
fn a_signal_leaves_no_namespace() {
    if !may_configure_networks() {
        return testkit::skip("namespaces need root");
    }
    let _alone = EXPERIMENT.lock().unwrap_or_else(PoisonError::into_inner);
    for signal in ["INT", "TERM", "HUP"] {
        let mut command = testkit::command_with_signals(env!("CARGO_BIN_EXE_tailwright"));
        let args = ["lab", "run", "fig-3.5", "--cases", "c2-20", "--duration", "10min", "--no-realtime"];
        command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        // It says so when no other experiment is played.
        if !lines.by_ref().map_while(Result::ok).any(|line| line.contains("Ctrl-C stops")) {
            child.wait().expect("it is ours");
            return testkit::skip("an experiment is being played");
        }
        let limit = std::time::Duration::from_secs(120);
        testkit::wait_until(limit, "namespaces are there", || namespaces().contains("twrun-"));
        support::servers::signal(&child, signal);
        let said: Vec<String> = lines.map_while(Result::ok).collect();
        let status = child.wait().expect("it is ours");
        assert_eq!(status.code(), Some(3), "{signal}: {said:?}");
        assert!(!namespaces().contains("twrun-"), "{signal}: {said:?}");
    }
}
