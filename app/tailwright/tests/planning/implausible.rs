//! Input that is well formed and cannot be meant: refused with what was expected, or taken with what was assumed.

use crate::support::Folder;
use crate::support::cluster::Cluster;
use std::fs;
use std::process::Command;

const SCENARIO: &str = "[run]\nrequests = 100\n[[station]]\nname = \"queue\"\nworkers = 1\ndiscipline = \"fifo\"\n\
    [[entry]]\narrivals = \"poisson(500/s)\"\nservice = { queue = \"exp(1ms)\" }\n";

/// Runs commands that are refused, each with a part of what is said.
fn check_refused(folder: &Folder, rows: &[(&[&str], &str)]) {
    for (args, part) in rows {
        let outcome = folder.run(args).expect_code(2);
        assert!(outcome.stderr.contains(part), "{args:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
}

#[test]
fn numbers_beyond_all_measure_are_refused() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("scenario.toml", SCENARIO);
    folder.write("huge.toml", &folder.read("cluster.toml").replace("count = 2", "count = 4000000000"));
    folder.write("margin.toml", &format!("safety_margin = 1e308\n{}", folder.read("cluster.toml")));
    let flags = ["admit", "--slos", "slos.csv", "--storage", "ssd.json", "--network", "1Gbps"];
    check_refused(
        folder,
        &[
            (&["plan", "cluster.toml", "--safety-margin", "1e308"], "from 1 to 1000"),
            (&["plan", "margin.toml"], "safety_margin is 1"),
            (&["plan", "huge.toml"], "4000000000 servers"),
            (&[&flags[..], &["--max-servers", "4000000000"]].concat(), "4000000000 servers"),
            (
                &["simulate", "scenario.toml", "--set", "run.replications=100000000"],
                "at most 10000 replications",
            ),
            (
                &[
                    "simulate",
                    "scenario.toml",
                    "--set",
                    "run.replications=9",
                    "--set",
                    "run.replications_max=3",
                ],
                "at least replications, 9",
            ),
            (&["simulate", "scenario.toml", "--set", "run.requests=1e3"], "a whole number from 0"),
            (&["ideal", "--service", "1ms", "--arrivals", "poisson(1/s)", "--workers", "0"], "at least 1"),
            (&["lab", "cluster", "--duration", "0s", "--plan"], "above zero"),
            (
                &[
                    "trace",
                    "generate",
                    "poisson",
                    "--rate",
                    "5/s",
                    "--size",
                    "0B",
                    "--duration",
                    "1s",
                    "-o",
                    "x.csv",
                ],
                "at least 1B",
            ),
            (&["trace", "convert", "w0.csv", "-o", "x.csv", "--scale-time", "1e30"], "from 1e-9 to 1e9"),
        ],
    );
}

#[test]
fn names_and_percentiles_that_nobody_means_are_refused() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    let described = folder.read("cluster.toml");
    folder.write("empty.toml", &described.replace("\"w0\"", "\" \""));
    folder.write("lines.toml", &described.replace("\"w0\"", "\"a\\nb\""));
    folder.write("share.toml", &described.replace("99.9%", "0.999%"));
    folder.write("share.csv", &folder.read("slos.csv").replace(",99.9,", ",0.999,"));
    let flags = ["--storage", "ssd.json", "--network", "1Gbps", "--max-servers", "2"];
    check_refused(
        folder,
        &[
            (&["plan", "empty.toml"], "not empty"),
            (&["bound", "lines.toml"], "a name in one line"),
            (&["plan", "share.toml"], "a percentage such as 99.9"),
            (&[&["plan", "--slos", "share.csv"][..], &flags].concat(), "a percentage such as 99.9"),
        ],
    );
}

#[test]
fn what_does_not_belong_together_is_refused_or_said() {
    let cluster = Cluster::new(3, 3);
    let folder = &cluster.folder;
    folder.write("scenario.toml", SCENARIO);
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "observed.parquet"]);
    folder.write(
        "load.toml",
        "duration = \"0s\"\n[[workload]]\nname = \"w\"\ntarget = \"nbd://127.0.0.1:1/x\"\n\
         closed = { outstanding = 1, op = \"read\", size = \"4KiB\" }\n",
    );
    check_refused(
        folder,
        &[
            (&["verify", "policy.json", "observed.parquet", "./observed.parquet"], "given twice"),
            (&["simulate", "scenario.toml", "--cluster", "cluster.toml"], "for a policy"),
            (&["load", "load.toml"], "a time above zero"),
            (&["ideal", "--service", "1ms"], "--arrivals"),
        ],
    );
    // A workload of the cluster that the policy does not have is named.
    cluster.describe(&[0, 1], 3);
    folder.run(&["plan", "cluster.toml", "-o", "few.json"]).expect_code(0);
    cluster.describe(&[0, 1, 2], 3);
    let outcome = folder.run(&["simulate", "few.json", "--cluster", "cluster.toml"]);
    assert!(
        outcome.code < 2 && outcome.stderr.contains("workloads of the cluster: w2"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn policies_that_contradict_themselves_are_refused() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let policy: serde_json::Value = serde_json::from_str(&folder.read("policy.json")).expect("JSON");
    let mut elsewhere = policy.clone();
    elsewhere["workloads"][0]["server"] = "nowhere".into();
    let mut nothing = policy.clone();
    nothing["servers"] = serde_json::json!([]);
    for (name, changed) in [("elsewhere.json", elsewhere), ("nothing.json", nothing)] {
        folder.write(name, &changed.to_string());
        let outcome = folder.run(&["simulate", name, "--cluster", "cluster.toml"]).expect_code(2);
        assert!(outcome.stderr.contains("server"), "{name}: {}", outcome.stderr);
    }
    // What would be explained of a workload that the policy lacks is another plan.
    cluster.describe(&[0], 2);
    folder.run(&["plan", "cluster.toml", "-o", "few.json"]).expect_code(0);
    cluster.describe(&[0, 1], 2);
    let lacking = folder.run(&["explain", "w1", "cluster.toml", "--plan", "few.json"]).expect_code(2);
    assert!(lacking.stderr.contains("does not have workload 'w1'"), "{}", lacking.stderr);
}

#[test]
fn a_plan_that_its_inputs_have_outgrown_is_not_explained() {
    let cluster = Cluster::new(2, 1);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let larger = folder.read("w0.csv").replace(",0x0000", ",0x0010");
    folder.write("w0.csv", &larger);
    let outgrown = folder.run(&["explain", "w0", "cluster.toml", "--plan", "policy.json"]).expect_code(2);
    assert!(outgrown.stderr.contains("do not hold for these inputs"), "{}", outgrown.stderr);
    assert_eq!(outgrown.stdout, "");
}

#[test]
fn a_trace_of_one_request_is_warned_about_and_a_missing_one_says_whose_it_is() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    let trace = folder.read("w0.csv");
    let first: Vec<&str> = trace.lines().take(1).collect();
    folder.write("w0.csv", &(first.join("\n") + "\n"));
    // All at one instant is a rate that no server has, so that it may be refused as well.
    let outcome = folder.run(&["plan", "cluster.toml"]);
    assert!(outcome.code < 2 && outcome.stderr.contains("workload 'w0': all requests"), "{}", outcome.stderr);
    fs::remove_file(folder.join("w1.csv")).expect("it is ours");
    let outcome = folder.run(&["plan", "cluster.toml"]).expect_code(2);
    assert!(
        outcome.stderr.contains("workload 'w1'") && outcome.stderr.contains("w1.csv"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn who_arrives_twice_is_refused_in_the_headline_too() {
    let cluster = Cluster::new(2, 2);
    cluster.folder.write("events.txt", "arrive w0\narrive w0\n");
    let outcome = cluster.folder.run(&["admit", "cluster.toml", "--events", "events.txt"]).expect_code(1);
    assert!(outcome.stdout.contains("1 a second place while there"), "{}", outcome.stdout);
}

#[test]
fn what_is_empty_or_something_else_is_named_as_it_is() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("empty", "");
    fs::write(folder.join("binary"), [0xff, 0xfe, 0x00, 0x80]).expect("it is ours");
    fs::create_dir(folder.join("folder")).expect("it is ours");
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    folder.run(&["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "seen.parquet"]);
    check_refused(
        folder,
        &[
            (&["simulate", "empty"], "the scenario is empty"),
            (&["simulate", "binary"], "not UTF-8"),
            (&["simulate", "folder"], "found a folder"),
            (&["schedule", "bench", "folder"], "found a folder"),
            (&["admit", "cluster.toml", "--events", "empty"], "there are no events"),
            (&["verify", "w0.csv", "--slo", "w=99% < 1s"], "in Parquet"),
            (&["trace", "callgraph", "folder"], "name a file"),
            (&["trace", "callgraph", "binary"], "--span-format"),
            (&["trace", "split", "seen.parquet", "--by", "client", "-o", "parts"], "which clients"),
            (
                &["trace", "generate", "poisson", "--rate", "1e300/s", "--duration", "1s", "-o", "x.csv"],
                "1e9 requests",
            ),
            (&["trace", "convert", "w0.csv", "-o", "x.csv", "--scale-time", "0"], "found 0.0"),
            (&["ideal", "--arrivals", "poisson(1e300/s)", "--service", "1ms"], "more than 10000 times"),
            (&["reproduce", "--data", "missing"], "no such folder"),
            (&["apply", "policy.json", "--hosts", "x", "--state", "a", "--state", "b"], "multiple times"),
        ],
    );
    assert!(!folder.join("parts").exists() && !folder.join("x.csv").exists());
    let outcome = folder.run(&["trace", "convert", "w0.csv", "-o", "no/where.csv"]).expect_code(3);
    assert!(outcome.stderr.contains("cannot write the trace"), "{}", outcome.stderr);
}

/// What a command would ignore is refused, so that nobody believes it had an effect.
#[test]
fn options_without_an_effect_are_refused() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    check_refused(
        folder,
        &[
            (&["plan", "cluster.toml", "--coverage", "90%"], "--model calibrated"),
            (&["explain", "w0", "cluster.toml", "--horizon", "5min"], "--model calibrated"),
            (&["plan", "cluster.toml", "--order", "given", "--effort", "5"], "--effort and --time-budget"),
            (
                &["plan", "cluster.toml", "--method", "knee", "--time-budget", "5s"],
                "--effort and --time-budget",
            ),
            (&["plan", "cluster.toml", "--keep", "policy.json", "--effort", "5"], "cannot be used with"),
            (
                &["explain", "w0", "cluster.toml", "--plan", "policy.json", "--preemptive"],
                "cannot be used with",
            ),
            (&["reproduce", "--list", "--report", "x.html"], "cannot be used with"),
            (&["lab", "run", "--report", "x.html"], "required arguments"),
            (&["lab", "run", "policies", "--dry-run", "--report", "x.html"], "cannot be used with"),
            (&["lab", "cluster", "--dry-run", "--report", "x.html"], "cannot be used with"),
            (&["bound", "cluster.toml", "--percentile", "0.999"], "a percentage such as 99.9"),
            (
                &["trace", "generate", "poisson", "--rate", "9/s", "--duration", "0s", "-o", "x.csv"],
                "above zero",
            ),
        ],
    );
    assert!(!folder.join("x.html").exists());
}

#[test]
fn names_of_several_lines_are_refused_in_every_file() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let policy = folder.read("policy.json").replace("\"w0\"", "\"w\\n0\"");
    folder.write("policy.json", &policy);
    folder.write(
        "load.toml",
        "duration = \"1s\"\n[[workload]]\nname = \"a\\nb\"\ntarget = \"nbd://127.0.0.1:1/x\"\n\
         closed = { outstanding = 1, op = \"read\", size = \"4KiB\" }\n",
    );
    folder.write(
        "hosts.toml",
        "[[host]]\nname = \"h\"\ndevice.eth0 = \"1Gbps\"\n[[server]]\nname = \"ssd-1\"\nhost = \"h\"\n\
         address = [\"127.0.0.1\"]\n[[client]]\nworkload = \"a\\nb\"\nhost = \"h\"\naddress = [\"127.0.0.1\"]\n",
    );
    check_refused(
        folder,
        &[
            (&["simulate", "policy.json", "--cluster", "cluster.toml"], "a name in one line"),
            (&["load", "load.toml"], "a name in one line"),
            (
                &["proxy", "--hosts", "hosts.toml", "--server", "ssd-1", "--state", "state"],
                "a name in one line",
            ),
        ],
    );
}

#[test]
fn a_pipe_that_nobody_reads_is_refused() {
    let cluster = Cluster::new(2, 2);
    let pipe = cluster.folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let outcome = cluster.folder.run(&["plan", "cluster.toml", "-o", "pipe"]).expect_code(3);
    assert!(outcome.stderr.contains("nobody reads this pipe"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("w0"), "what was planned is printed: {}", outcome.stdout);
}

#[test]
fn lists_are_json_where_that_is_asked_for() {
    let folder = Folder::new();
    for args in [&["reproduce", "--list", "--json"][..], &["lab", "run", "--json"]] {
        let listed = folder.run(args).expect_code(0).json();
        assert!(listed["experiments"].as_array().is_some_and(|list| list.len() > 3), "{args:?}: {listed}");
    }
    let planned = folder.run(&["lab", "run", "fig-3.5", "--dry-run", "--json"]).expect_code(0).json();
    assert_eq!(planned["format"], "tailwright.lab-plan");
    let cases = planned["cases"].as_array().expect("cases");
    assert!(cases.iter().all(|case| case["workloads"][0]["slo"].is_string()), "{planned}");
    let planned = folder.run(&["lab", "cluster", "--dry-run", "--json"]).expect_code(0).json();
    assert!(planned["format"] == "tailwright.policy" && planned["workloads"].is_array(), "{planned}");
}

/// Models add and multiply the work of a trace; what they cannot count is refused before.
#[test]
fn work_beyond_all_measure_is_refused_by_every_model() {
    let cluster = Cluster::new(1, 1);
    let folder = &cluster.folder;
    folder.write("slow.toml", &folder.read("cluster.toml").replace("125MB/s", "0.001B/s"));
    folder.write("device.json", &folder.read("ssd.json").replace("100e6", "1e-300"));
    folder.write("device.toml", &folder.read("cluster.toml").replace("ssd.json", "device.json"));
    folder.write("huge.csv", "0,0xffffffffffffffff,DiskRead\n1000,0xffffffffffffffff,DiskRead\n");
    folder.write("huge.toml", &folder.read("cluster.toml").replace("w0.csv", "huge.csv"));
    for file in ["device.toml", "huge.toml"] {
        for model in ["worst-case", "probabilistic", "replayed"] {
            let args = [&["plan", file, "--model", model][..], &["bound", file, "--model", model]];
            for args in args {
                let outcome = folder.run(args).expect_code(2);
                assert!(
                    outcome.stderr.contains("more than 36 years: expected less"),
                    "{args:?}: {}",
                    outcome.stderr
                );
            }
        }
    }
    // Within a nanosecond, so that a window of seconds has a billion of its periods.
    folder.write("w0.csv", "0,0x00000200,DiskRead\n0,0x00000200,DiskRead\n1,0x00000200,DiskRead\n");
    for file in ["slow.toml", "cluster.toml"] {
        for model in ["worst-case", "probabilistic", "replayed"] {
            let outcome = folder.run(&["plan", file, "--model", model]).expect_code(1);
            assert!(outcome.stdout.contains("not admitted: w0"), "{file} {model}: {}", outcome.stdout);
        }
    }
}
