//! `examples/image-pipeline` for a second: both services, every mode, every image answered and
//! recognised; and interrupted.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code if something is missing.
const MISSING: i32 = 3;
/// Exit code after an interrupt.
const INTERRUPTED: i32 = 130;

#[test]
fn the_image_pipeline_runs_under_every_mode_and_can_be_interrupted() {
    let Some(python) = testkit::program("python3") else { return };
    let output = pipeline(&python, ["1", "0.2"]).output().expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
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
    an_interrupt_says_nothing(&python);
}

/// Returns the measurement's command, with the environment of an earlier run if there is one.
fn pipeline(python: &Path, [repetitions, load]: [&str; 2]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = std::env::current_exe().expect("this program has a path");
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image-pipeline");
    let mut run = testkit::command_with_signals(python);
    run.arg(root.join("examples/image-pipeline/run.py"));
    run.arg("--library").arg(program.with_file_name("libtailwright_schedule_abi.so"));
    run.arg("--venv").arg(environment).args(["--seconds", "1", "--load", load, "--repetitions", repetitions]);
    run
}

/// Interrupts the measurement like a terminal, all of its processes at once, while images are at the
/// services.
fn an_interrupt_says_nothing(python: &Path) {
    let mut run = pipeline(python, ["1000", "0.8"]);
    let mut run =
        run.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut errors = BufReader::new(run.stderr.take().expect("it is piped"));
    let mut first = String::new();
    errors.read_line(&mut first).expect("text");
    wait_for_images(run.id());
    kill_process_group(Pid::from_child(&run), Signal::INT).expect("it runs");
    let mut rest = String::new();
    // Until the services' output ends, too.
    errors.read_to_string(&mut rest).expect("text");
    let ended = run.wait().expect("it ends");
    assert!(first.starts_with("repetition 1 of 1000"), "{first}{rest}");
    assert_eq!((ended.code(), rest.as_str()), (Some(INTERRUPTED), ""));
}

/// Waits until the measurement has more threads than between repetitions: one for each image.
fn wait_for_images(process: u32) {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.expect("the kernel tells children");
    let measurement = children.split_whitespace().next().expect("it runs");
    let threads = || std::fs::read_dir(format!("/proc/{measurement}/task")).map_or(0, Iterator::count);
    let between = threads();
    while (1..=between).contains(&threads()) {
        std::thread::yield_now();
    }
}
