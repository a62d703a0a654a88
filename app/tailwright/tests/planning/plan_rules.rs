//! Rules of the cluster file in plans, kept plans, explanations and admissions, judged here by
//! the servers that are printed.

use crate::support::cluster::Cluster;
use serde_json::Value;
use std::collections::BTreeMap;

const SERVERS: &str = "[[server]]\nclass = \"a\"\ncount = 2\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n\
    capacity = \"100GB\"\nlabels = { zone = \"east\" }\n\
    [[server]]\nclass = \"b\"\ncount = 2\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n\
    capacity = \"400GB\"\nlabels = { zone = \"west\" }\n";

/// A cluster of two classes in two zones, whose workloads have these lines.
fn cluster(top: &str, rules: &[&str]) -> Cluster {
    let cluster = Cluster::new(rules.len(), 1);
    describe(&cluster, top, rules);
    cluster
}

fn describe(cluster: &Cluster, top: &str, rules: &[&str]) {
    let mut text = format!("{top}\n{SERVERS}");
    for (w, rule) in rules.iter().enumerate() {
        text +=
            &format!("[[workload]]\nname = \"w{w}\"\ntrace = \"w{w}.csv\"\nslo = \"99.9% < 1s\"\n{rule}\n");
    }
    cluster.folder.write("cluster.toml", &text);
}

fn homes(plan: &Value) -> BTreeMap<String, String> {
    by_workload(plan, "server")
}

fn reasons(plan: &Value) -> BTreeMap<String, String> {
    by_workload(plan, "refusal")
}

/// A text of each workload that has it.
fn by_workload(plan: &Value, field: &str) -> BTreeMap<String, String> {
    let workloads = plan["workloads"].as_array().expect("a plan has workloads").iter();
    let texts =
        workloads.filter_map(|workload| Some((workload["name"].as_str()?, workload[field].as_str()?)));
    texts.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

fn plan(cluster: &Cluster, code: i32) -> Value {
    cluster.folder.run(&["plan", "cluster.toml", "--json", "-o", "policy.json"]).expect_code(code).json()
}

#[test]
fn every_rule_is_kept_in_names_and_bytes() {
    let cluster = cluster(
        "failure_domain = \"zone\"",
        &[
            "on = [\"b-2\"]\nsize = \"300GB\"",
            "apart = \"db\"\nsize = \"10GB\"",
            "apart = \"db\"\nsize = \"10GB\"",
            "together = \"shop\"\nsize = \"60GB\"",
            "together = \"shop\"\nsize = \"60GB\"",
            "on = [\"zone=east\"]\nsize = \"90GB\"",
            "on = [\"a-2\", \"b-1\"]\nsize = \"0B\"",
        ],
    );
    for order in [&[][..], &["--order", "given"], &["--method", "knee"], &["--method", "workload-compactor"]]
    {
        let args = [&["plan", "cluster.toml", "--json"], order].concat();
        let homes = homes(&cluster.folder.run(&args).expect_code(0).json());
        let class = |w: &str| &homes[w][..1];
        assert_eq!(homes["w0"], "b-2", "{homes:?}");
        assert_ne!(class("w1"), class("w2"), "{homes:?}");
        assert_eq!(homes["w3"], homes["w4"], "{homes:?}");
        assert_eq!((class("w3"), class("w5")), ("b", "a"), "{homes:?}");
        assert!(["a-2", "b-1"].contains(&homes["w6"].as_str()), "{homes:?}");
        let gigabytes = [300, 10, 10, 60, 60, 90, 0];
        for (server, most) in [("a-1", 100), ("a-2", 100), ("b-1", 400), ("b-2", 400)] {
            let here = (0..7).filter(|w| homes[&format!("w{w}")] == server);
            assert!(here.map(|w| gigabytes[w]).sum::<i32>() <= most, "{server}: {homes:?}");
        }
    }
    let compared = cluster.folder.run(&["plan", "cluster.toml", "--compare"]).expect_code(0).stdout;
    assert!(compared.contains("several-limiters"), "{compared}");
}

#[test]
fn a_refusal_counts_the_servers_of_each_rule_and_its_remedies_admit() {
    let apart = "apart = \"db\"\nsize = \"50GB\"";
    let rules = [apart, apart, "on = [\"zone=east\"]\nsize = \"95GB\"\napart = \"db\""];
    let cluster = cluster("failure_domain = \"zone\"", &rules);
    let plan = plan(&cluster, 1);
    let why = &reasons(&plan)["w2"];
    assert!(why.contains("of 4 servers, 2 are none that it may be on; 2 have or share"), "{why}");
    assert!(why.contains("'w0', from which it is apart"), "{why}");
    assert!(why.contains("it would be admitted with no `apart` (on an empty server)"), "{why}");
    let explained = cluster.folder.run(&["explain", "w2", "cluster.toml"]).expect_code(1);
    let unwrapped = explained.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(why.as_str()), "{unwrapped}");
    describe(&cluster, "failure_domain = \"zone\"", &[apart, apart, "on = [\"zone=east\"]\nsize = \"95GB\""]);
    let homes = homes(&cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json());
    assert!(homes["w2"].starts_with('a'), "{homes:?}");
    // Bytes: the largest size that is named admits, and one byte more does not.
    let full = ["on = [\"a\"]\nsize = \"70GB\""; 3];
    describe(&cluster, "", &full);
    let why = reasons(&self::plan(&cluster, 1))["w2"].clone();
    assert!(why.contains("2 are none that it may be on; 2 have too few bytes left (at most 30GB)"), "{why}");
    assert!(why.contains("a size of 30GB (on a-"), "{why}");
    assert!(why.contains("one more server of class 'a'"), "{why}");
    for (size, code) in [("30GB", 0), ("30000000001B", 1)] {
        describe(&cluster, "", &[full[0], full[1], &format!("on = [\"a\"]\nsize = \"{size}\"")]);
        cluster.folder.run(&["plan", "cluster.toml"]).expect_code(code);
    }
}

#[test]
fn contradictions_are_errors_at_their_line() {
    let refused = |top: &str, rules: &[&str], parts: &[&str]| {
        let cluster = cluster(top, rules);
        for verb in ["plan", "admit", "bound"] {
            let outcome = cluster.folder.run(&[verb, "cluster.toml"]).expect_code(2);
            for part in parts {
                assert!(outcome.stderr.contains(part), "{part} is not in: {}", outcome.stderr);
            }
        }
    };
    let first = "cluster.toml:16: workload 'w0': ";
    refused(
        "",
        &["on = [\"a-3\"]"],
        &[first, "'a-3', expected a server (a-1 to a-2, b-1 to b-2), a class (a, b)"],
    );
    refused("", &["on = [\"zone=eats\"]"], &[first, "did you mean zone=east?"]);
    refused("", &["size = \"500GB\""], &[first, "its size is 500GB", "no server", "more than 400GB"]);
    refused("", &["size = \"200GB\"\non = [\"zone=east\"]"], &[first, "more than 100GB"]);
    refused("", &["apart = \" \""], &[first, "apart is not the name of a group"]);
    let second = "cluster.toml:22: workload 'w1': ";
    let both = "together = \"shop\"\napart = \"db\"";
    refused(
        "",
        &[both, both],
        &[second, "together with 'w0'", "and apart from it", "expected one of the two"],
    );
    let pinned = ["on = [\"a-1\"]\ntogether = \"shop\"", "on = [\"a-2\", \"b\"]\ntogether = \"shop\""];
    refused("", &pinned, &[second, "no server is one that all of them may be on"]);
    let large = "size = \"250GB\"\ntogether = \"shop\"";
    refused("", &[large, large], &[second, "have 500GB up to this one", "more than 400GB"]);
    refused(
        "failure_domain = \"rack\"",
        &[""],
        &["cluster.toml:1: failure_domain is 'rack'", "expected a label"],
    );
    refused("", &["on = \"a-1\""], &["cluster.toml", "invalid type"]);
}

#[test]
fn a_kept_policy_that_breaks_a_rule_is_refused() {
    let cluster = cluster("", &["", "", ""]);
    let before = homes(&plan(&cluster, 0));
    assert_eq!(before["w0"], before["w1"]);
    let kept = ["plan", "cluster.toml", "--keep", "policy.json", "--json"];
    for (rules, part) in [
        (["apart = \"db\"", "apart = \"db\"", ""], "'w1' and 'w0' are both on 'a-1', but apart = \"db\""),
        (["", "on = [\"b\"]", ""], "'w1' is on 'a-1', but may be on b only"),
        (["size = \"60GB\"", "size = \"60GB\"", ""], "take 120GB of 'a-1', which has a capacity of 100GB"),
    ] {
        describe(&cluster, "", &rules);
        for args in [&kept[..], &["explain", "w1", "cluster.toml", "--plan", "policy.json"]] {
            let outcome = cluster.folder.run(args).expect_code(2);
            assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
            assert!(outcome.stderr.contains("change the rule"), "{}", outcome.stderr);
        }
    }
    // Rules that hold keep it, and a newcomer keeps them, too.
    let cluster = Cluster::new(4, 1);
    describe(&cluster, "failure_domain = \"zone\"", &["apart = \"db\"", "", ""]);
    let before = homes(&plan(&cluster, 0));
    let rules = ["apart = \"db\"", "", "", "apart = \"db\""];
    describe(&cluster, "failure_domain = \"zone\"", &rules);
    let after = homes(&cluster.folder.run(&kept).expect_code(0).json());
    assert!(before.iter().all(|(name, server)| &after[name] == server), "{before:?} {after:?}");
    assert_ne!(after["w3"][..1], after["w0"][..1], "{after:?}");
}

#[test]
fn admit_keeps_rules_and_plans_by_a_model_say_that_they_do_not() {
    let apart = "apart = \"db\"";
    let cluster = cluster("", &[apart, apart, "on = [\"a-2\"]\nsize = \"80GB\"", "size = \"30GB\"", apart]);
    let run = ["admit", "cluster.toml", "--model", "worst-case", "-o", "policy.json", "--json"];
    cluster.folder.run(&run).expect_code(1);
    let policy: Value = serde_json::from_str(&cluster.folder.read("policy.json")).unwrap();
    let homes = homes(&policy);
    assert_ne!(homes["w0"], homes["w1"]);
    assert_eq!((homes["w2"].as_str(), homes["w3"].as_str()), ("a-2", "a-1"));
    let why = &reasons(&policy)["w4"];
    assert!(why.contains("of 2 servers, 2 have or share their failure domain with 'w0', 'w1'"), "{why}");
    let refused = cluster.folder.run(&["plan", "cluster.toml", "--model", "worst-case"]).expect_code(2);
    assert!(refused.stderr.contains("workload 'w0' has a rule on where it may go"), "{}", refused.stderr);
}
