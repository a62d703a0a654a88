//! `plan --survive`: the states after failures, judged by the policies that are written for them.

use crate::support::cluster::Cluster;
use crate::support::{Folder, judge};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn homes(plan: &Value) -> BTreeMap<String, String> {
    judge::admitted(plan).into_iter().map(|w| (w.name, w.server)).collect()
}

/// Judges every policy of a folder against its plan: the promises, who moves, and what the document says of it.
fn judge_policies(folder: &Folder, policies: &str, plan: &Value) {
    let survival = &plan["survival"];
    let before = homes(plan);
    let idle: BTreeSet<&str> = list(&survival["idle"]).iter().map(text).collect();
    assert!(before.values().all(|server| !idle.contains(server.as_str())));
    let used: BTreeSet<&String> = before.values().collect();
    assert_eq!(survival["servers_needed"], used.len() + idle.len());
    let mut failing: BTreeSet<&str> = BTreeSet::new();
    for failure in list(&survival["failures"]) {
        let name = text(&failure["fails"]);
        let failed: Vec<&str> = list(&failure["servers"]).iter().map(text).collect();
        failing.extend(&failed);
        let policy: Value =
            serde_json::from_str(&folder.read(&format!("{policies}/without-{name}.json"))).expect("JSON");
        judge::check_promises(&policy);
        let after = homes(&policy);
        let unplaced = failure["unplaced"].as_array().map_or(0, Vec::len);
        assert_eq!(after.len() + unplaced, before.len(), "{name}");
        let mut moves: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        for (workload, to) in &after {
            let from = &before[workload];
            assert!(!failed.contains(&to.as_str()), "{workload} is on {to}");
            assert!(failed.contains(&from.as_str()) || from == to, "{workload} moves from {from} to {to}");
            assert!(used.contains(to) || idle.contains(to.as_str()), "{to}");
            if from != to {
                moves.insert(workload, (from, to));
            }
        }
        let said = list(&failure["moves"]).iter();
        let said = said.map(|it| (text(&it["workload"]), (text(&it["from"]), text(&it["to"]))));
        assert_eq!(said.collect::<BTreeMap<_, _>>(), moves, "{name}");
        // The document has changes as the policy has them, and nothing else changes.
        let changed = list(&failure["workloads"]);
        for workload in list(&policy["workloads"]) {
            let own = changed.iter().find(|it| it["name"] == workload["name"]);
            let old =
                list(&plan["workloads"]).iter().find(|it| it["name"] == workload["name"]).expect("there");
            if workload["admitted"] == true {
                assert_eq!(own.unwrap_or(old)["limits"], workload["limits"], "{name}: {workload}");
            }
        }
        let slack = |it: &Value| 1.0 - it["bound_s"].as_f64().unwrap() / it["slo_s"].as_f64().unwrap();
        let worst = changed.iter().map(slack).fold(f64::INFINITY, f64::min);
        assert_eq!(failure["tightest"]["slack"].as_f64().unwrap_or(f64::INFINITY), worst, "{name}");
    }
    assert_eq!(failing, used.iter().map(|name| name.as_str()).collect(), "every server fails once");
}

fn plan(cluster: &Cluster, code: i32, more: &[&str]) -> Value {
    let fixed = ["plan", "cluster.toml", "--survive", "1", "--json", "-o", "policy.json"];
    cluster.folder.run(&[&fixed[..], more].concat()).expect_code(code).json()
}

#[test]
fn every_failure_has_a_policy_that_the_simulator_keeps() {
    let cluster = Cluster::new(9, 9);
    let planned = plan(&cluster, 0, &["--survive-policies", "after"]);
    judge_policies(&cluster.folder, "after", &planned);
    let plain = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    let survival = &planned["survival"];
    assert_eq!(survival["servers_without"], plain["servers_used"]);
    // Those that remain hold all workloads, and so does a plan.
    let needed = survival["servers_needed"].as_u64().unwrap();
    assert_eq!(needed, plain["servers_used"].as_u64().unwrap() + 1);
    assert!(survival["servers_lower_bound"].as_u64().unwrap() <= needed);
    assert!(list(&survival["failures"]).len() > 1, "{survival}");
    for failure in list(&survival["failures"]) {
        let policy = format!("after/without-{}.json", text(&failure["fails"]));
        let arguments = ["simulate", &policy, "--cluster", "cluster.toml", "--json"];
        // Too few requests for a verdict on the percentile are no matter here.
        let simulated = cluster.folder.run(&arguments).json();
        let mut simulated_workloads = 0;
        let mut held = 0;
        for workload in list(&simulated["servers"]).iter().flat_map(|server| list(&server["workloads"])) {
            // A trace that is repeated without a margin may exceed its limits where it begins again.
            let is_within = workload["assumption"].is_null();
            assert_eq!(workload["bound"], if is_within { "held" } else { "exceeded" }, "{workload}");
            held += usize::from(is_within);
            simulated_workloads += 1;
        }
        assert_eq!(simulated_workloads, 9);
        assert!(held > 4, "{held} of 9 bounds held");
        cluster.folder.run(&["plan", "cluster.toml", "--keep", &policy]).expect_code(0);
    }
    let shown = cluster
        .folder
        .run(&["plan", "cluster.toml", "--survive", "1", "--report", "page.html"])
        .expect_code(0);
    let first =
        shown.stdout.split(" planned in").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let words = format!(
        "9 of 9 workloads fit on {needed} servers of which any one server may fail (1 more than without that;"
    );
    assert!(first.starts_with(&words), "{first}");
    assert!(shown.stdout.contains("kept idle for failures: ssd-"), "{}", shown.stdout);
    assert!(cluster.folder.read("page.html").contains("If a server fails"));
}

#[test]
fn a_kept_plan_stays_and_survives() {
    let cluster = Cluster::new(9, 9);
    let before =
        cluster.folder.run(&["plan", "cluster.toml", "--json", "-o", "old.json"]).expect_code(0).json();
    let planned = plan(&cluster, 0, &["--keep", "old.json", "--survive-policies", "after"]);
    assert_eq!(before["workloads"], planned["workloads"]);
    judge_policies(&cluster.folder, "after", &planned);
}

#[test]
fn a_failure_that_is_not_survived_says_what_would_help_and_that_helps() {
    let cluster = Cluster::new(9, 9);
    let used = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    let used = usize::try_from(used["servers_used"].as_u64().unwrap()).unwrap();
    let all: Vec<usize> = (0..9).collect();
    cluster.describe(&all, used);
    let planned = plan(&cluster, 1, &["--survive-policies", "after"]);
    judge_policies(&cluster.folder, "after", &planned);
    let remedy = &planned["survival"]["remedies"][0];
    assert_eq!((&remedy["change"], &remedy["count"]), (&"servers".into(), &1.into()), "{remedy}");
    let shown = cluster.folder.run(&["plan", "cluster.toml", "--survive", "1"]).expect_code(1).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        &format!("9 of 9 workloads fit on {used} servers, but "),
        " of a server ",
        "not survived: if ssd-1 fails, w",
        "every failure would be survived with one more server of class 'ssd'",
    ] {
        assert!(shown.contains(part), "{part} is not in: {shown}");
    }
    cluster.describe(&all, used + 1);
    plan(&cluster, 0, &[]);
}

/// Servers in three zones, the first of which has the most.
fn zones(top: &str, counts: [usize; 3], rules: &[&str]) -> Cluster {
    let cluster = Cluster::new(rules.len(), 1);
    let mut text = format!("{top}\n");
    for (zone, count) in ["a", "b", "c"].into_iter().zip(counts) {
        text += &format!(
            "[[server]]\nclass = \"{zone}\"\ncount = {count}\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n\
             capacity = \"100GB\"\nlabels = {{ zone = \"{zone}\" }}\n"
        );
    }
    for (w, rule) in rules.iter().enumerate() {
        text +=
            &format!("[[workload]]\nname = \"w{w}\"\ntrace = \"w{w}.csv\"\nslo = \"99.9% < 1s\"\n{rule}\n");
    }
    cluster.folder.write("cluster.toml", &text);
    cluster
}

#[test]
fn any_zone_may_fail_and_rules_hold_after_it() {
    // Each workload takes a server by its size.
    let rules = [
        "size = \"90GB\"",
        "size = \"60GB\"\napart = \"db\"",
        "size = \"60GB\"\napart = \"db\"",
        "size = \"20GB\"\ntogether = \"t\"",
        "size = \"20GB\"\ntogether = \"t\"",
        "size = \"90GB\"\non = [\"zone=a\", \"b-2\"]",
    ];
    let cluster = zones("failure_domain = \"zone\"", [9, 9, 9], &rules);
    let planned = plan(&cluster, 0, &["--survive-policies", "after"]);
    judge_policies(&cluster.folder, "after", &planned);
    assert_eq!(planned["survival"]["fails"], "zone");
    // Four servers by their bytes, and as many after the failure of a zone of three: no plan has fewer than six.
    let needed = planned["survival"]["servers_needed"].as_u64().unwrap();
    assert!((6..=7).contains(&needed), "{}", planned["survival"]);
    assert_eq!(planned["survival"]["servers_without"], 4);
    for failure in list(&planned["survival"]["failures"]) {
        let name = format!("after/without-{}.json", text(&failure["fails"]));
        let policy: Value = serde_json::from_str(&cluster.folder.read(&name)).unwrap();
        let homes = homes(&policy);
        assert_ne!(homes["w1"][..1], homes["w2"][..1], "{homes:?}");
        assert_eq!(homes["w3"], homes["w4"], "{homes:?}");
        assert!(homes["w5"].starts_with('a') || homes["w5"] == "b-2", "{homes:?}");
        // The planner checks the rules of a policy that it keeps.
        cluster.folder.run(&["plan", "cluster.toml", "--keep", &name, "--no-moves"]).expect_code(0);
    }
}

#[test]
fn pins_and_groups_that_leave_no_place_are_named() {
    let refused = |top: &str, counts: [usize; 3], rules: &[&str], parts: &[&str]| {
        let cluster = zones(top, counts, rules);
        plan(&cluster, 1, &[]);
        let shown = cluster.folder.run(&["plan", "cluster.toml", "--survive", "1"]).expect_code(1).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(shown.contains(part), "{part} is not in: {shown}");
        }
    };
    refused(
        "",
        [2, 2, 2],
        &["on = [\"b-2\"]"],
        &[
            "1 of 1 workload fit on 1 server, but 1 of 1 failure of a server is not survived",
            "not survived: if b-2 fails, w0: it may be on b-2 only, which leaves no other server; it would have a \
             place with no `on`",
        ],
    );
    // Three replicas in three zones have no fourth one.
    let apart = "apart = \"db\"";
    refused(
        "failure_domain = \"zone\"",
        [2, 2, 2],
        &[apart, apart, apart],
        &["if zone=a fails, w", "from which it is apart; it would have a place with no `apart`"],
    );
    refused(
        "",
        [0, 0, 1],
        &[""],
        &["no other server is left", "one more server of class 'a'", "no plan for these servers"],
    );
}

#[test]
fn wrong_requests_are_refused() {
    let cluster = Cluster::new(2, 2);
    std::fs::create_dir(cluster.folder.join("full")).expect("the folder is ours");
    cluster.folder.write("full/x", "");
    for (arguments, part) in [
        (&["--survive", "2"][..], "expected 1, found '2'"),
        (&["--survive-policies", "new"], "--survive"),
        (&["--survive", "1", "--model", "replayed"], "cannot be used with"),
        (&["--survive", "1", "--compare"], "cannot be used with"),
        (&["--survive", "1", "--survive-policies", "full"], "expected an empty folder, or none"),
        (&["--survive", "1", "--survive-policies", "cluster.toml"], "cluster.toml"),
        (&["--survive", "1", "--survive-policies", "new", "-o", "new"], "another use in the same command"),
    ] {
        let outcome = cluster.folder.run(&[&["plan", "cluster.toml"][..], arguments].concat()).expect_code(2);
        assert!(outcome.stderr.contains(part), "{part} is not in: {}", outcome.stderr);
    }
}

#[test]
fn the_real_workloads_survive_with_one_server_more() {
    let Some(dir) = testkit::shared("traces") else { return };
    let path = |name: &str| dir.join(name).to_str().expect("the path is text").to_owned();
    let slos = path("slos.csv");
    let traces = path("");
    let storage = path("ssd-profile.json");
    let described = ["--slos", &slos, "--traces", &traces, "--storage", &storage, "--network", "125MB/s"];
    let folder = Folder::new();
    let more = ["--max-servers", "62", "--json", "--survive", "1", "--survive-policies", "after"];
    let planned = folder.run(&[&["plan"][..], &described, &more].concat()).expect_code(0).json();
    judge_policies(&folder, "after", &planned);
    let survival = &planned["survival"];
    let number = |name: &str| survival[name].as_u64().expect("a number");
    assert_eq!(number("servers_needed"), number("servers_without") + 1);
    let names = list(&survival["failures"]).iter().map(|failure| text(&failure["fails"]));
    assert_eq!(names.clone().count(), list(&planned["servers"]).len());
    let first = format!("after/without-{}.json", names.clone().next().expect("a failure"));
    let simulated = [&["simulate", &first][..], &described, &["--json"]].concat();
    let simulated = folder.run(&simulated).expect_code(0).json();
    for workload in list(&simulated["servers"]).iter().flat_map(|server| list(&server["workloads"])) {
        assert_eq!(workload["bound"], "held", "{workload}");
    }
}
