//! `tailwright explain`: the derivation adds up.

use crate::support::cluster::Cluster;
use crate::support::judge;
use std::process::Command;

/// The last number of the first line that starts with `term`.
fn number(text: &str, term: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(term)).unwrap_or_else(|| panic!("{term}: {text}"));
    line.split_whitespace().last().unwrap().parse().unwrap_or_else(|_| panic!("{line}"))
}

/// `(a + b) / (1 - c)  d` as (a + b, c, d).
fn quotient(line: &str) -> (f64, f64, f64) {
    let cleaned = line.replace(['(', ')', '/'], " ");
    let n: Vec<f64> = cleaned.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(n.len(), 5, "{line}");
    (n[0] + n[1], n[3], n[4])
}

#[test]
fn the_printed_terms_add_up_to_the_planned_bound() {
    let cluster = Cluster::new(8, 8);
    let plan = cluster.folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    for workload in judge::admitted(&plan) {
        let text = cluster.folder.run(&["explain", &workload.name, "cluster.toml"]).expect_code(0).stdout;
        let mut sum = 0.0;
        for stage in judge::STAGES {
            let term = format!("waiting at {stage} ");
            let line = text.lines().find(|line| line.starts_with(&term)).unwrap();
            let (burst, above, delay) = quotient(line);
            assert!((burst / (1.0 - above) - delay).abs() <= 1e-3 + 1e-5 * delay, "{line}");
            sum += delay;
        }
        let bound = number(&text, "bound ");
        sum += number(&text, "idle storage ") + number(&text, "proxy ");
        assert!((sum - bound).abs() < 1e-3, "{text}");
        assert!((bound / 1e3 - workload.bound_s).abs() < 1e-6, "{text}");
        assert!((number(&text, "slack ") + bound - 1e3 * workload.slo_s).abs() < 1e-3, "{text}");
    }
}

#[test]
fn json_has_the_same_numbers() {
    let cluster = Cluster::new(4, 4);
    let e = cluster.folder.run(&["explain", "w1", "cluster.toml", "--json"]).expect_code(0).json();
    let mut sum: f64 =
        ["base_s", "proxy_s", "own_service_s"].map(|part| e[part].as_f64().unwrap()).iter().sum();
    for (number, stage) in e["stages"].as_array().unwrap().iter().enumerate() {
        let sum_of = |field: &str| -> f64 {
            e["company"].as_array().unwrap().iter().map(|n| n[field][number].as_f64().unwrap()).sum()
        };
        let of_stage = |field: &str| stage[field].as_f64().unwrap();
        assert!((sum_of("bursts") - of_stage("burst_at_or_above")).abs() < 1e-12);
        assert!((sum_of("rates") - of_stage("rate_above")).abs() < 1e-12);
        let work = of_stage("blocking") + of_stage("burst_at_or_above");
        assert!((work / (1.0 - of_stage("rate_above")) - of_stage("delay_s")).abs() < 1e-12);
        sum += stage["delay_s"].as_f64().unwrap() + stage["shaping_s"].as_f64().unwrap();
    }
    assert!((sum - e["bound_s"].as_f64().unwrap()).abs() < 1e-12);
}

#[test]
fn limit_and_allowance_are_shown_apart() {
    let cluster = Cluster::new(4, 4);
    let text = cluster.folder.read("cluster.toml");
    cluster.folder.write("cluster.toml", &text.replacen("[[workload]]", "channels = 4\n[[workload]]", 1));
    let plan = cluster.folder.run(&["plan", "cluster.toml", "--json", "-o", "policy.json"]).json();
    let args = ["explain", "w1", "cluster.toml", "--plan", "policy.json"];
    let e = cluster.folder.run(&[&args[..], &["--json"]].concat()).expect_code(0).json();
    let text = cluster.folder.run(&args).expect_code(0).stdout;
    let planned = plan["workloads"].as_array().unwrap().iter().find(|at| at["name"] == "w1").unwrap();
    for (limit, stage) in planned["limits"].as_array().unwrap().iter().zip(e["stages"].as_array().unwrap()) {
        assert_eq!(limit["stage"], stage["stage"]);
        let same = |field: &str| {
            let planned = limit[field].as_f64().unwrap_or(0.0);
            assert!((planned - stage[field].as_f64().unwrap()).abs() < 1e-9, "{field}: {limit} {stage}");
            planned
        };
        same("burst");
        let allowance = same("allowance");
        assert_eq!(allowance > 0.0, stage["stage"] == "network-out", "{stage}");
        let term = format!("waiting at {} ", stage["stage"].as_str().unwrap());
        let line = text.lines().find(|line| line.starts_with(&term)).unwrap();
        let counted = format!("+ {:.4} overtaking)", allowance * 1e3);
        assert_eq!(line.contains(&counted), allowance > 0.0, "{line}");
    }
    assert!(text.contains("allowance ms"), "{text}");
}

#[test]
fn a_stored_plan_is_explained_as_it_is() {
    let cluster = Cluster::new(6, 6);
    let args = ["plan", "cluster.toml", "--method", "knee", "--json", "-o", "policy.json"];
    let plan = cluster.folder.run(&args).json();
    let workload = &judge::admitted(&plan)[0];
    let args = ["explain", &workload.name, "cluster.toml", "--plan", "policy.json", "--json"];
    let e = cluster.folder.run(&args).expect_code(0).json();
    assert_eq!(e["server"], workload.server);
    assert_eq!(e["bound_s"], workload.bound_s);
}

#[test]
fn a_stored_plan_that_says_something_else_is_contradicted() {
    let cluster = Cluster::new(6, 6);
    let plan = cluster.folder.run(&["plan", "cluster.toml", "--json", "-o", "policy.json"]).json();
    let workload = &judge::admitted(&plan)[0];
    let args = ["explain", &workload.name, "cluster.toml", "--plan", "policy.json"];
    assert!(!cluster.folder.run(&args).expect_code(0).stderr.contains("the policy"));
    let stored = cluster.folder.read("policy.json");
    let bound = format!("\"bound_s\": {}", workload.bound_s);
    assert!(stored.contains(&bound), "{stored}");
    cluster.folder.write("policy.json", &stored.replace(&bound, "\"bound_s\": 0.001"));
    let contradicted = cluster.folder.run(&args).expect_code(0).stderr;
    assert!(contradicted.contains(&format!("the policy guarantees {} 1ms", workload.name)), "{contradicted}");
}

#[test]
fn sentences_are_broken_only_where_the_width_ends() {
    let cluster = Cluster::new(3, 3);
    let output = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["explain", "w0", "cluster.toml"])
        .current_dir(cluster.folder.path())
        .env("XDG_CACHE_HOME", cluster.folder.join("cache"))
        .env("COLUMNS", "80")
        .output()
        .expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    let second = |begin: &str| {
        text.lines().skip_while(|line| !line.starts_with(begin)).nth(1).unwrap_or_default().to_owned()
    };
    for begin in ["Priority ", "At each stage", "It also waits", "Its limits"] {
        assert!(second(begin).starts_with("  "), "{begin} is not continued in the next line:\n{text}");
    }
}

#[test]
fn unknown_names_get_close_ones() {
    let cluster = Cluster::new(3, 3);
    let outcome = cluster.folder.run(&["explain", "W22", "cluster.toml"]).expect_code(2);
    assert!(outcome.stderr.contains("no workload 'W22'") && outcome.stderr.contains("did you mean w2"));
}

#[test]
fn refused_workloads_are_explained_with_no() {
    let cluster = Cluster::new(1, 1);
    let toml = cluster.folder.read("cluster.toml").replace("100ms", "1us");
    cluster.folder.write("cluster.toml", &toml);
    let outcome = cluster.folder.run(&["explain", "w0", "cluster.toml"]).expect_code(1);
    assert!(outcome.stdout.starts_with("w0 is not admitted: even alone"), "{}", outcome.stdout);
}
