//! `tailwright ideal`: figures against closed forms and by hand, repeatability, overload, bad input.

use crate::support::Folder;

const MM1: [&str; 5] = ["ideal", "--arrivals", "poisson(500/s)", "--service", "exp(1ms)"];

fn close(value: &serde_json::Value, exact: f64, tolerance: f64) -> bool {
    value.as_f64().is_some_and(|value| (value / exact - 1.0).abs() <= tolerance)
}

#[test]
fn a_queue_is_as_the_closed_form_says() {
    let folder = Folder::new();
    let found = folder.run(&[&MM1[..], &["--requests", "400000", "--json"]].concat()).expect_code(0).json();
    // Exponential with mean 2 ms; one stream has no interval, so the tolerances are ours, and the seed is fixed.
    assert!(close(&found["mean_s"], 0.002, 0.04), "{found}");
    assert!(close(&found["p99_s"], 0.002 * 100f64.ln(), 0.08), "{found}");
    assert!(close(&found["utilisation"], 0.5, 1e-9), "{found}");
    assert_eq!(found["requests"], 400_000);
    for name in ["slowdown_p99", "reordering_pct", "throughput_per_s", "requests_per_wall_s"] {
        assert!(found[name].is_f64(), "{name} in {found}");
    }
}

#[test]
fn a_trace_by_hand() {
    let folder = Folder::new();
    // Three at 0 and one at 10 ms, 2 ms each, one worker: 2, 4, 6 and 2 ms.
    let line = |at: u64| format!("{at},0x1000,DiskRead\n");
    folder.write("t.csv", &[0, 0, 0, 10_000_000].map(line).concat());
    let args = ["ideal", "--trace", "t.csv", "--service", "2ms", "--discipline", "fifo,lifo"];
    let found = folder.run(&[&args[..], &["--json"]].concat()).expect_code(0).json();
    assert!(close(&found["mean_s"], 0.0035, 1e-9) && close(&found["p99_s"], 0.006, 1e-9), "{found}");
    assert!(close(&found["p50_s"], 0.002, 1e-9) && close(&found["slowdown_p99"], 3.0, 1e-9), "{found}");
    // 8 ms of work at two instants, 10 ms apart.
    assert!(close(&found["utilisation"], 0.4, 1e-9), "{found}");
    let lifo = &found["compared"][0];
    assert!(lifo["discipline"] == "lifo" && close(&lifo["mean_s"], 0.0035, 1e-9), "{found}");
    // The second and the third change places.
    assert!(found["reordering_pct"] == 0.0 && lifo["reordering_pct"] == 50.0, "{found}");
    let text = folder.run(&[&args[..], &["--report", "page.html"]].concat()).expect_code(0).stdout;
    assert!(text.contains("utilisation 40.0%") && text.contains("lifo"), "{text}");
    assert!(folder.read("page.html").contains("lifo"));
    let scaled = folder.run(&[&args[..], &["--load", "0.3", "--json"]].concat()).expect_code(0).json();
    assert!(close(&scaled["utilisation"], 0.3, 1e-9), "{scaled}");
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let folder = Folder::new();
    let run = |seed: &str| {
        let args = ["--requests", "2000", "--discipline", "random-request,random-worker", "--seed", seed];
        folder.run(&[&MM1[..], &args].concat()).expect_code(0).stdout
    };
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5"), run("6"));
}

#[test]
fn overload_and_bad_input_are_said() {
    let folder = Folder::new();
    folder.write("empty.csv", "");
    folder.write("negative.csv", "-5,0x1000,DiskRead\n");
    folder.write("back.csv", "5000000,0x1000,DiskRead\n1,0x1000,DiskRead\n");
    folder.write("once.csv", "5,0x1000,DiskRead\n");
    let with = |more: &[&str], part: &str| {
        let outcome = folder.run(&[&["ideal"], more].concat()).expect_code(2);
        assert!(outcome.stderr.contains(part), "'{part}' is not in: {}", outcome.stderr);
    };
    let poisson = ["--arrivals", "poisson(500/s)", "--service"];
    with(
        &[&poisson[..], &["exp(3ms)"]].concat(),
        "unstable: grows without bound; the requests bring 150.0 %",
    );
    with(&[&poisson[..], &["pareto(min=1ms, shape=0.9)"]].concat(), "no load is stable");
    with(&[&poisson[..], &["exp(-1ms)"]].concat(), "column 5");
    with(&[&poisson[..], &["1ms", "--workers", "0"]].concat(), "--workers");
    with(&[&poisson[..], &["1ms", "--load", "1.2"]].concat(), "--load");
    with(&[&poisson[..], &["1ms", "--discipline", "fife"]].concat(), "random-worker");
    for (file, part) in [
        ("empty.csv", "empty"),
        ("negative.csv", "negative.csv"),
        ("back.csv", "back.csv"),
        ("once.csv", "one instant"),
        ("none.csv", "none.csv"),
    ] {
        with(&["--trace", file, "--service", "1ms"], part);
    }
}

/// n requests have n − 1 gaps, and what is not random can be busy all the time.
#[test]
fn work_that_just_fits_is_stable() {
    let folder = Folder::new();
    folder.write(
        "short.csv",
        "arrival_us,size,op\n0,4096,read\n1000,4096,read\n2000,4096,read\n3000,4096,read\n",
    );
    for (service, utilisation) in [("900us", 0.9), ("1ms", 1.0)] {
        let args = ["ideal", "--trace", "short.csv", "--service", service, "--json"];
        let found = folder.run(&args).expect_code(0).json();
        assert!(close(&found["utilisation"], utilisation, 1e-9), "{found}");
        assert!(close(&found["p99_s"], utilisation * 1e-3, 1e-9), "{found}");
    }
    let arrivals = ["ideal", "--arrivals", "constant(1000/s)", "--service"];
    let found = folder.run(&[&arrivals[..], &["1ms", "--json"]].concat()).expect_code(0).json();
    assert!(close(&found["p99_9_s"], 1e-3, 1e-9), "{found}");
    // Twenty requests each 20 ms are a load of 0.8, and 8.4 ms in the mean.
    let batches: String = (0..100).map(|n| format!("{},0x1000,DiskRead\n", n / 20 * 20_000_000)).collect();
    folder.write("batches.csv", &batches);
    let args = ["ideal", "--trace", "batches.csv", "--service", "800us", "--json"];
    let found = folder.run(&args).expect_code(0).json();
    assert!(close(&found["utilisation"], 0.8, 1e-9) && close(&found["mean_s"], 8.4e-3, 1e-9), "{found}");
    let by_chance = ["--discipline", "random-worker", "--workers", "2"];
    folder.run(&[&arrivals[..], &["2ms"], &by_chance].concat()).expect_code(2);
    let random = folder.run(&[&arrivals[..], &["exp(1ms)"]].concat()).expect_code(2);
    assert!(random.stderr.contains("unstable"), "{}", random.stderr);
}

#[test]
fn moments_that_do_not_exist_are_said() {
    let folder = Folder::new();
    let args = ["ideal", "--arrivals", "poisson(300/s)", "--service", "pareto(min=1ms, shape=1.5)"];
    let found = folder.run(&[&args[..], &["--json"]].concat()).expect_code(0).json();
    assert!(found["mean_is_infinite"] == true && found["mean_s"].is_null(), "{found}");
    assert!(found["p50_s"].is_f64() && found["ci"].get("mean_s").is_none(), "{found}");
    for ends in found["ci"].as_object().unwrap().values() {
        assert!(ends[0].as_f64().unwrap() >= 0.0, "{found}");
    }
    let text = folder.run(&args).expect_code(0).stdout;
    assert!(text.contains("infinite"), "{text}");
    let wide = ["ideal", "--arrivals", "poisson(300/s)", "--service", "pareto(min=1ms, shape=2.1)"];
    let text = folder.run(&wide).expect_code(0).stdout;
    assert!(text.contains("too narrow") && !text.contains("infinite"), "{text}");
    let never =
        ["ideal", "--arrivals", "poisson(300/s)", "--service", "pareto(min=1ms, shape=1)", "--load", "0.5"];
    let refused = folder.run(&never).expect_code(2).stderr;
    assert!(refused.contains("mean service time is infinite"), "{refused}");
}

/// Near saturation the queue settles before it is measured, and streams that are too short are said to be.
#[test]
fn a_queue_near_saturation_settles_or_is_said_not_to() {
    let folder = Folder::new();
    let near = ["ideal", "--arrivals", "poisson(980/s)", "--service", "exp(1ms)", "--json"];
    let mut held = 0;
    let mut sum = 0.0;
    for seed in 1..=12 {
        let seed = seed.to_string();
        let found = folder.run(&[&near[..], &["--seed", &seed]].concat()).expect_code(0).json();
        assert!(found["requests_needed"].as_u64().is_some_and(|needed| needed > 200_000), "{found}");
        // The mean of M/M/1 is 1 ms ÷ (1 − 0.98).
        sum += found["mean_s"].as_f64().unwrap();
        let ends = &found["ci"]["mean_s"];
        held += u32::from((ends[0].as_f64().unwrap()..=ends[1].as_f64().unwrap()).contains(&0.05));
    }
    assert!((sum / 12.0 / 0.05 - 1.0).abs() < 0.1, "mean of means {}", sum / 12.0);
    assert!(held >= 9, "{held} of 12 intervals hold the mean");
    let enough = folder.run(&[&MM1[..], &["--json"]].concat()).expect_code(0).json();
    assert!(enough["requests_needed"].is_null(), "{enough}");
}
