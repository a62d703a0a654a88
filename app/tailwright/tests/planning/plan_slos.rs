//! Several SLOs of a workload, of all its requests, its reads or its writes.

use crate::support::cluster::Cluster;
use serde_json::Value;

/// Idle latencies of the device, seconds: what a guarantee of reads is shorter by is their difference.
const READ_S: f64 = 0.002;
const WRITE_S: f64 = 0.02;

/// Two workloads on one server: w0 with these SLOs, w1 with one that is easily kept.
fn cluster(slos: &[String]) -> Cluster {
    let cluster = Cluster::new(2, 1);
    let profile = format!(
        r#"{{ "format": "tailwright-device-1", "name": "ssd", "device": {{ "ssd": {{ "bandwidth": [
            {{ "request_bytes": 4096, "read_bytes_per_s": 100e6, "write_bytes_per_s": 100e6 }} ] }} }},
            "base_latency": {{ "percentile": "99.9%", "read_s": {READ_S}, "write_s": {WRITE_S} }} }}"#
    );
    cluster.folder.write("ssd.json", &profile);
    ask(&cluster, slos);
    cluster
}

fn ask(cluster: &Cluster, slos: &[String]) {
    let slos: Vec<String> = slos.iter().map(|slo| format!("\"{slo}\"")).collect();
    let text = format!(
        "[[server]]\nclass = \"ssd\"\ncount = 1\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n\
         [[workload]]\nname = \"w0\"\ntrace = \"w0.csv\"\nslo = [{}]\n\
         [[workload]]\nname = \"w1\"\ntrace = \"w1.csv\"\nslo = \"99.9% < 10s\"\n",
        slos.join(", ")
    );
    cluster.folder.write("cluster.toml", &text);
}

fn owned(slos: &[&str]) -> Vec<String> {
    slos.iter().map(|slo| (*slo).to_owned()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// The least latency of one SLO that is admitted, from the remedy for one that is not.
fn least_slo() -> f64 {
    let cluster = cluster(&owned(&["99.9% < 1ms"]));
    let refused = cluster.folder.run(&["explain", "w0", "cluster.toml", "--json"]).expect_code(1).json();
    let remedies = refused["remedies"].as_array().expect("remedies");
    let remedy = remedies.iter().find(|it| it["change"] == "slo").expect("a longer SLO");
    assert!(remedy["factor"].is_null(), "{remedy}");
    number(&remedy["slo_s"])
}

#[test]
fn each_slo_has_its_bound_in_plan_policy_and_explanation() {
    let asked = owned(&["50% < 1.9s", "99.9% of reads < 1.5s", "99.9% < 2s"]);
    let cluster = cluster(&asked);
    let run = |args: &[&str]| cluster.folder.run(args);
    let plan = run(&["plan", "cluster.toml", "--json", "-o", "policy.json", "--report", "plan.html"]);
    let plan = plan.expect_code(0).json();
    assert_eq!(plan["version"], 5);
    let w0 = &plan["workloads"][0];
    // The first SLO of all requests stays first.
    assert_eq!(w0["slo"], "50% < 1.9s");
    let bound = number(&w0["bound_s"]);
    let further = w0["further_slos"].as_array().expect("further SLOs");
    assert_eq!([&further[0]["slo"], &further[1]["slo"]], ["99.9% of reads < 1.5s", "99.9% < 2s"]);
    assert!(is_near(number(&further[0]["bound_s"]), bound - (WRITE_S - READ_S)), "{w0}");
    assert!(is_near(number(&further[1]["bound_s"]), bound), "{w0}");
    assert!(bound < 1.9 && number(&further[0]["bound_s"]) < 1.5);
    assert!(plan["workloads"][1]["further_slos"].is_null(), "{plan}");

    let table = run(&["plan", "cluster.toml"]).expect_code(0).stdout;
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(" < ")).collect();
    let position = |part: &str| rows.iter().position(|row| row.contains(part)).expect(part);
    let first = position("50% < 1.9s");
    assert!(rows[first].trim_start().starts_with("w0"), "{table}");
    assert_eq!(
        [position("99.9% of reads < 1.5s"), position("99.9% < 2s")],
        [first + 1, first + 2],
        "{table}"
    );
    let page = cluster.folder.read("plan.html");
    assert!(page.contains("w0: 99.9% of reads &lt; 1.5s"), "the page has no row of reads");

    let explain = ["explain", "w0", "cluster.toml", "--plan", "policy.json"];
    let explained = run(&[&explain[..], &["--json"]].concat()).expect_code(0).json();
    let objectives = explained["objectives"].as_array().expect("several SLOs");
    for (objective, (slo, latency, bound)) in objectives.iter().zip([
        ("50% < 1.9s", 1.9, bound),
        ("99.9% of reads < 1.5s", 1.5, bound - (WRITE_S - READ_S)),
        ("99.9% < 2s", 2.0, bound),
    ]) {
        assert_eq!(objective["slo"], slo);
        assert!(is_near(number(&objective["bound_s"]), bound), "{objective}");
        assert!(is_near(number(&objective["slack_s"]), latency - bound), "{objective}");
    }
    assert_eq!(objectives.len(), 3);
    let text = run(&explain).expect_code(0).stdout;
    assert!(text.contains("99.9% of reads < 1.5s"), "{text}");
    let other = run(&["explain", "w1", "cluster.toml", "--json"]).expect_code(0).json();
    assert!(other["objectives"].is_null(), "{other}");

    let kept = run(&["plan", "cluster.toml", "--keep", "policy.json"]).expect_code(0).stdout;
    assert!(kept.contains("servers that change: none"), "{kept}");
    run(&["plan", "cluster.toml", "--survive", "1"]).expect_code(1);
}

/// Reads are promised what is too short for all requests, by less than the idle storage answers them sooner.
#[test]
fn an_slo_of_reads_is_kept_where_one_of_all_requests_is_not() {
    let least = least_slo();
    let shorter = least - 0.7 * (WRITE_S - READ_S);
    let admits = |slos: &[String]| {
        let plan = cluster(slos).folder.run(&["plan", "cluster.toml", "--json"]).json();
        plan["workloads"][0]["admitted"] == true
    };
    let all = |latency: f64| format!("99.9% < {latency}s");
    let reads = |latency: f64| format!("99.9% of reads < {latency}s");
    assert!(admits(&[all(least)]));
    assert!(!admits(&[all(shorter)]));
    assert!(admits(&[all(5.0), reads(shorter)]));
    assert!(!admits(&[all(5.0), format!("99.9% of writes < {shorter}s")]));
    assert!(!admits(&[all(5.0), reads(least - 1.1 * (WRITE_S - READ_S))]));
}

#[test]
fn a_remedy_for_several_slos_is_a_factor_that_admits() {
    let cluster = cluster(&owned(&["99.9% < 1ms", "99% of reads < 500us"]));
    let plan = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(1).json();
    assert_eq!(plan["workloads"][0]["further_slos"][0]["bound_s"], Value::Null);
    let refused = cluster.folder.run(&["explain", "w0", "cluster.toml", "--json"]).expect_code(1).json();
    let remedies = refused["remedies"].as_array().expect("remedies");
    let remedy = remedies.iter().find(|it| it["change"] == "slo").expect("longer SLOs");
    let factor = number(&remedy["factor"]);
    assert!(is_near(number(&remedy["slo_s"]), 0.001 * factor), "{remedy}");
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("SLOs {factor} times as long")), "{reason}");
    ask(&cluster, &[format!("99.9% < {}s", 0.001 * factor), format!("99% of reads < {}s", 0.0005 * factor)]);
    cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0);
    ask(
        &cluster,
        &[format!("99.9% < {}s", 0.00096 * factor), format!("99% of reads < {}s", 0.00048 * factor)],
    );
    cluster.folder.run(&["plan", "cluster.toml"]).expect_code(1);
}

#[test]
fn verbs_of_one_slo_say_so() {
    let cluster = cluster(&owned(&["50% < 1.9s", "99.9% of reads < 1.5s"]));
    for args in [
        &["bound", "cluster.toml"][..],
        &["admit", "cluster.toml"],
        &["plan", "cluster.toml", "--model", "replayed"],
        &["explain", "w0", "cluster.toml", "--model", "replayed"],
    ] {
        let refused = cluster.folder.run(args).expect_code(2);
        assert!(refused.stderr.contains("workload 'w0' has several SLOs"), "{}", refused.stderr);
        assert!(refused.stderr.contains("slo = \"50% < 1.9s\""), "{}", refused.stderr);
    }
    ask(&cluster, &owned(&["99% of reads < 1s"]));
    let refused = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(2);
    assert!(refused.stderr.contains("no SLO is about all requests"), "{}", refused.stderr);
    ask(&cluster, &owned(&["99% < 1s", "0.99% of reads < 1s"]));
    let refused = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(2);
    assert!(refused.stderr.contains("expected a percentage"), "{}", refused.stderr);
}

/// A simulation of the plan breaks no bound of any of the SLOs.
#[test]
fn a_simulated_run_is_judged_by_all_slos() {
    let cluster = cluster(&owned(&["99.9% < 2s", "99.9% of reads < 1.5s", "90% of writes < 1.9s"]));
    let run = |args: &[&str]| cluster.folder.run(args);
    run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let simulated = run(&["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "o.parquet"]);
    assert!(simulated.stderr.contains("1 workload with several SLOs"), "{}", simulated.stderr);
    let found = run(&["verify", "policy.json", "o.parquet", "--storage", "ssd.json", "--json"]).json();
    let findings = found["workloads"].as_array().expect("findings");
    let named: Vec<_> = findings.iter().map(|it| (it["name"].as_str(), it["direction"].as_str())).collect();
    assert_eq!(
        named,
        [(Some("w0"), None), (Some("w0"), Some("read")), (Some("w0"), Some("write")), (Some("w1"), None)]
    );
    let requests: Vec<u64> = findings.iter().map(|it| it["requests"].as_u64().expect("a number")).collect();
    let reads = cluster.traces[0].iter().filter(|request| request.read).count() as u64;
    assert_eq!(requests[..3], [300, reads, 300 - reads]);
    for finding in findings {
        assert_eq!(finding["bound"]["beyond_within_limits"], 0, "{finding}");
    }
    // Each request has the idle latency of its direction.
    let elsewhere = |at: usize| {
        let stages = findings[at]["stages"].as_array().expect("stages");
        let stage = stages.iter().find(|stage| stage["stage"] == "elsewhere").expect("the idle device");
        number(&stage["p50_s"])
    };
    assert!(is_near(elsewhere(1), READ_S) && is_near(elsewhere(2), WRITE_S), "{found}");
}
