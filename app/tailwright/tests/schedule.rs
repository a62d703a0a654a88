//! `tailwright schedule`: real services under different schedulings, judged by comparison within a run.

mod support;

use serde_json::Value;
use std::process::Command;
use support::bench::{alone, has_two_cpus, number};
use support::{Folder, Outcome};
use testkit::Rounds;

fn demo(folder: &Folder, options: &[&str]) -> Outcome {
    folder.run(&[&["schedule", "demo", "--json"], options].concat())
}

/// The only run of a document.
fn only_run(outcome: Outcome) -> Value {
    let document = outcome.expect_code(0).json();
    assert_eq!(document["format"], "tailwright.schedule");
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1, "{document}");
    runs[0].clone()
}

fn mode<'a>(run: &'a Value, name: &str) -> &'a Value {
    let modes = run["modes"].as_array().expect("modes");
    modes.iter().find(|mode| mode["mode"] == name).unwrap_or_else(|| panic!("no mode {name}: {run}"))
}

#[test]
fn every_mode_answers_the_same_requests_and_has_a_prediction() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    let modes = "fair,fcfs,limited,orf-admission";
    let run = only_run(demo(&folder, &["--duration", "500ms", "--repetitions", "2", "--modes", modes]));
    assert_eq!(
        (&run["repetitions"], &run["stopped"], &run["age_by"]),
        (&2.into(), &false.into(), &"orf-admission".into())
    );
    let requests = &mode(&run, "fair")["requests"];
    for (name, c) in
        [("fair", Value::Null), ("fcfs", 1.into()), ("limited", 3.into()), ("orf-admission", 3.into())]
    {
        let mode = mode(&run, name);
        assert_eq!((&mode["requests"], &mode["answered"], &mode["c"]), (requests, requests, &c), "{name}");
        assert_eq!(mode["failed"], 0);
        for figure in ["p50_s", "p99_s", "mean_s", "reordering_pct", "throughput_per_s", "simulated_p99_s"] {
            assert!(number(&mode[figure]) > 0.0, "{name} {figure}: {mode}");
        }
        assert!(number(&mode["p50_s"]) <= number(&mode["p99_s"]));
        assert_eq!(mode["plays"].as_array().map(Vec::len), Some(2));
    }
    for gain in ["mean_gain", "p50_gain", "p99_gain"] {
        let total = &run[gain]["total"];
        let cap = &run[gain]["cap"];
        let age = &run[gain]["age"];
        let product = number(&cap["ratio"]) * number(&age["ratio"]);
        assert!((product / number(&total["ratio"]) - 1.0).abs() < 1e-6, "{}", run[gain]);
        for part in [total, cap, age] {
            let high = part["high"].as_f64().unwrap_or(f64::INFINITY);
            let claims = number(&part["low"]) > 1.0 || high < 1.0;
            assert_eq!(claims, part["verdict"] != "not_shown", "{part}");
        }
    }
}

#[test]
fn one_at_once_is_first_come_first_served_and_no_limit_a_thread_per_request() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    let common = [
        "--topology",
        "chain",
        "--duration",
        "1500ms",
        "--repetitions",
        "1",
        "--modes",
        "fair,fcfs,orf-admission",
    ];
    // Whatever else the machine does, sharing lets many more requests overtake others than order of arrival does.
    let overtaken = |c: &str| {
        let run = only_run(demo(&folder, &[&common[..], &["-c", c]].concat()));
        ["fair", "fcfs", "orf-admission"].map(|name| number(&mode(&run, name)["overtaken_pct"]))
    };
    Rounds { count: 3, must_hold: 2 }.check(|| {
        let ([fair, fcfs, one], [fair_too, fcfs_too, all]) = (overtaken("1"), overtaken("inf"));
        let is_like_fcfs = (one - fcfs).abs() < (one - fair).abs();
        let is_like_fair = (all - fair_too).abs() < (all - fcfs_too).abs();
        if is_like_fcfs && is_like_fair {
            return Ok(());
        }
        Err(format!("1: {one} between {fcfs} and {fair}; inf: {all} between {fcfs_too} and {fair_too}"))
    });
}

#[test]
fn what_runs_is_older_where_age_decides() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    Rounds { count: 3, must_hold: 2 }.check(|| {
        let run = only_run(demo(
            &folder,
            &["--duration", "1500ms", "--repetitions", "1", "--modes", "fair,limited,orf-admission"],
        ));
        let [fair, limited, oldest] =
            ["fair", "limited", "orf-admission"].map(|name| number(&mode(&run, name)["not_among_oldest"][1]));
        if oldest < limited && oldest < fair {
            return Ok(());
        }
        Err(format!("not among the oldest: fair {fair}, limited {limited}, oldest first {oldest}"))
    });
}

#[test]
fn an_ordinary_user_gets_what_takes_no_right() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let setpriv =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"];
    let may = Command::new("setpriv").args(setpriv).arg("true").status().is_ok_and(|status| status.success());
    if !may {
        return testkit::skip("needs root and setpriv to become an ordinary user");
    }
    let folder = Folder::new();
    // The folder of the build may be closed to others.
    let program = folder.join("tailwright");
    std::fs::copy(env!("CARGO_BIN_EXE_tailwright"), &program).expect("it can be copied");
    let options = [
        "schedule",
        "demo",
        "--json",
        "--duration",
        "300ms",
        "--repetitions",
        "1",
        "--modes",
        "fair,rr,limited,orf",
    ];
    let output = Command::new("setpriv").args(setpriv).arg("--").arg(&program).args(options).output();
    let output = output.expect("setpriv starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let run = &document["runs"][0];
    let left_out = run["left_out"].as_array().expect("a list");
    let why =
        |name: &str| left_out.iter().find(|left| left["mode"] == name).map(|left| left["why"].to_string());
    assert!(why("rr").is_some_and(|why| why.contains("ulimit -r")), "{run}");
    assert!(said.contains("rr is left out"), "{said}");
    // Who cannot be promoted again is not demoted: age decides about admission only, unless a limit allows it.
    let age_by = if why("orf").is_some() { "orf-admission" } else { "orf" };
    assert_eq!(run["age_by"], age_by);
    assert_eq!(mode(run, age_by)["answered"], mode(run, "fair")["requests"]);
    assert!(run["p99_gain"].is_object(), "{run}");
}

#[test]
fn examples_are_for_simulate_as_well() {
    let folder = Folder::new();
    for name in ["schedule-chain", "schedule-fan-in", "schedule-laws", "schedule-deadlines"] {
        let file = format!("{}/../../examples/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        folder
            .run(&["simulate", &file, "--set", "run.requests=2000", "--load", "0.5", "--json"])
            .expect_code(0);
        if has_two_cpus() {
            let _alone = alone();
            let short = [
                "--duration",
                "200ms",
                "--repetitions",
                "1",
                "--modes",
                "fcfs",
                "--load",
                "0.3,0.5",
                "--json",
            ];
            let document =
                folder.run(&[&["schedule", "bench", &file], &short[..]].concat()).expect_code(0).json();
            let loads: Vec<&Value> = document["runs"]
                .as_array()
                .expect("runs")
                .iter()
                .map(|run| &run["choices"]["load"])
                .collect();
            assert_eq!(loads[..2], ["0.3", "0.5"]);
        }
    }
}

/// The figures of a class under a mode.
fn class<'a>(run: &'a Value, name: &str, class: &str) -> &'a Value {
    let classes = mode(run, name)["classes"].as_array().expect("classes");
    classes.iter().find(|found| found["class"] == class).unwrap_or_else(|| panic!("no class {class}: {run}"))
}

#[test]
fn each_class_says_how_many_are_late() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    let modes = "fair,orf-admission,deadline-admission,deadline";
    let options =
        ["--topology", "two-classes", "--duration", "500ms", "--repetitions", "2", "--modes", modes];
    let outcome = folder.run(&[&["schedule", "demo"], &options[..], &["--json"]].concat());
    let run = only_run(outcome);
    // Where nobody may be preempted, what only admits by deadline is there.
    for name in ["fair", "orf-admission", "deadline-admission"] {
        let played = mode(&run, name);
        let mut requests = 0.0;
        for (of, slo_s) in [("interactive", 0.075), ("batch", 0.75)] {
            let measured = class(&run, name, of);
            assert_eq!(measured["slo_s"], slo_s, "{measured}");
            assert!((0.0..=100.0).contains(&number(&measured["late_pct"])), "{measured}");
            assert!(number(&measured["mean_s"]) <= number(&measured["p99_s"]), "{measured}");
            requests += number(&measured["requests"]);
        }
        assert_eq!(requests, number(&played["requests"]), "{played}");
        let simulated = played["simulated"]["classes"].as_array().expect("classes");
        assert!(simulated.iter().all(|class| class["late_pct"].is_number()), "{played}");
    }
    let text = folder.run(&[
        "schedule",
        "demo",
        "--topology",
        "two-classes",
        "--duration",
        "300ms",
        "--repetitions",
        "1",
        "--modes",
        "fair,deadline-admission",
    ]);
    let text = text.expect_code(0).stdout;
    let is_row = |line: &&str| {
        line.starts_with("deadline-adm") && line.contains("interactive") && line.contains("75ms")
    };
    assert!(text.lines().any(|line| is_row(&line)), "{text}");
}

#[test]
fn urgent_requests_wait_less_by_deadline_than_by_age() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    let modes = "orf-admission,deadline-admission";
    let options =
        ["--topology", "two-classes", "-c", "1", "--duration", "2s", "--repetitions", "1", "--modes", modes];
    Rounds { count: 3, must_hold: 2 }.check(|| {
        let run = only_run(demo(&folder, &options));
        let urgent = |name: &str| class(&run, name, "interactive")["mean_s"].as_f64().expect("answers");
        let [oldest, deadline] = ["orf-admission", "deadline-admission"].map(urgent);
        if deadline < oldest { Ok(()) } else { Err(format!("by age {oldest}, by deadline {deadline}")) }
    });
}

/// More than the tier can do, so that whoever goes last waits ever longer; and two entries, of which one has a skewed clock.
const TWO_CLOCKS: &str = "[run]\ntransient = true\n\
    [[class]]\nname = \"right\"\nslo = \"1h\"\n[[class]]\nname = \"skewed\"\nslo = \"1h\"\n\
    [[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"orf(c=1, slice=1ms, entrance=wait)\"\n\
    [[entry]]\nname = \"right\"\nclass = \"right\"\narrivals = \"constant(120/s)\"\nservice = { a = \"5ms\" }\n\
    [[entry]]\nname = \"skewed\"\nclass = \"skewed\"\narrivals = \"constant(120/s)\"\nservice = { a = \"5ms\" }\n\
    [[vary]]\nname = \"skew\"\nset = \"entry.skewed.skew\"\nvalues = [\"-20min\", \"900ms\"]\n";

#[test]
fn the_clock_of_an_entry_decides_who_goes_first_and_not_how_long_it_took() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let folder = Folder::new();
    folder.write("clocks.toml", TWO_CLOCKS);
    let options = ["--duration", "1s", "--repetitions", "1", "--modes", "orf-admission", "--json"];
    let outcome = folder.run(&[&["schedule", "bench", "clocks.toml"], &options[..]].concat());
    let document = outcome.expect_code(0).json();
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2, "{document}");
    for (run, (skew, first, last)) in
        runs.iter().zip([("-20min", "skewed", "right"), ("900ms", "right", "skewed")])
    {
        assert_eq!(run["choices"]["skew"], skew);
        let mean = |of: &str| number(&class(run, "orf-admission", of)["mean_s"]);
        assert!(mean(first) < mean(last), "{skew}: {run}");
        let played = mode(run, "orf-admission");
        let simulated = played["simulated"]["classes"].as_array().expect("classes");
        let simulated = |of: &str| {
            let found = simulated.iter().find(|class| class["class"] == of).expect("the class is there");
            number(&found["mean_s"])
        };
        assert!(simulated(first) < simulated(last), "{skew}: {played}");
        // Between the work and the skew: by the skewed clock these would be twenty minutes or less than nothing.
        assert!((0.0025..1200.0).contains(&mean("skewed")), "{skew}: {run}");
        // Those that go first entered later than some that wait.
        assert!(number(&played["not_among_oldest"][0]) > 0.3, "{skew}: {played}");
    }
    let refused = folder.run(&["schedule", "bench", "clocks.toml", "--set", "entry.right.skew=2s"]);
    let said = refused.expect_code(2).stderr;
    assert!(said.contains("an entry whose clock is 2s ahead") && said.contains("-30min to 1s"), "{said}");
}

#[test]
fn without_slos_the_modes_by_deadline_are_left_out_and_named() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let file = format!("{}/../../examples/scenarios/schedule-chain.toml", env!("CARGO_MANIFEST_DIR"));
    let options = ["--duration", "50ms", "--repetitions", "1", "--load", "0.3", "--json"];
    let outcome = Folder::new().run(&[&["schedule", "bench", &file], &options[..]].concat());
    assert!(outcome.stderr.contains("deadline is left out: no deadlines"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("are beyond p99, 0 beyond p99.9"), "{}", outcome.stderr);
    let run = only_run(outcome);
    let left_out = run["left_out"].as_array().expect("a list");
    for name in ["deadline", "deadline-admission"] {
        let why = left_out.iter().find(|left| left["mode"] == name).map(|left| left["why"].to_string());
        assert!(why.is_some_and(|why| why.contains("no [[class]] with an slo")), "{name}: {run}");
    }
    assert_eq!(mode(&run, "fair")["classes"], Value::Array(Vec::new()));
    let chain = demo(&Folder::new(), &["--topology", "chain", "--modes", "fair,deadline"]).expect_code(2);
    assert!(chain.stderr.contains("'deadline': no deadlines"), "{}", chain.stderr);
}

#[test]
fn recorded_calls_are_played_by_tiers_of_several_services() {
    if !has_two_cpus() {
        return;
    }
    let _alone = alone();
    let file = format!("{}/../../examples/scenarios/replay.toml", env!("CARGO_MANIFEST_DIR"));
    let options = [
        "--duration",
        "400ms",
        "--repetitions",
        "1",
        "--modes",
        "fair,limited",
        "--cpus",
        "2",
        "--load",
        "0.6",
        "--json",
    ];
    let document =
        Folder::new().run(&[&["schedule", "bench", &file], &options[..]].concat()).expect_code(0).json();
    for run in document["runs"].as_array().expect("runs") {
        let tiers = run["tiers"].as_array().expect("tiers");
        let is_several = |tier: &Value| tier["name"].as_str().is_some_and(|name| name.contains('+'));
        assert!(tiers.len() == 2 && tiers.iter().any(is_several), "{run}");
        let fair = mode(run, "fair");
        assert!(fair["answered"] == fair["requests"] && number(&fair["answered"]) > 0.0, "{fair}");
    }
}

#[test]
fn requests_of_a_real_system_are_played() {
    let Some(data) = testkit::shared("data/microservices") else { return };
    if !has_two_cpus() {
        return;
    }
    let folder = Folder::new();
    let _alone = alone();
    let spans = data.join("media_load25.spans.csv.gz");
    let file = format!(
        "[run]\nload = 0.5\n[call_graph]\nspans = \"{}\"\nworkers = 1\ndiscipline = \"fifo\"\n\
        [[entry]]\narrivals = \"poisson(20/s)\"\n",
        spans.display()
    );
    folder.write("media.toml", &file);
    let options =
        ["--cpus", "2", "--duration", "500ms", "--repetitions", "1", "--modes", "limited", "--json"];
    let run = only_run(folder.run(&[&["schedule", "bench", "media.toml"], &options[..]].concat()));
    let limited = mode(&run, "limited");
    assert!(limited["answered"] == limited["requests"], "{limited}");
    assert!(number(&limited["simulated_p99_s"]) > 0.0);
}

const TIERS: &str = "[[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"fifo\"\n";

#[test]
fn what_cannot_be_played_says_why_and_what_to_do() {
    let folder = Folder::new();
    let entry = "[[entry]]\narrivals = \"poisson(100/s)\"\nservice = { a = \"exp(1ms)\" }\n";
    folder.write("good.toml", &format!("{TIERS}{entry}"));
    let classes = "[[class]]\nname = \"web\"\nslo = \"50ms\"\n[[class]]\nname = \"batch\"\n";
    folder.write("half.toml", &format!("{TIERS}{classes}{entry}class = \"web\"\n"));
    folder.write("wide.toml", &format!("{}{entry}", TIERS.replace("workers = 1", "workers = 5000")));
    folder.write(
        "closed.toml",
        &format!("{TIERS}[[entry]]\nclients = 2\nthink = \"1ms\"\nservice = {{ a = \"1ms\" }}\n"),
    );
    let server = "[server]\nprofile = { bandwidthTable = [{ requestSize = 4096, readBandwidth = 1e7, writeBandwidth = 5e6 }] }\n\
        network = \"1MB/s\"\ndiscipline = \"none\"\n[[workload]]\nname = \"w\"\nclients = 1\nsize = \"4KiB\"\nop = \"read\"\n";
    folder.write("server.toml", server);
    folder.write("none.toml", &format!("{TIERS}{}", entry.replace("100/s", "1/h")));
    for (options, code, parts) in [
        (&["good.toml", "--load", "1.2"][..], 2, ["unstable: tier 'a'", "--load below 1"]),
        (&["good.toml", "--modes", "cfs"], 2, ["orf-admission", "--modes"]),
        (&["good.toml", "--modes", "fair,fair"], 2, ["'fair' is there twice", ""]),
        (
            &["good.toml", "--modes", "fair,deadline"],
            2,
            [
                "'deadline': no deadlines: the scenario has no [[class]] with an slo",
                "give every [[class]] an slo",
            ],
        ),
        (
            &["half.toml", "--modes", "deadline-admission"],
            2,
            ["'deadline-admission': no deadlines: class 'batch' has no slo", "hint"],
        ),
        (
            &["half.toml", "--set", "class.web.slo=0s"],
            2,
            ["class 'web': slo", "more than zero, and at most a day"],
        ),
        (&["half.toml", "--set", "class.web.slo=48h"], 2, ["class 'web': slo", "an SLO of 172800s"]),
        (&["half.toml", "--set", "entry.0.class=wbe"], 2, ["no [[class]] has the name 'wbe'", "web, batch"]),
        (&["half.toml", "--set", "station.a.discipline=edf"], 2, ["'batch' with an slo", ""]),
        (&["half.toml", "--set", "slos=no.json"], 2, ["no.json: cannot read the policy", ""]),
        (&["good.toml", "-c", "0"], 2, ["a number from 1, or inf", ""]),
        (&["good.toml", "--duration", "0s"], 2, ["1ms to a day", "hint"]),
        (&["good.toml", "--set", "station.b.workers=1"], 2, ["no element 'b'", ""]),
        (&["server.toml"], 2, ["storage server", "[[station]]"]),
        (&["absent.toml"], 2, ["absent.toml", "hint"]),
        (&["wide.toml"], 3, ["need 5000 CPUs", "taskset"]),
        (&["closed.toml"], 2, ["clients that wait", "hint"]),
        (&["none.toml", "--duration", "10ms"], 2, ["no request arrives", "longer --duration"]),
    ] {
        let outcome = folder.run(&[&["schedule", "bench"], options].concat()).expect_code(code);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{options:?}: {part}: {}", outcome.stderr);
        }
        assert!(!outcome.stderr.contains("runs of"), "{options:?}: announced first: {}", outcome.stderr);
    }
}

#[test]
fn a_kernel_without_sched_ext_is_said_and_nothing_changes() {
    let folder = Folder::new();
    // Bad input is the first to be said, whatever the machine has.
    for (verb, option, value) in [
        ("run", "-c", "0"),
        ("set", "-c", "0"),
        ("run", "--untagged", "150%"),
        ("set", "--patience", "60s"),
        ("run", "--watchdog", "3s"),
        ("run", "--partition", "3-2"),
        ("run", "--cgroup", "/nowhere"),
        ("run", "--cgroup", "/proc"),
        ("run", "--outside", "0.5"),
    ] {
        let refused = folder.run(&["schedule", "kernel", verb, option, value]).expect_code(2);
        assert!(refused.stdout.is_empty() && !refused.stderr.is_empty(), "{verb} {option} {value}");
    }
    let refused = folder.run(&["schedule", "kernel", "run", "--cgroup", "/proc"]).expect_code(2);
    assert!(refused.stderr.contains("/proc: not a folder of cgroup v2"), "{}", refused.stderr);
    assert!(refused.stderr.contains("such as /sys/fs/cgroup/system.slice"), "{}", refused.stderr);
    // As it is given, not as it is rounded.
    for share in ["0.9001", "0.0006"] {
        let run = ["schedule", "kernel", "run", "--cgroup", "/proc", "--outside", share];
        let refused = folder.run(&run).expect_code(2);
        let said = format!("--outside {share}: expected a share between 0.001 and 0.9");
        assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    }
    if std::path::Path::new("/sys/kernel/sched_ext/state").exists() {
        return testkit::skip("this kernel has sched_ext");
    }
    for share in ["10%", "0.1"] {
        let refused = folder.run(&["schedule", "kernel", "run", "--untagged", share]).expect_code(3);
        for said in ["has no sched_ext", "Linux 7.3 of Debian's trixie-backports"] {
            assert!(refused.stderr.contains(said), "{share}: {}", refused.stderr);
        }
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
    let refused = folder.run(&["schedule", "kernel", "run", "--partition", "0"]).expect_code(3);
    assert!(refused.stderr.contains("has no sched_ext"), "{}", refused.stderr);
    assert!(!std::path::Path::new("/sys/fs/cgroup/tailwright").exists());
    for args in [&["set", "-c", "2"][..], &["show", "--json"]] {
        let refused = folder.run(&[&["schedule", "kernel"], args].concat()).expect_code(3);
        assert!(refused.stderr.contains("schedule kernel run` starts one"), "{}", refused.stderr);
    }
}
