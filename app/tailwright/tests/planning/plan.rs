//! `tailwright plan` as scripts and people use it.

use crate::support::cluster::{Cluster, NETWORK_BYTES_PER_S};
use crate::support::judge;
use serde_json::Value;

const FLAGS: [&str; 10] = [
    "plan",
    "--slos",
    "slos.csv",
    "--storage",
    "ssd.json",
    "--network",
    "125MB/s",
    "--max-servers",
    "9",
    "--json",
];

#[test]
fn json_has_every_field_of_the_contract() {
    let cluster = Cluster::new(6, 4);
    let plan = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    for field in ["servers_used", "servers_lower_bound"] {
        assert!(plan[field].as_u64().is_some_and(|n| n > 0), "{field}: {}", plan[field]);
    }
    for field in ["elapsed_s", "cpu_s", "characterise_s", "servers_lower_bound_fractional"] {
        assert!(plan[field].as_f64().is_some_and(|n| n >= 0.0), "{field}: {}", plan[field]);
    }
    assert_eq!((&plan["policy_name"], &plan["workloads_admitted"]), (&"tailwright".into(), &6.into()));
    assert!(plan["servers_lower_bound"].as_u64() <= plan["servers_used"].as_u64());
    assert_eq!(serde_json::json!(plan["servers"].as_array().map(Vec::len)), plan["servers_used"]);
    for server in plan["servers"].as_array().unwrap() {
        assert!(server["name"].as_str().unwrap().starts_with("ssd-"));
        assert_eq!(server["network_bytes_per_s"], NETWORK_BYTES_PER_S);
    }
    for (w, workload) in plan["workloads"].as_array().unwrap().iter().enumerate() {
        assert_eq!(workload["name"], format!("w{w}"), "workloads come in the order of the request");
        assert_eq!(workload["slo_percentile"], 99.9);
        assert_eq!(workload["slo_s"], f64::from(100 << (w % 3)) / 1e3);
        for limit in workload["limits"].as_array().unwrap() {
            let capacity = if limit["stage"] == "storage" { 1.0 } else { NETWORK_BYTES_PER_S };
            for (relative, absolute) in [("rate", "rate_per_s"), ("burst", "burst_work")] {
                let expected = limit[relative].as_f64().unwrap() * capacity;
                assert_eq!(limit[absolute].as_f64().unwrap(), expected, "{limit}");
            }
        }
    }
}

#[test]
fn every_promise_holds_when_recomputed_from_the_limits() {
    let cluster = Cluster::new(12, 12);
    for policy in ["tailwright", "workload-compactor", "knee", "average-2"] {
        let outcome = cluster.folder.run(&["plan", "cluster.toml", "--json", "--method", policy]);
        let plan = outcome.json();
        assert_eq!(plan["policy_name"], policy);
        judge::check_promises(&plan);
        for admitted in judge::admitted(&plan) {
            let trace = &cluster.traces[admitted.name[1..].parse::<usize>().unwrap()];
            for (stage, (rate, burst)) in admitted.limits.into_iter().enumerate() {
                let needed = judge::burst(trace, stage, rate);
                assert!(
                    burst >= needed * (1.0 - 1e-9),
                    "{policy} {} {stage}: {burst} {needed}",
                    admitted.name
                );
            }
        }
    }
}

#[test]
fn effective_bandwidth_stays_within_slos_without_bursts() {
    let cluster = Cluster::new(5, 9);
    for policy in ["effective-bandwidth", "effective-bandwidth-even"] {
        let plan = cluster.folder.run(&["plan", "cluster.toml", "--json", "--method", policy]).json();
        let all = judge::admitted(&plan);
        assert!(!all.is_empty());
        for w in all {
            // On links a bucket holds what its rate brings while the workload is held up.
            assert!(w.bound_s <= w.slo_s && w.limits[1].1 == 0.0, "{w:?}");
        }
        let args = ["plan", "cluster.toml", "--json", "--preemptive", "--method", policy];
        let published = judge::admitted(&cluster.folder.run(&args).json());
        assert!(published.iter().all(|w| w.limits.iter().all(|(_, burst)| *burst == 0.0)), "{published:?}");
    }
}

#[test]
fn a_cluster_file_and_a_table_of_slos_give_the_same_plan() {
    let cluster = Cluster::new(8, 9);
    let limits = |plan: &Value| {
        judge::admitted(plan)
            .into_iter()
            .map(|w| (w.name, w.priority, w.bound_s, w.limits))
            .collect::<Vec<_>>()
    };
    let by_flags = cluster.folder.run(&FLAGS).expect_code(0).json();
    let by_file = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    assert_eq!(limits(&by_flags), limits(&by_file));
    assert_eq!(by_flags["servers"][0]["name"], "server-1");
}

#[test]
fn a_safety_margin_asks_for_more() {
    let cluster = Cluster::new(1, 1);
    let bound = |margin: &str, more: &[&str]| {
        let args = ["plan", "cluster.toml", "--json", "--method", "average-2", "--safety-margin", margin];
        judge::admitted(&cluster.folder.run(&[&args[..], more].concat()).expect_code(0).json())[0].bound_s
    };
    assert!((bound("1.1", &["--preemptive"]) / bound("1", &["--preemptive"]) - 1.1).abs() < 1e-6);
    // What others have begun does not grow.
    let ratio = bound("1.1", &[]) / bound("1", &[]);
    assert!(ratio > 1.0 && ratio < 1.1, "{ratio}");
}

#[test]
fn workloads_without_a_place_are_answered_with_no_and_why() {
    let cluster = Cluster::new(12, 1);
    let outcome = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(1);
    let plan = outcome.json();
    let refused: Vec<&Value> =
        plan["workloads"].as_array().unwrap().iter().filter(|w| w["admitted"] == false).collect();
    assert!(!refused.is_empty() && refused.len() < 12);
    for workload in refused {
        assert!(workload["refusal"].as_str().is_some_and(|why| why.contains("server")), "{workload}");
        assert!(workload["server"].is_null() && workload["bound_s"].is_null(), "{workload}");
        assert_eq!(workload["limits"], serde_json::json!([]));
    }
    let text = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(1).stdout;
    assert!(text.contains("not admitted: w") && text.contains("have no guarantee"), "{text}");
}

#[test]
fn an_impossible_slo_is_named() {
    let cluster = Cluster::new(1, 1);
    let toml = cluster.folder.read("cluster.toml").replace("100ms", "1us");
    cluster.folder.write("cluster.toml", &toml);
    let text = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(1).stdout;
    assert!(text.contains("even alone on a server") && text.contains("1us"), "{text}");
}

#[test]
fn the_table_answers_first_and_lists_everybody() {
    let cluster = Cluster::new(4, 4);
    let text = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0).stdout;
    assert!(text.starts_with("4 of 4 workloads fit on "), "{text}");
    for part in ["w0", "w3", "99.9% < 400ms", "ssd-1: ", "mean load", "\nnext:\n  tailwright plan "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn comparing_lists_the_published_methods() {
    let cluster = Cluster::new(4, 4);
    let args = ["plan", "cluster.toml", "--compare", "--json"];
    let plan = cluster.folder.run(&args).expect_code(0).json();
    let names: Vec<&str> =
        plan["compared"].as_array().unwrap().iter().map(|c| c["policy_name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["tailwright", "workload-compactor"]);
    for name in ["average-2", "several-limiters", "priority-meister"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(plan["compared"][0]["best_order"]["servers_used"], plan["servers_used"]);
    // Both orders of every method, and each is what the method plans when it is asked for alone.
    for (policy, order, field) in [("knee", "given", "first_fit"), ("average-2", "best", "best_order")] {
        let args = ["plan", "cluster.toml", "--method", policy, "--order", order, "--json"];
        let alone = cluster.folder.run(&args).json();
        let row = plan["compared"].as_array().unwrap().iter().find(|row| row["policy_name"] == policy);
        let one = &row.expect("a row")[field];
        assert_eq!(one["servers_used"], alone["servers_used"], "{policy} {order}");
        assert_eq!(one["workloads_admitted"], alone["workloads_admitted"], "{policy} {order}");
    }
}

#[test]
fn the_comparison_fits_a_hundred_columns() {
    let cluster = Cluster::new(4, 4);
    let text = cluster.folder.run(&["plan", "cluster.toml", "--compare"]).expect_code(0).stdout;
    let (_, table) = text.split_once("servers by first fit").expect("a comparison");
    assert!(table.contains("best order") && table.lines().take(11).all(|line| line.chars().count() <= 100));
}

#[test]
fn the_report_is_one_page_with_all_workloads() {
    let cluster = Cluster::new(4, 1);
    let args = ["plan", "cluster.toml", "--report", "a.html", "--compare"];
    cluster.folder.run(&args);
    let page = cluster.folder.read("a.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for part in ["w0", "w3", "Mean load by stage", "All limits", "How to read", "workload-compactor"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http://") || page.contains("http://www.w3.org/"), "a page loads nothing");
    let made = "tailwright plan cluster.toml --report a.html --compare";
    assert!(page.contains(made) && page.contains("Made "), "the small print");
    cluster.folder.run(&args);
    let without_date = |page: &str| {
        page.lines().filter(|line| !line.contains("Made ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        without_date(&page),
        without_date(&cluster.folder.read("a.html")),
        "the same plan gives the same page"
    );
}

#[test]
fn a_search_that_is_cut_short_still_keeps_every_promise() {
    let cluster = Cluster::new(12, 12);
    for limit in [["--time-budget", "1ns"], ["--effort", "1"]] {
        let mut args = vec!["plan", "cluster.toml", "--json"];
        args.extend(limit);
        let plan = cluster.folder.run(&args).expect_code(0).json();
        assert_eq!(plan["workloads_admitted"], 12);
        judge::check_promises(&plan);
    }
}

#[test]
fn the_policy_file_is_the_printed_document() {
    let cluster = Cluster::new(3, 3);
    let printed =
        cluster.folder.run(&["plan", "cluster.toml", "--json", "-o", "p.json"]).expect_code(0).json();
    let written: Value = serde_json::from_str(&cluster.folder.read("p.json")).unwrap();
    assert_eq!(printed, written);
    let nowhere = cluster.folder.run(&["plan", "cluster.toml", "-o", "no/such/p.json"]).expect_code(3);
    assert!(nowhere.stderr.contains("no/such/p.json") && nowhere.stderr.contains("folder"));
}

#[test]
fn the_first_class_is_used_before_the_second() {
    let cluster = Cluster::new(12, 1);
    let class = "[[server]]\nclass = \"spare\"\ncount = 12\nstorage = \"ssd.json\"\nnetwork = \"10Gbps\"\n";
    let toml =
        cluster.folder.read("cluster.toml").replacen("[[workload]]", &format!("{class}[[workload]]"), 1);
    cluster.folder.write("cluster.toml", &toml);
    let outcome = cluster.folder.run(&["plan", "cluster.toml", "--json", "--order", "given"]).expect_code(0);
    assert!(outcome.stderr.contains("12 read"), "a trace is read once for equal devices: {}", outcome.stderr);
    let plan = outcome.json();
    judge::check_promises(&plan);
    let servers = plan["servers"].as_array().unwrap();
    let names: Vec<&str> = servers.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["ssd-1", "spare-1"]);
    assert_eq!(servers[1]["network_bytes_per_s"], 1.25e9);
}

#[test]
fn base_latency_is_part_of_the_bound_and_of_the_talk() {
    let cluster = Cluster::new(1, 1);
    let profile = r#"{"format": "tailwright-device-1", "name": "idle", "device": {"ssd": {"bandwidth": [
        {"request_bytes": 4096, "read_bytes_per_s": 100e6, "write_bytes_per_s": 100e6}]}},
        "base_latency": {"percentile": "99%", "read_s": 0.004, "write_s": 0.001}}"#;
    let bound = || {
        let outcome =
            cluster.folder.run(&["plan", "cluster.toml", "--json", "--method", "average-2"]).expect_code(0);
        (judge::admitted(&outcome.json())[0].bound_s, outcome.stderr)
    };
    let (without, quiet) = bound();
    cluster.folder.write("ssd.json", profile);
    let (with, talk) = bound();
    assert!((with - without - 0.004).abs() < 1e-12, "{with} {without}");
    assert!(talk.contains("known at 99% only") && !quiet.contains("warning"), "{talk}");
}

/// Latencies of the idle device by size count for workloads whose requests are as small, in every verb that gives bounds.
#[test]
fn base_latency_by_size_counts_for_small_requests() {
    let cluster = Cluster::new(2, 1);
    let trace =
        |size: &str| -> String { (0..50).map(|n| format!("{},{size},DiskRead\n", n * 10_000_000)).collect() };
    cluster.folder.write("w0.csv", &trace("0x00001000"));
    cluster.folder.write("w1.csv", &trace("0x00010000"));
    let profile = |sizes: &str| {
        format!(
            r#"{{"format": "tailwright-device-3", "name": "idle", "device": {{"ssd": {{"bandwidth": [
            {{"request_bytes": 4096, "read_bytes_per_s": 100e6, "write_bytes_per_s": 100e6}}]}}}},
            "base_latency": {{"percentile": "99.9%", "read_s": 0.004, "write_s": 0.003{sizes}}}}}"#
        )
    };
    let by_size = r#", "sizes": [{"request_bytes": 4096, "read_s": 0.0005, "write_s": 0.001}]"#;
    let bounds = |args: &[&str]| -> Vec<f64> {
        let answer = cluster.folder.run(args).expect_code(0).json();
        let mut rows: Vec<(String, f64)> = answer["workloads"]
            .as_array()
            .expect("workloads")
            .iter()
            .map(|row| {
                let bound =
                    if row["bound_s"].is_f64() { &row["bound_s"] } else { &row["bounds"][0]["bound_s"] };
                (row["name"].as_str().expect("a name").to_owned(), bound.as_f64().expect("a bound"))
            })
            .collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().map(|(_, bound)| bound).collect()
    };
    for args in [
        &["plan", "cluster.toml", "--json", "--method", "average-2"][..],
        &["bound", "cluster.toml", "--json", "--model", "worst-case"],
    ] {
        cluster.folder.write("ssd.json", &profile(""));
        let any = bounds(args);
        cluster.folder.write("ssd.json", &profile(by_size));
        let sized = bounds(args);
        // Writes of 4 KiB take longer than reads, and either may come.
        assert!((any[0] - sized[0] - 0.003).abs() < 1e-9, "{args:?}: {any:?} {sized:?}");
        assert!((any[1] - sized[1]).abs() < 1e-9, "{args:?}: {any:?} {sized:?}");
    }
}

/// The curve of a trace that is shorter than a second is flat there, and has no knee.
#[test]
fn every_method_gives_short_traces_limits_that_can_be_enforced() {
    let cluster = Cluster::new(1, 1);
    let lines: String = (0..5).map(|n| format!("{},0x00001000,DiskRead\n", n * 10_000_000)).collect();
    cluster.folder.write("w0.csv", &lines);
    for method in ["tailwright", "workload-compactor", "knee", "average-2", "effective-bandwidth"] {
        let args = ["plan", "cluster.toml", "--method", method, "--json", "-o", "policy.json"];
        let plan = cluster.folder.run(&args).expect_code(0).json();
        for limit in plan["workloads"][0]["limits"].as_array().expect("a list") {
            assert!(limit["rate"].as_f64().unwrap() > 0.0, "{method}: {limit}");
        }
        let simulated = cluster.folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml"]);
        assert!(simulated.code < 2, "{method}: {}", simulated.stderr);
    }
}

#[test]
fn two_devices_of_one_name_are_warned_about() {
    let cluster = Cluster::new(1, 1);
    let second = "[[server]]\nclass = \"slow\"\ncount = 1\nstorage = \"slow.json\"\nnetwork = \"125MB/s\"\n";
    cluster.folder.write("slow.json", &cluster.folder.read("ssd.json").replace("100e6", "10e6"));
    let toml =
        cluster.folder.read("cluster.toml").replacen("[[workload]]", &format!("{second}[[workload]]"), 1);
    cluster.folder.write("cluster.toml", &toml);
    let said = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0).stderr;
    assert!(said.contains("two different device profiles have the name 'ssd'"), "{said}");
    cluster.folder.write("slow.json", &cluster.folder.read("ssd.json"));
    let said = cluster.folder.run(&["plan", "cluster.toml"]).expect_code(0).stderr;
    assert!(!said.contains("two different"), "{said}");
}
