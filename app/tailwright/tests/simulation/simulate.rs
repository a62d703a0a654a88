//! `tailwright simulate`: figures against closed forms, repeatability, verdicts, faults with their place.

use crate::support::Folder;
use serde_json::Value;

/// One queue; `rest` is appended to the entry.
fn queue(run: &str, workers: u32, entry: &str) -> String {
    format!(
        "[run]\n{run}\n[[station]]\nname = \"queue\"\nworkers = {workers}\ndiscipline = \"fifo\"\n\
         [[entry]]\n{entry}\n"
    )
}

const MM1: &str = "arrivals = \"poisson(800/s)\"\nservice = { queue = \"exp(1ms)\" }";
const SHORT: &str = "requests = 4000\nreplications = 4";

fn example(name: &str) -> String {
    format!("{}/../../examples/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Everything but the speed.
fn figures(document: &str) -> Vec<&str> {
    document.lines().filter(|line| !line.contains("requests_per_wall_s")).collect()
}

#[test]
fn a_queue_is_as_the_closed_form_says() {
    let folder = Folder::new();
    let run = |seed: &str| {
        folder.run(&["simulate", &example("mm1"), "--seed", seed, "--json"]).expect_code(0).json()
    };
    let found = run("1");
    assert_eq!(found["verdict"], "done");
    assert_eq!(found["requests"].as_u64(), Some(800_000));
    // Response times of M/M/1 are exponential with rate 200/s.
    for (name, exact) in [("mean_s", 0.005), ("p50_s", 0.005 * 2f64.ln()), ("p99_s", 0.005 * 100f64.ln())] {
        let value = found[name].as_f64().expect(name);
        let half = found["ci"][name][1].as_f64().expect("upper end") - value;
        // Twice the 95 % interval, plus the error of the histogram.
        assert!((value - exact).abs() <= 2.0 * half + 0.002 * exact, "{name}: {value} ± {half}, {exact}");
        assert!(half < 0.1 * exact, "{name} ± {half}");
        assert!((found["tiers"][0][name].as_f64().expect(name) - value).abs() < 1e-12);
    }
    assert!((found["tiers"][0]["utilisation"].as_f64().unwrap() - 0.8).abs() < 0.02);
    assert!((found["throughput_per_s"].as_f64().unwrap() - 800.0).abs() < 16.0);
    assert!(found["requests_per_wall_s"].as_f64().unwrap() > 0.0);
    for name in ["slowdown_p99", "reordering_pct", "p99_9_s"] {
        assert!(found[name].is_f64(), "{name} in {found}");
    }
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let folder = Folder::new();
    folder.write("q.toml", &queue(SHORT, 1, MM1));
    let run = |seed: &str, json: &[&str]| {
        folder.run(&[&["simulate", "q.toml", "--seed", seed], json].concat()).expect_code(0).stdout
    };
    assert_eq!(run("3", &[]), run("3", &[]));
    assert_eq!(figures(&run("3", &["--json"])), figures(&run("3", &["--json"])));
    let mean = |seed: &str| -> Value { serde_json::from_str(&run(seed, &["--json"])).unwrap() };
    assert_ne!(mean("3")["mean_s"], mean("4")["mean_s"]);
}

#[test]
fn an_overload_that_lasts_a_while_has_figures() {
    let folder = Folder::new();
    let overload = "arrivals = \"poisson(2000/s)\"\nservice = { queue = \"1ms\" }";
    folder.write("steady.toml", &queue(SHORT, 1, overload));
    let steady = folder.run(&["simulate", "steady.toml", "--json"]).expect_code(1).json();
    assert!(steady["verdict"] == "unstable" && steady["mean_s"].is_null(), "{steady}");
    folder.write("transient.toml", &queue(&format!("{SHORT}\ntransient = true"), 1, overload));
    let found = folder.run(&["simulate", "transient.toml", "--json"]).expect_code(0).json();
    assert_eq!(found["verdict"], "transient");
    // 4000 requests in two seconds, a thousand of them served by then: the last waits for two more.
    let mean = found["mean_s"].as_f64().expect("mean");
    assert!((mean - 1.0).abs() < 0.1, "{mean}");
    assert!((found["throughput_per_s"].as_f64().expect("throughput") - 1000.0).abs() < 10.0, "{found}");
    folder.run(&["simulate", "transient.toml"]).expect_code(0);
}

#[test]
fn examples_run() {
    let folder = Folder::new();
    let p99 = |name: &str| {
        let found = folder.run(&["simulate", &example(name), "--json"]).expect_code(0).json();
        assert_eq!(found["verdict"], "done", "{name}");
        assert!(found["tiers"].as_array().expect("tiers").len() == 3, "{name}");
        found["p99_s"].as_f64().expect("p99")
    };
    // Stable queues of about a millisecond each.
    for name in ["three-tier-orf", "three-tier-limited", "three-tier-round-robin", "fan-in"] {
        assert!((1e-3..1.0).contains(&p99(name)), "{name}");
    }
    let outcome = folder.run(&["simulate", &example("fan-in"), "--report", "page.html"]).expect_code(0);
    assert!(outcome.stdout.contains("archive"), "{}", outcome.stdout);
    assert!(folder.read("page.html").contains("end to end"));
}

#[test]
fn overload_is_said() {
    let folder = Folder::new();
    let over = MM1.replace("800/s", "1100/s");
    folder.write("q.toml", &queue(SHORT, 1, &over));
    let outcome = folder.run(&["simulate", "q.toml"]).expect_code(1);
    assert!(outcome.stdout.contains("unstable: grows without bound"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("'queue' gets 110.0 %"), "{}", outcome.stdout);
    let found = folder.run(&["simulate", "q.toml", "--json"]).expect_code(1).json();
    assert!(found["verdict"] == "unstable" && found["p99_s"].is_null(), "{found}");
    // The same with --load, and not below 1.
    folder.run(&["simulate", "q.toml", "--load", "0.5"]).expect_code(0);
    // Overload by a cost that no utilisation shows: each item takes its worker 1 ms more.
    let costly = queue("requests = 20000\nreplications = 4", 1, MM1);
    folder.write("c.toml", &costly.replace("workers = 1", "workers = 1\nswitch = \"1ms\""));
    let outcome = folder.run(&["simulate", "c.toml"]).expect_code(1);
    assert!(outcome.stdout.contains("unstable: grows without bound"), "{}", outcome.stdout);
}

#[test]
fn a_precision_is_reached_or_not() {
    let folder = Folder::new();
    let run = |relative: &str| {
        let precision = format!("precision = {{ of = \"p99\", relative = {relative} }}");
        folder.write("q.toml", &queue(&format!("{SHORT}\nreplications_max = 8\n{precision}"), 1, MM1));
        folder.run(&["simulate", "q.toml", "--json"])
    };
    assert_eq!(run("0.9").expect_code(0).json()["verdict"], "done");
    let found = run("0.0001").expect_code(1).json();
    assert!(found["verdict"] == "imprecise" && found["replications"] == 8, "{found}");
}

#[test]
fn clients_that_wait_and_traces_that_repeat() {
    let folder = Folder::new();
    // One client that thinks 1 ms and is served 1 ms: 500/s.
    let closed = "clients = 1\nthink = \"1ms\"\nservice = { queue = \"1ms\" }";
    folder.write("q.toml", &queue(SHORT, 1, closed));
    let found = folder.run(&["simulate", "q.toml", "--json"]).expect_code(0).json();
    assert!((found["throughput_per_s"].as_f64().unwrap() - 500.0).abs() < 0.5, "{found}");
    assert!((found["p99_s"].as_f64().unwrap() - 1e-3).abs() < 2e-6, "{found}");
    // Pairs every 10 ms: half of the requests wait 1 ms for the other.
    let lines = (0..20).map(|i| format!("{},0x1000,DiskRead\n", 10_000_000 * (i / 2)));
    folder.write("t.csv", &lines.collect::<String>());
    folder.write("q.toml", &queue(SHORT, 1, "trace = \"t.csv\"\nservice = { queue = \"1ms\" }"));
    let found = folder.run(&["simulate", "q.toml", "--json"]).expect_code(0).json();
    assert!((found["mean_s"].as_f64().unwrap() - 1.5e-3).abs() < 1e-6, "{found}");
}

#[test]
fn faults_say_where() {
    let folder = Folder::new();
    folder.write("empty.csv", "");
    for (text, parts) in [
        (queue(SHORT, 0, MM1), vec!["'queue'", "at least one worker"]),
        (queue("request = 5", 1, MM1), vec!["line 2", "request"]),
        (queue(SHORT, 1, "arrivals = \"poisson(5)\"\nservice = {}"), vec!["line 9", "column", "500/s"]),
        (queue(SHORT, 1, &MM1.replace("exp(1ms)", "exp(-1ms)")), vec!["line 10", "-1ms"]),
        (queue(SHORT, 1, &format!("{MM1}\ndelay = \"-1ms\"")), vec!["line 11", "-1ms"]),
        (queue(SHORT, 1, "arrivals = \"poisson(5/s)\"\nservice = {}"), vec!["entry 1", "'queue'"]),
        (queue(SHORT, 1, &MM1.replace("queue =", "que =")), vec!["entry 1", "'que'"]),
        (queue(SHORT, 1, "service = { queue = \"1ms\" }"), vec!["entry 1", "arrivals; trace"]),
        (queue(SHORT, 1, MM1).replace("fifo", "fife"), vec!["line 7", "fife", "round-robin"]),
        (queue(SHORT, u32::MAX, MM1), vec!["'queue'", "at most 100000 workers"]),
        (queue(SHORT, 1, MM1).replace("fifo", "priority(levels=4000000000)"), vec!["at most 1000 classes"]),
        (queue("load = nan", 1, MM1), vec!["expected a load above 0"]),
        (queue("load = 1e300", 1, MM1), vec!["at most 100"]),
        (queue(SHORT, 1, "clients = 0\nthink = \"1ms\"\nservice = { queue = \"1ms\" }"), vec!["clients"]),
        (queue("requests = 0", 1, MM1), vec!["at least one request"]),
        (queue(SHORT, 1, "trace = \"empty.csv\"\nservice = { queue = \"1ms\" }"), vec!["empty.csv"]),
        (queue(SHORT, 1, "trace = \"none.csv\"\nservice = { queue = \"1ms\" }"), vec!["none.csv"]),
        ("[[station]]\n".to_owned(), vec!["line 1", "name"]),
    ] {
        folder.write("bad.toml", &text);
        let outcome = folder.run(&["simulate", "bad.toml"]).expect_code(2);
        assert!(outcome.stderr.contains("bad.toml"), "{}", outcome.stderr);
        for part in parts {
            assert!(outcome.stderr.contains(part), "'{part}' is not in: {}", outcome.stderr);
        }
    }
    let missing = folder.run(&["simulate", "nowhere.toml"]).expect_code(2);
    assert!(missing.stderr.contains("nowhere.toml"), "{}", missing.stderr);
}

/// D/D/1 at load 1 serves every request at once; with random service it is unstable.
#[test]
fn a_full_station_without_chance_is_stable() {
    let folder = Folder::new();
    let entry = "arrivals = \"constant(1000/s)\"\nservice = { queue = \"1ms\" }\n";
    folder.write("full.toml", &queue("requests = 40000", 1, entry));
    let found = folder.run(&["simulate", "full.toml", "--json"]).expect_code(0).json();
    assert!(
        found["verdict"] == "done" && (found["p99_9_s"].as_f64().unwrap() / 1e-3 - 1.0).abs() < 0.004,
        "{found}"
    );
    folder.write("random.toml", &queue("requests = 40000", 1, &entry.replace("\"1ms\"", "\"exp(1ms)\"")));
    let found = folder.run(&["simulate", "random.toml", "--json"]).expect_code(1).json();
    assert_eq!(found["verdict"], "unstable", "{found}");
}

/// A warm-up that the scenario chooses too short is said to be; the default follows the load.
#[test]
fn a_warm_up_follows_the_load_or_is_said_to_be_short() {
    let folder = Folder::new();
    let near = MM1.replace("800/s", "990/s");
    folder.write("short.toml", &queue("requests = 2000\nwarm_up = 200\nreplications = 4", 1, &near));
    let found = folder.run(&["simulate", "short.toml", "--json"]).expect_code(0).json();
    assert!(found["message"].as_str().unwrap().contains("too short to tell"), "{found}");
    folder.write("chosen.toml", &queue("requests = 2000\nreplications = 4", 1, &near));
    let found = folder.run(&["simulate", "chosen.toml", "--json"]).expect_code(0).json();
    assert_eq!(found["message"], "done", "{found}");
}

#[test]
fn means_that_may_be_infinite_are_said() {
    let folder = Folder::new();
    let heavy = MM1.replace("exp(1ms)", "pareto(min=100us, shape=1.5)");
    folder.write("heavy.toml", &queue(SHORT, 1, &heavy));
    let found = folder.run(&["simulate", "heavy.toml", "--json"]).expect_code(0).json();
    assert!(found["message"].as_str().unwrap().contains("means may be infinite"), "{found}");
}
