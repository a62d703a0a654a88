//! `tailwright trace assumptions` on traces whose coupling and changes are known.

use crate::support::Folder;
use serde_json::Value;

/// A linear congruential generator.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 20) % limit
    }
}

const MINUTE_NS: u64 = 60_000_000_000;

/// Bursts of 20 requests at these instants, and 1200 requests anywhere, over a minute from `origin` on.
fn trace(bursts: &[u64], origin: u64, seed: u64) -> String {
    let mut draws = Draws(seed);
    let mut arrivals: Vec<u64> = (0..1200).map(|_| draws.below(MINUTE_NS)).collect();
    for burst in bursts {
        arrivals.extend((0..20).map(|_| burst + draws.below(20_000_000)));
    }
    arrivals.sort_unstable();
    let lines = arrivals.iter().map(|at| format!("{},0x00001000,DiskRead\n", origin + at));
    lines.collect()
}

fn bursts(seed: u64) -> Vec<u64> {
    let mut draws = Draws(seed);
    (0..60).map(|_| draws.below(MINUTE_NS - 20_000_000)).collect()
}

/// `a` and `b` burst together, `c` on its own.
fn coupled() -> Folder {
    let folder = Folder::new();
    folder.write("a.csv", &trace(&bursts(1), 1_000_000, 2));
    folder.write("b.csv", &trace(&bursts(1), 1_000_000, 3));
    folder.write("c.csv", &trace(&bursts(4), 1_000_000, 5));
    folder.write("ssd.json", crate::support::cluster::PROFILE);
    folder.write(
        "slos.csv",
        "workload,trace,slo_percentile,slo_latency_s\na,a.csv,99,0.01\nb,b.csv,99,0.01\nc,c.csv,99,0.01\n",
    );
    folder
}

fn pair<'a>(found: &'a Value, a: &str, b: &str) -> &'a Value {
    let pairs = found["pairs"].as_array().expect("pairs");
    pairs.iter().find(|pair| pair["traces"][0] == a && pair["traces"][1] == b).expect("the pair")
}

#[test]
fn coupled_workloads_are_grouped_and_priced() {
    let folder = coupled();
    let cluster = ["--slos", "slos.csv", "--storage", "ssd.json", "--network", "125MB/s"];
    let flags = ["trace", "assumptions", "--one-clock", "--json", "-o", "groups.csv"];
    let found = folder.run(&[&flags[..], &cluster].concat()).expect_code(1).json();
    assert_eq!(pair(&found, "a", "b")["dependent"], true, "{found}");
    assert_eq!(pair(&found, "a", "c")["dependent"], false);
    assert_eq!(pair(&found, "b", "c")["dependent"], false);
    assert_eq!(found["groups"], serde_json::json!([["a", "b"]]));
    for price in found["prices"].as_array().expect("prices") {
        let servers = |key: &str| price[key].as_u64().expect("a number");
        assert!(servers("servers_grouped") >= servers("servers_independent"), "{price}");
        let bound = |key: &str| price["bounds"][1][key].as_f64().expect("a bound");
        assert!(bound("grouped_s") >= bound("independent_s"), "{price}");
    }
    // What it writes is what other verbs read.
    let bounds = folder.run(&[&["bound", "--groups", "groups.csv", "--json"][..], &cluster].concat());
    let bounds = bounds.expect_code(0).json();
    let group = |at: usize| bounds["workloads"][at]["group"].clone();
    assert!(group(0) == group(1) && group(1) != group(2), "{bounds}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let folder = coupled();
    let silent = folder.run(&["trace", "assumptions", "a.csv", "b.csv"]).expect_code(1);
    assert!(
        silent.stdout.contains("0 of 1 pair compared") && silent.stdout.contains("--one-clock"),
        "{}",
        silent.stdout
    );
    folder.write("later.csv", &trace(&bursts(1), 10 * MINUTE_NS, 2));
    folder.write(
        "few.csv",
        "1000,0x00001000,DiskRead\n30000000000,0x00001000,DiskRead\n59000000000,0x00001000,DiskRead\n",
    );
    let files = ["trace", "assumptions", "--one-clock", "--json", "a.csv", "later.csv", "few.csv"];
    let found = folder.run(&files).expect_code(1).json();
    assert_eq!(pair(&found, "a.csv", "later.csv")["untested"], "recorded at other times");
    assert_eq!(pair(&found, "a.csv", "few.csv")["untested"], "fewer than 100 requests");
    assert_eq!(found["traces"][2]["work"]["untested"], "fewer than 160 requests");
}

#[test]
fn a_change_within_a_trace_is_found_with_its_time() {
    let folder = Folder::new();
    let late: Vec<u64> =
        (0..200).map(|burst| MINUTE_NS / 2 + burst * (MINUTE_NS / 2 - 20_000_000) / 200).collect();
    folder.write("changed.csv", &trace(&late, 0, 1));
    folder.write("steady.csv", &trace(&[], 0, 2));
    let found =
        folder.run(&["trace", "assumptions", "--json", "changed.csv", "steady.csv"]).expect_code(1).json();
    let work = &found["traces"][0]["work"];
    assert_eq!(work["changed"], true, "{found}");
    assert!((work["at_s"].as_f64().expect("a time") - 30.0).abs() < 3.0, "{work}");
    assert!(work["ratio"].as_f64().expect("a ratio") > 4.0, "{work}");
    for what in ["work", "bursts"] {
        assert_eq!(found["traces"][1][what]["changed"], false, "{found}");
    }
}

#[test]
fn independent_and_steady_traces_pass() {
    let folder = Folder::new();
    for seed in 0..3 {
        folder.write(&format!("{seed}.csv"), &trace(&bursts(10 + seed), 500_000, 20 + seed));
    }
    let found =
        folder.run(&["trace", "assumptions", "--one-clock", "0.csv", "1.csv", "2.csv"]).expect_code(0);
    assert!(found.stdout.contains("3 of 3 pairs compared; busy together: 0."), "{}", found.stdout);
    assert!(found.stdout.contains("0 of 3 traces changed within"), "{}", found.stdout);
}
