//! `tailwright plan --model`, as users and scripts run it.

use crate::support::cluster::Cluster;
use crate::support::judge::{STAGES, burst};
use crate::support::servers::signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const SLOW: &str =
    r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 40e6, "writeBandwidth": 40e6}]}"#;

fn plan(cluster: &Cluster, args: &[&str]) -> (i32, Value) {
    let outcome = cluster.folder.run(&[&["plan", "cluster.toml", "--json"], args].concat());
    let document = serde_json::from_str(&outcome.stdout);
    (outcome.code, document.unwrap_or_else(|error| panic!("{error}: {}", outcome.stderr)))
}

/// What is called elapsed covers the whole run: its parts are not longer, and the program does not take less.
#[test]
fn elapsed_time_is_that_of_the_whole_run() {
    let cluster = Cluster::new(8, 8);
    for args in [&["--model", "replayed"][..], &["--compare"]] {
        let start = std::time::Instant::now();
        let (_, document) = plan(&cluster, args);
        let outside = start.elapsed().as_secs_f64();
        let seconds = |field: &str| document[field].as_f64().unwrap_or(0.0);
        let elapsed = seconds("elapsed_s");
        assert!(
            seconds("search_s") + seconds("characterise_s") <= elapsed && elapsed <= outside,
            "{document}"
        );
        assert_eq!(document["search_s"].is_number(), args[0] == "--model");
    }
}

#[test]
fn an_assumption_saves_servers_and_its_price_is_said() {
    let cluster = Cluster::new(18, 18);
    cluster.folder.write("ssd.json", SLOW);
    let servers = |args: &[&str]| plan(&cluster, args).1["servers_used"].as_u64().expect("a number");
    let guaranteed = servers(&[]);
    let worst = servers(&["--model", "worst-case"]);
    let (code, replayed) = plan(&cluster, &["--model", "replayed"]);
    let used = replayed["servers_used"].as_u64().expect("a number");
    assert!(code == 0 && used < guaranteed && used < worst, "{used} against {guaranteed} and {worst}");
    assert!(used >= replayed["servers_lower_bound"].as_u64().expect("a number"));
    for forecast in replayed["forecasts"].as_array().expect("a list") {
        let seconds = |field: &str| forecast[field].as_f64().unwrap_or_else(|| panic!("{field}: {forecast}"));
        assert!(seconds("bound_s") <= seconds("bursts_together_s"), "{forecast}");
        assert!(seconds("bursts_together_s") <= seconds("worst_case_s"), "{forecast}");
        assert!(seconds("estimate_s") <= seconds("bound_s"), "{forecast}");
    }
    let text = cluster.folder.run(&["plan", "cluster.toml", "--model", "replayed", "--report", "plan.html"]);
    for words in
        ["95% confidence", "in one of them all worst bursts end at once", "whatever the burst curves allow"]
    {
        assert!(text.stdout.contains(words), "{words}:\n{}", text.stdout);
    }
    assert!(cluster.folder.read("plan.html").contains("What the predictions assume"));
}

/// Asserts that of each forecast no replay is longer than `bursts_together_s` and that is no longer than the worst case.
fn assert_in_order(document: &Value, model: &str) {
    let forecasts = document["forecasts"].as_array().expect("a list");
    assert!(!forecasts.is_empty());
    for forecast in forecasts {
        let seconds = |field: &str| forecast[field].as_f64();
        let together = seconds("bursts_together_s").unwrap_or_else(|| panic!("{forecast}"));
        assert!(seconds("worst_case_s").is_none_or(|worst| together <= worst), "{model}: {forecast}");
        assert!(seconds("estimate_s").is_none_or(|estimate| estimate <= together), "{model}: {forecast}");
        if model == "replayed" {
            assert!(seconds("bound_s").is_some_and(|bound| bound <= together), "{forecast}");
        }
    }
}

#[test]
fn no_replay_is_longer_than_bursts_together_and_that_not_than_the_worst_case() {
    // Of random clusters, the members of a server and their priorities differ.
    for (count, slow) in [(3, false), (7, true), (12, false), (16, true)] {
        let cluster = Cluster::new(count, count);
        if slow {
            cluster.folder.write("ssd.json", SLOW);
        }
        for model in ["replayed", "probabilistic", "worst-case"] {
            assert_in_order(&plan(&cluster, &["--model", model]).1, model);
        }
    }
    let Some(real) = testkit::shared("traces") else { return };
    let folder = crate::support::Folder::new();
    let path = |name: &str| real.join(name).display().to_string();
    let slos = path("slos.csv");
    let traces = path("");
    let storage = path("ssd-profile.json");
    let inputs =
        ["plan", "--slos", &slos, "--traces", &traces, "--storage", &storage, "--network", "125MB/s"];
    for more in [&["--preemptive"][..], &[]] {
        let options = ["--model", "replayed", "--json", "--max-servers", "8"];
        let outcome = folder.run(&[&inputs[..], &options, more].concat());
        let document = serde_json::from_str(&outcome.stdout);
        assert_in_order(&document.unwrap_or_else(|error| panic!("{error}: {}", outcome.stderr)), "replayed");
    }
}

#[test]
fn limits_delay_nothing_of_the_trace() {
    let cluster = Cluster::new(4, 4);
    let (_, policy) = plan(&cluster, &["--model", "probabilistic"]);
    assert_eq!(
        (&policy["format"], &policy["policy_name"]),
        (&"tailwright.policy".into(), &"probabilistic".into())
    );
    for (w, workload) in policy["workloads"].as_array().expect("a list").iter().enumerate() {
        assert_eq!(workload["name"], format!("w{w}"));
        let limits = workload["limits"].as_array().expect("a list");
        for (number, stage) in STAGES.iter().enumerate() {
            let of_stage: Vec<&Value> = limits.iter().filter(|limit| limit["stage"] == *stage).collect();
            assert!(of_stage.len() > 1, "several at once: {workload}");
            for limit in of_stage {
                let rate = limit["rate"].as_f64().unwrap();
                let bucket = limit["burst"].as_f64().unwrap();
                let needed = burst(&cluster.traces[w], number, rate);
                // Work is counted in whole nanoseconds, rounded up. What the stages before may bunch comes on top.
                let bunched = rate * workload["slo_s"].as_f64().expect("an SLO");
                assert!(
                    bucket >= needed && bucket <= needed * 1.5 + bunched + 0.01,
                    "{stage} {rate}: {bucket} {needed}"
                );
            }
        }
    }
}

/// Policies by a model say how their servers are used, and keep what they promise where the enforcers are simulated.
#[test]
fn written_policies_hold_in_simulation() {
    let cluster = Cluster::new(9, 9);
    cluster.folder.write("ssd.json", SLOW);
    for (verb, model) in [
        ("plan", "worst-case"),
        ("plan", "probabilistic"),
        ("plan", "replayed"),
        ("admit", "worst-case"),
        ("admit", "priority-meister"),
    ] {
        cluster.folder.run(&[verb, "cluster.toml", "--model", model, "-o", "policy.json"]);
        let args = ["simulate", "policy.json", "--cluster", "cluster.toml", "--json"];
        let simulated = cluster.folder.run(&args).json();
        let policy: Value = serde_json::from_str(&cluster.folder.read("policy.json")).expect("a policy");
        let servers = policy["servers"].as_array().expect("a list");
        assert!(
            !servers.is_empty() && servers.iter().all(|server| server["enforcement"]["outstanding"] == 1)
        );
        for server in simulated["servers"].as_array().expect("a list") {
            for workload in server["workloads"].as_array().expect("a list") {
                // A prediction from replays is an estimate with confidence: what refutes it is an interval above it.
                let longest = match model {
                    "replayed" => "ci_low_s",
                    "probabilistic" => "measured_s",
                    _ => "longest_s",
                };
                let [seen, bound] = [longest, "bound_s"].map(|field| workload[field].as_f64().expect(field));
                assert!(seen <= bound, "{verb} {model}: {workload}");
            }
        }
    }
}

#[test]
fn too_few_servers_refuse_with_a_reason() {
    let cluster = Cluster::new(6, 1);
    let slower = SLOW.replace("40e6", "15e6");
    cluster.folder.write("ssd.json", &slower);
    let (code, answer) = plan(&cluster, &["--model", "worst-case"]);
    assert_eq!(code, 1);
    let refused: Vec<&Value> =
        answer["workloads"].as_array().unwrap().iter().filter(|w| w["admitted"] == false).collect();
    assert!(!refused.is_empty() && refused.len() < 6);
    assert!(
        refused
            .iter()
            .all(|w| w["refusal"].as_str().is_some_and(|why| !why.is_empty()) && w["bound_s"].is_null())
    );
}

#[test]
fn flags_of_the_other_way_do_not_go_with_it() {
    let cluster = Cluster::new(2, 1);
    for flag in [&["--compare"][..], &["--method", "knee"], &["--keep", "policy.json"]] {
        let outcome = cluster.folder.run(&[&["plan", "cluster.toml", "--model", "replayed"], flag].concat());
        assert!(outcome.code == 2 && outcome.stderr.contains("cannot be used with"), "{}", outcome.stderr);
    }
}

#[test]
fn an_interrupted_placement_is_a_valid_plan_and_says_so() {
    let cluster = Cluster::new(120, 120);
    cluster.folder.write("ssd.json", SLOW);
    cluster.folder.write("policy.json", "earlier");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    let args = ["plan", "cluster.toml", "--json", "--model", "replayed", "-o", "policy.json"];
    command.current_dir(cluster.folder.path()).args(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    // The handler is in place before the traces are read, and this line comes after.
    while !said.contains("traces: ") && errors.read_line(&mut said).expect("text") > 0 {}
    signal(&child, "INT");
    let mut answer = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut answer).expect("text");
    errors.read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{said}");
    // Chance decides if a workload was placed by then; a plan without one replaces no other.
    let has_some = said.contains("interrupted: the placement holds");
    assert!(has_some || said.contains("before any workload was placed: nothing is written"), "{said}");
    assert_eq!(cluster.folder.read("policy.json") == "earlier", !has_some, "{said}");
    let plan: Value = serde_json::from_str(&answer).expect("a whole document");
    let workloads = plan["workloads"].as_array().expect("a list");
    assert_eq!(workloads.len(), 120);
    for workload in workloads.iter().filter(|workload| workload["admitted"] == false) {
        assert!(
            workload["refusal"]
                .as_str()
                .is_some_and(|why| why.contains("interrupted") || why.contains("alone")),
            "{workload}"
        );
    }
    for forecast in plan["forecasts"].as_array().expect("a list") {
        assert!(forecast["bound_s"].as_f64().is_some(), "{forecast}");
    }
}
