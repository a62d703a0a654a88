//! Words of answers: one of a thing is not called several, nothing is no list and no table, no number is infinite.

use crate::support::cluster::Cluster;
use crate::support::{Folder, Outcome};
use std::fs;

/// What a run says, with its tables.
fn said(outcome: &Outcome) -> String {
    format!("{}\n{}", outcome.stdout, outcome.stderr)
}

/// A word after a lone 1 that ends as a plural does, such as in `1 requests` and `1 more lines`.
fn wrong_plural(text: &str) -> Option<String> {
    const SINGULAR: [&str; 8] = ["is", "has", "misses", "was", "needs", "meets", "moves", "this"];
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (at, _) in words.iter().enumerate().filter(|(_, word)| ["1", "(1"].contains(word)) {
            let noun =
                words.get(at + 1).map_or("", |word| word.trim_end_matches(|c: char| !c.is_alphabetic()));
            let is_word = noun.len() > 2 && noun.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if is_word && noun.ends_with('s') && !noun.ends_with("ss") && !SINGULAR.contains(&noun) {
                return Some(line.to_owned());
            }
        }
    }
    None
}

const SCENARIO: &str = "[run]\nrequests = 1\nwarm_up = 0\nreplications = 1\n[[station]]\nname = \"queue\"\nworkers = 1\n\
    discipline = \"fifo\"\n[[entry]]\narrivals = \"poisson(500/s)\"\nservice = { queue = \"exp(1ms)\" }\n";

#[test]
fn one_of_a_thing_is_not_called_several() {
    let cluster = Cluster::new(1, 1);
    let folder = &cluster.folder;
    let trace = folder.read("w0.csv");
    let mut lines = trace.lines();
    folder.write("two.csv", &format!("{}\n{}\n", lines.next().expect("one"), lines.next().expect("two")));
    folder.write("one.csv", &format!("{}\n", trace.lines().next().expect("one")));
    folder.write("damaged.csv", &(trace.clone() + "damage\n"));
    folder.write("damaged.toml", &folder.read("cluster.toml").replace("w0.csv", "damaged.csv"));
    folder.write("tight.toml", &folder.read("cluster.toml").replace("100ms", "1us"));
    folder.write("scenario.toml", SCENARIO);
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let rows: [&[&str]; 20] = [
        &["plan", "cluster.toml"],
        &["plan", "tight.toml"],
        &["plan", "cluster.toml", "--model", "replayed"],
        &["plan", "damaged.toml", "--lenient"],
        &["bound", "damaged.toml", "--lenient"],
        &["bound", "cluster.toml"],
        &["admit", "cluster.toml"],
        &["admit", "tight.toml"],
        &["explain", "w0", "cluster.toml"],
        &["explain", "w0", "cluster.toml", "--model", "replayed"],
        &["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "seen.parquet"],
        &["simulate", "scenario.toml"],
        &["verify", "policy.json", "seen.parquet", "--storage", "ssd.json"],
        &["trace", "info", "one.csv"],
        &["trace", "convert", "one.csv", "-o", "one.parquet"],
        &["trace", "convert", "damaged.csv", "--lenient", "-o", "whole.parquet"],
        &["trace", "slice", "two.csv", "--first-half", "-o", "half.parquet"],
        &["trace", "assumptions", "cluster.toml", "--one-clock"],
        &["ideal", "--arrivals", "poisson(500/s)", "--service", "1ms", "--requests", "1"],
        &["demo", "--workloads", "1", "--dir", "made"],
    ];
    for args in rows {
        let outcome = folder.run(args);
        let said = said(&outcome);
        assert!(outcome.code < 3, "{args:?}: {said}");
        assert_eq!(wrong_plural(&said), None, "{args:?}");
    }
    assert_eq!(wrong_plural("read 1 requests"), Some("read 1 requests".to_owned()));
}

#[test]
fn a_plan_of_nobody_has_no_table() {
    let cluster = Cluster::new(1, 1);
    let folder = &cluster.folder;
    folder.write("tight.toml", &folder.read("cluster.toml").replace("100ms", "1us"));
    let refused = folder.run(&["plan", "tight.toml"]).expect_code(1);
    assert!(!refused.stdout.contains("prio"), "{}", refused.stdout);
    assert!(refused.stdout.contains("\n\nnot admitted: w0"), "{}", refused.stdout);
    assert!(!refused.stdout.contains("\n\n\n"), "{}", refused.stdout);
}

#[test]
fn no_share_is_infinite_and_no_list_empty() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    // All requests at one instant: a rate that no server has.
    let at_once: String = folder
        .read("w0.csv")
        .lines()
        .take(50)
        .map(|line| format!("5,{}\n", &line[line.find("0x").expect("a size")..]))
        .collect();
    folder.write("w0.csv", &at_once);
    for args in [
        &["plan", "cluster.toml"][..],
        &["plan", "cluster.toml", "--model", "replayed"],
        &["plan", "cluster.toml", "--model", "probabilistic"],
        &["admit", "cluster.toml", "--model", "replayed"],
        &["bound", "cluster.toml"],
        &["explain", "w0", "cluster.toml"],
    ] {
        let outcome = folder.run(args);
        let said = said(&outcome);
        assert!(outcome.code < 3 && !said.contains("inf%") && !said.contains("NaN"), "{args:?}: {said}");
        let ends_early = |line: &&str| line.trim_end() != "next:" && line.ends_with(": ");
        assert_eq!(said.lines().find(ends_early), None, "{args:?}");
    }
}

/// Everything takes the same time: an interval of no width says nothing.
#[test]
fn no_interval_has_zero_width() {
    let folder = Folder::new();
    let scenario = SCENARIO
        .replace("requests = 1\n", "requests = 500\n")
        .replace("replications = 1\n", "replications = 3\n")
        .replace("poisson(500/s)", "constant(500/s)")
        .replace("exp(1ms)", "1ms");
    folder.write("steady.toml", &scenario);
    let vary = "[[vary]]\nname = \"workers\"\nset = \"station.queue.workers\"\nvalues = [1, 2]\n";
    folder.write("varied.toml", &(scenario.clone() + vary));
    for name in ["steady.toml", "varied.toml"] {
        let shown = folder.run(&["simulate", name]).expect_code(0).stdout;
        assert!(!shown.contains("± 0"), "{shown}");
        let found = folder.run(&["simulate", name, "--json"]).expect_code(0).json();
        assert_eq!(narrow_interval(&found), None, "{name}");
    }
}

/// An interval in a document whose ends are the same.
fn narrow_interval(value: &serde_json::Value) -> Option<String> {
    if let Some(intervals) = value["ci"].as_object() {
        let narrow = intervals.iter().find(|(_, ends)| ends[0].as_f64() >= ends[1].as_f64());
        if let Some((figure, ends)) = narrow {
            return Some(format!("{figure}: {ends}"));
        }
    }
    let parts = value.as_object().into_iter().flat_map(serde_json::Map::values);
    parts.chain(value.as_array().into_iter().flatten()).find_map(narrow_interval)
}

#[test]
fn a_file_of_arrivals_is_told_where_it_belongs() {
    let folder = Folder::new();
    fs::write(folder.join("web.csv"), "1,0x1000,DiskRead\n").expect("it is ours");
    for file in ["web.csv", "missing.csv.gz"] {
        let refused = folder.run(&["ideal", "--service", "1ms", "--arrivals", file]).expect_code(2);
        assert!(refused.stderr.contains("--trace"), "{}", refused.stderr);
    }
}
