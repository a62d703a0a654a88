//! `tailwright schedule bench` with three tiers of three CPUs each and one for the load: more than most machines have, so a guest
//! has them.
//!
//! Its CPUs take turns at the instructions of one: the kernel's and the program's own work counts ten times, so that requests are
//! long, and the load is low. Only the order of figures is asserted, never a time.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::guest::{Guest, GuestFigures, GuestKernel, be_first_program, report_figure};

const SCENARIO: &str = include_str!("../../../examples/scenarios/schedule-three-by-three.toml");
const MODES: [&str; 3] = ["fair", "limited", "orf"];

#[test]
fn the_oldest_first_on_ten_cpus() {
    if be_first_program(play) {
        return;
    }
    // The first program of the guest has it bring up loopback.
    let Some(ip) = testkit::program("ip") else { return };
    let program = std::env::current_exe().expect("it is running");
    let guest = Guest {
        kernel: &GuestKernel::DEBIAN_13_BACKPORTS,
        cpus: 10,
        program: &program,
        arguments: &["--exact", "the_oldest_first_on_ten_cpus", "--nocapture"],
        others: &[ip, PathBuf::from(env!("CARGO_BIN_EXE_tailwright"))],
        modules: &[],
        cache: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let Some(figures) = guest.play() else { return };
    println!("{figures}");
    the_oldest_run(&figures);
}

/// The bench in the guest, and what it found.
fn play() {
    let scenario = "/tmp/schedule-three-by-three.toml";
    std::fs::write(scenario, SCENARIO).expect("the guest's memory takes files");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    bench.args(["schedule", "bench", scenario, "--modes", &MODES.join(",")]);
    let output =
        bench.args(["--duration", "9s", "--repetitions", "2", "--json"]).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let run = &found["runs"][0];
    report_figure("requests", &run["requests_per_repetition"]);
    for mode in run["modes"].as_array().expect("modes") {
        let name = mode["mode"].as_str().expect("a name");
        for figure in ["p50_s", "p99_s", "lag_p99_s", "reordering_pct"] {
            report_figure(&format!("{name}_{figure}"), &mode[figure]);
        }
        for (tier, share) in (1..).zip(mode["not_among_oldest"].as_array().expect("a limit")) {
            report_figure(&format!("{name}_not_among_oldest_{tier}"), share);
        }
    }
}

/// Behind the first tier the order of arrival is not that of age, which is what the gate goes by. Of the percentiles of so few
/// requests only that of no limit is far enough from the others to be asserted.
fn the_oldest_run(figures: &GuestFigures) {
    let share = |mode: &str, tier: u32| figures.number(&format!("{mode}_not_among_oldest_{tier}"));
    for tier in 1..=3 {
        assert!(share("orf", tier) < 0.02, "tier {tier}: {figures}");
    }
    assert!(figures.number("orf_p99_s") < figures.number("fair_p99_s"), "{figures}");
    let behind = |mode: &str| share(mode, 2) + share(mode, 3);
    assert!(share("orf", 1) < share("fair", 1) && behind("orf") < behind("fair"), "{figures}");
    assert!(behind("orf") < behind("limited"), "{figures}");
}
