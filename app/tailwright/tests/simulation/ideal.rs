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
    assert!(close(&found["utilisation"], 0.8, 1e-9), "{found}");
    let lifo = &found["compared"][0];
    assert!(lifo["discipline"] == "lifo" && close(&lifo["mean_s"], 0.0035, 1e-9), "{found}");
    // The second and the third change places.
    assert!(found["reordering_pct"] == 0.0 && lifo["reordering_pct"] == 50.0, "{found}");
    let text = folder.run(&[&args[..], &["--report", "page.html"]].concat()).expect_code(0).stdout;
    assert!(text.contains("utilisation 80.0%") && text.contains("lifo"), "{text}");
    assert!(folder.read("page.html").contains("lifo"));
    let scaled = folder.run(&[&args[..], &["--load", "0.4", "--json"]].concat()).expect_code(0).json();
    assert!(close(&scaled["utilisation"], 0.4, 1e-9), "{scaled}");
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
    with(&[&poisson[..], &["pareto(min=1ms, shape=0.9)"]].concat(), "unstable");
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
