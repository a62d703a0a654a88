//! `tailwright bound`, as users and scripts run it; its figures against a replay that knows nothing of it.

use crate::support::cluster::Cluster;
use crate::support::replay::{latencies, quantile};
use serde_json::Value;
use std::collections::BTreeMap;

const FLAGS: [&str; 7] = ["bound", "--slos", "slos.csv", "--storage", "ssd.json", "--network", "125MB/s"];

fn bounds(cluster: &Cluster, args: &[&str]) -> Vec<Value> {
    let outcome = cluster.folder.run(args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON on stdout");
    document["workloads"].as_array().expect("a list").clone()
}

fn of<'a>(all: &'a [Value], name: &str, model: &str) -> &'a Value {
    let found = all.iter().find(|w| w["name"] == name && w["model"] == model);
    found.unwrap_or_else(|| panic!("no {model} bound of {name}"))
}

/// By workload the largest quantile over some random shifts.
fn replayed(cluster: &Cluster, all: &[Value], percent: f64, has_storage: bool) -> Vec<f64> {
    let traces: Vec<&[_]> = cluster.traces.iter().map(Vec::as_slice).collect();
    let priority = |w| of(all, &format!("w{w}"), "worst-case")["priority"].as_u64().expect("a priority");
    let priorities: Vec<u64> = (0..traces.len()).map(priority).collect();
    let mut worst = vec![0.0f64; traces.len()];
    for round in 0..20 {
        let shift = |w: usize| f64::from(round) * 3.7 * (w as f64 + 1.3) + (w * w) as f64;
        let shifts: Vec<f64> = (0..traces.len()).map(shift).collect();
        for (w, latencies) in latencies(&traces, &priorities, &shifts, has_storage).iter().enumerate() {
            worst[w] = worst[w].max(quantile(latencies, percent));
        }
    }
    worst
}

#[test]
fn no_replay_exceeds_the_worst_case_and_the_models_are_in_order() {
    let cluster = Cluster::new(6, 1);
    // The judge plays servers that interrupt what they have begun.
    let preemptive = ["--json", "--preemptive"];
    let link = ["--json", "--preemptive", "--link-only"];
    for (flags, has_storage) in [(&preemptive[..], true), (&link[..], false)] {
        let args = [&FLAGS[..], flags].concat();
        let all = bounds(&cluster, &args);
        assert_eq!(all.len(), 3 * 6, "three models side by side");
        let longest = replayed(&cluster, &all, 100.0, has_storage);
        for (w, longest) in longest.iter().enumerate() {
            let name = format!("w{w}");
            let bound = |model| of(&all, &name, model)["bound_s"].as_f64().expect("a bound");
            assert!(*longest <= bound("worst-case"), "{name}: {longest} above {}", bound("worst-case"));
            assert!(*longest > 0.05 * bound("worst-case"), "{name}: a judge that never comes near");
            assert!(bound("replayed") <= bound("worst-case"), "{name}");
        }
    }
}

#[test]
fn a_probabilistic_bound_holds_at_its_percentile() {
    let cluster = Cluster::new(5, 1);
    for percent in ["90", "99"] {
        let args = [&FLAGS[..], &["--json", "--percentile", percent]].concat();
        let all = bounds(&cluster, &args);
        let traces: Vec<&[_]> = cluster.traces.iter().map(Vec::as_slice).collect();
        let priority = |w: usize| of(&all, &format!("w{w}"), "worst-case")["priority"].as_u64().unwrap();
        let priorities: Vec<u64> = (0..traces.len()).map(priority).collect();
        let mut pooled: Vec<Vec<f64>> = vec![Vec::new(); traces.len()];
        for round in 0..30 {
            let shifts: Vec<f64> =
                (0..traces.len()).map(|w| f64::from(round) * 2.9 * (w as f64 + 1.7)).collect();
            let one = latencies(&traces, &priorities, &shifts, true);
            pooled.iter_mut().zip(one).for_each(|(pool, one)| pool.extend(one));
        }
        for (w, pool) in pooled.iter().enumerate() {
            let entry = of(&all, &format!("w{w}"), "probabilistic");
            let bound = entry["bound_s"].as_f64().expect("a bound");
            let measured = quantile(pool, percent.parse().unwrap());
            assert!(measured <= bound, "w{w} p{percent}: {measured} above {bound}");
            assert_eq!(entry["percentile"].as_f64(), percent.parse().ok());
        }
    }
}

#[test]
fn percentiles_and_dependence_only_raise_bounds() {
    let cluster = Cluster::new(6, 1);
    cluster.folder.write("groups.csv", "workload,group\nw0,a\nw1,a\nw2,a\n");
    let run = |more: &[&str]| {
        let all = bounds(
            &cluster,
            &[&FLAGS[..], &["--json", "--model", "worst-case,probabilistic"], more].concat(),
        );
        let figure =
            |w: &Value| (format!("{}/{}", w["name"], w["model"]), w["bound_s"].as_f64().expect("a bound"));
        all.iter().map(figure).collect::<BTreeMap<_, _>>()
    };
    let p90 = run(&["--percentile", "90"]);
    let p99 = run(&["--percentile", "99"]);
    let dependent = run(&["--percentile", "99", "--groups", "groups.csv"]);
    for (name, bound) in &p99 {
        assert!(p90[name] <= *bound, "{name}: p90 {} above p99 {bound}", p90[name]);
        assert!(dependent[name] >= bound * (1.0 - 1e-9), "{name}: {} below {bound}", dependent[name]);
    }
    assert!(p99.iter().any(|(name, bound)| dependent[name] > bound * 1.01), "dependence costs something");
}

#[test]
fn a_cluster_file_and_the_same_flags_agree() {
    let cluster = Cluster::new(4, 1);
    let of_file = bounds(&cluster, &["bound", "cluster.toml", "--json"]);
    assert_eq!(of_file, bounds(&cluster, &[&FLAGS[..], &["--json"]].concat()));
    let json = r#"{"server": [{"class": "ssd", "count": 1, "storage": "ssd.json", "network": "125MB/s"}], "workload": [WORKLOADS]}"#;
    let workload =
        |w| format!(r#"{{"name": "w{w}", "trace": "w{w}.csv", "slo": "99.9% < {}ms"}}"#, 100 << (w % 3));
    let workloads: Vec<String> = (0..4).map(workload).collect();
    cluster.folder.write("cluster.json", &json.replace("WORKLOADS", &workloads.join(", ")));
    assert_eq!(of_file, bounds(&cluster, &["bound", "cluster.json", "--json"]));
    // The priorities of the SLOs 100, 200, 400 and 100 ms.
    let priorities: Vec<_> =
        (0..4).map(|w| of(&of_file, &format!("w{w}"), "replayed")["priority"].clone()).collect();
    assert_eq!(priorities, [0, 1, 2, 0]);
}

#[test]
fn people_get_a_table_and_a_page() {
    let cluster = Cluster::new(3, 1);
    let outcome = cluster.folder.run(&["bound", "cluster.toml", "--report", "bound.html"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for word in ["3 workloads share", "SLO kept by", "w0", "worst-case:", "replayed:"] {
        assert!(outcome.stdout.contains(word), "{word}:\n{}", outcome.stdout);
    }
    let page = cluster.folder.read("bound.html");
    for word in ["Tail latency of 3 workloads", "How to read this page", "probabilistic"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn bad_input_says_where_and_what() {
    let cluster = Cluster::new(2, 1);
    cluster.folder.write("groups.csv", "w0,w9\n");
    for (args, words) in [
        (vec!["bound"], vec!["no cluster given"]),
        (vec!["bound", "--slos", "slos.csv", "--network", "1Gbps"], vec!["--slos also needs --storage"]),
        (vec!["bound", "cluster.toml", "--model", "guess"], vec!["guess", "worst-case"]),
        (vec!["bound", "cluster.toml", "--percentile", "101"], vec!["101", "percentile"]),
        (vec!["bound", "cluster.toml", "--groups", "groups.csv"], vec!["groups.csv", "no workload 'w9'"]),
        (vec!["bound", "cluster.toml", "--class", "hdd"], vec!["no server class 'hdd'", "ssd"]),
    ] {
        let outcome = cluster.folder.run(&args);
        assert_eq!(outcome.code, 2, "{args:?}: {}", outcome.stdout);
        for word in words {
            assert!(outcome.stderr.contains(word), "{args:?}: {word}\n{}", outcome.stderr);
        }
    }
}

#[test]
fn an_overloaded_server_has_no_bound_and_says_why() {
    let cluster = Cluster::new(3, 1);
    let slow = r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 1e6, "writeBandwidth": 1e6}]}"#;
    cluster.folder.write("ssd.json", slow);
    let all = bounds(&cluster, &["bound", "cluster.toml", "--json"]);
    for model in ["worst-case", "probabilistic", "replayed"] {
        let entry = of(&all, "w2", model);
        assert!(entry["bound_s"].is_null(), "{entry}");
        assert_eq!(entry["within_slo"], false);
        assert!(entry["reason"].as_str().expect("why").contains("storage"), "{entry}");
    }
}

#[test]
fn explanations_add_up_to_the_bound() {
    let cluster = Cluster::new(5, 1);
    for model in ["worst-case", "probabilistic", "replayed", "published-snc", "snc-by-stage"] {
        let all = bounds(&cluster, &["bound", "cluster.toml", "--json", "--model", model]);
        let args = ["explain", "w3", "cluster.toml", "--model", model];
        let outcome = cluster.folder.run(&[&args[..], &["--json"]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).expect("JSON on stdout");
        let bound = of(&all, "w3", model)["bound_s"].as_f64().expect("a bound");
        assert_eq!(document["bound_s"].as_f64(), Some(bound), "{model}");
        let steps = document["steps"].as_array().expect("a list");
        let times: Vec<f64> = steps.iter().filter_map(|step| step["seconds"].as_f64()).collect();
        if model == "replayed" {
            let begun = steps.iter().find(|step| step["what"] == "already in service");
            let begun = begun.and_then(|step| step["seconds"].as_f64()).unwrap_or(0.0);
            let is_bound = |time: &f64| (time + begun - bound).abs() <= 1e-9 * bound;
            assert!(times.contains(&bound) || times.iter().any(is_bound), "{bound}: {times:?}");
        } else {
            let sum: f64 = times.iter().sum();
            assert!((sum - bound).abs() <= 1e-9 * bound, "{model}: {sum} against {bound}");
        }
        let text = cluster.folder.run(&args).stdout;
        assert!(text.contains("w3 by") && text.contains("bound  "), "{text}");
    }
    let unknown = cluster.folder.run(&["explain", "w9", "cluster.toml", "--model", "replayed"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("no workload 'w9'"), "{}", unknown.stderr);
}

#[test]
fn a_workload_without_a_margin_has_the_worst_case() {
    let cluster = Cluster::new(5, 1);
    let models = ["--model", "worst-case", "--model", "replayed", "--model", "calibrated"];
    let all = bounds(&cluster, &[&["bound", "cluster.toml", "--json"][..], &models].concat());
    for name in ["w0", "w1", "w2", "w3", "w4"] {
        let [worst, replayed, calibrated] = ["worst-case", "replayed", "calibrated"]
            .map(|model| of(&all, name, model)["bound_s"].as_f64().expect("a bound"));
        assert_eq!(calibrated, worst, "{name}");
        assert!(calibrated >= replayed * (1.0 - 1e-9), "{name}: {calibrated} below {replayed}");
    }
}

#[test]
fn coverage_is_asked_of_the_calibrated_model_as_a_percentage() {
    let cluster = Cluster::new(2, 1);
    for (args, said) in [
        (&["--coverage", "0.95", "--model", "calibrated"][..], "less than a half"),
        (&["--coverage", "100%", "--model", "calibrated"], "cannot be guaranteed"),
        (&["--horizon", "0s", "--model", "calibrated"], "no window"),
        (&["--coverage", "90%"], "belong to --model calibrated"),
        (&["--horizon", "5min", "--model", "replayed"], "belong to --model calibrated"),
    ] {
        let outcome = cluster.folder.run(&[&["bound", "cluster.toml"], args].concat());
        assert!(outcome.code == 2 && outcome.stderr.contains(said), "{args:?}: {}", outcome.stderr);
    }
}
