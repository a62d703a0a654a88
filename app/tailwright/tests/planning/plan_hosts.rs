//! Client hosts in plans, policies, explanations and what `apply` makes of them.

use crate::support::cluster::Cluster;
use serde_json::Value;

const SERVER: &str =
    "[[server]]\nclass = \"ssd\"\ncount = 4\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n";

/// A cluster whose workloads are on these hosts in turn, with links of this rate.
fn cluster(hosts: usize, network: &str, workloads: usize) -> Cluster {
    let cluster = Cluster::new(workloads, 1);
    let mut text = SERVER.to_owned();
    for host in 0..hosts {
        text += &format!("[[host]]\nname = \"app-{host}\"\nnetwork = \"{network}\"\n");
    }
    for w in 0..workloads {
        text += &format!("[[workload]]\nname = \"w{w}\"\ntrace = \"w{w}.csv\"\nslo = \"99.9% < 1s\"\n");
        if hosts > 0 {
            text += &format!("host = \"app-{}\"\n", w % hosts);
        }
    }
    cluster.folder.write("cluster.toml", &text);
    cluster
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn admitted(plan: &Value) -> Vec<&Value> {
    let workloads = plan["workloads"].as_array().expect("a plan has workloads");
    workloads.iter().filter(|workload| workload["admitted"] == true).collect()
}

/// The judge adds up limits and derives the waits from the printed numbers alone.
#[test]
fn limits_of_a_host_fit_its_links_and_bounds_contain_the_waits() {
    let cluster = cluster(2, "50MB/s", 6);
    let plan =
        cluster.folder.run(&["plan", "cluster.toml", "--json", "-o", "policy.json"]).expect_code(0).json();
    assert_eq!((&plan["version"], plan["hosts"].as_array().map(Vec::len)), (&Value::from(4), Some(2)));
    for host in ["app-0", "app-1"] {
        let members: Vec<&Value> =
            admitted(&plan).into_iter().filter(|it| it["client"]["host"] == host).collect();
        assert_eq!(members.len(), 3, "{plan}");
        for (direction, delay) in [(0, "request_delay_s"), (1, "answer_delay_s")] {
            let limit = |it: &Value, field: &str| number(&it["client"]["limits"][direction][field]);
            let rates: f64 = members.iter().map(|it| limit(it, "rate_per_s")).sum();
            assert!(rates <= 50e6, "{host}: {rates} bytes/s");
            // Their SLOs are equal: each waits for the bursts of all at least, at the rate of the link.
            let bursts: f64 = members.iter().map(|it| limit(it, "burst_work")).sum();
            for member in &members {
                let wait = number(&member["client"][delay]);
                let own = limit(member, "burst_work") / 50e6;
                assert!(wait >= own && wait < 1.0, "{host}: {wait} s for {bursts} bytes");
            }
        }
    }
    for workload in admitted(&plan) {
        let name = workload["name"].as_str().expect("a name");
        let args = ["explain", name, "cluster.toml", "--plan", "policy.json"];
        let explained = cluster.folder.run(&[&args[..], &["--json"]].concat()).expect_code(0).json();
        let waits: f64 =
            explained["stages"].as_array().expect("stages").iter().map(|it| number(&it["delay_s"])).sum();
        let client =
            number(&workload["client"]["request_delay_s"]) + number(&workload["client"]["answer_delay_s"]);
        let rest: f64 =
            ["base_s", "own_service_s", "proxy_s"].iter().map(|term| number(&explained[*term])).sum();
        let bound = number(&workload["bound_s"]);
        assert!(
            (waits + client + rest - bound).abs() < 1e-9 * bound.max(1.0),
            "{waits} {client} {rest}: {bound}"
        );
        assert!((number(&explained["client"]["delay_s"]) - client).abs() < 1e-12);
        let text = cluster.folder.run(&args).expect_code(0).stdout;
        let host = workload["client"]["host"].as_str().expect("a host");
        for part in
            [&format!("waiting at the link out of {host}"), &format!("waiting at the link into {host}")]
        {
            assert!(text.contains(part.as_str()), "{part} is not in: {text}");
        }
    }
    let kept = cluster.folder.run(&["plan", "cluster.toml", "--keep", "policy.json"]).expect_code(0).stdout;
    assert!(kept.contains("servers that change: none") && kept.contains("client host"), "{kept}");
    // The same limits of servers, and others for the answers that they send to another host.
    let text = cluster.folder.read("cluster.toml");
    cluster.folder.write("renamed.toml", &text.replace("app-1", "app-9"));
    let renamed =
        cluster.folder.run(&["plan", "renamed.toml", "--keep", "policy.json"]).expect_code(0).stdout;
    assert!(renamed.contains("servers that change: ssd-1"), "{renamed}");
    let explained = cluster.folder.run(&["explain", "w1", "renamed.toml", "--plan", "policy.json"]);
    explained.expect_code(2);
    let compared = cluster.folder.run(&["plan", "cluster.toml", "--compare"]).expect_code(0).stdout;
    assert!(compared.contains("several-limiters"), "{compared}");
    cluster.folder.run(&["plan", "cluster.toml", "--survive", "1"]).expect_code(0);
    let simulated = cluster.folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml"]);
    assert!(simulated.stderr.contains("without the links of client hosts"), "{}", simulated.stderr);
}

/// Faster links of hosts leave more of the SLO: bounds shrink towards those without hosts.
#[test]
fn bounds_shrink_with_faster_links() {
    let bounds = |hosts, network| -> Vec<f64> {
        let cluster = cluster(hosts, network, 3);
        let plan = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
        admitted(&plan).into_iter().map(|workload| number(&workload["bound_s"])).collect()
    };
    let [slow, fast, fastest] = ["20MB/s", "200MB/s", "20GB/s"].map(|network| bounds(1, network));
    for ((slow, fast), fastest) in slow.iter().zip(&fast).zip(&fastest) {
        assert!(slow > fast && fast > fastest, "{slow} {fast} {fastest}");
    }
}

/// A shaper lets a packet of its own pass beyond a bucket, and that packet waits wherever it goes.
#[test]
fn the_largest_packet_counts_at_every_link() {
    let cluster = cluster(2, "50MB/s", 4);
    let text = cluster.folder.read("cluster.toml");
    let with = |of_server: &str, of_host: &str| {
        let changed = text
            .replace("network = \"125MB/s\"\n", &format!("network = \"125MB/s\"\n{of_server}"))
            .replacen("network = \"50MB/s\"\n", &format!("network = \"50MB/s\"\n{of_host}"), 1);
        cluster.folder.write("packets.toml", &changed);
        cluster.folder.run(&["plan", "packets.toml", "--json"]).expect_code(0).json()
    };
    let large = "packet = \"64KiB\"\n";
    let [frames, of_server, of_host, of_both] =
        [("", ""), (large, ""), ("", large), (large, large)].map(|(server, host)| with(server, host));
    let packet = |plan: &Value| number(&plan["servers"][0]["enforcement"]["packet_bytes"]);
    assert_eq!([&frames, &of_host, &of_both].map(packet), [1514.0, 65536.0, 65536.0]);
    for plan in [&of_server, &of_host] {
        let bounds = |plan: &Value| -> Vec<f64> {
            admitted(plan).into_iter().map(|workload| number(&workload["bound_s"])).collect()
        };
        assert_eq!(bounds(plan), bounds(&of_both));
    }
    // The file has large packets of one host alone now: each of the four links may have begun one.
    with("", large);
    let explained = cluster.folder.run(&["explain", "w1", "packets.toml", "--json"]).expect_code(0).json();
    let begun = |link: &Value, bytes_per_s: f64| {
        let begun = number(&link["blocking"]);
        assert!(begun > 65536.0 / bytes_per_s, "{begun} s of a link of {bytes_per_s} bytes/s");
    };
    for stage in [0, 2] {
        begun(&explained["stages"][stage], 125e6);
    }
    for link in [0, 1] {
        begun(&explained["client"]["links"][link], 50e6);
    }
}

/// A typing error in a file with hosts is reported where it is.
#[test]
fn mistakes_in_a_file_with_hosts_are_found_at_their_line() {
    let cluster = cluster(1, "50MB/s", 2);
    let text = cluster.folder.read("cluster.toml");
    for (old, new) in [("slo = \"99.9% < 1s\"", "slo = \"99.9% under 1s\""), ("class = ", "clas = ")] {
        cluster.folder.write("cluster.toml", &text.replacen(old, new, 1));
        let outcome = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(2);
        assert!(!outcome.stderr.contains("hosts file") && outcome.stderr.contains(new), "{}", outcome.stderr);
    }
}

#[test]
fn what_a_host_cannot_carry_is_refused_with_the_links_that_would_do() {
    let cluster = cluster(1, "300kB/s", 4);
    let plan = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(1).json();
    let refused: Vec<&str> = plan["workloads"]
        .as_array()
        .expect("workloads")
        .iter()
        .filter_map(|it| it["refusal"].as_str())
        .collect();
    assert!(!refused.is_empty());
    for why in &refused {
        let rest = why.strip_prefix("the links of its host 'app-0' cannot serve it").expect(why);
        assert!(
            rest.starts_with(": ") || rest.starts_with(" beside the workloads that come before it: "),
            "{why}"
        );
    }
    let enough =
        refused[0].rsplit("links of ").next().and_then(|rest| rest.split(' ').next()).expect("a remedy");
    let text = cluster.folder.read("cluster.toml").replace("300kB/s", enough);
    cluster.folder.write("cluster.toml", &text);
    let again = cluster.folder.run(&["plan", "cluster.toml", "--json"]).json();
    assert!(admitted(&again).len() > admitted(&plan).len(), "{enough}: {again}");
}

#[test]
fn contradictory_hosts_are_errors_at_their_line() {
    for (old, new, parts) in [
        ("host = \"app-1\"\n", "", &["cluster.toml:", "workload 'w1' has no `host`"][..]),
        ("host = \"app-1\"", "host = \"app-9\"", &["host is 'app-9', which is no [[host]]", "app-"]),
        ("name = \"app-1\"", "name = \"app-0\"", &["host 'app-0' is given twice"]),
        (
            "network = \"50MB/s\"\n[[workload]]",
            "network = \"50MB/s\"\npacket = \"9B\"\n[[workload]]",
            &["packet is 9B, expected at least 64B"],
        ),
    ] {
        let cluster = cluster(2, "50MB/s", 2);
        let text = cluster.folder.read("cluster.toml");
        assert!(text.contains(old), "{text}");
        cluster.folder.write("cluster.toml", &text.replacen(old, new, 1));
        let outcome = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(2);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part} is not in: {}", outcome.stderr);
        }
    }
}

#[test]
fn what_does_not_count_hosts_refuses_them() {
    let cluster = cluster(1, "50MB/s", 2);
    for args in [
        &["bound", "cluster.toml"][..],
        &["admit", "cluster.toml"],
        &["plan", "cluster.toml", "--model", "replayed"],
    ] {
        let outcome = cluster.folder.run(args).expect_code(2);
        assert!(outcome.stderr.contains("there are client hosts ([[host]])"), "{}", outcome.stderr);
    }
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let exported = cluster
        .folder
        .run(&["export", "policy.json", "--enforcer", "tc", "--storage", "ssd.json", "--at", "eth0"])
        .expect_code(2);
    assert!(exported.stderr.contains("links of client hosts"), "{}", exported.stderr);
}

/// `apply` shapes by the priority of the link and marks by that of the next, has both sets of buckets, and refuses other
/// hosts and slower links.
#[test]
fn apply_keeps_limits_of_server_and_host() {
    let cluster = cluster(1, "50MB/s", 2);
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let hosts = |client: &str, rate: &str| {
        let mut text = String::new();
        for (name, rate) in [("app-0", rate), ("app-1", rate), ("store", "1Gbps")] {
            text += &format!("[[host]]\nname = \"{name}\"\ndevice.eth0 = \"{rate}\"\n");
        }
        for server in 1..=4 {
            text += &format!(
                "[[server]]\nname = \"ssd-{server}\"\nhost = \"store\"\naddress = [\"10.0.0.{server}\"]\n"
            );
        }
        for w in 0..2 {
            text += &format!(
                "[[client]]\nworkload = \"w{w}\"\nhost = \"{client}\"\naddress = [\"10.0.1.{}\"]\n",
                w + 1
            );
        }
        cluster.folder.write("hosts.toml", &text);
    };
    let apply = ["apply", "policy.json", "--hosts", "hosts.toml", "--dry-run", "--json"];
    hosts("app-0", "400Mbps");
    let planned: Value = serde_json::from_str(&cluster.folder.read("policy.json")).expect("a policy");
    let applied = cluster.folder.run(&apply).expect_code(0).json();
    let commands = applied["hosts"][0]["commands"].to_string();
    let words: Vec<&str> = commands.split([' ', '\\']).collect();
    let after = |position: usize| words[position + 1].parse::<f64>().expect("a number");
    let ceils = words.iter().enumerate().filter(|(_, word)| **word == "ceil").map(|(at, _)| after(at));
    let bursts = words.iter().enumerate().filter(|(_, word)| **word == "cburst").map(|(at, _)| after(at));
    let buckets: Vec<(f64, f64)> = ceils.zip(bursts).collect();
    for workload in admitted(&planned) {
        for limit in [&workload["limits"][0], &workload["client"]["limits"][0]] {
            let rate = 8.0 * number(&limit["rate_per_s"]);
            let burst = number(&limit["burst_work"]);
            // One that another one makes redundant is left out; tc rounds to bits per second.
            let is_kept =
                |(ceil, cburst): &(f64, f64)| *ceil <= rate + 2.0 && *cburst <= burst * 1.01 + 1514.0;
            assert!(buckets.iter().any(is_kept), "{rate} bits/s, {burst} bytes: {buckets:?}");
        }
    }
    hosts("app-1", "400Mbps");
    let elsewhere = cluster.folder.run(&apply).expect_code(2);
    assert!(elsewhere.stderr.contains("counts the links of host 'app-0'"), "{}", elsewhere.stderr);
    hosts("app-0", "100Mbps");
    let slower = cluster.folder.run(&apply).expect_code(2);
    assert!(slower.stderr.contains("bounds count links of 50MB/s"), "{}", slower.stderr);
    hosts("app-0", "1Gbps");
    let text = cluster.folder.read("hosts.toml").replace("host = \"store\"", "host = \"app-0\"");
    cluster.folder.write("hosts.toml", &text);
    let shared = cluster.folder.run(&apply).expect_code(2);
    assert!(shared.stderr.contains("server 'ssd-1' is on host 'app-0'"), "{}", shared.stderr);
}

/// The template has the hosts of the policy, with their links, and is accepted when it is filled in.
#[test]
fn a_template_has_the_hosts_of_the_policy() {
    let cluster = cluster(2, "50MB/s", 4);
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let template = cluster.folder.run(&["apply", "policy.json", "--template"]).expect_code(0).stdout;
    for host in ["app-0", "app-1"] {
        assert_eq!(template.matches(&format!("[[host]]\nname = \"{host}\"")).count(), 1, "{template}");
    }
    let mut filled = String::new();
    let mut address = 0;
    let mut skipped = false;
    for line in template.lines() {
        skipped |= line.starts_with("[server.storage]");
        skipped &= !line.is_empty();
        if skipped {
            continue;
        }
        let mut line = line.to_owned();
        if line.starts_with("address") {
            address += 1;
            line = format!("address = [\"10.0.0.{address}\"]");
        }
        filled += &format!("{}\n", line.replace("{ CHANGE", "{ eth0"));
    }
    cluster.folder.write("hosts.toml", &filled);
    let apply = ["apply", "policy.json", "--hosts", "hosts.toml", "--dry-run"];
    let applied = cluster.folder.run(&apply);
    assert!(!applied.stderr.contains("counts the links"), "{}\n{filled}", applied.stderr);
    applied.expect_code(0);
}

/// Plans of several servers that count no hosts may have limits that the link of a common client does not carry: that is
/// refused with what to do.
#[test]
fn apply_refuses_limits_above_a_link() {
    let cluster = cluster(0, "", 4);
    let mut text = cluster.folder.read("cluster.toml");
    for w in 0..4 {
        let name = format!("name = \"w{w}\"\n");
        text = text.replace(&name, &format!("{name}on = [\"ssd-{}\"]\n", w + 1));
    }
    cluster.folder.write("cluster.toml", &text);
    cluster.folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let mut text = String::from(
        "[[host]]\nname = \"app\"\ndevice.eth0 = \"1Gbps\"\n[[host]]\nname = \"store\"\ndevice.eth0 = \"1Gbps\"\n",
    );
    for server in 1..=4 {
        text += &format!(
            "[[server]]\nname = \"ssd-{server}\"\nhost = \"store\"\naddress = [\"10.0.0.{server}\"]\n"
        );
    }
    for w in 0..4 {
        text +=
            &format!("[[client]]\nworkload = \"w{w}\"\nhost = \"app\"\naddress = [\"10.0.1.{}\"]\n", w + 1);
    }
    cluster.folder.write("hosts.toml", &text);
    let outcome =
        cluster.folder.run(&["apply", "policy.json", "--hosts", "hosts.toml", "--dry-run"]).expect_code(2);
    assert!(outcome.stderr.contains("app eth0: limits add up to"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("[[host]]"), "{}", outcome.stderr);
    let args = ["apply", "policy.json", "--hosts", "hosts.toml", "--dry-run", "--without-bounds"];
    let set = cluster.folder.run(&args).expect_code(0);
    assert!(set.stderr.contains("warning: app eth0: limits add up to"), "{}", set.stderr);
}
