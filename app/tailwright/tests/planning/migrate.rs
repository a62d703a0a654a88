//! `migrate`: steps between policies, judged by bounds from the limits in their files, for each step and for every mixture of
//! a step with the one before it, and by simulation.

use crate::support::cluster::Cluster;
use crate::support::{Folder, judge};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn homes(policy: &Value) -> BTreeMap<String, String> {
    judge::admitted(policy).into_iter().map(|w| (w.name, w.server)).collect()
}

/// Writes cluster.toml with rules of each workload, if it has any, and sizes.
fn describe(cluster: &Cluster, servers: usize, rules: &[String]) {
    cluster.describe(&(0..cluster.traces.len()).collect::<Vec<_>>(), servers);
    let mut described = cluster.folder.read("cluster.toml");
    for (w, rule) in rules.iter().enumerate() {
        let name = format!("name = \"w{w}\"\n");
        assert!(described.contains(&name));
        described = described.replace(&name, &format!("{name}size = \"{}GB\"\n{rule}", 10 + w));
    }
    cluster.folder.write("cluster.toml", &described);
}

/// Plans with each workload on this server.
fn plan_on(cluster: &Cluster, servers: usize, homes: &[usize], policy: &str) {
    let on = |server: &usize| format!("on = [\"ssd-{server}\"]\n");
    describe(cluster, servers, &homes.iter().map(on).collect::<Vec<_>>());
    cluster.folder.run(&["plan", "cluster.toml", "-o", policy]).expect_code(0);
}

/// The policies of the steps in a folder, in their order.
fn steps(folder: &Folder, name: &str) -> Vec<Value> {
    let entries = fs::read_dir(folder.join(name)).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| fs::read_to_string(file).expect("a file");
    files.iter().map(|file| serde_json::from_str(&read(file)).expect("JSON")).collect()
}

/// The workloads that both policies promise something on the same server, in states in which each limit of each stage is
/// that of one or the other: every bound from these limits is within its SLO.
fn judge_mixtures(old: &Value, new: &Value, seed: u64) -> usize {
    let [before, after] = [old, new].map(judge::admitted);
    let mut state = seed | 1;
    let mut bit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20 & 1 == 1
    };
    let mut judged = 0;
    for _ in 0..16 {
        let mut mixed: Vec<judge::Admitted> = Vec::new();
        let mut kept = BTreeSet::new();
        let find = |all: &'_ [judge::Admitted], name: &str, server: &str| {
            all.iter().position(|w| w.name == name && w.server == server)
        };
        for own in &before {
            let mut limits = own.limits;
            let other = find(&after, &own.name, &own.server);
            if let Some(other) = other {
                kept.insert(own.name.clone());
                for (limit, new) in limits.iter_mut().zip(after[other].limits) {
                    *limit = if bit() { new } else { *limit };
                }
            } else if bit() {
                continue;
            }
            let server = own.server.clone();
            mixed.push(judge::Admitted { name: own.name.clone(), server, limits, ..*own });
        }
        for own in &after {
            if find(&before, &own.name, &own.server).is_none() && bit() {
                let [name, server] = [own.name.clone(), own.server.clone()];
                mixed.push(judge::Admitted { name, server, ..*own });
            }
        }
        // A priority is the rank of the SLO on the server.
        for at in 0..mixed.len() {
            let above = mixed.iter().filter(|w| w.server == mixed[at].server && w.slo_s < mixed[at].slo_s);
            let above: BTreeSet<u64> = above.map(|w| w.slo_s.to_bits()).collect();
            mixed[at].priority = above.len() as u64;
        }
        let policy = if bit() { old } else { new };
        for who in mixed.iter().filter(|w| kept.contains(&w.name)) {
            let servers = list(&policy["servers"]);
            if servers.iter().all(|server| server["name"] != who.server.as_str()) {
                continue;
            }
            let bound = judge::bound(policy, &mixed, who);
            assert!(bound <= who.slo_s, "{}: {bound} s, an SLO of {} s", who.name, who.slo_s);
            judged += 1;
        }
    }
    judged
}

/// Judges the policies of steps from one policy to another; returns the number of bounds of mixtures.
fn judge_steps(old: &Value, new: &Value, plan: &Value, steps: &[Value]) -> usize {
    let mut judged = 0;
    let mut state = old;
    let mut at = homes(old);
    let is_copy = |name: &str| name.starts_with("copy-");
    for (number, (policy, said)) in steps.iter().zip(list(&plan["steps"])).enumerate() {
        judge::check_promises(policy);
        judged += judge_mixtures(state, policy, number as u64 + 7);
        let now = homes(policy);
        let moved: BTreeSet<&String> = now
            .iter()
            .filter(|(name, home)| !is_copy(name) && at.get(*name) != Some(home))
            .map(|it| it.0)
            .collect();
        let copies: BTreeSet<&String> = now.keys().filter(|name| is_copy(name)).collect();
        match text(&said["kind"]) {
            "copy" => {
                assert!(moved.is_empty(), "{moved:?} move during a copy");
                let mut named = BTreeSet::new();
                for copy in list(&said["copies"]) {
                    assert_eq!(now[text(&copy["reads_as"])], text(&copy["from"]));
                    assert_eq!(now[text(&copy["writes_as"])], text(&copy["to"]));
                    named.extend([text(&copy["reads_as"]), text(&copy["writes_as"])]);
                    let takes = copy["bytes"].as_f64().unwrap() / copy["rate_bytes_per_s"].as_f64().unwrap();
                    assert_eq!(copy["takes_s"].as_f64().unwrap(), takes);
                }
                assert_eq!(copies.iter().map(|name| name.as_str()).collect::<BTreeSet<_>>(), named);
            }
            "switch" => {
                let said = list(&said["copies"]).iter();
                let said: BTreeMap<&str, &str> =
                    said.map(|it| (text(&it["workload"]), text(&it["to"]))).collect();
                assert!(copies.is_empty(), "{copies:?} go on");
                assert_eq!(
                    moved.iter().map(|name| name.as_str()).collect::<BTreeSet<_>>(),
                    said.keys().copied().collect()
                );
                assert!(said.iter().all(|(name, to)| now[*name] == *to));
            }
            "make-room" | "settle" => {
                let arrived = moved.iter().all(|name| !at.contains_key(*name));
                assert!(arrived, "{moved:?} move without a copy");
            }
            other => panic!("{other}"),
        }
        at = now.into_iter().filter(|(name, _)| !is_copy(name)).collect();
        state = policy;
    }
    // The last step is the new policy, up to the names of servers.
    let names: BTreeMap<&str, &str> =
        list(&plan["renamed"]).iter().map(|it| (text(&it["was"]), text(&it["name"]))).collect();
    let mut wanted = homes(new);
    wanted.values_mut().for_each(|home| {
        if let Some(name) = names.get(home.as_str()) {
            *home = (*name).to_owned();
        }
    });
    assert_eq!(at, wanted);
    let limits = |policy: &Value| -> BTreeMap<String, Value> {
        list(&policy["workloads"])
            .iter()
            .map(|w| (text(&w["name"]).to_owned(), w["limits"].clone()))
            .collect()
    };
    assert_eq!(limits(state), limits(new));
    judged
}

fn json(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&folder.read(name)).expect("JSON")
}

const MIGRATE: [&str; 4] = ["migrate", "old.json", "new.json", "cluster.toml"];

fn migrate(folder: &Folder, code: i32, more: &[&str]) -> Value {
    folder.run(&[&MIGRATE[..], more, &["--json"]].concat()).expect_code(code).json()
}

/// Twelve workloads change places on three servers. Bytes, rates and times are recomputed, promises are judged from the
/// limits of all steps and of their mixtures, and one step is simulated with the traffic of its copies.
#[test]
fn workloads_change_places_and_every_promise_holds() {
    let cluster = Cluster::new(12, 4);
    plan_on(&cluster, 4, &[1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], "old.json");
    plan_on(&cluster, 4, &[1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 1], "new.json");
    describe(&cluster, 4, &vec![String::new(); 12]);
    let folder = &cluster.folder;
    let plan = migrate(folder, 0, &["-o", "steps"]);
    let [old, new] = [json(folder, "old.json"), json(folder, "new.json")];
    let policies = steps(folder, "steps");
    let judged = judge_steps(&old, &new, &plan, &policies);
    println!("{} steps, {judged} bounds of mixtures", policies.len());
    assert!(judged > 200);
    assert_eq!(plan["found"], true);
    let moves: BTreeMap<&str, (&str, &str)> = list(&plan["moves"])
        .iter()
        .map(|it| (text(&it["workload"]), (text(&it["from"]), text(&it["to"]))))
        .collect();
    let expected = [("w3", ("ssd-1", "ssd-2")), ("w7", ("ssd-2", "ssd-3")), ("w11", ("ssd-3", "ssd-1"))];
    assert_eq!(moves, expected.into_iter().collect());
    assert_eq!(plan["bytes"], 13_000_000_000_u64 + 17_000_000_000 + 21_000_000_000);
    let shown = folder.run(&MIGRATE).expect_code(0).stdout;
    for part in [
        "3 workloads move (51GB)",
        "every SLO holds at every step and between steps",
        "copy w11 from ssd-3 to ssd-1 at up to",
    ] {
        assert!(
            shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(part),
            "{part} is not in: {shown}"
        );
    }
    simulate_copies(&cluster, &plan);
}

/// Simulates the policy of the first copy step with traces of what copies send.
fn simulate_copies(cluster: &Cluster, plan: &Value) {
    let folder = &cluster.folder;
    let step = list(&plan["steps"]).iter().find(|step| step["kind"] == "copy").expect("a copy");
    let file = format!("steps/{:02}-copy.json", step["number"].as_u64().unwrap());
    let policy = json(folder, &file);
    let mut described = folder.read("cluster.toml");
    for copy in list(&step["copies"]) {
        let size = copy["request_bytes"].as_u64().unwrap();
        let interval_ns = size as f64 / copy["rate_bytes_per_s"].as_f64().unwrap() * 1e9;
        for (field, op) in [("reads_as", "DiskRead"), ("writes_as", "DiskWrite")] {
            let name = text(&copy[field]);
            let line =
                |number: u64| format!("{:.0},0x{size:08x},{op}\n", (number as f64 * interval_ns).ceil());
            folder.write(&format!("{name}.csv"), &(0..2000).map(line).collect::<String>());
            let workload = list(&policy["workloads"]).iter().find(|it| it["name"] == name).expect("a copy");
            described += &format!(
                "[[workload]]\nname = \"{name}\"\ntrace = \"{name}.csv\"\nslo = \"{}\"\n",
                text(&workload["slo"])
            );
        }
    }
    folder.write("copying.toml", &described);
    let simulated = folder.run(&["simulate", &file, "--cluster", "copying.toml", "--json"]);
    assert!(simulated.code < 2, "{}", simulated.stderr);
    let simulated = simulated.json();
    let mut held = 0;
    for workload in list(&simulated["servers"]).iter().flat_map(|server| list(&server["workloads"])) {
        // A trace that is repeated may bring more at its seam than limits without a margin let pass; a copy does not.
        let is_beyond_limits = workload["assumption"] == "the requests exceed their limits";
        let is_copy = text(&workload["name"]).starts_with("copy-");
        assert!(workload["bound"] == "held" || (is_beyond_limits && !is_copy), "{workload}");
        held += usize::from(workload["bound"] == "held");
    }
    assert!(held >= 10, "bounds of {held} workloads and copies held");
}

/// Names of servers say nothing: a plan with the same groups under other names moves no workload.
#[test]
fn the_names_of_servers_move_no_workload() {
    let cluster = Cluster::new(6, 3);
    plan_on(&cluster, 3, &[1, 1, 2, 2, 3, 3], "old.json");
    plan_on(&cluster, 3, &[2, 2, 3, 3, 1, 3], "new.json");
    describe(&cluster, 3, &vec![String::new(); 6]);
    let plan = migrate(&cluster.folder, 0, &["-o", "steps"]);
    // Of both homes that could be kept on the third group, the one with more bytes stays.
    let moves = list(&plan["moves"]);
    assert_eq!(moves.len(), 1, "{plan}");
    assert_eq!(
        (text(&moves[0]["workload"]), text(&moves[0]["from"]), text(&moves[0]["to"])),
        ("w5", "ssd-3", "ssd-2")
    );
    assert_eq!(list(&plan["renamed"]).len(), 3);
    let [old, new] = [json(&cluster.folder, "old.json"), json(&cluster.folder, "new.json")];
    judge_steps(&old, &new, &plan, &steps(&cluster.folder, "steps"));
    // A workload that has to be on a server by name keeps the names.
    let mut rules = vec![String::new(); 6];
    rules[0] = "on = [\"ssd-2\"]\n".to_owned();
    describe(&cluster, 3, &rules);
    let plan = migrate(&cluster.folder, 0, &[]);
    let moved: BTreeSet<&str> = list(&plan["moves"]).iter().map(|it| text(&it["workload"])).collect();
    assert!(moved.contains("w0"), "{plan}");
    // To itself there is nothing to do, and nothing is written.
    let same = ["migrate", "old.json", "old.json", "cluster.toml", "-o", "none"];
    let shown = cluster.folder.run(&same).expect_code(0).stdout;
    assert!(shown.starts_with("Nothing changes"), "{shown}");
    assert!(!cluster.folder.join("none").exists());
}

/// Workloads come and go with a plan that is kept.
#[test]
fn workloads_come_and_go() {
    let cluster = Cluster::new(8, 4);
    let folder = &cluster.folder;
    cluster.describe(&[0, 1, 2, 3, 4, 5], 4);
    folder.run(&["plan", "cluster.toml", "-o", "old.json"]).expect_code(0);
    cluster.describe(&[1, 2, 3, 4, 5, 6, 7], 4);
    folder.run(&["plan", "cluster.toml", "--keep", "old.json", "-o", "new.json"]).expect_code(0);
    let plan = migrate(folder, 0, &["-o", "steps"]);
    assert_eq!(plan["leaving"], serde_json::json!(["w0"]));
    assert_eq!(plan["arriving"], serde_json::json!(["w6", "w7"]));
    let [old, new] = [json(folder, "old.json"), json(folder, "new.json")];
    judge_steps(&old, &new, &plan, &steps(folder, "steps"));
    let shown = folder.run(&MIGRATE).expect_code(0).stdout;
    assert!(
        shown.contains("w0 are promised nothing any more") || shown.contains("w0 is promised nothing"),
        "{shown}"
    );
}

/// Two full servers change places only by way of a third one.
#[test]
fn a_full_cluster_says_which_server_would_help() {
    let cluster = Cluster::new(4, 2);
    plan_on(&cluster, 2, &[1, 1, 2, 2], "old.json");
    let folder = &cluster.folder;
    let class = "count = 2\n";
    let pinned = folder.read("cluster.toml");
    let full = |text: &str| text.replace(class, "count = 2\ncapacity = \"26GB\"\n");
    assert!(pinned.contains(class));
    // Sizes are 10, 11, 12 and 13 GB: w0 with w3, and w1 with w2.
    describe(&cluster, 2, &["", "", "", ""].map(str::to_owned));
    let plain = folder.read("cluster.toml");
    plan_on(&cluster, 2, &[1, 2, 2, 1], "new.json");
    folder.write("cluster.toml", &full(&plain));
    let stuck = migrate(folder, 1, &[]);
    assert_eq!(stuck["found"], false);
    let reason = text(&stuck["reason"]);
    assert!(reason.contains("cannot move from") && reason.contains("cannot store its"), "{reason}");
    let shown = folder.run(&MIGRATE).expect_code(1).stdout;
    assert!(shown.starts_with("No steps were found that keep every SLO"), "{shown}");
    folder.write("cluster.toml", &full(&plain).replace("count = 2", "count = 3"));
    let helped = migrate(folder, 0, &["-o", "steps"]);
    let [old, new] = [json(folder, "old.json"), json(folder, "new.json")];
    judge_steps(&old, &new, &helped, &steps(folder, "steps"));
    let copies = list(&helped["steps"]).iter().filter(|step| step["kind"] == "copy");
    let through = copies.flat_map(|step| list(&step["copies"])).any(|copy| copy["to"] == "ssd-3");
    assert!(through, "{helped}");
}

/// A workload whose trace has grown does not hold now, is said, and holds at the end.
#[test]
fn a_renewed_trace_is_reached() {
    let cluster = Cluster::new(6, 4);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "old.json"]).expect_code(0);
    // Every request of w2 is there four times.
    let grown: String = folder.read("w2.csv").lines().map(|line| format!("{line}\n").repeat(4)).collect();
    folder.write("w2.csv", &grown);
    folder.run(&["plan", "cluster.toml", "--keep", "old.json", "-o", "new.json"]).expect_code(0);
    let plan = migrate(folder, 0, &["-o", "steps"]);
    assert_eq!(plan["broken_before"], serde_json::json!(["w2"]));
    let last = steps(folder, "steps").pop().expect("a step");
    judge::check_promises(&last);
    let shown = folder.run(&MIGRATE).expect_code(0).stdout;
    assert!(shown.contains("every SLO that holds now holds at every step"), "{shown}");
    // The old policy is none for the new inputs.
    let back = folder.run(&["migrate", "new.json", "old.json", "cluster.toml"]).expect_code(2).stderr;
    assert!(back.contains("the limits of the new policy do not hold on server"), "{back}");
}

#[test]
fn bad_input_is_refused_with_what_to_do() {
    let cluster = Cluster::new(3, 2);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "old.json"]).expect_code(0);
    folder.run(&["admit", "cluster.toml", "--model", "worst-case", "-o", "admitted.json"]).expect_code(0);
    fs::create_dir(folder.join("full")).expect("a folder");
    folder.write("full/file", "");
    let described = folder.read("cluster.toml");
    folder.write("nvme.toml", &described.replace("class = \"ssd\"", "class = \"nvme\""));
    folder.write("channels.toml", &described.replace("count = 2", "count = 2\nchannels = 4"));
    let host = "[[host]]\nname = \"app\"\nnetwork = \"1Gbps\"\n[[workload]]";
    let hosted = described.replacen("[[workload]]", host, 1).replace("slo =", "host = \"app\"\nslo =");
    folder.write("hosted.toml", &hosted);
    for (args, part) in [
        (&["old.json", "old.json", "nvme.toml"][..], "the cluster does not have"),
        (&["old.json", "old.json", "channels.toml"], "another device on server 'ssd-1'"),
        (&["old.json", "old.json", "hosted.toml"], "there are client hosts"),
        (&["old.json", "admitted.json", "cluster.toml"], "several limits at a stage"),
        (&["old.json", "old.json", "cluster.toml", "-o", "full"], "expected an empty folder, or none"),
        (&["old.json", "old.json", "cluster.toml", "-o", "old.json"], "another use in the same command"),
        (&["old.json", "old.json", "cluster.toml", "--copy-rate", "0B/s"], "--copy-rate"),
        (&["old.json", "old.json", "cluster.toml", "--copy-request", "0B"], "expected 1B to 1GiB"),
        (&["old.json", "missing.json", "cluster.toml"], "missing.json"),
        (&["old.json", "old.json"], "no cluster given"),
    ] {
        let outcome = folder.run(&[&["migrate"][..], args].concat()).expect_code(2);
        assert!(outcome.stderr.contains(part), "{part} is not in: {}", outcome.stderr);
    }
}

/// The published workloads: from a plan with a margin to one without, on fewer servers.
#[test]
fn the_real_workloads_are_moved() {
    let Some(dir) = testkit::shared("traces") else { return };
    let path = |name: &str| dir.join(name).to_str().expect("the path is text").to_owned();
    let slos = path("slos.csv");
    let traces = path("");
    let storage = path("ssd-profile.json");
    let described = ["--slos", &slos, "--traces", &traces, "--storage", &storage, "--network", "125MB/s"];
    let folder = Folder::new();
    let run = |words: &[&str], code: i32| {
        folder.run(&[words, &described, &["--max-servers", "62"]].concat()).expect_code(code)
    };
    run(&["plan", "--safety-margin", "1.2", "-o", "old.json"], 0);
    run(&["plan", "-o", "new.json"], 0);
    let plan = run(&["migrate", "old.json", "new.json", "--json", "-o", "steps"], 0).json();
    let policies = steps(&folder, "steps");
    let mut judged = 0;
    for pair in policies.windows(2) {
        judged += judge_mixtures(&pair[0], &pair[1], 11);
    }
    println!(
        "{} moves in {} steps, {judged} bounds of mixtures; {}",
        list(&plan["moves"]).len(),
        policies.len(),
        plan["broken_before"]
    );
    assert!(judged > 1000 && list(&plan["moves"]).len() > 2);
}
