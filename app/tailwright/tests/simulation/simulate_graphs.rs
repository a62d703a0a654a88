//! `tailwright simulate` with kinds, classes, copies, measured laws and recorded traces, and `trace callgraph`.

use crate::support::Folder;
use serde_json::Value;

fn example(name: &str) -> String {
    format!("{}/../../examples/scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_measure_is_in_the_document() {
    let folder = Folder::new();
    let found = folder.run(&["simulate", &example("kinds.toml"), "--json"]).expect_code(0).json();
    for name in ["overtaken_pct", "fairness", "shortest_p99_s", "reordering_pct", "slowdown_p99"] {
        let value = number(&found[name]);
        let ends = &found["ci"][name];
        assert!(number(&ends[0]) <= value && value <= number(&ends[1]), "{name}: {value} {ends}");
    }
    // Who waits longest is slower than 999 of 1000 wait.
    assert!(number(&found["longest_wait_s"]) > 0.0);
    let fairness = number(&found["fairness"]);
    assert!(0.0 < fairness && fairness < 1.0, "{fairness}");
    for tier in found["tiers"].as_array().expect("tiers") {
        for name in ["present_mean", "overhead", "slowdown_p99", "reordering_pct", "utilisation"] {
            // What is the same in all replications has no interval.
            assert!(tier[name] == 0.0 || tier["ci"][name].is_array(), "{name} in {tier}");
        }
        // Little's law.
        let little = number(&tier["throughput_per_s"]) * number(&tier["mean_s"]);
        assert!((little / number(&tier["present_mean"]) - 1.0).abs() < 0.05, "{tier}");
        assert!(tier["present_max"].as_u64().expect("a count") as f64 > number(&tier["present_mean"]));
    }
    // 1 ms in 51 ms of each worker.
    assert!((number(&found["tiers"][1]["overhead"]) - 1.0 / 51.0).abs() < 0.002);
    assert_eq!(number(&found["tiers"][0]["overhead"]), 0.0);
    let classes = found["classes"].as_array().expect("classes");
    let names: Vec<&str> = classes.iter().filter_map(|class| class["name"].as_str()).collect();
    assert_eq!(names, ["search", "report"]);
    assert!(number(&classes[0]["p99_s"]) < number(&classes[1]["p99_s"]));
    let counts: u64 = classes.iter().filter_map(|class| class["requests"].as_u64()).sum();
    assert_eq!(Some(counts), found["requests"].as_u64());
}

#[test]
fn classes_and_evenness_are_in_text_and_page() {
    let folder = Folder::new();
    let outcome = folder.run(&["simulate", &example("kinds.toml"), "--report", "page.html"]).expect_code(0);
    for part in ["class ", "search", "report", "Overtaken ", "fairness (Jain", "shortest 1 %", "present"] {
        assert!(outcome.stdout.contains(part), "'{part}' is not in {}", outcome.stdout);
    }
    let page = folder.read("page.html");
    assert!(page.contains("class report") && page.contains("Overtaken"), "classes on the page");
    // One class has no table.
    let outcome =
        folder.run(&["simulate", &example("mm1.toml"), "--set", "run.requests=2000"]).expect_code(0);
    assert!(!outcome.stdout.contains("class"), "{}", outcome.stdout);
}

/// In M/M/1 the time in the system is exponential, with the difference between the rates of service and arrival.
#[test]
fn the_share_of_late_requests_is_that_of_the_closed_form() {
    let folder = Folder::new();
    let station = "[[station]]\nname = \"queue\"\nworkers = 1\ndiscipline = \"fifo\"\n";
    let class = |name: &str, slo: &str| format!("[[class]]\nname = \"{name}\"\n{slo}\n");
    let entry = |class: &str, rate: u32| {
        format!(
            "[[entry]]\narrivals = \"poisson({rate}/s)\"\nclass = \"{class}\"\nservice = {{ queue = \"exp(1ms)\" }}\n"
        )
    };
    let several = [
        class("soon", "slo = \"2ms\""),
        class("later", "slo = \"6ms\""),
        class("never", ""),
        entry("soon", 200),
        entry("later", 200),
        entry("never", 100),
    ];
    let one = [class("soon", "slo = \"2ms\""), entry("soon", 500)];
    for (name, parts) in [("several.toml", &several[..]), ("one.toml", &one[..])] {
        folder.write(name, &format!("{station}{}", parts.concat()));
        let found = folder.run(&["simulate", name, "--seed", "3", "--json"]).expect_code(0).json();
        let classes = found["classes"].as_array().expect("classes");
        assert_eq!(classes.len(), parts.len() / 2);
        for class in classes {
            let Some(slo_s) = class["slo_s"].as_f64() else {
                assert!(class["name"] == "never" && class["late_pct"].is_null(), "{class}");
                continue;
            };
            let expected = 100.0 * (-500.0 * slo_s).exp();
            let ends = &class["ci"]["late_pct"];
            let half_width = (number(&ends[1]) - number(&ends[0])) / 2.0;
            // Whoever is late by less than 0.4 % may count as in time.
            let room = 2.0 * half_width + 0.004 * expected;
            assert!((number(&class["late_pct"]) - expected).abs() < room, "{expected} % in {class}");
            assert!(half_width < 0.2 * expected, "{class}");
        }
        let text = folder.run(&["simulate", name, "--seed", "3"]).expect_code(0).stdout;
        let late = format!("{:.1}", number(&classes[0]["late_pct"]));
        assert!(text.contains("slo") && text.contains("late") && text.contains(&late), "{late}: {text}");
    }
}

#[test]
fn the_length_of_a_chain_is_varied() {
    let folder = Folder::new();
    let args = ["simulate", &example("long-chain.toml"), "--set", "run.requests=2000", "--json"];
    let found = folder.run(&args).expect_code(0).json();
    let variants = found["variants"].as_array().expect("variants");
    let tiers = |variant: &Value| variant["tiers"].as_array().map_or(0, Vec::len);
    assert_eq!(variants.iter().map(tiers).collect::<Vec<_>>(), [2, 2, 4, 4, 8, 8]);
    let mean: Vec<f64> = variants.iter().map(|variant| number(&variant["mean_s"])).collect();
    assert!(mean[0] < mean[2] && mean[2] < mean[4], "{mean:?}");
}

#[test]
fn measured_times_are_drawn() {
    let folder = Folder::new();
    folder.write("times.csv", "what,duration_us\na,1000\nb,3000\n");
    folder.write(
        "q.toml",
        "[run]\nrequests = 4000\nreplications = 2\n[[station]]\nname = \"q\"\nworkers = 100\n\
         discipline = \"fifo\"\n[[entry]]\narrivals = \"poisson(100/s)\"\n\
         service = { q = 'empirical(\"times.csv\", column=\"duration_us\")' }\n",
    );
    let found = folder.run(&["simulate", "q.toml", "--json"]).expect_code(0).json();
    assert!((number(&found["mean_s"]) - 2e-3).abs() < 1e-4, "{found}");
    assert!((number(&found["p99_s"]) - 3e-3).abs() < 1e-5, "{found}");
}

#[test]
fn recorded_traces_are_looked_at_and_replayed() {
    let folder = Folder::new();
    let spans = example("replay.spans.csv");
    let found = folder.run(&["trace", "callgraph", &spans, "--json"]).expect_code(0).json();
    assert_eq!(found["requests"], 3);
    let names = |list: &Value| {
        let names = list.as_array().expect("a list").iter().filter_map(|at| at["name"].as_str());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&found["services"]), ["front", "index", "store"]);
    let operations = &found["operations"];
    assert_eq!(names(operations), ["get", "search", "read"]);
    // 200 + 300 + 100 µs of three requests.
    assert!((number(&operations[0]["own"]["mean_s"]) - 200e-6).abs() < 1e-9, "{operations}");
    assert!((number(&operations[2]["per_request"]) - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(operations[0]["calls_at_once_max"], 2);
    let text = folder.run(&["trace", "callgraph", &spans]).expect_code(0).stdout;
    assert!(text.contains("3 requests") && text.contains("store read"), "{text}");

    let args = ["simulate", &example("replay.toml"), "--set", "run.requests=2000", "--json"];
    let replayed = folder.run(&args).expect_code(0).json();
    let means: Vec<f64> =
        replayed["variants"].as_array().expect("variants").iter().map(|v| number(&v["mean_s"])).collect();
    // More workers at the same load of the busiest station are more requests; nobody is faster than recorded.
    assert!(means.iter().all(|mean| *mean > 3.1e-3 / 3.0), "{means:?}");
    assert!(means[0] < means[2], "{means:?}");

    folder.write("none.csv", "trace_id,span_id\n");
    let outcome = folder.run(&["trace", "callgraph", "none.csv"]).expect_code(2);
    assert!(
        outcome.stderr.contains("none.csv:1:") && outcome.stderr.contains("parent_id"),
        "{}",
        outcome.stderr
    );
    folder.write("not.txt", "hello\n");
    let outcome = folder.run(&["trace", "callgraph", "not.txt"]).expect_code(2);
    assert!(outcome.stderr.contains("expected spans"), "{}", outcome.stderr);
}
