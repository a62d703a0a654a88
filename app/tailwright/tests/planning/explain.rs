//! `tailwright explain`: the derivation adds up.

use crate::support::cluster::{Cluster, PROFILE};
use crate::support::{Folder, judge};
use std::collections::BTreeSet;
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

/// Writes a cluster of `count` servers whose class has these lines, for tenants with requests of 1 KiB, 100 at a time.
fn small_tenants(folder: &Folder, (count, class, slo): (usize, &str, &str), tenants: usize) {
    folder.write("ssd.json", PROFILE);
    let mut toml = format!(
        "[[server]]\nclass = \"ssd\"\ncount = {count}\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n{class}\n"
    );
    for tenant in 0..tenants {
        let name = format!("t{tenant}");
        let requests: Vec<String> =
            (0..3000_u64).map(|n| format!("{},0x400,DiskRead\n", n / 100 * 300_000_000 + n % 100)).collect();
        folder.write(&format!("{name}.csv"), &requests.concat());
        toml +=
            &format!("[[workload]]\nname = \"{name}\"\ntrace = \"{name}.csv\"\nslo = \"99.9% < {slo}\"\n");
    }
    folder.write("cluster.toml", &toml);
}

/// Each named change, made alone in the files, admits the workload.
#[test]
fn every_remedy_admits() {
    let mut seen = BTreeSet::new();
    for (count, class, slo, tenants) in [
        (1, "", "6ms", 1),
        (1, "packet = \"64KiB\"", "6ms", 1),
        (1, "packet = \"64KiB\"", "9ms", 1),
        (1, "packet = \"64KiB\"\nbest_effort_request = \"0B\"", "5ms", 1),
        (1, "best_effort_request = \"0B\"", "4ms", 3),
    ] {
        let folder = Folder::new();
        small_tenants(&folder, (count, class, slo), tenants);
        let last = format!("t{}", tenants - 1);
        let refusal = folder.run(&["explain", &last, "cluster.toml", "--json"]).expect_code(1).json();
        let remedies = refusal["remedies"].as_array().expect("remedies").clone();
        assert!(remedies.len() > 1, "{class} {slo}: {refusal}");
        for remedy in &remedies {
            let change = remedy["change"].as_str().expect("a change");
            let mut lines = class.to_owned();
            let mut servers = count;
            let mut latency = slo.to_owned();
            match change {
                "inputs" => {
                    for (field, line) in
                        [("best_effort_request_bytes", "best_effort_request"), ("packet_bytes", "packet")]
                    {
                        if let Some(size) = remedy[field].as_u64() {
                            let kept = lines.lines().filter(|other| !other.starts_with(line));
                            lines = kept.map(|other| format!("{other}\n")).collect::<String>()
                                + &format!("{line} = \"{size}B\"\n");
                        }
                    }
                }
                "slo" => latency = format!("{}s", remedy["slo_s"]),
                "servers" => {
                    let more = remedy["count"].as_u64().and_then(|more| usize::try_from(more).ok());
                    servers += more.expect("a count");
                }
                // Judged where load is a number: no trace has a share of another's requests exactly.
                _ => continue,
            }
            seen.insert((
                change.to_owned(),
                remedy["packet_bytes"].is_u64(),
                remedy["best_effort_request_bytes"].is_u64(),
            ));
            small_tenants(&folder, (servers, &lines, slo), tenants);
            let toml = folder.read("cluster.toml");
            let (others, own) = toml.rsplit_once(slo).expect("an SLO");
            folder.write("cluster.toml", &format!("{others}{latency}{own}"));
            let outcome = folder.run(&["explain", &last, "cluster.toml"]);
            assert_eq!(outcome.code, 0, "{class} {slo} {remedy}: {}", outcome.stdout);
        }
    }
    let kinds: Vec<&str> = seen.iter().map(|(change, _, _)| change.as_str()).collect();
    assert!(["inputs", "slo", "servers"].iter().all(|change| kinds.contains(change)), "{seen:?}");
    assert!(
        seen.contains(&("inputs".to_owned(), true, true))
            && seen.contains(&("inputs".to_owned(), false, true)),
        "{seen:?}"
    );
}

/// A refused workload is derived as an admitted one, down to the least bound that it could have.
#[test]
fn a_refusal_adds_up() {
    let folder = Folder::new();
    small_tenants(&folder, (1, "", "6ms"), 1);
    let outcome = folder.run(&["explain", "t0", "cluster.toml"]).expect_code(1);
    let text = &outcome.stdout;
    let terms = [
        "waiting at network-in ",
        "waiting at storage ",
        "waiting at network-out ",
        "proxy ",
        "idle storage ",
    ];
    let sum: f64 = terms.iter().map(|term| number(text, term)).sum();
    assert!((sum - number(text, "bound ")).abs() < 1e-3, "{text}");
    assert!(number(text, "slack ") < 0.0 && number(text, "bound ") > 6.0, "{text}");
    assert!(text.contains("requests begun at the device 10.49ms"), "{text}");
    assert!(text.contains("best_effort_request = \""), "{text}");
}
