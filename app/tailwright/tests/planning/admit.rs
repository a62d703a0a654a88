//! `tailwright admit`, as users and scripts run it.

use crate::support::cluster::Cluster;
use serde_json::Value;

/// Twelve workloads and a device on which some of them fit.
fn busy() -> Cluster {
    let cluster = Cluster::new(12, 1);
    let slow =
        r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 20e6, "writeBandwidth": 20e6}]}"#;
    cluster.folder.write("ssd.json", slow);
    let described = cluster.folder.read("cluster.toml");
    let alone = described.replace("network =", "best_effort_request = \"0B\"\nnetwork =");
    cluster.folder.write("cluster.toml", &alone);
    cluster
}

fn admit(cluster: &Cluster, args: &[&str]) -> (i32, Value) {
    let outcome = cluster.folder.run(&[&["admit", "cluster.toml", "--json"], args].concat());
    let document = serde_json::from_str(&outcome.stdout);
    (outcome.code, document.unwrap_or_else(|error| panic!("{error}: {}", outcome.stderr)))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|n| n.as_str().or(n["name"].as_str()).expect("a name"))
        .collect()
}

#[test]
fn everybody_is_admitted_or_refused_with_a_reason_and_promises_are_kept() {
    let cluster = busy();
    let mut counts = Vec::new();
    for model in
        ["worst-case", "priority-meister", "probabilistic", "replayed", "published-snc", "snc-by-stage"]
    {
        let (code, answer) = admit(&cluster, &["--model", model]);
        let admitted = names(&answer["admitted"]);
        let refused = names(&answer["refused"]);
        assert_eq!(admitted.len() + refused.len(), 12, "{model}");
        assert_eq!(code, i32::from(!refused.is_empty()), "{model}");
        for entry in answer["workloads"].as_array().expect("a list") {
            let bound = entry["bound_s"].as_f64().expect("a bound");
            let slo = entry["slo_s"].as_f64().unwrap();
            assert!(bound <= slo, "{model}: {entry}");
        }
        for refusal in answer["refused"].as_array().expect("a list") {
            assert!(!refusal["reason"].as_str().expect("a reason").is_empty(), "{model}");
        }
        counts.push((model, admitted.len()));
    }
    let count = |name: &str| counts.iter().find(|(model, _)| *model == name).expect("as above").1;
    assert!(count("worst-case") >= 1 && count("worst-case") < 12, "{counts:?}");
    assert!(count("replayed") >= count("worst-case"), "{counts:?}");
}

#[test]
fn who_leaves_makes_room() {
    let cluster = busy();
    let (_, before) = admit(&cluster, &[]);
    let refused = names(&before["refused"])[0].to_owned();
    let admitted = names(&before["admitted"]).iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut events: Vec<String> = admitted.iter().map(|name| format!("arrive {name}")).collect();
    events.push(format!("arrive {refused}"));
    events.extend(admitted.iter().map(|name| format!("depart {name}")));
    events.push(format!("arrive,{refused}"));
    cluster.folder.write("events.txt", &events.join("\n"));
    let (code, after) = admit(&cluster, &["--events", "events.txt"]);
    assert_eq!((code, names(&after["admitted"])), (0, vec![refused.as_str()]));
    let decisions = after["decisions"].as_array().expect("a list");
    assert_eq!(decisions.len(), events.len());
    assert_eq!(decisions[admitted.len()]["accepted"], false);
    assert_eq!(decisions[events.len() - 1]["accepted"], true);
}

#[test]
fn who_is_there_is_not_refused_by_asking_again() {
    let cluster = Cluster::new(2, 1);
    cluster.folder.write("events.txt", "arrive w0\narrive w0 w1\n");
    let (code, answer) = admit(&cluster, &["--events", "events.txt", "-o", "policy.json"]);
    assert_eq!((code, names(&answer["admitted"]), names(&answer["refused"])), (1, vec!["w0"], vec!["w1"]));
    assert!(answer["decisions"][1]["reason"].as_str().is_some_and(|why| why.contains("w0")), "{answer}");
    let policy: Value = serde_json::from_str(&cluster.folder.read("policy.json")).expect("JSON");
    let admitted = |w: usize| policy["workloads"][w]["admitted"].as_bool().expect("a bool");
    assert!(admitted(0) && !admitted(1), "{policy}");
}

#[test]
fn a_group_is_accepted_or_refused_as_a_whole() {
    let cluster = busy();
    cluster
        .folder
        .write("groups.json", r#"{"all": ["w0","w1","w2","w3","w4","w5","w6","w7","w8","w9","w10"]}"#);
    let (code, answer) = admit(&cluster, &["--groups", "groups.json"]);
    assert_eq!((code, names(&answer["refused"]).len()), (1, 11));
    assert_eq!(names(&answer["admitted"]), ["w11"]);
}

#[test]
fn link_procedures_want_a_link() {
    let cluster = Cluster::new(3, 1);
    for model in ["silo", "silo++", "qjump", "qjump++"] {
        let refused = cluster.folder.run(&["admit", "cluster.toml", "--model", model]);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains("--link-only"), "{}", refused.stderr);
        let (_, answer) = admit(&cluster, &["--model", model, "--link-only"]);
        assert_eq!(names(&answer["admitted"]).len() + names(&answer["refused"]).len(), 3, "{model}");
    }
}

#[test]
fn people_get_a_table_with_reasons() {
    let cluster = busy();
    let outcome = cluster.folder.run(&["admit", "cluster.toml"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    for word in ["by worst-case on 1 server of class 'ssd'", "arrive w0", "refused", "above its", "slack"] {
        assert!(outcome.stdout.contains(word), "{word}:\n{}", outcome.stdout);
    }
}

/// The servers that there are and those that are used are two numbers, and each is said as what it is.
#[test]
fn servers_that_stay_empty_are_not_used() {
    let cluster = Cluster::new(2, 30);
    let said = cluster.folder.run(&["admit", "cluster.toml"]).expect_code(0).stdout;
    let (_, answer) = admit(&cluster, &[]);
    let workloads = answer["workloads"].as_array().expect("workloads").iter();
    let used =
        workloads.map(|at| at["server"].as_str().expect("a name")).collect::<std::collections::BTreeSet<_>>();
    assert!(used.len() < 30 && answer["servers"] == 30, "{answer}");
    assert_eq!(answer["servers_used"], used.len());
    assert!(said.contains(&format!("on {} of 30 servers of class 'ssd'", used.len())), "{said}");
}

#[test]
fn bad_events_say_where() {
    let cluster = Cluster::new(2, 1);
    cluster.folder.write("events.txt", "arrive w0\ndepart w9\n");
    let outcome = cluster.folder.run(&["admit", "cluster.toml", "--events", "events.txt"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("events.txt:2") && outcome.stderr.contains("w9"), "{}", outcome.stderr);
}

/// Nothing is left for the network and the queue where the idle storage alone takes longer than an SLO.
#[test]
fn an_slo_below_the_base_latency_is_refused_by_every_model() {
    let cluster = Cluster::new(2, 1);
    cluster.folder.write(
        "ssd.json",
        r#"{"format": "tailwright-device-1", "name": "idle", "device": {"ssd": {"bandwidth": [
        {"request_bytes": 4096, "read_bytes_per_s": 100e6, "write_bytes_per_s": 100e6}]}},
        "base_latency": {"percentile": "99.9%", "read_s": 0.02, "write_s": 0.02}}"#,
    );
    let described = cluster.folder.read("cluster.toml");
    for model in
        ["worst-case", "priority-meister", "probabilistic", "replayed", "published-snc", "snc-by-stage"]
    {
        for tight in ["1us", "19.9ms"] {
            cluster
                .folder
                .write("cluster.toml", &described.replace("99.9% < 100ms", &format!("90% < {tight}")));
            let (code, answer) = admit(&cluster, &["--model", model]);
            assert_eq!((code, names(&answer["refused"])), (1, vec!["w0"]), "{model} {tight}");
            let plan =
                cluster.folder.run(&["plan", "cluster.toml", "--model", model, "--json", "-o", "p.json"]);
            if plan.code < 2 {
                assert_eq!(plan.json()["workloads"][0]["admitted"], false, "{model} {tight}");
            }
            assert!(plan.code < 3, "{model} {tight}: {}", plan.stderr);
        }
    }
}
