//! All verbs that read a cluster file say the same of one that is wrong or doubtful.

use crate::support::cluster::Cluster;
use std::collections::BTreeSet;

/// Commands that read the cluster file and use storage.
const COMMANDS: [&[&str]; 5] = [
    &["plan", "cluster.toml"],
    &["plan", "cluster.toml", "--model", "replayed"],
    &["admit", "cluster.toml"],
    &["bound", "cluster.toml", "--model", "worst-case"],
    &["explain", "w0", "cluster.toml"],
];

const COMMANDS_ALL: usize = COMMANDS.len();

/// A profile whose base latency is known at a lower percentile than the SLOs ask for.
const MEASURED_AT_99: &str = r#"{"format": "tailwright-device-1", "name": "idle", "device": {"ssd": {"bandwidth": [
    {"request_bytes": 4096, "read_bytes_per_s": 100e6, "write_bytes_per_s": 100e6}]}},
    "base_latency": {"percentile": "99%", "read_s": 0.004, "write_s": 0.001}}"#;

/// Runs all commands and returns the distinct errors with their hints.
fn errors(cluster: &Cluster) -> BTreeSet<String> {
    let error = |args: &&[&str]| {
        let said = cluster.folder.run(args).expect_code(2).stderr;
        let at = said.find("error: ").unwrap_or_else(|| panic!("{args:?} has no error: {said}"));
        said[at..].to_owned()
    };
    COMMANDS.iter().map(error).collect()
}

/// Runs all commands and returns the distinct texts of their notes and warnings, each with the number of
/// commands that said it; none is said twice by one command.
fn notices(cluster: &Cluster) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for args in COMMANDS {
        let said = cluster.folder.run(args).stderr;
        let mut own = BTreeSet::new();
        for line in said.lines().filter(|line| line.starts_with("warning: ") || line.starts_with("note: ")) {
            assert!(own.insert(line.to_owned()), "{args:?} says this twice: {line}");
        }
        for line in own {
            match found.iter_mut().find(|(known, _)| *known == line) {
                Some((_, commands)) => *commands += 1,
                None => found.push((line, 1)),
            }
        }
    }
    found
}

/// Two workloads, with the class of `second` beside that of all other tests.
fn two_classes(second: &str) -> Cluster {
    let cluster = Cluster::new(2, 1);
    let toml = cluster.folder.read("cluster.toml");
    let second = format!("[[server]]\nclass = \"hdd\"\nnetwork = \"125MB/s\"\n{second}\n[[workload]]");
    cluster.folder.write("cluster.toml", &toml.replacen("[[workload]]", &second, 1));
    cluster
}

#[test]
fn a_broken_file_is_refused_in_the_same_words() {
    let spoiled = |name: &str, text: &str| {
        let cluster = Cluster::new(2, 1);
        cluster.folder.write(name, text);
        cluster
    };
    let missing = |name: &str| {
        let cluster = Cluster::new(2, 1);
        std::fs::remove_file(cluster.folder.join(name)).expect("a file of the cluster");
        cluster
    };
    let toml = Cluster::new(2, 1).folder.read("cluster.toml");
    let edited = |from: &str, to: &str| spoiled("cluster.toml", &toml.replacen(from, to, 1));
    for (cluster, part) in [
        (edited("slo =", "sl0 ="), "sl0"),
        (edited("count = 1", "count = 0"), "there are no servers"),
        (edited("\"w1\"", "\"w0\""), "workload 'w0' is given twice"),
        (edited("99.9%", "0.999%"), "expected a percentage such as 99.9"),
        (edited("[[server]]", "safety_margin = 0.5\n[[server]]"), "safety_margin is 0.5"),
        (missing("ssd.json"), "ssd.json"),
        (spoiled("ssd.json", "{}"), "ssd.json"),
        (missing("w1.csv"), "workload 'w1': w1.csv"),
        (spoiled("w1.csv", ""), "workload 'w1': w1.csv"),
        (spoiled("w1.csv", "banana,0x1000,DiskRead\n"), "line 1"),
        (two_classes("count = 1\nstorage = \"none.json\""), "none.json"),
        (two_classes("count = 0\nstorage = \"none.json\""), "none.json"),
    ] {
        let errors = errors(&cluster);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        assert!(errors.iter().all(|error| error.contains(part)), "{part} is not in {errors:?}");
    }
}

#[test]
fn a_doubtful_file_is_warned_of_in_the_same_words() {
    let cluster = Cluster::new(2, 1);
    cluster.folder.write("ssd.json", MEASURED_AT_99);
    let said = notices(&cluster);
    let [(warning, COMMANDS_ALL)] = &said[..] else { panic!("not one warning of all commands: {said:#?}") };
    assert!(warning.contains("known at 99% only"), "{warning}");

    // A class without servers is named once; its profile is not warned of.
    let cluster = two_classes("count = 0\nstorage = \"slow.json\"");
    cluster.folder.write("slow.json", MEASURED_AT_99);
    let said = notices(&cluster);
    assert_eq!(said, [("note: server class 'hdd' has no servers and is not used".to_owned(), COMMANDS_ALL)]);
}
