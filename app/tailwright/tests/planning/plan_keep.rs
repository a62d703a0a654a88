//! Arrivals and departures: `tailwright plan --keep`.

use crate::support::cluster::Cluster;
use crate::support::judge;
use serde_json::Value;
use std::collections::BTreeMap;

fn homes(plan: &Value) -> BTreeMap<String, String> {
    judge::admitted(plan).into_iter().map(|w| (w.name, w.server)).collect()
}

fn changed(plan: &Value) -> Vec<String> {
    let list = plan["servers_changed"].as_array().expect("a kept plan says what changed");
    list.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn first_plan(cluster: &Cluster) -> Value {
    cluster
        .folder
        .run(&["plan", "cluster.toml", "--order", "given", "--json", "-o", "policy.json"])
        .expect_code(0)
        .json()
}

fn keep(cluster: &Cluster) -> Value {
    let plan = cluster
        .folder
        .run(&["plan", "cluster.toml", "--keep", "policy.json", "--json"])
        .expect_code(0)
        .json();
    judge::check_promises(&plan);
    plan
}

#[test]
fn nothing_new_changes_nothing() {
    let cluster = Cluster::new(10, 10);
    let before = first_plan(&cluster);
    let after = keep(&cluster);
    assert_eq!(changed(&after), Vec::<String>::new());
    assert_eq!((&before["workloads"], &before["servers"]), (&after["workloads"], &after["servers"]));
}

#[test]
fn who_stays_stays_where_it_is() {
    let cluster = Cluster::new(14, 14);
    cluster.describe(&(0..10).collect::<Vec<_>>(), 14);
    let before = first_plan(&cluster);
    assert!(before["servers_used"].as_u64().unwrap() > 1, "{before}");
    // One leaves, four arrive.
    cluster.describe(&[0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], 14);
    let after = keep(&cluster);
    let old = homes(&before);
    let new = homes(&after);
    assert_eq!(new.len(), 13);
    for (name, server) in &old {
        if name != "w3" {
            assert_eq!(&new[name], server, "{name}");
        }
    }
    let changed = changed(&after);
    assert!(changed.contains(&old["w3"]), "{changed:?}");
    for (name, server) in &new {
        assert!(old.contains_key(name) || changed.contains(server), "{name} joined {server}: {changed:?}");
    }
}

#[test]
fn a_server_that_empties_is_given_back() {
    let cluster = Cluster::new(10, 10);
    let before = homes(&first_plan(&cluster));
    let last = before.values().max().unwrap().clone();
    let stay = |w: &usize| before[&format!("w{w}")] != last;
    cluster.describe(&(0..10).filter(stay).collect::<Vec<_>>(), 10);
    let after = keep(&cluster);
    assert!(!homes(&after).values().any(|server| *server == last));
    assert_eq!(changed(&after), [last]);
}

#[test]
fn a_policy_of_another_cluster_is_refused() {
    let cluster = Cluster::new(2, 2);
    first_plan(&cluster);
    let policy = cluster.folder.read("policy.json");
    for (from, to, part) in [
        ("\"class\": \"ssd\"", "\"class\": \"hdd\"", "class 'hdd'"),
        ("\"tailwright.policy\"", "\"tailwright.plan\"", "'tailwright.plan'"),
        ("\"servers\":", "\"server\":", "not a policy"),
        ("\"name\": \"w1\"", "\"name\": \"w0\"", "workload 'w0' is given twice"),
        ("\"burst\": ", "\"burst\": -", "workload 'w0': limits[0] at network-in: burst is -"),
    ] {
        cluster.folder.write("policy.json", &policy.replace(from, to));
        let outcome = cluster.folder.run(&["plan", "cluster.toml", "--keep", "policy.json"]).expect_code(2);
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
}

#[test]
fn another_device_gets_other_limits() {
    let cluster = Cluster::new(4, 4);
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let text = cluster.folder.read("cluster.toml");
    cluster.folder.write("cluster.toml", &text.replace("network = ", "channels = 4\nnetwork = "));
    let kept = cluster.folder.run(&["plan", "cluster.toml", "--keep", "policy.json", "--json"]).json();
    judge::check_promises(&kept);
    for server in kept["servers"].as_array().expect("servers is a list") {
        assert_eq!(server["enforcement"]["channels"], 4, "{server}");
        let changed = kept["servers_changed"].as_array().expect("servers_changed is a list");
        assert!(changed.contains(&server["name"]), "{kept}");
    }
}

#[test]
fn who_cannot_stay_is_listed_and_can_be_forbidden_to_move() {
    let cluster = Cluster::new(10, 10);
    let before = homes(&first_plan(&cluster));
    let policy = cluster.folder.read("policy.json");
    // All work counts for more and more, until somebody has to go.
    let mut moves = Vec::new();
    for margin in ["1.2", "1.5", "2", "3", "5"] {
        let args = ["plan", "cluster.toml", "--keep", "policy.json", "--safety-margin", margin, "--json"];
        let plan = cluster.folder.run(&args).json();
        let after = homes(&plan);
        let listed = plan["workloads_moved"].as_array().expect("a kept plan says who moved");
        for (name, home) in &before {
            let said = listed.iter().find(|moved| moved["name"] == **name);
            assert_eq!(said.is_some(), after.get(name) != Some(home), "{name}: {plan}");
            if let Some(said) = said {
                assert_eq!(
                    (said["from"].as_str(), said["to"].as_str()),
                    (Some(home.as_str()), after.get(name).map(String::as_str))
                );
            }
        }
        moves = listed.clone();
        if !moves.is_empty() {
            let args = ["plan", "cluster.toml", "--keep", "policy.json", "--safety-margin", margin];
            let text = cluster.folder.run(&args).stdout;
            let line = format!("{} moves from", moves[0]["name"].as_str().unwrap());
            assert!(text.contains(&line), "{text}");
            let refused = cluster
                .folder
                .run(&[&args[..], &["--no-moves", "-o", "policy.json"]].concat())
                .expect_code(1);
            assert!(
                refused.stdout.contains(&line) && refused.stderr.contains("--no-moves"),
                "{}",
                refused.stderr
            );
            break;
        }
    }
    assert!(!moves.is_empty(), "nobody ever had to move");
    assert_eq!(cluster.folder.read("policy.json"), policy);
}

#[test]
fn a_policy_with_several_limits_per_stage_gets_one() {
    let cluster = Cluster::new(3, 3);
    cluster.folder.run(&["admit", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let kept = keep(&cluster);
    for workload in kept["workloads"].as_array().expect("workloads is a list") {
        assert_eq!(workload["limits"].as_array().map(Vec::len), Some(3), "{workload}");
    }
    assert!(!changed(&kept).is_empty(), "{kept}");
}
