//! Every document that `--json` prints says its format and version, and is what its schema says.
//!
//! `support` checks every document of every test of the program; here is one of each kind that needs nothing of the machine,
//! and the list of those that do.

use crate::support::cluster::Cluster;
use crate::support::{Folder, Outcome, schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// Formats whose documents need rights, servers or devices, with the tests that make them.
const ELSEWHERE: [(&str, &str); 17] = [
    ("observation", "observe.rs"),
    ("block-observation", "observe.rs"),
    ("observation-selftest", "observe.rs"),
    ("experiment", "experiment.rs"),
    ("undone", "experiment.rs"),
    ("kernel-features", "apply_failures.rs"),
    ("proxy-counters", "proxy.rs"),
    ("proxy-status", "proxy.rs"),
    ("load", "load.rs"),
    ("lab-plan", "implausible.rs"),
    ("lab-removed", "lab.rs"),
    ("lab-run", "lab.rs"),
    ("schedule", "schedule.rs"),
    ("schedule-kernel", "the unit tests of the program"),
    ("disk-measurement", "profile.rs"),
    ("server-measurement", "profile.rs"),
    ("openapi", "serve_openapi.rs"),
];

const HOSTS: &str = "
[[host]]
name = \"app\"
device.tw0 = \"1Gbps\"
[[host]]
name = \"store\"
device.tw1 = \"1Gbps\"
[[server]]
name = \"ssd-1\"
host = \"store\"
address = [\"10.0.0.9\"]
[[client]]
workload = \"w0\"
host = \"app\"
address = [\"10.0.0.1\"]
[[client]]
workload = \"w1\"
host = \"app\"
address = [\"10.0.0.2\"]
";

const SCENARIO: &str = "
[run]
requests = 2000
[[station]]
name = \"queue\"
workers = 1
discipline = \"fifo\"
[[entry]]
arrivals = \"poisson(500/s)\"
service = { queue = \"exp(1ms)\" }
";

const VARY: &str = "[[vary]]\nname = \"load\"\nset = \"run.load\"\nvalues = [0.3, 0.6]\n";

const SPANS: &str = "trace_id,span_id,parent_id,service,operation,start_us,duration_us
1,a,,web,get,0,1000
1,b,a,store,read,100,500
2,c,,web,get,2000,1500
2,d,c,store,read,2100,900
";

/// Runs a command whose documents are checked, and remembers their formats.
fn run(folder: &Folder, seen: &mut BTreeSet<String>, line: &str) -> Outcome {
    let args: Vec<&str> = line.split_whitespace().collect();
    let outcome = folder.run(&args);
    assert!(outcome.code < 2 && !outcome.stdout.is_empty(), "{line}: {}", outcome.stderr);
    seen.extend(schema::check(&outcome.stdout));
    outcome
}

fn formats() -> BTreeSet<String> {
    let mut formats = BTreeSet::new();
    for file in std::fs::read_dir(schema::folder()).expect("there are schemas").flatten() {
        formats.insert(file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    formats
}

#[test]
fn one_of_each_kind_is_what_its_schema_says() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("hosts.toml", HOSTS);
    folder.write("mm1.toml", SCENARIO);
    folder.write("vary.toml", &format!("{SCENARIO}{VARY}"));
    folder.write("spans.csv", SPANS);
    let mut seen = BTreeSet::new();
    for line in [
        "plan cluster.toml --json -o policy.json --compare",
        "plan cluster.toml --json --keep policy.json",
        "plan cluster.toml --json --model probabilistic",
        "admit cluster.toml --json -o admitted.json",
        "bound cluster.toml --json",
        "explain w0 cluster.toml --json",
        "migrate policy.json policy.json cluster.toml --json",
        "explain w0 cluster.toml --json --model worst-case",
        "explain w0 cluster.toml --json --model calibrated",
        "apply policy.json --hosts hosts.toml --dry-run --json",
        "simulate policy.json --cluster cluster.toml -o observed.parquet --json",
        "verify policy.json observed.parquet --storage ssd.json --json",
        "import policy.json --storage ssd.json --json",
        "export policy.json --enforcer tc --at lo --server ssd-1 --storage ssd.json --json",
        "simulate mm1.toml --json",
        "simulate mm1.toml --load 1.5 --json",
        "simulate vary.toml --json",
        "ideal --arrivals poisson(500/s) --service exp(1ms) --requests 2000 --discipline fifo,lifo --json",
        "reproduce --list --json",
        "reproduce variability-numbers --quick --json",
        "experiment --list --json",
        "lab status --state state --json",
        "lab run --json",
        "trace info w0.csv w1.csv --json",
        "trace curves w0.csv --storage ssd.json --json",
        "trace callgraph spans.csv --json",
        "trace assumptions cluster.toml --one-clock --json",
    ] {
        run(folder, &mut seen, line);
    }
    seen.insert(schema::check_document(&serde_json::from_str(&folder.read("admitted.json")).expect("JSON")));
    let refusing = Cluster::new(6, 1);
    let tight = refusing.folder.read("cluster.toml").replace("ms\"", "us\"");
    refusing.folder.write("cluster.toml", &tight);
    run(&refusing.folder, &mut seen, "explain w0 cluster.toml --json");
    let profiled = folder.run(&[
        "profile",
        ".",
        "--create",
        "1MiB",
        "--sizes",
        "4KiB",
        "--parallelism",
        "1",
        "--time-per-cell",
        "10ms",
        "--repetitions",
        "1",
        "--json",
    ]);
    match profiled.code {
        0 => seen.extend(schema::check(&profiled.stdout)),
        _ => {
            testkit::skip(&format!("no device is measured here: {}", profiled.stderr));
            seen.insert("device-measurement".to_owned());
        }
    }
    let elsewhere: BTreeSet<String> = ELSEWHERE.iter().map(|(name, _)| (*name).to_owned()).collect();
    let missing: Vec<String> =
        formats().into_iter().filter(|name| !seen.contains(name) && !elsewhere.contains(name)).collect();
    assert!(missing.is_empty(), "nothing makes a document of these: {missing:?}");
}

/// The judge can say no.
#[test]
fn what_is_no_such_document_is_refused() {
    let folder = Folder::new();
    folder.write("mm1.toml", SCENARIO);
    let document = folder.run(&["simulate", "mm1.toml", "--json"]).expect_code(0).json();
    schema::check_document(&document);
    let spoilt: [(&str, Value); 5] = [
        ("format", json!("tailwright.ideal")),
        ("version", json!(1)),
        ("seed", Value::Null),
        ("verdict", json!("fine")),
        ("surprise", json!(1)),
    ];
    for (field, value) in spoilt {
        let mut document = document.clone();
        document[field] = value;
        let judged = std::panic::catch_unwind(|| schema::check_document(&document));
        assert!(judged.is_err(), "{field}");
    }
}

/// What a command prints when it is given this on standard input.
fn fed(folder: &Folder, args: &[&str], input: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(args)
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    // A program that refuses its arguments does not read.
    let _ = std::io::Write::write_all(&mut pipe, input.as_bytes());
    drop(pipe);
    let output = child.wait_with_output().expect("the program ends");
    Outcome {
        code: output.status.code().expect("the program is not killed"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

#[test]
fn a_dash_is_standard_input_where_a_file_is_read_once() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("hosts.toml", HOSTS);
    let of_file = folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    let piped = fed(folder, &["plan", "-", "--json"], &folder.read("cluster.toml")).expect_code(0);
    assert_eq!(of_file["workloads"], piped.json()["workloads"]);
    let commands = fed(folder, &["apply", "-", "--hosts", "hosts.toml", "--dry-run"], &piped.stdout);
    assert!(commands.expect_code(0).stdout.contains("# app"));
    let slos =
        ["bound", "--slos", "-", "--storage", "ssd.json", "--network", "125MB/s", "--model", "worst-case"];
    fed(folder, &slos, &folder.read("slos.csv")).expect_code(0);
    let simulated = fed(folder, &["simulate", "-", "--json"], SCENARIO).expect_code(0);
    assert_eq!(simulated.json()["verdict"], "done");
    for (args, said) in [
        (&["plan", "cluster.toml", "-o", "-"][..], "--output: - is no file"),
        (&["bound", "cluster.toml", "--report", "-"], "--report: - is no file"),
        (&["verify", "-", "--slo", "w0=99% < 1s"], "- is no file"),
        (&["proxy", "-", "--hosts", "hosts.toml", "--server", "ssd-1"], "- is no file"),
        (&["apply", "-", "--hosts", "-"], "given twice"),
    ] {
        let refused = fed(folder, args, "").expect_code(2);
        assert!(refused.stderr.contains(said) && refused.stdout.is_empty(), "{args:?}: {}", refused.stderr);
    }
    assert!(!folder.join("-").exists());
}
