//! Every page that the program writes, in a browser: nothing is lost without a cue, every chart says how to read it, values
//! show where the pointer is, and the small print says where the page comes from. Pages that take root are judged where they
//! are made: those of `lab` in `lab.rs`, those of `observe` in `observe_files.rs`.

use crate::support::Folder;
use crate::support::browser::judge;
use crate::support::cluster::Cluster;
use std::path::{Path, PathBuf};

const VARIED: &str = r#"
[run]
requests = 20000
replications = 4
load = 0.8

[[station]]
name = "queue"
workers = 1
discipline = "fifo"

[[entry]]
arrivals = "poisson(800/s)"
service = { queue = "exp(1ms)" }

[[vary]]
name = "load"
set = "run.load"
values = [0.2, 0.5, 0.8]
"#;

/// A service time without a variance, in a station whose name is as long as names get.
const SKEWED: &str = r#"
[run]
requests = 20000
replications = 3

[[station]]
name = "storage-of-the-warehouse-analytics-team-europe-west-primary"
workers = 1
discipline = "fifo"

[[entry]]
arrivals = "poisson(100/s)"
service = { "storage-of-the-warehouse-analytics-team-europe-west-primary" = "pareto(min=1ms, shape=1.3)" }
"#;

fn scenario(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios").join(name);
    path.display().to_string()
}

/// Runs a command that writes `page.html` and judges the page.
#[track_caller]
fn made(folder: &Folder, args: &[&str]) {
    let outcome = folder.run(&[args, &["--report", "page.html"]].concat());
    assert!(matches!(outcome.code, 0 | 1), "an answer: {}", outcome.stderr);
    judge(folder, "page.html", args[0]);
}

/// A name of 60 characters that differs from the others at its end.
fn long_name(workload: usize) -> String {
    format!("warehouse-analytics-team-europe-west-nightly-aggregation-j{workload:02}")
}

/// A cluster whose workloads have names of 60 characters.
fn long_names(count: usize, servers: usize) -> Cluster {
    let cluster = Cluster::new(count, servers);
    let mut toml = cluster.folder.read("cluster.toml");
    for workload in 0..count {
        assert_eq!(long_name(workload).len(), 60);
        toml =
            toml.replace(&format!("name = \"w{workload}\""), &format!("name = \"{}\"", long_name(workload)));
    }
    cluster.folder.write("cluster.toml", &toml);
    cluster
}

#[test]
fn plans() {
    let cluster = Cluster::new(14, 2);
    made(&cluster.folder, &["plan", "cluster.toml", "--compare"]);
    made(&Cluster::new(1, 1).folder, &["plan", "cluster.toml"]);
    made(&long_names(5, 2).folder, &["plan", "cluster.toml"]);
    cluster.folder.run(&["demo", "--dir", "demo", "--workloads", "6"]);
    judge(&cluster.folder, "demo/plan.html", "demo");
}

#[test]
fn a_plan_of_three_hundred_workloads() {
    let cluster = Cluster::new(1, 1);
    let mut toml =
        "[[server]]\nclass = \"ssd\"\ncount = 40\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n".to_owned();
    for workload in 0..300 {
        let ms = 100 << (workload % 3);
        toml +=
            &format!("[[workload]]\nname = \"w{workload}\"\ntrace = \"w0.csv\"\nslo = \"99.9% < {ms}ms\"\n");
    }
    cluster.folder.write("cluster.toml", &toml);
    made(&cluster.folder, &["plan", "cluster.toml", "--method", "average-2", "--order", "given"]);
}

#[test]
fn predictions() {
    made(&Cluster::new(6, 2).folder, &["plan", "cluster.toml", "--model", "replayed"]);
    made(&long_names(3, 1).folder, &["plan", "cluster.toml", "--model", "replayed"]);
    made(&Cluster::new(3, 1).folder, &["bound", "cluster.toml"]);
    made(&long_names(2, 1).folder, &["bound", "cluster.toml"]);
}

#[test]
fn simulations() {
    let folder = Folder::new();
    for name in ["fan-in.toml", "kinds.toml", "mm1.toml"] {
        made(&folder, &["simulate", &scenario(name)]);
    }
    made(&folder, &["simulate", &scenario("mm1.toml"), "--set", "run.requests=1"]);
    folder.write("varied.toml", VARIED);
    made(&folder, &["simulate", "varied.toml"]);
    folder.write("skewed.toml", SKEWED);
    made(&folder, &["simulate", "skewed.toml"]);
}

#[test]
fn ideals_and_figures_of_papers() {
    let folder = Folder::new();
    let ideal = ["ideal", "--arrivals", "poisson(500/s)", "--service", "exp(1ms)", "--requests"];
    for requests in ["20000", "1"] {
        made(&folder, &[&ideal[..], &[requests]].concat());
    }
    made(&folder, &["reproduce", "variability-numbers", "tales-fig-2", "--quick"]);
}

#[test]
fn traces() {
    let cluster = Cluster::new(1, 1);
    let folder = &cluster.folder;
    // Gaps and sizes over nine decades, one request, and two that are far apart.
    let skewed = (0..400u32).map(|k| {
        let share = f64::from(k) / 400.0;
        let at = 1e9 * 10f64.powf(6.0 * share);
        format!("{at:.0},0x{:08x},DiskRead\n", 512u64 << (k / 20))
    });
    folder.write("skewed.csv", &skewed.collect::<String>());
    folder.write("one.csv", "1000000,0x00001000,DiskRead\n");
    folder.write("two.csv", "1000000,0x00001000,DiskRead\n5001000000,0x00100000,DiskWrite\n");
    for trace in ["w0.csv", "skewed.csv", "one.csv", "two.csv"] {
        folder.run(&["trace", "info", trace, "--report", "page.html"]).expect_code(0);
        judge(folder, "page.html", "trace info");
    }
}

#[test]
fn verdicts() {
    for (cluster, count) in [(Cluster::new(3, 1), 3), (long_names(10, 2), 10)] {
        let folder = &cluster.folder;
        folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
        folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "seen.parquet"]);
        let outcome = folder.run(&["verify", "policy.json", "seen.parquet", "--report", "page.html"]);
        assert!(matches!(outcome.code, 0 | 1), "{count}: {}", outcome.stderr);
        judge(folder, "page.html", "verify");
    }
}
