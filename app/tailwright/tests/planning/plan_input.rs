//! What `tailwright plan` says about input that it cannot use, and what it remembers of input that it can.

use crate::support::cluster::{Cluster, PROFILE};

/// Runs with these arguments and expects exit 2 and a message with all parts.
#[track_caller]
fn refuses(cluster: &Cluster, args: &[&str], parts: &[&str]) {
    let outcome = cluster.folder.run(args).expect_code(2);
    assert_eq!(outcome.stdout, "");
    for part in parts {
        assert!(outcome.stderr.contains(part), "{part} is not in: {}", outcome.stderr);
    }
}

#[test]
fn wrong_flags() {
    let cluster = Cluster::new(1, 1);
    refuses(&cluster, &["plan"], &["no cluster given", "tailwright demo"]);
    refuses(&cluster, &["plan", "cluster.toml", "--slos", "slos.csv"], &["cannot be used with"]);
    refuses(&cluster, &["plan", "--slos", "slos.csv"], &["--storage", "--network", "--max-servers"]);
    refuses(&cluster, &["plan", "cluster.toml", "--method", "kne"], &["no policy 'kne'", "knee"]);
    refuses(&cluster, &["plan", "cluster.toml", "--method", "average--1"], &["average-K"]);
    refuses(&cluster, &["plan", "cluster.toml", "--fast-first-fit"], &["workload-compactor"]);
    refuses(&cluster, &["plan", "cluster.toml", "--segments", "3"], &["workload-compactor only"]);
    refuses(&cluster, &["plan", "cluster.toml", "--safety-margin", "0.5"], &["from 1 to 1000"]);
    refuses(&cluster, &["plan", "cluster.toml", "--time-budget", "10"], &["such as 150ms"]);
    let flags =
        ["plan", "--slos", "slos.csv", "--storage", "ssd.json", "--max-servers", "3", "--network", "1Gb"];
    refuses(&cluster, &flags, &["125MB/s"]);
}

#[test]
fn missing_files() {
    let cluster = Cluster::new(2, 1);
    refuses(&cluster, &["plan", "nowhere.toml"], &["nowhere.toml", "cannot read", "check the path"]);
    refuses(&cluster, &["plan", "cluster.toml", "--keep", "no.json"], &["no.json", "policy"]);
    std::fs::remove_file(cluster.folder.join("w1.csv")).unwrap();
    refuses(&cluster, &["plan", "cluster.toml"], &["w1.csv", "check the path"]);
    std::fs::remove_file(cluster.folder.join("ssd.json")).unwrap();
    refuses(&cluster, &["plan", "cluster.toml"], &["ssd.json", "device profile"]);
}

#[test]
fn results_do_not_take_the_place_of_what_is_read() {
    let cluster = Cluster::new(2, 1);
    let before = cluster.folder.read("cluster.toml");
    cluster.folder.write("policy.json", "{}");
    for args in [
        &["plan", "cluster.toml", "-o", "cluster.toml"][..],
        &["plan", "cluster.toml", "--report", "./cluster.toml"],
        &["plan", "cluster.toml", "-o", "policy.json", "--report", "policy.json"],
        &["plan", "cluster.toml", "-o", "new.html", "--report", "./new.html"],
    ] {
        refuses(&cluster, args, &["another use in the same command", "name of its own"]);
    }
    assert_eq!(cluster.folder.read("cluster.toml"), before);
    assert_eq!(cluster.folder.read("policy.json"), "{}");
}

#[test]
fn files_that_are_no_text_are_named_so() {
    let cluster = Cluster::new(1, 1);
    std::fs::write(cluster.folder.join("binary"), [0xff, 0xfe, 0]).unwrap();
    std::fs::create_dir(cluster.folder.join("there")).unwrap();
    refuses(&cluster, &["plan", "binary"], &["not UTF-8 text", "the file you meant"]);
    refuses(&cluster, &["plan", "there"], &["found a folder"]);
}

#[test]
fn cluster_files_with_mistakes() {
    let good = Cluster::new(2, 1);
    let toml = good.folder.read("cluster.toml");
    for (from, to, parts) in [
        ("slo =", "sl0 =", &["line 9", "sl0", "`slo`"][..]),
        ("99.9% < 100ms", "99.9% < soon", &["line 9", "such as"]),
        ("count = 1", "count = 0", &["no servers"]),
        ("count = 1", "count = -1", &["line 3"]),
        ("network = \"125MB/s\"", "network = \"125\"", &["line 5", "125MB/s"]),
        ("\"w1\"", "\"w0\"", &["workload 'w0' is given twice"]),
        ("[[server]]", "safety_margin = 0.5\n[[server]]", &["safety_margin is 0.5"]),
        ("[[workload]]", "[[workloads]]", &["workloads"]),
    ] {
        good.folder.write("cluster.toml", &toml.replace(from, to));
        let mut all = vec!["cluster.toml"];
        all.extend(parts);
        refuses(&good, &["plan", "cluster.toml"], &all);
    }
}

#[test]
fn tables_with_mistakes() {
    let cluster = Cluster::new(3, 1);
    let slos = cluster.folder.read("slos.csv");
    let args =
        ["plan", "--slos", "slos.csv", "--storage", "ssd.json", "--network", "1Gbps", "--max-servers", "3"];
    for (from, to, parts) in [
        ("1,w1,w1.csv,99.9,0.2,x", "1,w1,w1.csv,99.9", &["slos.csv:3:", "expected 6 cells"][..]),
        ("1,w1,w1.csv,99.9,0.2,x", "1,w1,w1.csv,99.9,-1,x", &["slos.csv:3:", "seconds above 0"]),
        ("slo_latency_s", "latency", &["slos.csv:1:", "slo_latency_s"]),
        ("2,w2,w2.csv", "2,w0,w2.csv", &["workload 'w0' is given twice"]),
    ] {
        cluster.folder.write("slos.csv", &slos.replace(from, to));
        refuses(&cluster, &args, parts);
    }
}

#[test]
fn traces_with_mistakes() {
    let cluster = Cluster::new(2, 1);
    let good = cluster.folder.read("w1.csv");
    cluster.folder.write("w1.csv", "");
    refuses(&cluster, &["plan", "cluster.toml"], &["w1.csv", "empty"]);
    cluster.folder.write("w1.csv", &format!("{good}banana,0x1000,DiskRead\n"));
    refuses(&cluster, &["plan", "cluster.toml"], &["w1.csv", "line 301", "--lenient"]);
    let lenient = cluster.folder.run(&["plan", "cluster.toml", "--lenient"]).expect_code(0);
    assert!(lenient.stderr.contains("w1.csv: 1 request skipped"), "{}", lenient.stderr);
    refuses(&cluster, &["plan", "cluster.toml"], &["line 301"]);
}

#[test]
fn what_was_read_is_reused_until_content_or_device_changes() {
    let cluster = Cluster::new(3, 3);
    let talk = |args: &[&str]| cluster.folder.run(args).expect_code(0).stderr;
    let plan = ["plan", "cluster.toml"];
    assert!(talk(&plan).contains("3 read, 0 reused"));
    assert!(talk(&plan).contains("0 read, 3 reused"));
    assert!(talk(&["plan", "cluster.toml", "--no-cache"]).contains("3 read, 0 reused"));

    let first = cluster.folder.read("w0.csv").lines().skip(1).collect::<Vec<_>>().join("\n");
    cluster.folder.write("w0.csv", &first);
    assert!(talk(&plan).contains("1 read, 2 reused"));
    cluster.folder.write("ssd.json", &PROFILE.replace("\"readBandwidth\": 100e6", "\"readBandwidth\": 99e6"));
    assert!(talk(&plan).contains("3 read, 0 reused"));
}

#[test]
fn a_damaged_cache_changes_nothing() {
    let cluster = Cluster::new(3, 3);
    let run = || cluster.folder.run(&["plan", "cluster.toml", "--all"]).expect_code(0);
    let table = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let clean = run();
    let entries: Vec<_> = std::fs::read_dir(cluster.folder.join("cache/tailwright/footprints"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(entries.len(), 3);
    let text = std::fs::read_to_string(&entries[0]).unwrap();
    std::fs::write(&entries[0], &text[..text.len() / 2]).unwrap();
    std::fs::write(&entries[1], text.replacen("\"total\":", "\"total\":1", 1)).unwrap();
    std::fs::write(&entries[2], [0xff, 0x00, 0xfe]).unwrap();
    let damaged = run();
    assert!(damaged.stderr.contains("3 read, 0 reused"), "{}", damaged.stderr);
    assert_eq!(table(&clean.stdout), table(&damaged.stdout));
    assert!(run().stderr.contains("0 read, 3 reused"));
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning_once() {
    let cluster = Cluster::new(3, 3);
    cluster.folder.write("cache", "a file where the folder would be");
    let outcome = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0);
    assert_eq!(outcome.stderr.matches("warning: cannot store footprints").count(), 1, "{}", outcome.stderr);
}
