//! `examples/image-pipeline` for a second: both services, every mode, every image answered and told right.

use std::path::Path;
use std::process::Command;

/// The exit code where something that it needs is missing.
const MISSING: i32 = 3;

#[test]
fn the_image_pipeline_runs_under_every_mode() {
    let Some(python) = testkit::program("python3") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = std::env::current_exe().expect("this program has a path");
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image-pipeline");
    let mut run = Command::new(python);
    run.arg(root.join("examples/image-pipeline/run.py"));
    run.arg("--library").arg(program.with_file_name("libtailwright_schedule_abi.so"));
    run.arg("--venv").arg(environment).args(["--seconds", "1", "--repetitions", "1", "--load", "0.2"]);
    let output = run.output().expect("Python runs");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(MISSING) {
        return testkit::skip(errors.lines().find(|line| line.starts_with("error: ")).unwrap_or(&errors));
    }
    assert!(output.status.success(), "{said}\n{errors}");
    for mode in ["fair", "fcfs", "limited", "orf-admission"] {
        let line = said.lines().find(|line| line.split_whitespace().next() == Some(mode));
        let shares = line.unwrap_or_else(|| panic!("no line of {mode}: {said}")).split_whitespace();
        let told_right = shares.skip(5).find_map(|share| share.strip_suffix('%')?.parse::<f64>().ok());
        assert!(told_right.is_some_and(|share| share > 90.0), "the network tells lines apart: {said}");
    }
}
