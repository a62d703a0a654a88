//! The doors at which a policy is simulated, enforced or judged: each compares what runs it with what its bounds assume.

use crate::support::cluster::Cluster;
use crate::support::{Folder, Outcome};
use serde_json::{Value, json};

/// A cluster with a policy for devices of two channels.
fn planned() -> Cluster {
    let cluster = Cluster::new(3, 3);
    set_class(&cluster, "channels = 2\nbest_effort_request = \"256KiB\"");
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    cluster
}

/// Adds lines to the class of servers.
fn set_class(cluster: &Cluster, lines: &str) {
    cluster.describe(&[0, 1, 2], 3);
    let text = cluster.folder.read("cluster.toml");
    cluster
        .folder
        .write("cluster.toml", &text.replacen("[[workload]]", &format!("{lines}\n[[workload]]"), 1));
}

fn policy(folder: &Folder) -> Value {
    serde_json::from_str(&folder.read("policy.json")).expect("a policy")
}

/// Writes the policy with this field of its servers' enforcement, or without one where the value is null.
fn write_policy(folder: &Folder, field: &str, value: &Value) {
    let mut policy = policy(folder);
    for server in policy["servers"].as_array_mut().expect("servers") {
        let fields = server["enforcement"].as_object_mut().expect("it says how it is used");
        fields.insert(field.to_owned(), value.clone());
    }
    folder.write("changed.json", &policy.to_string());
}

#[track_caller]
fn assert_refused(outcome: &Outcome, said: &str) {
    assert_eq!(outcome.code, 2, "{said}: {}\n{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stderr.contains("bounds do not apply: "), "{said}: {}", outcome.stderr);
    assert!(
        outcome.stderr.contains(said) && outcome.stderr.contains("--without-bounds"),
        "{said}: {}",
        outcome.stderr
    );
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_policy_is_simulated_on_the_servers_of_the_cluster() {
    let cluster = planned();
    let simulate = |more: &[&str]| {
        cluster.folder.run(&[&["simulate", "policy.json", "--cluster", "cluster.toml"], more].concat())
    };
    // Few requests leave some SLOs open, which is no matter of bounds.
    let simulated = |more: &[&str]| {
        let outcome = simulate(more);
        assert!(outcome.code < 2, "{}", outcome.stderr);
        outcome
    };
    let fitting = simulated(&["--json"]).json();
    assert!(
        fitting["servers"][0]["flood_request_s"].as_f64().is_some_and(|request| request > 0.0),
        "{fitting}"
    );
    for workload in fitting["servers"][0]["workloads"].as_array().expect("workloads") {
        assert_eq!(workload["bound"], "held", "{workload}");
        assert!(!workload["name"].as_str().expect("a name").contains("best-effort"), "{workload}");
    }
    let said = simulated(&[]).stdout;
    assert!(said.contains("Flooded by best-effort reads and writes of up to"), "{said}");
    let alone = simulated(&["--no-flood"]).stdout;
    assert!(alone.contains("Without best-effort requests."), "{alone}");
    let json = simulated(&["--no-flood", "--json"]).json();
    assert!(json["servers"][0]["flood_request_s"].is_null(), "{json}");
    // A flood makes no request faster.
    let longest = |found: &Value| -> Vec<f64> {
        let workloads = found["servers"][0]["workloads"].as_array().expect("workloads");
        workloads.iter().map(|workload| workload["longest_s"].as_f64().expect("it was served")).collect()
    };
    let beside = longest(&fitting);
    let alone = longest(&json);
    assert!(beside.iter().zip(&alone).any(|(beside, alone)| beside > alone), "{beside:?} {alone:?}");

    for (class, said) in [
        (
            "channels = 16\nbest_effort_request = \"256KiB\"",
            "channels: 16, the policy's bounds count on 2 or less",
        ),
        ("channels = 2\nbest_effort_request = \"1MiB\"", "device time of the largest best-effort request: "),
        ("channels = 2\nbest_effort_request = \"256KiB\"\npacket = \"1MiB\"", "largest packet: 1048576 B"),
        ("channels = 2\nbest_effort_request = \"256KiB\"\nproxy = \"5ms\"", "time in the proxy: "),
    ] {
        set_class(&cluster, class);
        assert_refused(&simulate(&[]), said);
        let accepted = simulate(&["--without-bounds"]);
        assert!(accepted.code < 2, "{}", accepted.stderr);
        let first = accepted.stdout.lines().next().expect("a line");
        assert!(first.starts_with("bounds do not apply: ") && first.contains(said), "{first}");
        let json = simulate(&["--without-bounds", "--json"]).json();
        assert!(json["bounds_do_not_apply"].as_str().is_some_and(|why| why.contains(said)), "{json}");
        let workloads = json["servers"][0]["workloads"].as_array().expect("workloads");
        assert!(workloads.iter().all(|workload| workload["bound"] != "broken"), "{json}");
    }
    // In the other direction bounds hold.
    for class in [
        "channels = 1\nbest_effort_request = \"256KiB\"",
        "channels = 2\nbest_effort_request = \"64KiB\"",
        "channels = 2\nbest_effort_request = \"256KiB\"\npacket = \"1500B\"",
        "channels = 2\nbest_effort_request = \"256KiB\"\nproxy = \"1us\"",
    ] {
        set_class(&cluster, class);
        let found = simulated(&["--json"]).json();
        for workload in found["servers"][0]["workloads"].as_array().expect("workloads") {
            assert_eq!(workload["bound"], "held", "{class}: {workload}");
        }
    }
    set_class(&cluster, "channels = 2\nbest_effort_request = \"256KiB\"");
    let text = cluster.folder.read("cluster.toml");
    cluster.folder.write("cluster.toml", &text.replace("125MB/s", "60MB/s"));
    assert_refused(&simulate(&[]), "bandwidth of the link: ");
    cluster.folder.write("cluster.toml", &text.replace("125MB/s", "250MB/s"));
    simulated(&[]);
    // The device is another one than planned for, under the same name.
    cluster.folder.write("cluster.toml", &text);
    let profile = cluster.folder.read("ssd.json");
    cluster.folder.write("ssd.json", &profile.replace("\"readBandwidth\": 100e6", "\"readBandwidth\": 90e6"));
    assert_refused(&simulate(&[]), "content of the device profile: ");
}

#[test]
fn a_scenario_with_a_policy_is_compared_with_it() {
    let cluster = planned();
    let folder = &cluster.folder;
    let policy = policy(&cluster.folder);
    let workload =
        |name: &str| format!("[[workload]]\nname = \"{name}\"\ntrace = \"{name}.csv\"\nslo = \"99% < 1s\"\n");
    let placed: String = policy["workloads"]
        .as_array()
        .expect("workloads")
        .iter()
        .filter(|at| at["server"] == policy["servers"][0]["name"])
        .map(|at| workload(at["name"].as_str().expect("a name")))
        .collect();
    let run = |server: &str, beside: &str, more: &[&str]| {
        let text = format!(
            "[run]\nreplications = 2\n[server]\nprofile = \"ssd.json\"\npolicy = \"policy.json\"\n{server}\n{placed}{beside}"
        );
        folder.write("s.toml", &text);
        folder.run(&[&["simulate", "s.toml"], more].concat())
    };
    let right = "network = \"125MB/s\"\nchannels = 2";
    let copy = |size: &str| {
        format!(
            "[[workload]]\nname = \"copy\"\nclients = 4\nsize = \"{size}\"\nop = \"read\"\nbest_effort = true\n"
        )
    };
    for (server, beside) in [
        (right.to_owned(), String::new()),
        (right.to_owned(), copy("256KiB")),
        (right.to_owned(), copy("4KiB")),
        ("network = \"125MB/s\"\nchannels = 1".to_owned(), String::new()),
        ("network = \"500MB/s\"\nchannels = 2".to_owned(), String::new()),
        (format!("{right}\nbatch = 1"), String::new()),
    ] {
        let outcome = run(&server, &beside, &[]);
        assert!(
            outcome.code < 2 && !outcome.stdout.contains("bounds do not apply"),
            "{server}: {}",
            outcome.stderr
        );
    }
    for (server, beside, said) in [
        ("network = \"125MB/s\"\nchannels = 16".to_owned(), String::new(), "channels: 16"),
        ("network = \"50MB/s\"\nchannels = 2".to_owned(), String::new(), "bandwidth of the link"),
        (format!("{right}\noutstanding = 64"), String::new(), "outstanding: 64"),
        (
            format!("{right}\noutstanding = 1"),
            String::new(),
            "the fewest of outstanding, reads and writes: 1",
        ),
        (format!("{right}\nbeside = 0"), String::new(), "beside: 0"),
        (format!("{right}\nbatch = 8"), String::new(), "batch: 8"),
        (right.to_owned(), copy("1MiB"), "device time of the largest best-effort request"),
    ] {
        assert_refused(&run(&server, &beside, &[]), said);
        let accepted = run(&server, &beside, &["--without-bounds"]);
        assert!(
            accepted.code < 2 && accepted.stdout.starts_with("bounds do not apply: "),
            "{}",
            accepted.stdout
        );
        let json = run(&server, &beside, &["--without-bounds", "--json"]).json();
        assert!(json["bounds_do_not_apply"].as_str().is_some_and(|why| why.contains(said)), "{json}");
    }
    // What is varied is compared, too.
    let varied = format!("{right}\n");
    let vary = "[[vary]]\nname = \"channels\"\nset = \"server.channels\"\nvalues = [2, 16]\n";
    assert_refused(&run(&varied, vary, &[]), "channels: 16");
}

/// A hosts file for the only server of a policy, with lines of its storage.
fn hosts(server: &str, rate: &str, storage: &str) -> String {
    let mut text = format!(
        "[[host]]\nname = \"app\"\ndevice.eth0 = \"{rate}\"\n[[host]]\nname = \"store\"\ndevice.eth0 = \"{rate}\"\n\
         [[server]]\nname = \"{server}\"\nhost = \"store\"\naddress = [\"10.77.0.2\"]\n[server.storage]\n\
         profile = \"ssd.json\"\nfront = [{{ protocol = \"memcached\", listen = \"127.0.0.1:0\", forward = \"127.0.0.1:1\" }}]\n\
         {storage}\n"
    );
    for name in ["w0", "w1", "w2"] {
        let last = name[1..].parse::<u32>().expect("a number") + 1;
        text +=
            &format!("[[client]]\nworkload = \"{name}\"\nhost = \"app\"\naddress = [\"10.77.1.{last}\"]\n");
    }
    text
}

#[test]
fn hosts_are_compared_before_they_are_changed() {
    let cluster = planned();
    let folder = &cluster.folder;
    assert_eq!(policy(folder)["servers"].as_array().map(Vec::len), Some(1));
    let server = policy(folder)["servers"][0]["name"].as_str().expect("a name").to_owned();
    let doors = |policy: &str, more: &[&str]| {
        let apply = ["apply", policy, "--hosts", "hosts.toml", "--state", "state", "--dry-run"];
        folder.run(&[&apply[..], more].concat())
    };
    let proxy = |policy: &str| {
        folder.run(&["proxy", policy, "--hosts", "hosts.toml", "--server", &server, "--state", "state"])
    };
    for (rate, storage) in [("1Gbps", ""), ("10Gbps", "channels = 1"), ("1Gbps", "channels = 2\nreserve = 1")]
    {
        folder.write("hosts.toml", &hosts(&server, rate, storage));
        let outcome = doors("policy.json", &[]).expect_code(0);
        assert!(!outcome.stdout.contains("bounds do not apply"), "{storage}: {}", outcome.stdout);
    }
    for (rate, storage, said) in [
        ("1Gbps", "channels = 16", "channels: 16, the policy's bounds count on 2 or less"),
        ("100Mbps", "", "bandwidth of the link"),
        ("1Gbps", "outstanding = 64", "outstanding: 64"),
        ("1Gbps", "reads = 1", "the fewest of outstanding, reads and writes: 1"),
        ("1Gbps", "beside = 0", "beside: 0"),
        ("1Gbps", "writes_bytes = \"64KiB\"", "bytes at the device: 65536 B"),
        ("1Gbps", "batch = 4", "batch: 4"),
    ] {
        folder.write("hosts.toml", &hosts(&server, rate, storage));
        assert_refused(&doors("policy.json", &[]), said);
        assert_refused(&proxy("policy.json"), said);
        let accepted = doors("policy.json", &["--without-bounds"]).expect_code(0);
        let first = accepted.stdout.lines().next().expect("a line");
        assert!(first.starts_with("# bounds do not apply: ") && first.contains(said), "{first}");
        let json = doors("policy.json", &["--without-bounds", "--json"]).expect_code(0).json();
        assert!(json["bounds_do_not_apply"].as_str().is_some_and(|why| why.contains(said)), "{json}");
    }
    folder.write("hosts.toml", &hosts(&server, "1Gbps", ""));
    // While a device is shaped it builds packets of a frame: 1514 bytes here.
    write_policy(folder, "packet_bytes", &json!(1000.0));
    assert_refused(&doors("changed.json", &[]), "largest packet: 1514 B");
    // A policy of before states nothing of it.
    let mut old = policy(folder);
    let fields = old["servers"][0].as_object_mut().expect("a server");
    fields.remove("enforcement");
    fields.remove("storage_profile_hash");
    folder.write("old.json", &old.to_string());
    folder.write("hosts.toml", &hosts(&server, "1Gbps", "channels = 16"));
    let outcome = doors("old.json", &[]).expect_code(0);
    assert!(
        outcome.stderr.contains("not stated in this policy, and not compared: channels, "),
        "{}",
        outcome.stderr
    );
    // Another device than planned for.
    let profile = folder.read("ssd.json");
    folder.write("ssd.json", &profile.replace("\"writeBandwidth\": 100e6", "\"writeBandwidth\": 90e6"));
    folder.write("hosts.toml", &hosts(&server, "1Gbps", ""));
    assert_refused(&doors("policy.json", &[]), "content of the device profile");
    assert_refused(&proxy("policy.json"), "content of the device profile");
}

#[test]
fn observations_are_judged_by_bounds_that_apply() {
    let cluster = planned();
    let folder = &cluster.folder;
    let server = policy(folder)["servers"][0]["name"].as_str().expect("a name").to_owned();
    let simulate = ["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "o.parquet"];
    assert!(folder.run(&simulate).code < 2);
    let verify = |more: &[&str]| {
        let args = ["verify", "policy.json", "o.parquet", "--storage", "ssd.json"];
        folder.run(&[&args[..], more].concat())
    };
    let found = verify(&["--json"]);
    assert!(found.code < 2, "{}", found.stderr);
    assert!(found.json()["workloads"][0]["bound"]["bound_s"].as_f64().is_some(), "{}", found.stdout);
    folder.write("hosts.toml", &hosts(&server, "1Gbps", "channels = 16"));
    assert_refused(&verify(&["--hosts", "hosts.toml"]), "channels: 16");
    let accepted = verify(&["--hosts", "hosts.toml", "--without-bounds"]);
    assert!(accepted.code < 2 && accepted.stdout.starts_with("bounds do not apply: "), "{}", accepted.stdout);
    let json = verify(&["--hosts", "hosts.toml", "--without-bounds", "--json"]).json();
    assert!(json["workloads"][0]["bound"].is_null() && json["bounds_do_not_apply"].is_string(), "{json}");
    // The largest best-effort request that bounds count is shorter than one that was observed.
    let without = |names: &[&str], assumed_s: f64| {
        let mut changed = policy(folder);
        let workloads = changed["workloads"].as_array_mut().expect("workloads");
        for workload in
            workloads.iter_mut().filter(|at| names.contains(&at["name"].as_str().expect("a name")))
        {
            for field in ["server", "priority", "bound_s"] {
                workload[field] = Value::Null;
            }
            (workload["admitted"], workload["limits"]) = (false.into(), json!([]));
        }
        changed["servers"][0]["enforcement"]["best_effort_request_s"] = assumed_s.into();
        folder.write("changed.json", &changed.to_string());
        folder.run(&["verify", "changed.json", "o.parquet", "--storage", "ssd.json"])
    };
    // Requests are of 128 KiB at most, which take 1.3 ms.
    assert_refused(&without(&["w2"], 1e-4), "device time of the largest best-effort request");
    assert!(without(&["w2"], 2e-3).code < 2);
    assert!(without(&[], 1e-4).code < 2);
    // The profile is not the one that was planned with.
    let profile = folder.read("ssd.json");
    folder.write("ssd.json", &profile.replace("\"readBandwidth\": 100e6", "\"readBandwidth\": 90e6"));
    assert_refused(&verify(&[]), "content of the device profile");
}

/// A server that is used in another way takes the bounds of its own workloads away, and of no others.
#[test]
fn bounds_are_judged_on_the_servers_that_they_apply_to() {
    let cluster = Cluster::new(18, 18);
    let slow =
        r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 40e6, "writeBandwidth": 40e6}]}"#;
    cluster.folder.write("ssd.json", slow);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let mut changed = policy(folder);
    assert!(changed["servers"].as_array().is_some_and(|servers| servers.len() > 1), "{changed}");
    let affected = changed["servers"][0]["name"].as_str().expect("a name").to_owned();
    changed["servers"][0]["storage_profile_hash"] = "0123456789abcdef".into();
    folder.write("policy.json", &changed.to_string());
    let placed = changed["workloads"].as_array().expect("workloads");
    let is_affected = |name: &Value| {
        let workload = placed.iter().find(|workload| workload["name"] == *name).expect("a workload");
        workload["server"] == affected.as_str()
    };
    let simulate = ["simulate", "policy.json", "--cluster", "cluster.toml"];
    assert_refused(&folder.run(&simulate), "content of the device profile: ");
    let json =
        folder.run(&[&simulate[..], &["--without-bounds", "--json", "-o", "o.parquet"]].concat()).json();
    let why = json["bounds_do_not_apply"].as_str().expect("it says why");
    assert!(why.contains(&affected) && why.contains("on other servers do"), "{why}");
    for server in json["servers"].as_array().expect("servers") {
        for workload in server["workloads"].as_array().expect("workloads") {
            // Some traces exceed their limits where they wrap around, and thereby their bounds.
            let is_judged =
                workload["bound"] == "held" || workload["assumption"] == "the requests exceed their limits";
            assert_eq!(is_judged, server["name"] != affected.as_str(), "{workload}");
        }
    }
    let verify = ["verify", "policy.json", "o.parquet", "--storage", "ssd.json"];
    assert_refused(&folder.run(&verify), "content of the device profile: ");
    let json = folder.run(&[&verify[..], &["--without-bounds", "--json"]].concat()).json();
    assert!(json["bounds_do_not_apply"].as_str().is_some_and(|why| why.contains(&affected)), "{json}");
    for workload in json["workloads"].as_array().expect("workloads") {
        assert_eq!(workload["bound"].is_null(), is_affected(&workload["name"]), "{workload}");
    }
}

/// Writes the policy as a document of version 1 has it: what enforcers allow beyond a limit is in the limit.
fn write_version_1(folder: &Folder) {
    let mut old = policy(folder);
    assert_eq!(old["version"], 3);
    old["version"] = 1.into();
    for workload in old["workloads"].as_array_mut().expect("workloads") {
        workload.as_object_mut().expect("a workload").remove("densest_answer");
        for limit in workload["limits"].as_array_mut().expect("limits") {
            for (burst, allowance) in [("burst", "allowance"), ("burst_work", "allowance_work")] {
                let allowed = limit[allowance].as_f64().unwrap_or(0.0);
                limit[burst] = (limit[burst].as_f64().expect("a burst") + allowed).into();
                limit.as_object_mut().expect("a limit").remove(allowance);
            }
        }
    }
    folder.write("old.json", &old.to_string());
}

#[test]
fn every_door_says_that_bounds_of_version_1_do_not_hold_with_several_channels() {
    let cluster = Cluster::new(3, 3);
    set_class(&cluster, "channels = 4\nbest_effort_request = \"256KiB\"");
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    write_version_1(folder);
    let server = policy(folder)["servers"][0]["name"].as_str().expect("a name").to_owned();
    let assert_said = |outcome: &Outcome, text: &str| {
        assert!(
            text.contains("bounds do not apply: ") && text.contains("the policy is of version 1"),
            "{}\n{}",
            outcome.stdout,
            outcome.stderr
        );
    };
    // A simulation of the policy.
    let simulate = ["simulate", "old.json", "--cluster", "cluster.toml", "-o", "o.parquet"];
    let simulated = folder.run(&simulate);
    assert!(simulated.code < 2, "{}", simulated.stderr);
    assert_said(&simulated, simulated.stdout.lines().next().expect("a line"));
    let json = folder.run(&[&simulate[..4], &["--json"]].concat()).json();
    assert_said(&simulated, json["bounds_do_not_apply"].as_str().expect("it says so"));
    for workload in json["servers"][0]["workloads"].as_array().expect("workloads") {
        assert!(workload["bound"] != "held", "{workload}");
    }
    // A scenario whose server names the policy.
    let mut scenario = "[run]\nreplications = 2\n[server]\nprofile = \"ssd.json\"\npolicy = \"old.json\"\n\
                        network = \"125MB/s\"\nchannels = 4\n"
        .to_owned();
    for workload in policy(folder)["workloads"].as_array().expect("workloads") {
        if workload["server"] == server.as_str() {
            let name = workload["name"].as_str().expect("a name");
            scenario +=
                &format!("[[workload]]\nname = \"{name}\"\ntrace = \"{name}.csv\"\nslo = \"99% < 1s\"\n");
        }
    }
    folder.write("s.toml", &scenario);
    let outcome = folder.run(&["simulate", "s.toml"]);
    assert!(outcome.code < 2, "{}", outcome.stderr);
    assert_said(&outcome, outcome.stdout.lines().next().expect("a line"));
    let json = folder.run(&["simulate", "s.toml", "--json"]).json();
    assert_said(&outcome, json["bounds_do_not_apply"].as_str().expect("it says so"));
    // Observations of a run.
    let verify = ["verify", "old.json", "o.parquet", "--storage", "ssd.json"];
    let outcome = folder.run(&verify);
    assert!(outcome.code < 2, "{}", outcome.stderr);
    assert_said(&outcome, outcome.stdout.lines().next().expect("a line"));
    let json = folder.run(&[&verify[..], &["--json"]].concat()).json();
    assert!(json["workloads"][0]["bound"].is_null(), "{json}");
    // Hosts.
    folder.write("hosts.toml", &hosts(&server, "1Gbps", ""));
    let apply = ["apply", "old.json", "--hosts", "hosts.toml", "--state", "state", "--dry-run"];
    let outcome = folder.run(&apply).expect_code(0);
    assert_said(&outcome, outcome.stdout.lines().next().expect("a line"));
    // A proxy says it before it listens: its address is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free address");
    let address = taken.local_addr().expect("an address").to_string();
    folder.write("hosts.toml", &hosts(&server, "1Gbps", "").replace("127.0.0.1:0", &address));
    let outcome =
        folder.run(&["proxy", "old.json", "--hosts", "hosts.toml", "--server", &server, "--state", "state"]);
    assert!(outcome.code > 0, "{}", outcome.stderr);
    assert_said(&outcome, &outcome.stderr);
    // What `plan` writes has bounds that hold.
    let outcome = folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml"]);
    assert!(!outcome.stdout.contains("bounds do not apply"), "{}", outcome.stdout);
}

/// A real policy of before, whose bound of 91.9 ms traffic within its limits exceeds.
#[test]
fn a_bound_that_does_not_hold_is_not_presented_as_one() {
    let Some(case) = testkit::shared("cases/promise-channels") else { return };
    let scenario = case.join("sc.toml").display().to_string();
    let folder = Folder::new();
    let outcome = folder.run(&["simulate", &scenario]);
    assert!(outcome.stdout.starts_with("bounds do not apply: "), "{}\n{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("the policy is of version 1"), "{}", outcome.stdout);
    let json = folder.run(&["simulate", &scenario, "--json"]).json();
    assert!(json["bounds_do_not_apply"].as_str().is_some_and(|why| why.contains("version 1")), "{json}");
}
