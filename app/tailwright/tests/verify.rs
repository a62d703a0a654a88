//! `tailwright verify`: verdicts on observations whose truth is known.

mod support;

use model::{Observation, Observations, Op, RequestOutcome};
use support::Folder;
use units::{Bytes, Nanos};

/// Requests of 4 KiB every millisecond; `latency_us` is that of the n-th, none when there is no answer.
fn stream(workload: u32, count: u64, latency_us: impl Fn(u64) -> Option<u64>) -> Vec<Observation> {
    let one = |n: u64| {
        let intended = Nanos(n * 1_000_000);
        let done = |us| RequestOutcome::Done(intended + Nanos(us * 1000));
        let outcome = latency_us(n).map_or(RequestOutcome::Lost, done);
        Observation { workload, op: Op::Read, size: Bytes(4096), intended, sent: intended, outcome }
    };
    (0..count).map(one).collect()
}

fn write(folder: &Folder, name: &str, workloads: &[&str], mut requests: Vec<Observation>) {
    requests.sort_by_key(|at| at.intended);
    let workloads = workloads.iter().map(|name| (*name).to_owned()).collect();
    let all = Observations { workloads, requests, ..Observations::default() };
    trace::observations::write(&folder.join(name), &all).expect("the folder is ours");
}

/// Steady latencies of 1 to 10 ms, uniform and without clusters: 7919 and 10000 share no factor.
fn uniform(n: u64) -> Option<u64> {
    Some(1000 + n * 7919 % 10_000 * 9 / 10)
}

const POLICY: &str = r#"{
  "format": "tailwright-policy-1", "policy_name": "by hand",
  "servers": [{ "name": "s", "class": "ssd", "network_bytes_per_s": 1e8, "storage_profile": "ssd" }],
  "workloads": [
    { "name": "web", "admitted": true, "server": "s", "priority": 0, "slo": "99% < 20ms", "slo_percentile": 99,
      "slo_s": 0.02, "bound_s": 0.012, "limits": [
      { "stage": "network-in", "rate": 0.01, "burst": 0.01, "rate_per_s": 1e6, "burst_work": 1e6 },
      { "stage": "storage", "rate": 0.45, "burst": 0.01, "rate_per_s": 0.45, "burst_work": 0.01 },
      { "stage": "network-out", "rate": 0.06, "burst": 0.0001, "rate_per_s": 6e6, "burst_work": 10000 } ] },
    { "name": "batch", "admitted": false, "server": null, "priority": null, "slo": "99% < 1ms",
      "slo_percentile": 99, "slo_s": 0.001, "bound_s": null, "limits": [] }
  ]
}"#;

const PROFILE: &str =
    r#"{ "bandwidthTable": [{ "requestSize": 4096, "readBandwidth": 1e7, "writeBandwidth": 5e6 }] }"#;

#[test]
fn met_not_met_and_too_few() {
    let folder = Folder::new();
    write(&folder, "o.parquet", &["web"], stream(0, 20_000, uniform));
    for (slo, code, verdict) in [
        ("web=99% < 20ms", 0, "met"),
        ("web=90% < 5ms", 1, "not_met"),
        ("web=99.999% < 20ms", 1, "too_few"),
        ("web=100% < 20ms", 1, "too_few"),
    ] {
        let found = folder.run(&["verify", "o.parquet", "--slo", slo, "--json"]).expect_code(code).json();
        let web = &found["workloads"][0];
        assert!(web["verdict"] == verdict && web["name"] == "web" && web["policy"].is_null(), "{slo}: {web}");
        for field in ["slo_s", "percentile", "measured_s", "ci_low_s"] {
            assert!(web[field].is_f64(), "{field}: {web}");
        }
        assert_eq!(web["ci_high_s"].is_null(), verdict == "too_few");
    }
    let asked = folder.run(&["verify", "o.parquet", "--slo", "web=99.999% < 20ms", "--json"]).json();
    let web = &asked["workloads"][0];
    // −ln 0.025 ÷ 10⁻⁵, and a request each millisecond.
    let needed = web["needed_requests"].as_f64().expect("a number");
    assert!((360_000.0..380_000.0).contains(&needed), "{web}");
    assert!((web["needed_s"].as_f64().expect("a time") * 1000.0 - needed).abs() < 1.0, "{web}");
}

#[test]
fn windows_that_are_too_short_for_the_run_are_refused() {
    let folder = Folder::new();
    write(&folder, "o.parquet", &["web"], stream(0, 20_000, uniform));
    let with_window =
        |window: &str| folder.run(&["verify", "o.parquet", "--slo", "web=99% < 20ms", "--window", window]);
    for window in ["1ns", "1us"] {
        let refused = with_window(window).expect_code(2);
        assert!(refused.stderr.contains("expected 100000 at most"), "{}", refused.stderr);
    }
    with_window("1ms").expect_code(0);
}

#[test]
fn what_got_no_answer_took_for_ever() {
    let folder = Folder::new();
    let lossy = |n: u64| if n.is_multiple_of(50) { None } else { uniform(n) };
    let mut requests = stream(0, 20_000, lossy);
    requests[1].outcome = RequestOutcome::Failed(Nanos(2_000_000));
    write(&folder, "o.parquet", &["web"], requests);
    let found = folder.run(&["verify", "o.parquet", "--slo", "web=99% < 1h", "--json"]).expect_code(1).json();
    let web = &found["workloads"][0];
    assert!(web["verdict"] == "not_met" && web["measured_s"].is_null(), "{web}");
    assert_eq!(
        [&web["over"], &web["lost"], &web["failed"]].map(serde_json::Value::as_u64),
        [Some(401), Some(400), Some(1)]
    );
}

#[test]
fn limits_and_the_bound_within_them() {
    let folder = Folder::new();
    folder.write("policy.json", POLICY);
    folder.write("ssd.json", PROFILE);
    // 1 ms of 4 KiB reads is 4.7 MB/s out of the server and 41 % of the device. At 10 s come 5 requests at once.
    let mut requests = stream(0, 20_000, |n| Some(if n == 100 || n == 10_003 { 15_000 } else { 2000 }));
    for request in &mut requests[10_000..10_005] {
        (request.intended, request.sent) = (Nanos(10_000_000_000), Nanos(10_000_000_000));
    }
    write(&folder, "o.parquet", &["web"], requests);
    let args =
        ["verify", "policy.json", "o.parquet", "--storage", "ssd.json", "--json", "--report", "p.html"];
    let found = folder.run(&args).expect_code(0).json();
    let web = &found["workloads"][0];
    assert!(web["kept_limits"] == false && web["policy"] == "by hand", "{web}");
    let kept: Vec<_> =
        web["limits"].as_array().expect("limits").iter().map(|at| at["kept"].as_bool()).collect();
    assert_eq!(kept, [Some(true), Some(true), Some(false)]);
    let out = &web["limits"][2];
    // 5 × 4705.6 bytes, less what was drained: nothing within one instant.
    assert!((out["needed_burst"].as_f64().expect("bytes") - 23_528.0).abs() < 1.0, "{out}");
    assert!(out["first_over_s"] == 10.0 && out["periods"].as_array().expect("periods").len() == 1, "{out}");
    // Both slow requests are beyond 12 ms. The second is the fourth of five at once, and two fit into the burst.
    let bound = &web["bound"];
    assert_eq!(
        [&bound["beyond"], &bound["beyond_within_limits"]].map(serde_json::Value::as_u64),
        [Some(2), Some(1)]
    );
    // The refused workload was not observed, and does not count.
    assert_eq!(
        (found["workloads"][1]["requests"].as_u64(), found["verdict"].as_str()),
        (Some(0), Some("met"))
    );
    assert!(folder.read("p.html").contains("Who was over which limit"));
    let bare = folder.run(&["verify", "policy.json", "o.parquet"]).expect_code(0);
    assert!(
        bare.stderr.contains("--storage") && bare.stdout.contains("10s") && bare.stderr.contains("batch")
    );
}

/// Two requests of 4705.6 bytes on the link fill the burst when they are sent together, a millisecond late.
#[test]
fn who_kept_to_limits_until_sending_is_not_said_to_have_kept_to_them() {
    let folder = Folder::new();
    // The second is sent at once: the bucket has had no time to drain, and is over by less than four digits show.
    let policy = POLICY.replace("\"burst\": 0.0001,", "\"burst\": 0.00009411,");
    let policy = policy.replace("\"burst_work\": 10000 }", "\"burst_work\": 9411 }");
    folder.write("policy.json", &policy);
    folder.write("ssd.json", PROFILE);
    let mut requests = stream(0, 20_000, |n| Some(if n == 5000 { 15_000 } else { 2000 }));
    requests[5000].sent = requests[5001].sent;
    write(&folder, "o.parquet", &["web"], requests);
    let args = ["verify", "policy.json", "o.parquet", "--storage", "ssd.json"];
    let shown = folder.run(&args).expect_code(0).stdout;
    assert!(shown.contains("not as sent"), "{shown}");
    assert!(shown.contains("did not as it was sent"), "{shown}");
    assert!(!shown.contains("whose traffic kept to their limits"), "{shown}");
    let over = shown.lines().find(|line| line.contains("sent  ") && line.contains("network-out"));
    assert!(over.is_some_and(|line| line.contains("9.411kB + ")), "{shown}");
    let found = folder.run(&[&args[..], &["--json"]].concat()).expect_code(0).json();
    let web = &found["workloads"][0];
    assert!(web["kept_limits"] == true && web["kept_limits_sent"] == false, "{web}");
    assert!(web["bound"]["beyond"] == 1 && web["bound"]["broken"] == 0, "{web}");
}

/// A request beyond a bound says why it does not break it.
#[test]
fn a_request_beyond_a_bound_of_who_kept_to_limits_is_explained() {
    let folder = Folder::new();
    folder.write("policy.json", POLICY);
    folder.write("ssd.json", PROFILE);
    write(&folder, "o.parquet", &["web"], stream(0, 20_000, |n| Some(if n == 100 { 15_000 } else { 2000 })));
    let shown = folder.run(&["verify", "policy.json", "o.parquet", "--storage", "ssd.json"]).expect_code(0);
    let expected = "1 request beyond the bounds of 1 workload whose traffic kept to their limits: 1 of bounds that are not \
                    about every request.";
    assert!(shown.stdout.contains(expected), "{}", shown.stdout);
}

#[test]
fn who_is_promised_and_who_is_observed() {
    let folder = Folder::new();
    folder.write("policy.json", POLICY);
    let two = [stream(0, 500, uniform), stream(1, 500, uniform)].concat();
    write(&folder, "o.parquet", &["other", "batch"], two);
    let outcome = folder.run(&["verify", "policy.json", "o.parquet"]).expect_code(1);
    assert!(outcome.stderr.contains("not observed: web"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("(not met)") && outcome.stdout.contains("without an SLO:"));
    let found = folder.run(&["verify", "policy.json", "o.parquet", "--json"]).expect_code(1).json();
    let [web, batch] = [0, 1].map(|at| &found["workloads"][at]);
    assert!(web["verdict"] == "too_few" && web["requests"] == 0 && web["needed_requests"].is_u64(), "{web}");
    assert!(batch["verdict"] == "not_met" && batch["admitted"] == false, "{batch}");
    assert!(found["unjudged"][0]["name"] == "other" && found["unjudged"][0]["requests"] == 500);
    // An SLO of one's own goes before that of the policy, and is asked for.
    let args =
        ["verify", "policy.json", "o.parquet", "--slo", "web=50% < 1s", "--slo", "batch=50% < 1s", "--json"];
    let found = folder.run(&args).expect_code(1).json();
    assert!(found["workloads"][1]["verdict"] == "met" && found["workloads"][1]["admitted"] == true);
}

#[test]
fn observations_of_nothing_that_is_judged_are_bad_input() {
    let folder = Folder::new();
    folder.write("policy.json", POLICY);
    write(&folder, "other.parquet", &["mail"], stream(0, 500, uniform));
    write(&folder, "part.parquet", &["web", "Batch"], stream(0, 5000, uniform));
    folder.write(
        "load.toml",
        "duration = \"1s\"\n[[workload]]\nname = \"wep\"\ntarget = \"echo://127.0.0.1:1\"\n\
        arrivals = \"poisson(10/s)\"\nsize = \"1KiB\"\n",
    );
    for (args, parts) in [
        (&["policy.json", "other.parquet"][..], &["the policy has web, batch", "observed were mail"][..]),
        (&["policy.json", "other.parquet", "--json"], &["observed were mail"]),
        (&["other.parquet", "--slo", "mial=99% < 1s"], &["no workload 'mial'", "there are mail"]),
        (&["policy.json", "part.parquet", "--slo", "wbe=99% < 1s"], &["no workload 'wbe'", "there are web"]),
        // Found before the load is sent: nothing listens at this address.
        (&["policy.json", "--load-file", "load.toml"], &["the policy has web, batch", "observed were wep"]),
    ] {
        let refused = folder.run(&[&["verify"], args].concat()).expect_code(2);
        assert!(refused.stdout.is_empty(), "{args:?}: {}", refused.stdout);
        for part in parts {
            assert!(refused.stderr.contains(part), "{args:?}: {}", refused.stderr);
        }
    }
    // Observed workloads are judged, and the others named.
    let part = folder.run(&["verify", "policy.json", "part.parquet"]).expect_code(0);
    assert!(part.stderr.contains("not observed: batch (observed: web"), "{}", part.stderr);
    let asked =
        folder.run(&["verify", "policy.json", "part.parquet", "--slo", "batch=99% < 1s"]).expect_code(1);
    assert!(asked.stdout.contains("open for lack of requests"), "{}", asked.stdout);
}

#[test]
fn files_of_several_clients_are_one_run() {
    let folder = Folder::new();
    write(&folder, "a.parquet", &["web"], stream(0, 3000, uniform));
    write(
        &folder,
        "b.parquet",
        &["mail", "web"],
        [stream(0, 10, uniform), stream(1, 2000, uniform)].concat(),
    );
    let args = ["verify", "a.parquet", "b.parquet", "--slo", "web=90% < 20ms", "--json"];
    let found = folder.run(&args).expect_code(0).json();
    assert!(found["workloads"][0]["requests"] == 5000 && found["unjudged"][0]["requests"] == 10);
}

#[test]
fn late_sending_spoils_the_verdict() {
    let folder = Folder::new();
    let mut requests = stream(0, 5000, uniform);
    requests.iter_mut().for_each(|at| at.sent = at.intended + Nanos(3_000_000));
    write(&folder, "o.parquet", &["web"], requests);
    let outcome = folder.run(&["verify", "o.parquet", "--slo", "web=90% < 20ms"]).expect_code(3);
    assert!(
        outcome.stdout.contains("sent too late") && outcome.stderr.contains("a tenth"),
        "{}",
        outcome.stderr
    );
    let found =
        folder.run(&["verify", "o.parquet", "--slo", "web=90% < 20ms", "--json"]).expect_code(3).json();
    let web = &found["workloads"][0];
    assert!(
        web["verdict"] == "too_few" && web["lag"]["spoils"] == true && found["verdict"] == "spoiled",
        "{web}"
    );
    // A lag that is small against the SLO does not.
    folder.run(&["verify", "o.parquet", "--slo", "web=90% < 40ms"]).expect_code(0);
}

#[test]
fn faults_say_what_to_do() {
    let folder = Folder::new();
    write(&folder, "o.parquet", &["web"], stream(0, 10, uniform));
    write(&folder, "empty.parquet", &[], Vec::new());
    folder.write("policy.json", POLICY);
    folder.write("ssd.json", PROFILE);
    folder.write("negative.json", &POLICY.replace("\"rate_per_s\": 1e6", "\"rate_per_s\": -1e6"));
    folder.write("text.parquet", "workload,latency\n");
    write(&folder, "lines.parquet", &["w\nAll 1 SLOs met."], stream(0, 10, uniform));
    write(&folder, "unnamed.parquet", &[""], stream(0, 10, uniform));
    for (args, part) in [
        (&["o.parquet"][..], "observed are: web"),
        (&["o.parquet", "--slo", "web"], "NAME=SLO"),
        (&["o.parquet", "--slo", "web=fast"], "99.9% < 200ms"),
        (&["o.parquet", "--slo", "=99% < 1s"], "NAME=SLO"),
        (&["o.parquet", "--slo", "web=99% < 1s", "--confidence", "95"], "0.95"),
        (&["empty.parquet", "--slo", "web=99% < 1s"], "there are no requests"),
        (&["text.parquet", "--slo", "web=99% < 1s"], "text.parquet"),
        (&["lines.parquet", "--slo", "web=99% < 1s"], "there is a workload \"w\\nAll 1 SLOs met.\""),
        (&["unnamed.parquet", "--slo", "web=99% < 1s"], "a name in one line"),
        (&["none.parquet", "--slo", "web=99% < 1s"], "none.parquet"),
        (&["policy.json"], "OBSERVATIONS.parquet"),
        (&["policy.json", "policy.json", "o.parquet"], "at most one policy"),
        (&["negative.json", "o.parquet"], "rate_per_s is -1000000"),
        (&["ssd.json", "o.parquet"], "not a policy"),
        (&["policy.json", "o.parquet", "--storage", "policy.json"], "policy.json"),
    ] {
        let outcome = folder.run(&[&["verify"], args].concat()).expect_code(2);
        assert!(outcome.stderr.contains(part), "{args:?}: {}", outcome.stderr);
    }
}

/// The time that requests wait in the proxy is theirs, and no lag of whoever sent them.
#[test]
fn recordings_of_a_proxy_are_judged_with_the_time_in_the_proxy() {
    let folder = Folder::new();
    let settings = trace::recording::RecordingSettings::default();
    let mut writer =
        trace::recording::RecordingWriter::create(&folder.join("rec"), settings).expect("it is ours");
    for number in 0..5000 {
        let arrival = Nanos(number * 100_000_000);
        let request = trace::recording::RecordableRequest {
            arrival,
            op: Op::Read,
            size: Bytes(4096),
            offset: None,
            response: Nanos(2_000_000_000),
            waited: Nanos(1_999_000_000),
            workload: "web",
            client: None,
        };
        writer.write(&request, arrival + request.response).expect("it is ours");
    }
    writer.finish(Nanos(600_000_000_000)).expect("it is ours");
    let late = folder.run(&["verify", "rec", "--slo", "web=99% < 150ms", "--json"]).expect_code(1).json();
    assert_eq!(late["verdict"], "not_met", "{late}");
    folder.run(&["verify", "rec", "--slo", "web=99% < 3s"]).expect_code(0);
    // All are beyond the bound of whoever kept to the limits, counted from their arrival.
    folder.write("policy.json", POLICY);
    folder.write("ssd.json", PROFILE);
    let found = folder
        .run(&["verify", "policy.json", "rec", "--storage", "ssd.json", "--json"])
        .expect_code(1)
        .json();
    let bound = &found["workloads"][0]["bound"];
    assert!(bound["beyond"] == 5000 && bound["beyond_within_limits"] == 5000, "{found}");
}

#[test]
fn what_would_not_be_judged_is_refused() {
    let folder = Folder::new();
    write(&folder, "o.parquet", &["web"], stream(0, 20_000, uniform));
    folder.write("ssd.json", PROFILE);
    folder.write("slow.json", &PROFILE.replace("1e7", "1e6"));
    folder.write("policy.json", POLICY);
    for profiles in [["ssd.json", "slow.json"], ["slow.json", "ssd.json"]] {
        let [first, second] = profiles;
        let args = ["verify", "policy.json", "o.parquet", "--storage", first, "--storage", second];
        let refused = folder.run(&args).expect_code(2);
        assert!(refused.stderr.contains("two device profiles have the name 'ssd'"), "{}", refused.stderr);
    }
    for (args, said) in [
        (&["--slo", "web=99% < 20ms", "--slo", "web=p99 < 0.02s"][..], "is given twice"),
        (&["--slo", "web=99% < 20ms", "--storage", "ssd.json"], "none is given"),
    ] {
        let refused = folder.run(&[&["verify", "o.parquet"], args].concat()).expect_code(2);
        assert!(refused.stderr.contains(said), "{args:?}: {}", refused.stderr);
    }
}

/// Reads take 2 ms and one 4.5 ms, writes 4 ms.
#[test]
fn each_of_several_slos_is_judged_by_its_requests() {
    let folder = Folder::new();
    folder.write("ssd.json", PROFILE);
    let several = r#""bound_s": 0.012, "further_slos": [
        { "slo": "99% of reads < 5ms", "bound_s": 0.003 }, { "slo": "90% of writes < 3ms", "bound_s": 0.011 } ],"#;
    let policy = POLICY
        .replace(r#""format": "tailwright-policy-1""#, r#""format": "tailwright.policy", "version": 5"#)
        .replace(r#""bound_s": 0.012,"#, several);
    folder.write("policy.json", &policy);
    // Three writes of 4 KiB every 40 ms take 6 % of the device.
    let mut requests = stream(0, 20_000, |n| match n {
        100 => Some(4500),
        n if n % 40 < 3 => Some(4000),
        _ => Some(2000),
    });
    requests.iter_mut().enumerate().filter(|(n, _)| n % 40 < 3).for_each(|(_, it)| it.op = Op::Write);
    write(&folder, "o.parquet", &["web"], requests);
    let run = |more: &[&str]| {
        let args = ["verify", "policy.json", "o.parquet", "--storage", "ssd.json"];
        folder.run(&[&args[..], more].concat())
    };
    let found = run(&["--json", "--report", "p.html"]).expect_code(1).json();
    let findings = found["workloads"].as_array().expect("findings");
    let text = |finding: &serde_json::Value, field: &str| finding[field].as_str().unwrap_or("-").to_owned();
    let said: Vec<_> = findings
        .iter()
        .take(3)
        .map(|it| (text(it, "direction"), text(it, "verdict"), it["requests"].as_u64(), it["max_s"].as_f64()))
        .collect();
    assert_eq!(
        said,
        [
            ("-".to_owned(), "met".to_owned(), Some(20_000), Some(0.0045)),
            ("read".to_owned(), "met".to_owned(), Some(18_500), Some(0.0045)),
            ("write".to_owned(), "not_met".to_owned(), Some(1500), Some(0.004)),
        ]
    );
    // Only the read is beyond its bound; limits are those of all traffic, and are there once.
    let beyond: Vec<_> = findings.iter().map(|it| it["bound"]["beyond"].as_u64()).collect();
    assert_eq!(beyond[..3], [Some(0), Some(1), Some(0)]);
    let limits: Vec<_> = findings.iter().map(|it| it["limits"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(limits[..3], [3, 0, 0]);
    let printed = run(&[]).expect_code(1).stdout;
    for part in ["99% of reads < 5ms", "90% of writes < 3ms", "web: 99% of reads < 5ms"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let page = folder.read("p.html");
    assert!(page.contains("web: 90% of writes &lt; 3ms"), "the page names no SLO of writes");

    // Given SLOs replace all of the policy; its bound is about all requests.
    let reads = run(&["--slo", "web=99% of reads < 5ms", "--json"]).expect_code(0).json();
    assert_eq!(reads["workloads"][0]["direction"], "read");
    assert!(reads["workloads"][0]["bound"].is_null() && reads["workloads"][1]["name"] == "batch", "{reads}");
    let slos = ["--slo", "web=99% of reads < 5ms", "--slo", "web=99% < 20ms", "--slo", "web=50% < 20ms"];
    let several = run(&[&slos[..], &["--json"]].concat()).expect_code(0).json();
    let bounds: Vec<_> = (0..3).map(|at| several["workloads"][at]["bound"]["bound_s"].as_f64()).collect();
    assert_eq!(bounds, [None, Some(0.012), None]);
    let bare = folder.run(&["verify", "o.parquet", "--slo", "web=90% of writes < 3ms"]).expect_code(1);
    assert!(bare.stdout.contains("90% of writes < 3ms"), "{}", bare.stdout);
}
